"""Check a line of an import file before it is staged; errors name the field."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.errors import MAX_VALUE_BYTES
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.memory_types import MAX_IMPORTED_BYTES, Below, Namespace, import_source
from greenroom.actors.core.validation.parse import decode_request, parse_request
from greenroom.actors.core.validation.strict_json import check_json
from greenroom.actors.memories.requests.transfer import MemoryLine
from greenroom.runtime import Refusal

_NO_OBJECT = b"{}"
_decode = msgspec.json.Decoder(MemoryLine).decode
_encode = msgspec.json.Encoder().encode


class CheckedLine(NamedTuple):
    """A line that can be imported, with its namespace.

    ``identity`` must be unique in the file.
    """

    raw: bytes
    root: str
    namespace: str
    identity: tuple[str, ...]


def check_line(raw: bytes, namespace: str, principal: Principal) -> CheckedLine:
    """Check a line of an import file; ``namespace`` is the default for lines without one.

    Raises:
        Refusal: the line is invalid; the sentence names the field, what it takes, and the value.
    """
    line, raw = read_line(raw)
    place = line.namespace or namespace
    policy.check_writes_namespace(principal, place)
    root = names.root_of(place)
    _check_values(line)
    if line.session_id is not None and place != names.agent_namespace(principal):
        raise auth_errors.invalid(
            "session_id", f"session_id: only memories of the agent's own namespace have one, not {place!r}"
        )
    if line.supersedes == line.key:
        raise auth_errors.invalid("supersedes", "supersedes: a memory cannot supersede itself")
    checked = line if policy.may_name_authors(principal) else _with_claim(line, principal)
    if checked is not line or line.namespace is None:
        raw = _encode(msgspec.structs.replace(checked, namespace=place))
    scope = "" if root.startswith((names.AGENT, names.USER)) else line.scope or "shared"
    return CheckedLine(raw, root, place, (place, line.key, line.session_id or "", scope))


def _with_claim(line: MemoryLine, principal: Principal) -> MemoryLine:
    """Return a line with the importing agent as author; the source's author becomes a claim.

    A claim in the source is kept, so that claims do not nest.
    """
    claim = line.created_by if line.imported is None else line.imported.created_by
    imported = import_source(None if claim == principal.agent_id else claim) or None
    if line.created_by is None and line.imported == imported:
        return line
    return msgspec.structs.replace(line, created_by=None, imported=imported)


def read_line(raw: bytes) -> tuple[MemoryLine, bytes]:
    """Parse a line of strictly valid JSON; return it, and the JSON with complete times."""
    check_json(raw)
    try:
        return decode_request(MemoryLine, raw)
    except msgspec.DecodeError as error:
        if len(raw) <= MAX_VALUE_BYTES:
            parse_request(MemoryLine, raw)  # raises with a clearer sentence
        raise auth_errors.invalid("line", str(error)) from None


def decode_line(raw: bytes | msgspec.Raw) -> MemoryLine:
    """Decode a line that was checked before."""
    return _decode(raw)


def metadata_of(line: MemoryLine) -> bytes:
    """Return a line's metadata as JSON; null, as some programs write, is an empty object."""
    raw = _NO_OBJECT if isinstance(line.metadata, UnsetType) else bytes(line.metadata)
    return _NO_OBJECT if raw == b"null" else raw


def check_namespace(namespace: str) -> str:
    """Check a namespace, and return it unchanged."""
    parse_request(_Where, _encode({"namespace": namespace}))
    return namespace


def _check_values(line: MemoryLine) -> None:
    if (line.content is None) == (line.value is UNSET):
        raise auth_errors.invalid("content", "content: a line has either content or value")
    name, size = "content", 0
    if line.content is not None:
        size = len(line.content) if line.content.isascii() else len(line.content.encode())
    elif isinstance(line.value, msgspec.Raw):
        name, size = "value", len(bytes(line.value))
    if size > MAX_IMPORTED_BYTES:
        raise auth_errors.too_large(name, size, MAX_IMPORTED_BYTES)
    metadata = metadata_of(line)
    if len(metadata) > MAX_VALUE_BYTES:
        raise auth_errors.too_large("metadata", len(metadata))
    if not metadata.startswith(b"{"):
        raise auth_errors.invalid(
            "metadata", f"metadata: it takes an object and got {metadata[:40].decode()}"
        )


def check_below(prefix: str) -> str:
    """Check leading segments of namespaces, and return them unchanged."""
    parse_request(_Below, _encode({"namespace": prefix}))
    return prefix


class _Where(msgspec.Struct):
    namespace: Namespace


class _Below(msgspec.Struct):
    namespace: Below


class LineError(NamedTuple):
    """Why a line cannot be imported, and its place in the file."""

    place: str
    sentence: str
    field: str | None


def to_line_error(place: str, refusal: Refusal) -> LineError:
    """Convert the refusal of a line."""
    field = refusal.details.get("field")
    return LineError(place, refusal.sentence, field if isinstance(field, str) else None)
