"""Coerce arguments: JSON in strings, whole floats, null for absent, other names of paths.

This runs only if a request is not valid, so valid requests cost nothing more. JSON from a string must obey
the same rules as other JSON.
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

from greenroom.actors.core.validation.argument_places import (
    ArgumentPlace,
    elements_of,
    find_place,
    members_of,
    replace_value,
)
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
"""Arguments, by request or for all requests, in which null or an empty string does not mean "absent".

Without such an argument a request might expose, delete or overwrite more than its sender meant.
"""


def is_guarded(request: str, names: AbstractSet[object]) -> bool:
    """Return whether an argument of a request is guarded, by its or its parent's name."""
    own = GUARDED.get(request, frozenset())
    return own is EVERYTHING or not names.isdisjoint(GUARDED["*"] | own)


coerced_arguments: Counter[str] = Counter()
"""Counts of coerced arguments, by their original form."""


CHOOSE_BY_TAGS: Final = frozenset({"ExportMemories", "ForgetMemory"})
"""Requests that delete or export by tags: the tags must be an array, or a string with its JSON."""
MOST_CHANGES: Final = 100
"""The most coerced arguments of one request."""
_PATH_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("file_path",),
    "file_path": ("path",),
    "target": ("path", "file_path"),
    "paths": ("path", "file_path"),
}
"""Accepted names of a path by the published name, in the order of choice."""
_SEVERAL: Final = "paths"
_MOST_DIGITS: Final = 18
_FRACTION: Final = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_BEGIN_JSON: Final = ("[", "{", '"')
"""Beginnings of JSON: such a string is JSON, and never a tag."""
_CameAs = Literal["json_text", "tags_text", "whole_float", "null", "empty_text"]


class _Change(NamedTuple):
    """The coerced value of an argument; None removes the member."""

    came_as: _CameAs
    value: bytes | None


def coerce(problem: str, request_type: type[Any], raw: bytes) -> bytes | None:
    """Coerce the refused value; return the JSON of all arguments, or None."""
    place = find_place(problem, request_type, raw)
    if not place.steps or place.is_key:
        return None
    change = _change(place, request_type)
    if change is None:
        return None
    coerced_arguments[change.came_as] += 1
    return replace_value(raw, place.steps, change.value)


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
    """Return the JSON in a JSON string; None if it contains no storable JSON."""
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
    """Return the tags in a string such as "a,b", unless they delete or export."""
    if place.steps[-1] != "tags" or request_type.__name__ in CHOOSE_BY_TAGS:
        return None
    text = msgspec.json.decode(place.value, type=str).strip()
    if text.startswith(_BEGIN_JSON):
        return None
    tags = [tag for each in text.split(",") if (tag := each.strip())]
    return _Change("tags_text", msgspec.json.encode(tags)) if tags else None


def _may_go(place: ArgumentPlace, request_type: type[Any]) -> bool:
    """Return whether a member has a default and may safely be absent."""
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


def with_published_name(problem: str, request_type: type[Any], raw: bytes) -> bytes | None:
    """Return JSON with the published name of a path; None for other errors.

    All objects in an array are renamed at once.
    """
    place = find_place(problem, request_type, raw)
    members = _renamed(place, place.value)
    if members is None:
        return None
    if not place.steps or isinstance(place.steps[-1], str):
        return replace_value(raw, place.steps, members)
    around = find_place(f" - at `${_path(place.steps[:-1])}`", request_type, raw)
    objects = [_renamed(place, bytes(each)) or bytes(each) for each in elements_of(around.value)]
    return replace_value(raw, around.steps, b"[%b]" % b",".join(objects))


def _renamed(place: ArgumentPlace, value: bytes) -> bytes | None:
    """Return an object with the published name of its path; None if nothing changes."""
    struct = next((each for each in choices_of(place.hint) if hasattr(each, "__struct_fields__")), None)
    known = () if struct is None else struct.__struct_fields__
    members = members_of(value)
    published = next((name for name in _PATH_NAMES if name in known), None)
    if published is None or published in members:
        return None
    given = next((name for name in _PATH_NAMES[published] if name in members and name not in known), None)
    if given is None:
        return None
    path = bytes(members.pop(given))
    is_one = published == _SEVERAL and not path.startswith(b"[")
    members[published] = msgspec.Raw(b"[%b]" % path if is_one else path)
    return msgspec.json.encode(members)


def _path(steps: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
