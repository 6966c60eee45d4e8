"""The two eras of the protocol, and the plain shape of requests in each era.

The handshake era (up to 2025-11-25) begins with ``initialize``. In the 2026-07-28 era each request states its
revision in ``params._meta``; there is no handshake. A connection's first request decides, once.

A request of plain shape would pass the SDK's checks as well. Errors about the era and its envelope are worded
here, as the SDK words them. Everything else that is not plain goes to the SDK (`checks`). Tests show that
both decide alike.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal

import msgspec

from greenroom.transports.mcp.frames.frames import INVALID_PARAMS, INVALID_REQUEST, RequestError

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION: Final = "2026-07-28"

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID_KEY: Final = "io.modelcontextprotocol/subscriptionId"

UNSUPPORTED_VERSION: Final = -32022
RESOURCE_NOT_FOUND: Final = -32002
"""The handshake era's error code; the later era answers that the parameters are invalid."""


class Era(Enum):
    """The era of a connection."""

    HANDSHAKE = "handshake"
    MODERN = "modern"


_Object = dict[str, Any]


class _Icon(msgspec.Struct):
    src: str
    mimeType: str | None = None  # noqa: N815  (names of the wire, here and below)
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class _Implementation(msgspec.Struct):
    name: str
    version: str
    title: str | None = None
    description: str | None = None
    icons: list[_Icon] | None = None
    websiteUrl: str | None = None  # noqa: N815


class _Options(msgspec.Struct):
    context: _Object | None = None
    tools: _Object | None = None


class _Elicitation(msgspec.Struct):
    form: _Object | None = None
    url: _Object | None = None


class _Roots(msgspec.Struct):
    listChanged: bool | None = None  # noqa: N815


class _TaskOfElicitation(msgspec.Struct):
    create: _Object | None = None


class _TaskOfSampling(msgspec.Struct):
    createMessage: _Object | None = None  # noqa: N815


class _TaskRequests(msgspec.Struct):
    elicitation: _TaskOfElicitation | None = None
    sampling: _TaskOfSampling | None = None


class _Tasks(msgspec.Struct):
    cancel: _Object | None = None
    list: _Object | None = None
    requests: _TaskRequests | None = None


class _Capabilities(msgspec.Struct):
    elicitation: _Elicitation | None = None
    experimental: dict[str, _Object] | None = None
    extensions: dict[str, _Object] | None = None
    roots: _Roots | None = None
    sampling: _Options | None = None
    tasks: _Tasks | None = None


class Initialize(msgspec.Struct, kw_only=True):
    """The parameters of ``initialize``."""

    protocolVersion: str  # noqa: N815
    capabilities: _Capabilities
    clientInfo: _Implementation  # noqa: N815


_Level = Literal["alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"]


class PlainMeta(msgspec.Struct):
    """The parts of the ``_meta`` of a handshake-era request whose shape matters."""

    progressToken: int | str = 0  # noqa: N815


class Envelope(PlainMeta, kw_only=True):
    """The ``_meta`` of a request of the later era."""

    version: Literal["2026-07-28"] = msgspec.field(name=VERSION_KEY)
    capabilities: _Capabilities = msgspec.field(name=CAPABILITIES_KEY)
    client: _Implementation | None = msgspec.field(name=CLIENT_INFO_KEY, default=None)
    level: _Level | None = msgspec.field(name="io.modelcontextprotocol/logLevel", default=None)


class Nothing(msgspec.Struct):
    """The parameters of a method that has none."""


class Page(msgspec.Struct):
    """The parameters of a listing."""

    cursor: str | None = None


class Named(msgspec.Struct):
    """The parameters of a tool call, without the arguments, which stay raw (`Frame.arguments`)."""

    name: str


class Located(msgspec.Struct):
    """The parameters of a method about one resource."""

    uri: str


class Filling(msgspec.Struct, kw_only=True):
    """The parameters of ``prompts/get``."""

    name: str
    arguments: dict[str, str] | None = None


class OfPrompt(msgspec.Struct, tag_field="type", tag="ref/prompt"):
    """A completion of an argument of a prompt."""

    name: str
    title: str | None = None


class OfTemplate(msgspec.Struct, tag_field="type", tag="ref/resource"):
    """A completion of a variable of a resource template."""

    uri: str


class Argument(msgspec.Struct):
    """An argument of which only the beginning may be written."""

    name: str
    value: str


class Known(msgspec.Struct):
    """The arguments before the completed one."""

    arguments: dict[str, str] | None = None


class Completing(msgspec.Struct, kw_only=True):
    """The parameters of ``completion/complete``."""

    ref: OfPrompt | OfTemplate
    argument: Argument
    context: Known | None = None


class Wanted(msgspec.Struct, kw_only=True):
    """What a client listens for on a stream; tools and resources have no list changes."""

    resourceSubscriptions: list[str] | None = None  # noqa: N815
    promptsListChanged: bool | None = None  # noqa: N815
    toolsListChanged: bool | None = None  # noqa: N815
    resourcesListChanged: bool | None = None  # noqa: N815


class Listening(msgspec.Struct):
    """The parameters of ``subscriptions/listen``."""

    notifications: Wanted


def plain_shape(shape: type[msgspec.Struct], era: Era) -> type[msgspec.Struct]:
    """Return a shape with the ``_meta`` of an era; further members do not fit it."""
    meta: tuple[Any, ...] = ("meta", Envelope) if era is Era.MODERN else ("meta", PlainMeta | None, None)
    return msgspec.defstruct(
        shape.__name__,
        [meta],
        bases=(shape,),
        kw_only=True,
        rename={"meta": "_meta"},
        forbid_unknown_fields=True,
    )


def claims_modern_era(params: dict[str, Any] | None) -> bool:
    """Return whether a request claims the later era."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def check_era(era: Era, method: str, params: dict[str, Any] | None) -> None:
    """Refuse a request of the other era."""
    if era is Era.MODERN and method == "initialize":
        sentence = (
            f"connection is serving the {MODERN_VERSION} protocol; the initialize handshake is not accepted"
        )
        data: dict[str, Any] = {"supported": [MODERN_VERSION]}
        requested = (params or {}).get("protocolVersion")
        if isinstance(requested, str):
            data["requested"] = requested
        raise RequestError(UNSUPPORTED_VERSION, sentence, data)
    if era is Era.HANDSHAKE and method != "initialize" and claims_modern_era(params):
        sentence = (
            "this connection serves the handshake protocol era; "
            f"requests carrying the {MODERN_VERSION} envelope are not accepted on it"
        )
        raise RequestError(INVALID_REQUEST, sentence)


def envelope_of(params: dict[str, Any] | None) -> dict[str, Any]:
    """Return the envelope of a request of the later era, with its required keys.

    Raises:
        RequestError: The envelope is missing, or lacks a key.
    """
    meta = (params or {}).get("_meta")
    if not isinstance(meta, dict):
        keys = f"{VERSION_KEY!r} and {CAPABILITIES_KEY!r}"
        sentence = f"params._meta must be an object carrying the required {keys} envelope keys"
        raise RequestError(INVALID_PARAMS, sentence)
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        sentence = f"params._meta is missing the required envelope key(s): {', '.join(missing)}"
        raise RequestError(INVALID_PARAMS, sentence)
    return meta


def check_version(version: Any) -> None:
    """Refuse a request of the later era with an unsupported revision."""
    if not isinstance(version, str):
        raise RequestError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version != MODERN_VERSION:
        data = {"supported": [MODERN_VERSION], "requested": version}
        raise RequestError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def negotiate_version(requested: str) -> str:
    """Return the revision that answers an ``initialize``."""
    return requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]


def client_name(method: str, params: dict[str, Any] | None) -> str | None:
    """Return the client name that a request states, if any."""
    if params is None:
        return None
    meta = params.get("_meta")
    info = params.get("clientInfo") if method == "initialize" else None
    if info is None and isinstance(meta, dict):
        info = meta.get(CLIENT_INFO_KEY)
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) else None
