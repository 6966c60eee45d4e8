"""A session's metadata and state: JSON objects kept one top-level key a record.

So a change rewrites what changed, and every value stays the bytes that were received.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from greenroom.actors.core.auth.errors import MAX_VALUE_BYTES, too_large
from greenroom.runtime import Context, Slices


class Field(msgspec.Struct, frozen=True, array_like=True):
    """One top-level key and the JSON of its value."""

    key: str
    value: bytes


class NumberedField(NamedTuple):
    """A field and the number in its record's key."""

    ordinal: int
    field: Field


_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def load(context: Context, prefix: bytes) -> Slices[dict[str, NumberedField]]:
    """Return the object stored under ``prefix``, in the order in which its keys first came."""
    fields: dict[str, NumberedField] = {}
    for key, field in context.scan(Field, prefix=prefix):
        fields[field.key] = NumberedField(int.from_bytes(key[len(prefix) :]), field)
        if context.should_yield():
            yield
    return fields


def load_json(context: Context, prefix: bytes) -> Slices[msgspec.Raw]:
    """Return the object stored under ``prefix`` as JSON."""
    return msgspec.Raw((yield from to_json(context, (yield from load(context, prefix)))))


def merged(
    context: Context, name: str, stored: dict[str, NumberedField], given: msgspec.Raw
) -> Slices[list[NumberedField]]:
    """Return the fields to write so that ``given``'s keys replace those of ``stored``.

    Raises:
        Refusal: ``VALIDATION_ERROR``: the whole would exceed 1 MB; ``name`` says of what.
    """
    changes = yield from replaced(context, stored, given)
    changed = {placed.field.key: placed for placed in changes}
    whole = yield from to_json(context, {**stored, **changed})
    if changes and len(whole) > MAX_VALUE_BYTES:
        raise too_large(name, len(whole))
    return changes


def replaced(
    context: Context, stored: dict[str, NumberedField], given: msgspec.Raw
) -> Slices[list[NumberedField]]:
    """Return what `merged` does, however large the whole gets."""
    fresh = 1 + max((placed.ordinal for placed in stored.values()), default=-1)
    changes: dict[str, NumberedField] = {}
    for key, value in _split(given).items():
        old = stored.get(key)
        changes[key] = NumberedField(fresh if old is None else old.ordinal, Field(key, bytes(value)))
        fresh += old is None
        if context.should_yield():
            yield
    return list(changes.values())


def put(context: Context, prefix: bytes, changes: Iterable[NumberedField]) -> Slices[None]:
    """Stage changed fields."""
    for ordinal, field in changes:
        context.put(prefix + ordinal.to_bytes(4), field)
        if context.should_yield():
            yield


def drop(context: Context, prefix: bytes, unwanted: Callable[[str], bool]) -> Slices[None]:
    """Stage the removal of the fields whose key is unwanted."""
    for key, field in list(context.scan(Field, prefix=prefix)):
        if unwanted(field.key):
            context.delete(key)
        if context.should_yield():
            yield


def to_json(context: Context, fields: dict[str, NumberedField]) -> Slices[bytes]:
    """Return the JSON object of these fields."""
    pairs: list[bytes] = []
    for _, field in fields.values():
        pairs.append(msgspec.json.encode(field.key) + b":" + field.value)
        if context.should_yield():
            yield
    return b"{" + b",".join(pairs) + b"}"
