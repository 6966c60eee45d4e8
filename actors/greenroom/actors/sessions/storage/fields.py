"""Metadata and state of a session: JSON objects, one record for each top-level key.

So a write touches only the changed keys, and every value stays byte for byte as received.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from greenroom.actors.core.auth.errors import MAX_VALUE_BYTES, too_large
from greenroom.actors.core.replies.damage import damaged_entry, filter_damage, note_damage
from greenroom.runtime import Context, RecordDamagedError, Slices, pass_over


class Field(msgspec.Struct, frozen=True, array_like=True):
    """One top-level key and the JSON of its value."""

    key: str
    value: bytes


class NumberedField(NamedTuple):
    """A field with the number in its record's key."""

    ordinal: int
    field: Field


_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def load(
    context: Context, prefix: bytes, on_damage: Callable[[RecordDamagedError], None] = lambda _: None
) -> Slices[dict[str, NumberedField]]:
    """Return the object stored under ``prefix``, its keys in the order of creation.

    A damaged field is left out: setting its key again creates a new field.
    """
    fields: dict[str, NumberedField] = {}
    for key, field in context.scan(Field, prefix=prefix, on_damage=on_damage):
        fields[field.key] = NumberedField(int.from_bytes(key[len(prefix) :]), field)
        yield
    return fields


def load_json(context: Context, prefix: bytes) -> Slices[msgspec.Raw]:
    """Return the object stored under ``prefix`` as JSON; the reply reports damaged fields."""

    def report(error: RecordDamagedError) -> None:
        note_damage(context, damaged_entry(error, "a field"))

    fields = yield from load(context, prefix, filter_damage(context, prefix, report))
    return msgspec.Raw((yield from to_json(fields)))


def merge(name: str, stored: dict[str, NumberedField], given: msgspec.Raw) -> Slices[list[NumberedField]]:
    """Return the fields to write so that given keys replace stored ones.

    Refuses an object of more than 1 MB.
    """
    changes = yield from merge_any_size(stored, given)
    changed = {placed.field.key: placed for placed in changes}
    whole = yield from to_json({**stored, **changed})
    if changes and len(whole) > MAX_VALUE_BYTES:
        raise too_large(name, len(whole))
    return changes


def merge_any_size(stored: dict[str, NumberedField], given: msgspec.Raw) -> Slices[list[NumberedField]]:
    """Merge as `merge` does, but without a size limit."""
    fresh = 1 + max((placed.ordinal for placed in stored.values()), default=-1)
    changes: dict[str, NumberedField] = {}
    for key, value in _split(given).items():
        old = stored.get(key)
        changes[key] = NumberedField(fresh if old is None else old.ordinal, Field(key, bytes(value)))
        fresh += old is None
        yield
    return list(changes.values())


def put(context: Context, prefix: bytes, changes: Iterable[NumberedField]) -> Slices[None]:
    """Stage changed fields."""
    for ordinal, field in changes:
        context.put(prefix + ordinal.to_bytes(4), field)
        yield


def drop(context: Context, prefix: bytes, unwanted: Callable[[str], bool]) -> Slices[None]:
    """Stage the removal of the fields with unwanted keys."""
    for key, field in list(context.scan(Field, prefix=prefix, on_damage=pass_over)):
        if unwanted(field.key):
            context.delete(key)
        yield


def to_json(fields: dict[str, NumberedField]) -> Slices[bytes]:
    """Return the JSON object of these fields."""
    pairs: list[bytes] = []
    for _, field in fields.values():
        pairs.append(msgspec.json.encode(field.key) + b":" + field.value)
        yield
    return b"{" + b",".join(pairs) + b"}"
