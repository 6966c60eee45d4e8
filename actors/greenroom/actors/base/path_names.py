"""Other names of arguments that are paths: one name is published, the others are accepted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from greenroom.actors.core.validation.argument_places import (
    ArgumentPlace,
    elements_of,
    find_place,
    members_of,
    replaced,
)
from greenroom.actors.core.validation.validation_messages import choices_of

_ACCEPTED: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("file_path",),
    "file_path": ("path",),
    "target": ("path", "file_path"),
    "paths": ("path", "file_path"),
}
"""By the published name, in the order in which one is chosen."""
_SEVERAL: Final = "paths"


def with_published_name(problem: str, request_type: type[Any], raw: bytes) -> bytes | None:
    """Return JSON in which a path has its published name; None if that is not what msgspec found.

    Of objects in an array all get it at once.
    """
    place = find_place(problem, request_type, raw)
    members = _renamed(place, place.value)
    if members is None:
        return None
    if not place.steps or isinstance(place.steps[-1], str):
        return replaced(raw, place.steps, members)
    around = find_place(f" - at `${_path(place.steps[:-1])}`", request_type, raw)
    objects = [_renamed(place, bytes(each)) or bytes(each) for each in elements_of(around.value)]
    return replaced(raw, around.steps, b"[%b]" % b",".join(objects))


def _renamed(place: ArgumentPlace, value: bytes) -> bytes | None:
    """Return an object whose path has the name that the type at a place publishes; None if it has it."""
    struct = next((each for each in choices_of(place.hint) if hasattr(each, "__struct_fields__")), None)
    known = () if struct is None else struct.__struct_fields__
    members = members_of(value)
    published = next((name for name in _ACCEPTED if name in known), None)
    if published is None or published in members:
        return None
    given = next((name for name in _ACCEPTED[published] if name in members and name not in known), None)
    if given is None:
        return None
    path = bytes(members.pop(given))
    is_one = published == _SEVERAL and not path.startswith(b"[")
    members[published] = msgspec.Raw(b"[%b]" % path if is_one else path)
    return msgspec.json.encode(members)


def _path(steps: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
