"""Add older names of members to answers, for clients of the systems with these names.

`profiles` declares the names. Types and values follow from the same plan, so that a tool's output schema
fits its answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.transports.mcp.tools.aliases import same_default
from greenroom.transports.mcp.tools.answer_times import Moment
from greenroom.transports.mcp.tools.profiles.profile import Made, OlderName, OlderNames, Told


class _Plan(NamedTuple):
    """The plan for a struct type with older names.

    Attributes:
        inner: Its members that contain older names.
        more: Its own older names.
    """

    type: type[msgspec.Struct]
    inner: frozenset[str]
    more: Mapping[str, OlderName]


class LegacyAnswers:
    """Adds older names to answers."""

    def __init__(self, names: OlderNames) -> None:
        self._names = names
        self._plans: dict[type[msgspec.Struct], _Plan | None] = {}

    def renamed(self, value: Any, moment: Moment) -> Any:
        """Return an answer, or a part of an answer, with its older names."""
        if isinstance(value, list):
            return [self.renamed(each, moment) for each in value]
        if isinstance(value, dict):
            return {key: self.renamed(each, moment) for key, each in value.items()}
        plan = self._plan(type(value)) if isinstance(value, msgspec.Struct) else None
        if plan is None:
            return value
        members = {
            name: self.renamed(member, moment) if name in plan.inner else member
            for name, member in msgspec.structs.asdict(value).items()
        }
        more = {
            old: members[today] if isinstance(today, str) else _compute(today, value, moment)
            for old, today in plan.more.items()
        }
        return plan.type(**members | more)

    def type_of(self, hint: Any) -> Any:
        """Return the type of `renamed` values of a type; the same type if nothing changes."""
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            plan = self._plan(hint)
            return hint if plan is None else plan.type
        inner = get_args(hint)
        changed = tuple(self.type_of(each) for each in inner)
        if all(new is old for new, old in zip(changed, inner, strict=True)):
            return hint
        origin = get_origin(hint)
        return reduce(or_, changed) if origin is UnionType else origin[changed]

    def _plan(self, struct: type[msgspec.Struct]) -> _Plan | None:
        if struct not in self._plans:
            self._plans[struct] = self._planned(struct)
        return self._plans[struct]

    def _planned(self, struct: type[msgspec.Struct]) -> _Plan | None:
        hints = get_type_hints(struct, include_extras=True)
        types = {field.name: self.type_of(hints[field.name]) for field in msgspec.structs.fields(struct)}
        inner = frozenset(name for name, new in types.items() if new is not hints[name])
        more = self._older(struct)
        if not (inner or more):
            return None
        fields = {field.name: field for field in msgspec.structs.fields(struct)}
        members: dict[str, Any] = {
            name: (name, types[name], same_default(field, field.encode_name))
            for name, field in fields.items()
        }
        for old, today in more.items():
            if isinstance(today, str):
                members[old] = (old, types[today], same_default(fields[today], old))
            elif UnsetType in get_args(today.kind):
                members[old] = (old, today.kind, UNSET)
            else:
                members[old] = (old, today.kind)
        made = msgspec.defstruct(
            struct.__name__,
            members.values(),
            frozen=True,
            kw_only=True,
            omit_defaults=struct.__struct_config__.omit_defaults,
        )
        return _Plan(made, inner, more)

    def _older(self, struct: type[msgspec.Struct]) -> dict[str, OlderName]:
        """Return a type's older names, also from its bases."""
        names = {**self._names.get(struct, {})}
        bases = (base for base in struct.__mro__[1:] if issubclass(base, msgspec.Struct))
        for base in bases:
            for old, today in self._names.get(base, {}).items():
                if old in base.__struct_fields__ or old not in struct.__struct_fields__:
                    names.setdefault(old, today)
        return names


def _compute(older: Made | Told, value: Any, moment: Moment) -> Any:
    return older.make(value) if isinstance(older, Made) else older.tell(moment)
