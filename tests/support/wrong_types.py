"""Every place of a request's arguments and JSON of every type, by its struct alone."""

from __future__ import annotations

import json
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import UnsetType

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUES = (
    *("null", "true", "false", "0", "-1", "1.5", "1e400", "-0", "9" * 30, "9" * 400),
    *('""', '" "', '"text"', '"nul \\u0000"', '"\\ud800"', '"{"', '"1"', '"2026-13-45"'),
    *("[]", "[[]]", "[null]", "[true, 1.5]", "{}", '{"a": 1}', '{"a": {"b": [null]}}', '{"\\udc00": 1}'),
    *('{"a": 1, "a": 2}', "[" * 150 + "]" * 150),
)
"""JSON of every type, and what is only half JSON."""

_SAMPLES: tuple[Any, ...] = (
    *("text", "2026-01-01T00:00:00Z", "2026-01-01", "user:ann", "https://example.org/a"),
    *("00000000-0000-8000-8000-000000000000", "main.py", "a" * 12, "a" * 16, "a" * 43),
    *(1, 0.5, True, {}, [], {"a": 1}),
)
"""Of these each type of a parameter takes one."""
_HOLE = "\x01the hole\x01"


class Place(NamedTuple):
    """A place of a request's arguments.

    Attributes:
        path: Where it is, such as ``filters.tags[0]``.
        kind: What it takes.
        arguments: The JSON around it.
    """

    path: str
    kind: Any
    arguments: str

    def filled(self, value: str) -> str:
        """Return the arguments with a JSON value in this place."""
        return self.arguments.replace(json.dumps(_HOLE), value)

    def takes(self, value: str) -> bool:
        """Return whether the place takes the value, as far as its type says."""
        try:
            msgspec.json.decode(value, type=self.kind)
        except (ValueError, RecursionError):
            return False
        return True


@cache
def hints_of(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the types of a struct's fields by their names in Python, with the limits that they carry."""
    return get_type_hints(struct, include_extras=True)


def places(request: type[msgspec.Struct], beside: tuple[str, ...] = ()) -> Iterator[Place]:
    """Return every place of a request: arguments, their parts, elements of arrays and objects.

    Args:
        request: The struct.
        beside: Arguments that are given with every other one.
    """
    hints = hints_of(request)
    given = {name: sample(hints[name]) for name in beside}
    for path, kind, arguments in _places_in_struct(request):
        yield Place(path.removeprefix("."), kind, json.dumps({**given, **arguments}))


def sample(kind: Any) -> Any:
    """Return a value that a type takes."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _required(kind)
    base = _bare(kind)
    if isinstance(base, type) and issubclass(base, msgspec.Struct):
        return _required(base)
    candidates: list[Any] = list(_SAMPLES)
    if get_origin(base) is Literal:
        candidates = list(get_args(base))
    if get_origin(base) in {list, tuple, set, frozenset}:
        candidates = [[], [sample(get_args(base)[0])]]
    for candidate in candidates:
        try:
            msgspec.json.decode(json.dumps(candidate), type=kind)
        except msgspec.ValidationError:
            continue
        return candidate
    raise AssertionError(f"no sample fits {kind}; add one")


def _required(struct: type[msgspec.Struct]) -> dict[str, Any]:
    hints = hints_of(struct)
    return {
        field.encode_name: sample(hints[field.name])
        for field in msgspec.structs.fields(struct)
        if field.required
    }


def _places_in_struct(struct: type[msgspec.Struct]) -> Iterator[tuple[str, Any, Any]]:
    hints, required = hints_of(struct), _required(struct)
    for field in msgspec.structs.fields(struct):
        for path, kind, value in _places(hints[field.name]):
            yield f".{field.encode_name}{path}", kind, {**required, field.encode_name: value}


def _places(kind: Any) -> Iterator[tuple[str, Any, Any]]:
    yield "", kind, _HOLE
    for choice in choices(kind):
        origin, inside = get_origin(choice), get_args(choice)
        if isinstance(choice, type) and issubclass(choice, msgspec.Struct):
            yield from _places_in_struct(choice)
        elif origin in {list, tuple, set, frozenset} and inside:
            for path, element, value in _places(inside[0]):
                yield f"[0]{path}", element, [value]
        elif origin is dict:
            for path, element, value in _places(inside[1]):
                yield f".{sample(inside[0])}{path}", element, {sample(inside[0]): value}


def choices(kind: Any) -> list[Any]:
    """Return the types of a union, without limits; of any other type that type."""
    if get_origin(kind) is Annotated:
        return choices(get_args(kind)[0])
    if get_origin(kind) in {Union, UnionType}:
        return [each for choice in get_args(kind) for each in choices(choice)]
    return [kind]


def _bare(kind: Any) -> Any:
    return next((each for each in choices(kind) if each not in {NoneType, UnsetType}), kind)
