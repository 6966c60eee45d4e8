"""From what was asked to a draft: the fields that metadata knows, and what an update leaves as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors import _refusals
from greenroom.actors._parse import parse_part
from greenroom.actors._times import read_time, to_microseconds
from greenroom.actors.memory import _records as records
from greenroom.actors.requests import _memory_types as kinds

if TYPE_CHECKING:
    from collections.abc import Mapping

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of metadata that mean something; null is as if it was not there."""

    tags: kinds.Tags | UnsetType | None = UNSET
    importance: kinds.Fraction | UnsetType | None = UNSET
    expiry: str | UnsetType | None = UNSET
    scope: kinds.Scope | UnsetType | None = UNSET


_KNOWN = frozenset(Known.__struct_fields__)


class Metadata(NamedTuple):
    """What was given as metadata.

    Attributes:
        known: The fields that mean something.
        others: The rest, each as the bytes received.
    """

    known: Known
    others: Mapping[str, msgspec.Raw]


def read_metadata(raw: msgspec.Raw) -> Metadata:
    """Return what a JSON object given as ``metadata`` holds.

    Raises:
        Refusal: ``VALIDATION_ERROR``: a known field is not what it must be.
    """
    known = parse_part(Known, bytes(raw), "metadata")
    return Metadata(known, {name: value for name, value in _members(raw).items() if name not in _KNOWN})


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
    """Return what was given as bytes, and its form; None for nothing.

    Raises:
        Refusal: ``VALIDATION_ERROR``: both were given, or too much.
    """
    if content is not None and value is not UNSET:
        raise _refusals.invalid("value", "value: give either content or value, not both")
    if content is not None:
        text = content.encode()
        if len(text) > kinds.MAX_CONTENT_BYTES:
            raise _refusals.too_large("content", len(text), kinds.MAX_CONTENT_BYTES)
        return text, records.TEXT
    return None if isinstance(value, UnsetType) else (bytes(value), records.JSON)


def expiry_time(given: str | UnsetType | None, now: int) -> int | None:
    """Return when something given an expiry ends, in microseconds since 1970; a day lasts until its end, UTC.

    Raises:
        Refusal: ``VALIDATION_ERROR``: it is no time, or it is past.
    """
    if not isinstance(given, str):
        return None
    try:
        ends = to_microseconds(read_time(given, ends_day=True))
    except (ValueError, OverflowError):
        raise _refusals.invalid(
            "metadata.expiry",
            "metadata.expiry: it takes a date such as 2026-01-31 or a time such as 2026-01-31T12:00:00Z "
            f"and got {given[:60]!r}",
        ) from None
    if ends <= now:
        raise _refusals.invalid("metadata.expiry", f"metadata.expiry: {given!r} is past")
    return ends


def made_up_key(random_bytes: bytes) -> str:
    """Return a key for a memory whose writer gave none."""
    return f"memory_{random_bytes[:8].hex()}"
