"""Arguments as clients send them, made what their types take: JSON in texts, whole floats, null for nothing.

Looked at only where a request does not validate, so what validates costs nothing more. What is read out of
a text is held to the rules of all JSON.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple, get_origin

import msgspec
from msgspec import NODEFAULT

from greenroom.actors.core.validation.argument_places import ArgumentPlace, find_place, replaced
from greenroom.actors.core.validation.strict_json import check_json
from greenroom.actors.core.validation.validation_messages import choices_of, is_of_kind, part_of
from greenroom.runtime import Refusal

EVERYTHING: Final = frozenset({"*"})
GUARDED: Final[Mapping[str, frozenset[str]]] = {
    "*": frozenset(
        {"visibility", "visibility_filter", "scope", "expected_version", "idempotency_key", "confirm"}
        | {
            "project_id",
            "session_id",
            "key",
            "memory_id",
        }  # or another place is meant
    ),
    "CreateApiKey": EVERYTHING,
    "DefineEntities": frozenset({"remove", "corpus"}),
    "DeleteMemory": EVERYTHING,
    "EraseUser": EVERYTHING,
    "ExportMemories": frozenset({"namespace", "filters"}),
    "ExportSession": frozenset({"passphrase", "audience", "one_time", "expires_in"}),
    "ForgetMemory": EVERYTHING,
    "GetMemory": frozenset({"namespace"}),
    "ImportMemories": frozenset({"namespace", "on_conflict", "dry_run"}),
    "IngestDocuments": frozenset({"remove", "corpus"}),
    "ListVersions": frozenset({"namespace"}),
    "RateMemory": frozenset({"namespace"}),
    "RevokeApiKey": EVERYTHING,
    "RotateApiKey": EVERYTHING,
    "SetMemory": frozenset({"overwrite"}),
    "StoreMemory": frozenset({"namespace"}),
    "UpdateMemory": frozenset({"namespace"}),
}
"""Arguments by request, and of all requests, of which null and an empty text are not "not given".

Left out, each lets more people see, deletes more or overwrites more than its sender may have meant.
"""


def is_guarded(request: str, names: AbstractSet[object]) -> bool:
    """Return whether an argument of a request is guarded, given its own name and that of what holds it."""
    own = GUARDED.get(request, frozenset())
    return own is EVERYTHING or not names.isdisjoint(GUARDED["*"] | own)


coerced_arguments: Counter[str] = Counter()
"""How many arguments were made what their types take, by what they came as."""


CHOOSE_BY_TAGS: Final = frozenset({"ExportMemories", "ForgetMemory"})
"""Requests whose tags choose what is deleted or leaves: they take an array, or its JSON as text."""
MOST_CHANGES: Final = 100
"""Arguments of one request that are made what their types take."""
_MOST_DIGITS: Final = 18
_FRACTION: Final = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_BEGIN_JSON: Final = ("[", "{", '"')
"""What JSON begins with: such a text means that, and where it is cut off it is no tag."""
_CameAs = Literal["json_text", "tags_text", "whole_float", "null", "empty_text"]


class _Change(NamedTuple):
    """What a value becomes; ``value`` is None where the member goes."""

    came_as: _CameAs
    value: bytes | None


def coerced(problem: str, request_type: type[Any], raw: bytes) -> bytes | None:
    """Return arguments in which the value that msgspec has found wanting is made what its type takes.

    Args:
        problem: The finding.
        request_type: What the arguments were decoded to.
        raw: The JSON of the arguments.

    Returns:
        The JSON of all arguments; None where the value stays wrong.
    """
    place = find_place(problem, request_type, raw)
    if not place.steps or place.is_key:
        return None
    change = _change(place, request_type)
    if change is None:
        return None
    coerced_arguments[change.came_as] += 1
    return replaced(raw, place.steps, change.value)


def _change(place: ArgumentPlace, request_type: type[Any]) -> _Change | None:
    value, bases = place.value, choices_of(place.hint)
    is_text = any(base in {str, dt.datetime} for base in bases)
    takes_words = is_text or any(get_origin(base) is Literal for base in bases)
    if value == b"null" or (value == b'""' and takes_words):
        came_as: _CameAs = "null" if value == b"null" else "empty_text"
        return _Change(came_as, None) if _may_go(place, request_type) else None
    if value.startswith(b'"') and not is_text:
        inner = _json_in(value)
        if inner is not None and any(_fits(base, inner) for base in bases):
            return _Change("json_text", inner)
        return _tags_in(place, request_type)
    if int in bases and float not in bases and _FRACTION.fullmatch(value):
        number = Decimal(value.decode())
        if number.adjusted() < _MOST_DIGITS and number == number.to_integral_value():
            return _Change("whole_float", b"%d" % int(number))
    return None


def _json_in(text: bytes) -> bytes | None:
    """Return the JSON that a JSON string holds; None where it holds none that can be kept."""
    try:
        held = msgspec.json.decode(text, type=str).strip().encode()
        check_json(held)
    except (msgspec.DecodeError, UnicodeEncodeError, Refusal):
        return None
    return held


def _fits(base: Any, value: bytes) -> bool:
    if base is bool:
        return value in {b"true", b"false"}
    return value[:1] not in {b'"', b"n"} and is_of_kind(base, value)


def _tags_in(place: ArgumentPlace, request_type: type[Any]) -> _Change | None:
    """Return the tags of a text such as "a,b", where they choose nothing that is deleted or shared."""
    if place.steps[-1] != "tags" or request_type.__name__ in CHOOSE_BY_TAGS:
        return None
    text = msgspec.json.decode(place.value, type=str).strip()
    if text.startswith(_BEGIN_JSON):
        return None
    tags = [tag for each in text.split(",") if (tag := each.strip())]
    return _Change("tags_text", msgspec.json.encode(tags)) if tags else None


def _may_go(place: ArgumentPlace, request_type: type[Any]) -> bool:
    """Return whether a member has a default and says no more by its absence."""
    member = place.steps[-1]
    if is_guarded(request_type.__name__, {place.steps[0], member}):
        return False
    hint: Any = request_type
    for step in place.steps[:-1]:
        hint = part_of(hint, f"[{step}]" if isinstance(step, int) else step)
    fields = (
        field
        for base in choices_of(hint)
        if hasattr(base, "__struct_fields__")
        for field in msgspec.structs.fields(base)
    )
    found = next((field for field in fields if field.name == member), None)
    return found is not None and (found.default, found.default_factory) != (NODEFAULT, NODEFAULT)
