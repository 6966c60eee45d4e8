"""One line of a file: checked before anything is staged, with a sentence that names what is wrong."""

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
from greenroom.actors.core.validation.parse import decoded, parse_request
from greenroom.actors.core.validation.strict_json import check_json
from greenroom.actors.memories.requests.transfer import MemoryLine
from greenroom.runtime import Refusal

_NO_OBJECT = b"{}"
_decode = msgspec.json.Decoder(MemoryLine).decode
_encode = msgspec.json.Encoder().encode


class CheckedLine(NamedTuple):
    """A line that can be imported.

    Attributes:
        raw: Its JSON, with its namespace.
        root: The root of that.
        namespace: Where it goes.
        identity: What no other line of the file may have.
    """

    raw: bytes
    root: str
    namespace: str
    identity: tuple[str, ...]


def check_line(raw: bytes, namespace: str, principal: Principal) -> CheckedLine:
    """Return a line that can be imported.

    Args:
        raw: JSON as it stands in the file.
        namespace: Where it goes if it does not say.
        principal: Who imports.

    Raises:
        Refusal: it cannot be; the sentence names the field, what it takes, and what was given.
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
        raise auth_errors.invalid("supersedes", "supersedes: a memory cannot take the place of itself")
    taken = line if policy.may_name_authors(principal) else _with_claim(line, principal)
    if taken is not line or line.namespace is None:
        raw = _encode(msgspec.structs.replace(taken, namespace=place))
    scope = "" if root.startswith((names.AGENT, names.USER)) else line.scope or "shared"
    return CheckedLine(raw, root, place, (place, line.key, line.session_id or "", scope))


def _with_claim(line: MemoryLine, principal: Principal) -> MemoryLine:
    """Return a line with the importing agent as author, and the source's as a claim.

    Where the source has a claim itself, that one is kept, so that claims do not nest.
    """
    says = line.created_by if line.imported is None else line.imported.created_by
    imported = import_source(None if says == principal.agent_id else says) or None
    if line.created_by is None and line.imported == imported:
        return line
    return msgspec.structs.replace(line, created_by=None, imported=imported)


def read_line(raw: bytes) -> tuple[MemoryLine, bytes]:
    """Return a line of strictly valid JSON that has the fields of one, and that JSON with times in full.

    Raises:
        Refusal: as `check_line`.
    """
    check_json(raw)
    try:
        return decoded(MemoryLine, raw)
    except msgspec.DecodeError as error:
        if len(raw) <= MAX_VALUE_BYTES:
            parse_request(MemoryLine, raw)  # which says it in the user's words
        raise auth_errors.invalid("line", str(error)) from None


def decode_line(raw: bytes | msgspec.Raw) -> MemoryLine:
    """Return a line that was checked before."""
    return _decode(raw)


def metadata_of(line: MemoryLine) -> bytes:
    """Return a line's metadata as JSON; null, as many programs leave an object out, is an empty one."""
    raw = _NO_OBJECT if isinstance(line.metadata, UnsetType) else bytes(line.metadata)
    return _NO_OBJECT if raw == b"null" else raw


def check_namespace(namespace: str) -> str:
    """Return a namespace as it is.

    Raises:
        Refusal: it is none.
    """
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
    """Return leading segments of namespaces as they are.

    Raises:
        Refusal: they are none.
    """
    parse_request(_Below, _encode({"namespace": prefix}))
    return prefix


class _Where(msgspec.Struct):
    namespace: Namespace


class _Below(msgspec.Struct):
    namespace: Below


class LineError(NamedTuple):
    """Why a line cannot be imported, and where it stands."""

    place: str
    sentence: str
    field: str | None


def line_error(place: str, refusal: Refusal) -> LineError:
    """Return what is wrong with a line, and where."""
    field = refusal.details.get("field")
    return LineError(place, refusal.sentence, field if isinstance(field, str) else None)
