"""From what was asked to a draft: the fields that metadata knows, and what an update leaves as it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.validation.parse import parse_part
from greenroom.actors.core.validation.times import given_time, to_microseconds
from greenroom.actors.memories.requests.requests import StoreMemory, UpdateMemory
from greenroom.actors.memories.storage import records

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of metadata that mean something; null is as if it was not there."""

    tags: kinds.Tags | UnsetType | None = UNSET
    importance: kinds.Fraction | UnsetType | None = UNSET
    expiry: str | UnsetType | None = UNSET
    scope: kinds.Scope | UnsetType | None = UNSET


class Metadata(NamedTuple):
    """The metadata of a request, its known fields apart.

    Attributes:
        known: The fields that mean something.
        others: The rest, each as the bytes received.
        beside: Those of the known fields that were given beside the metadata.
    """

    known: Known
    others: Mapping[str, msgspec.Raw]
    beside: frozenset[str] = frozenset()


def read_metadata(request: StoreMemory | UpdateMemory) -> Metadata:
    """Read ``metadata``, with the known fields that were given beside it.

    Raises:
        Refusal: ``VALIDATION_ERROR``: a known field is not what it must be, or is given twice and differs.
    """
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


def changes_nothing(metadata: Metadata) -> bool:
    """Return whether nothing was given as metadata or beside it."""
    return not metadata.others and all(getattr(metadata.known, name) is UNSET for name in kinds.KNOWN)


def joined(members: Mapping[str, msgspec.Raw]) -> bytes:
    """Return the JSON object of these members."""
    pairs = (msgspec.json.encode(name) + b":" + bytes(value) for name, value in members.items())
    return b"{" + b",".join(pairs) + b"}"


def merged(stored: bytes, others: Mapping[str, msgspec.Raw]) -> bytes:
    """Return stored metadata with these members in the place of its own; null removes one."""
    if not others:
        return stored
    members = {**_members(stored), **others}
    return joined({name: value for name, value in members.items() if bytes(value) != b"null"})


def content_of(content: str | None, value: msgspec.Raw | UnsetType) -> tuple[bytes, int] | None:
    """Return the given content or value as bytes, and its form; None where neither is given.

    A value of null beside a content is not given: some clients can leave nothing out.

    Raises:
        Refusal: ``VALIDATION_ERROR``: both were given, or too much.
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
    """Return when something given an expiry ends, in microseconds since 1970; a day lasts until its end, UTC.

    Raises:
        Refusal: ``VALIDATION_ERROR``: it is no time, or it is past.
    """
    given = metadata.known.expiry
    if not isinstance(given, str):
        return None
    field = "expiry" if "expiry" in metadata.beside else "metadata.expiry"
    ends = to_microseconds(given_time(field, given, ends_day=True))
    if ends <= now:
        raise auth_errors.invalid(field, f"{field}: {given!r} is past")
    return ends


def made_up_key(random_bytes: bytes) -> str:
    """Return a key for a memory whose writer gave none."""
    return f"memory_{random_bytes[:8].hex()}"
