"""The caller of a connection: its claimed identity and its rate limit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple, cast
from urllib.parse import parse_qsl, unquote

import msgspec

from greenroom.actors.core.auth.grants import Credential
from greenroom.actors.core.auth.key_format import has_key
from greenroom.actors.core.auth.tool_profiles import SCHEMA_FORMS, TOOL_PROFILES, SchemaForm
from greenroom.transports.base.config.parsers import name, word
from greenroom.transports.base.errors import AccessDeniedError, HttpRefusedError, InvalidValueError

AGENT_ID_LENGTH: Final = 100
NAMELESS_AGENT: Final = "agent"

Headers = Iterable[tuple[bytes, bytes]]
"""The headers of a request, with names in lower case."""

_IDENTITY: Final[Mapping[str, tuple[bytes, Callable[[object], str]]]] = {
    "agent": (b"greenroom-agent", name(100)),
    "agent_type": (b"greenroom-agent-type", name(100)),
    "project": (b"greenroom-project", name(128)),
    "tools": (b"greenroom-tools", word(*TOOL_PROFILES)),
    "schemas": (b"greenroom-schemas", word(*SCHEMA_FORMS)),
}
IDENTITY_HEADERS: Final = frozenset(header for header, _read in _IDENTITY.values())
_SECRET_PARAMETERS: Final = frozenset(
    {"access_token", "api_key", "apikey", "auth", "authorization", "bearer", "key", "password", "token"}
)
_REMEMBERED: Final = 256  # a client sends the same headers with each of its requests


class ToolChoice(NamedTuple):
    """The client's choice of how its tools are listed.

    Attributes:
        profiles: The tool profiles; empty means the server's profiles.
        schemas: The form of the parameters' schemas; None means the server's form.
    """

    profiles: tuple[str, ...] = ()
    schemas: SchemaForm | None = None


NO_CHOICE: Final = ToolChoice()


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of a connection: the identity that it claims, and its credential.

    Attributes:
        agent: Its agent id; None means the client's own name.
        agent_type: Its agent type; None if it stated none.
        projects: The projects that it named; empty if it named none.
        tools: The tool profiles that it chose; empty if it chose none.
        schemas: The form of schemas that it chose; None if it chose none.
        credential: Its credential; None if it needed none.
        address: Its address, if known.
        is_single_request: Whether it makes only this request, with no state from earlier requests.
        is_person: Whether it is a logged-in browser, which shows pages to a person.
    """

    agent: str | None = None
    agent_type: str | None = None
    projects: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    schemas: SchemaForm | None = None
    credential: Credential | None = None
    address: str | None = None
    is_single_request: bool = False
    is_person: bool = False

    @property
    def tool_choice(self) -> ToolChoice:
        """How its tools are listed: by its own request, or else by its credential."""
        if self.credential is None:
            return ToolChoice(self.tools, self.schemas)
        grant = self.credential.grant
        return ToolChoice(self.tools or grant.tools, self.schemas or grant.schemas)

    @property
    def identity(self) -> tuple[object, ...]:
        """The values that tell callers apart; the choice of tools is not part of it."""
        credential = self.credential
        return self.agent, self.agent_type, self.projects, None if credential is None else credential.id


NOBODY: Final = Caller()


class RateLimit(NamedTuple):
    """Two token buckets; each takes trio's time and returns the seconds to wait.

    Attributes:
        request: Counts a request.
        frame: Counts every message, requests included.
    """

    request: Callable[[float], float]
    frame: Callable[[float], float]


def fit_agent_id(name: str | None) -> str:
    """Convert a client's own name to an agent id: 1-100 characters of ``A-Za-z0-9_.-``."""
    plain = unicodedata.normalize("NFKD", name or "").encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", plain).strip("-")[:AGENT_ID_LENGTH] or NAMELESS_AGENT


def header_values(headers: Headers, wanted: bytes) -> list[str]:
    """Return the values of all headers of one name."""
    return [value.decode("latin-1").strip() for name, value in headers if name == wanted]


def caller_of(query: str, headers: Headers) -> Caller:
    """Return the caller that a request names in its URL's query or its headers.

    Raises:
        HttpRefusedError: A value is invalid, or is given twice.
    """
    return _caller_of(query, tuple(each for each in headers if each[0] in IDENTITY_HEADERS))


@lru_cache(_REMEMBERED)
def _caller_of(query: str, headers: tuple[tuple[bytes, bytes], ...]) -> Caller:
    given = _parse_query(query)
    for key, (header, _read) in _IDENTITY.items():
        values = [part.strip() for value in header_values(headers, header) for part in value.split(",")]
        if values and key in given:
            sentence = f"{key} is in the URL and in the header {header.decode()}; give it once"
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence)
        if values:
            given[key] = values
    return Caller(
        agent=_single("agent", given),
        agent_type=_single("agent_type", given),
        projects=_several("project", given.get("project", ())),
        tools=_several(
            "tools", [part.strip() for each in given.get("tools", ()) for part in each.split(",")]
        ),
        schemas=cast("SchemaForm | None", _single("schemas", given)),
    )


def _parse_query(query: str) -> dict[str, list[str]]:
    refuse_secrets(query)
    try:
        pairs = (
            parse_qsl(query, keep_blank_values=True, strict_parsing=True, errors="strict") if query else []
        )
    except ValueError:
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "the URL's query cannot be read") from None
    given: dict[str, list[str]] = {}
    for key, value in pairs:
        if key not in _IDENTITY:
            known = ", ".join(_IDENTITY)
            sentence = f"the URL has no parameter {key[:50]!r}; it takes {known}"
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence)
        given.setdefault(key, []).append(value)
    return given


def refuse_secrets(query: str) -> None:
    """Refuse a URL with a key in it: URLs are logged, also by proxies.

    Raises:
        AccessDeniedError: There is a key in the URL.
    """
    named = {part.partition("=")[0].lower().replace("-", "_") for part in query.split("&")}
    if has_key(unquote(query)) or not _SECRET_PARAMETERS.isdisjoint(named):
        sentence = (
            "a key or a token does not belong in a URL, which logs record; "
            "send the header Authorization: Bearer, and revoke a key that was in one"
        )
        raise AccessDeniedError(HTTPStatus.BAD_REQUEST, sentence)


def _single(key: str, given: dict[str, list[str]]) -> str | None:
    values = given.get(key, [])
    if len(values) > 1:
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, f"{key} is given {len(values)} times; give it once")
    return _checked(key, values[0]) if values else None


def _several(key: str, values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_checked(key, value) for value in values))


def _checked(key: str, value: str) -> str:
    if has_key(value):
        raise AccessDeniedError(
            HTTPStatus.BAD_REQUEST, f"{key} holds an API key; revoke it, for logs may keep it"
        )
    try:
        return _IDENTITY[key][1](value)
    except InvalidValueError as error:
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, f"{key} is {value[:100]!r}, but {error}") from None
