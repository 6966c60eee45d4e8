"""Make drafts from requests: known fields of metadata, contents, expiry, keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.validation.parse import parse_part
from greenroom.actors.core.validation.times import parse_time_argument, to_microseconds
from greenroom.actors.memories.requests.requests import StoreMemory, UpdateMemory
from greenroom.actors.memories.storage import records

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of metadata with a meaning; null counts as absent."""

    tags: kinds.Tags | UnsetType | None = UNSET
    importance: kinds.Fraction | UnsetType | None = UNSET
    expiry: str | UnsetType | None = UNSET
    scope: kinds.Scope | UnsetType | None = UNSET


class Metadata(NamedTuple):
    """The metadata of a request, split into known fields and others.

    ``beside`` names the known fields that were passed as arguments, outside of the metadata.
    """

    known: Known
    others: Mapping[str, msgspec.Raw]
    beside: frozenset[str] = frozenset()


def read_metadata(request: StoreMemory | UpdateMemory) -> Metadata:
    """Read ``metadata`` and the known fields that were passed as arguments."""
    raw = request.metadata
    known = parse_part(Known, bytes(raw), "metadata")
    others = {name: value for name, value in _members(raw).items() if name not in kinds.KNOWN}
    beside: dict[str, Any] = {}
    for name in kinds.KNOWN:
        value, inner = getattr(request, name), getattr(known, name)
        if value is UNSET or value is None:
            continue
        if inner is not UNSET and inner != value:
            raise auth_errors.invalid(
                name, f"{name}: it is given here and as metadata.{name}, and they differ; give one of them"
            )
        beside[name] = value
    return Metadata(msgspec.structs.replace(known, **beside), others, frozenset(beside))


def is_empty(metadata: Metadata) -> bool:
    """Return whether a request has neither metadata nor known fields."""
    return not metadata.others and all(getattr(metadata.known, name) is UNSET for name in kinds.KNOWN)


def to_object(members: Mapping[str, msgspec.Raw]) -> bytes:
    """Return the JSON object of members."""
    pairs = (msgspec.json.encode(name) + b":" + bytes(value) for name, value in members.items())
    return b"{" + b",".join(pairs) + b"}"


def merge_metadata(stored: bytes, others: Mapping[str, msgspec.Raw]) -> bytes:
    """Merge members into stored metadata; null removes a member."""
    if not others:
        return stored
    members = {**_members(stored), **others}
    return to_object({name: value for name, value in members.items() if bytes(value) != b"null"})


def content_of(content: str | None, value: msgspec.Raw | UnsetType) -> tuple[bytes, int] | None:
    """Return a content or a value as bytes, and its form; None without either.

    A value of null beside a content counts as absent, because some clients send every argument.
    """
    if content is not None and value is not UNSET and bytes(value) != b"null":
        raise auth_errors.invalid("value", "value: give either content or value, not both")
    if content is not None:
        text = content.encode()
        if len(text) > kinds.MAX_CONTENT_BYTES:
            raise auth_errors.too_large("content", len(text), kinds.MAX_CONTENT_BYTES)
        return text, records.TEXT
    return None if isinstance(value, UnsetType) else (bytes(value), records.JSON)


def expiry_time(metadata: Metadata, now: int) -> int | None:
    """Return the expiry in microseconds since 1970; a date lasts until its end in UTC."""
    given = metadata.known.expiry
    if not isinstance(given, str):
        return None
    field = "expiry" if "expiry" in metadata.beside else "metadata.expiry"
    ends = to_microseconds(parse_time_argument(field, given, ends_day=True))
    if ends <= now:
        raise auth_errors.invalid(field, f"{field}: {given!r} is past")
    return ends


def generate_key(random_bytes: bytes) -> str:
    """Return a generated key for a memory without one."""
    return f"memory_{random_bytes[:8].hex()}"
