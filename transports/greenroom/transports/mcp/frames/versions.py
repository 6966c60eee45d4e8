"""The two eras of the protocol, and what a request of each looks like when nothing is odd about it.

The handshake era (up to 2025-11-25) begins with ``initialize``. In the era of 2026-07-28 each
request says in ``params._meta`` which revision it is of; it has no handshake. A connection's
first request decides, once.

What is judged plain here the SDK would let pass, too, and but for a request of the other era
(`era_mismatch`) nothing here words an error: a request that is not plain goes to the SDK, which has
the last word and the reason (`sdk_server`). A test shows that both judge alike.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal

import msgspec

from greenroom.transports.mcp.frames.frames import INVALID_REQUEST

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION: Final = "2026-07-28"

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID_KEY: Final = "io.modelcontextprotocol/subscriptionId"

UNSUPPORTED_VERSION: Final = -32022
RESOURCE_NOT_FOUND: Final = -32002
"""What the handshake era answers; the later one answers that the parameters are invalid."""


class Era(Enum):
    """Which of the two a connection speaks."""

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


class _Initialize(msgspec.Struct, forbid_unknown_fields=True, rename={"meta": "_meta"}):
    protocolVersion: str  # noqa: N815
    capabilities: _Capabilities
    clientInfo: _Implementation  # noqa: N815
    meta: msgspec.UnsetType | dict[str, Any] = msgspec.UNSET


_Level = Literal["alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"]


class _Envelope(msgspec.Struct):
    version: Literal["2026-07-28"] = msgspec.field(name=VERSION_KEY)
    capabilities: _Capabilities = msgspec.field(name=CAPABILITIES_KEY)
    client: _Implementation | None = msgspec.field(name=CLIENT_INFO_KEY, default=None)
    level: _Level | None = msgspec.field(name="io.modelcontextprotocol/logLevel", default=None)


def opens_modern_era(method: str, params: dict[str, Any] | None) -> bool:
    """Return whether a connection whose first request this is speaks the later era."""
    return method != "initialize" and claims_modern_era(params)


def claims_modern_era(params: dict[str, Any] | None) -> bool:
    """Return whether a request says that it is of the later era."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def era_mismatch(
    era: Era, method: str, params: dict[str, Any] | None
) -> tuple[int, str, dict[str, Any] | None] | None:
    """Return the code, the sentence and the data for a request of the other era; None for one of this."""
    if era is Era.MODERN and method == "initialize":
        sentence = (
            f"connection is serving the {MODERN_VERSION} protocol; the initialize handshake is not accepted"
        )
        data: dict[str, Any] = {"supported": [MODERN_VERSION]}
        requested = (params or {}).get("protocolVersion")
        if isinstance(requested, str):
            data["requested"] = requested
        return UNSUPPORTED_VERSION, sentence, data
    if era is Era.HANDSHAKE and method != "initialize" and claims_modern_era(params):
        sentence = (
            "this connection serves the handshake protocol era; "
            f"requests carrying the {MODERN_VERSION} envelope are not accepted on it"
        )
        return INVALID_REQUEST, sentence, None
    return None


def is_plain(era: Era, params: dict[str, Any] | None) -> bool:
    """Return whether nothing is odd about a request's ``_meta``."""
    meta = None if params is None else params.get("_meta")
    if era is Era.MODERN:
        return type(meta) is dict and _is_plain_token(meta) and _fits(meta, _Envelope)
    return meta is None or (type(meta) is dict and _is_plain_token(meta))


def is_plain_initialize(params: dict[str, Any] | None) -> bool:
    """Return whether nothing is odd about the parameters of ``initialize``."""
    return is_plain(Era.HANDSHAKE, params) and _fits(params, _Initialize)


def negotiate_version(requested: str) -> str:
    """Return the revision that answers an ``initialize``."""
    return requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]


def client_name(method: str, params: dict[str, Any] | None) -> str | None:
    """Return the name that a request gives its client, if it gives one."""
    if params is None:
        return None
    meta = params.get("_meta")
    info = params.get("clientInfo") if method == "initialize" else None
    if info is None and isinstance(meta, dict):
        info = meta.get(CLIENT_INFO_KEY)
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) else None


def _is_plain_token(meta: dict[str, Any]) -> bool:
    return type(meta.get("progressToken", 0)) in {int, str}


def _fits(value: Any, shape: type[msgspec.Struct]) -> bool:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError:
        return False
    return True
