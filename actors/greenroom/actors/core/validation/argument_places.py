"""Find the argument that a decoder refused: its name, its type and its JSON.

msgspec gives the place as a path such as ``$.filters.tags[0]``. In this path, ``[...]`` stands for a member
of an object with free names, so each member is decoded to find the wrong one. Values stay as received bytes,
because a number may be too large to be encoded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, get_args, get_origin

import msgspec

from greenroom.actors.core.auth.key_format import mask_keys
from greenroom.actors.core.validation.validation_messages import choices_of, part_of

_PATH: Final = re.compile(r" - at (`key` in )?`\$([^`]*)`$")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])")
_NAME_SHOWN: Final = 100
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


class ArgumentPlace(NamedTuple):
    """A place in the arguments of a request: its path, its type, and its JSON.

    ``is_key`` means that a name in the object at this place is wrong.
    """

    steps: tuple[str | int, ...]
    hint: Any
    value: bytes
    is_key: bool = False

    @property
    def field(self) -> str:
        """The argument's name, such as ``filters.tags[0]``; empty for the arguments as a whole."""
        name = ""
        for step in self.steps:
            shown = f"[{step}]" if isinstance(step, int) else mask_keys(step)[:_NAME_SHOWN]
            name += shown if isinstance(step, int) or not name else f".{shown}"
        return name


def find_place(problem: str, request_type: Any, raw: bytes) -> ArgumentPlace:
    """Return the place of an error of msgspec, or the nearest known place above it."""
    place = ArgumentPlace((), request_type, raw)
    path = _PATH.search(problem)
    if path is None:
        return place
    for name, position, anyone in _STEP.findall(path[2]):
        below = _wrong_member(place) if anyone else _part(place, name or int(position))
        if below is None:
            return place
        place = below
    return place._replace(is_key=path[1] is not None)


def members_of(value: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of a JSON object; empty for other values."""
    try:
        return _members(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def elements_of(value: bytes) -> list[msgspec.Raw]:
    """Return the elements of a JSON array; empty for other values."""
    try:
        return _elements(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def replace_value(raw: bytes, steps: Sequence[str | int], value: bytes | None) -> bytes:
    """Return JSON with another value at a place; if ``value`` is None, without that member."""
    if not steps:
        return raw if value is None else value
    step, *below = steps
    parts: Any = _elements(raw) if isinstance(step, int) else _members(raw)
    if below:
        parts[step] = msgspec.Raw(replace_value(bytes(parts[step]), below, value))
    elif value is None:
        del parts[step]
    else:
        parts[step] = msgspec.Raw(value)
    return msgspec.json.encode(parts)


def _part(place: ArgumentPlace, step: str | int) -> ArgumentPlace | None:
    try:
        parts: Any = _elements(place.value) if isinstance(step, int) else _members(place.value)
        hint = part_of(place.hint, f"[{step}]" if isinstance(step, int) else step)
        return ArgumentPlace((*place.steps, step), hint, bytes(parts[step]))
    except (LookupError, TypeError, msgspec.DecodeError):  # a name that looks like a path
        return None


def _wrong_member(place: ArgumentPlace) -> ArgumentPlace | None:
    """Return the first member that the type of an object with free names refuses."""
    hint = next((get_args(each)[1] for each in choices_of(place.hint) if get_origin(each) is dict), Any)
    for name, value in members_of(place.value).items():
        try:
            msgspec.json.decode(value, type=hint)
        except msgspec.DecodeError:
            return ArgumentPlace((*place.steps, name), hint, bytes(value))
    return None
