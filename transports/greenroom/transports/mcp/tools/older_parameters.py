"""Calls of a tool's older form, which has more parameters or wider ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

import msgspec

from greenroom.actors import REQUESTS, parse_request
from greenroom.actors.core.auth.errors import invalid
from greenroom.actors.core.validation.coercion import MOST_CHANGES
from greenroom.transports.mcp.tools.profiles.profile import OlderParameter


class OlderForm:
    """The older form of a tool, made by `older_form`.

    Attributes:
        request: The struct of the older form's parameters.
        listed: The same, as listed.
    """

    def __init__(self, today: type[Any], parameters: tuple[OlderParameter, ...]) -> None:
        self._today = today
        self._parameters = parameters
        self.request = _struct(today, {older.name: older.kind for older in parameters})
        self.listed = _struct(today, {older.name: older.listed or older.kind for older in parameters})

    def parse(self, arguments: bytes) -> Any:
        """Return the current request for a call's arguments."""
        values = msgspec.structs.asdict(parse_request(self.request, arguments, most_changes=MOST_CHANGES))
        for older in self._parameters:
            value = older.read(values.pop(older.name))
            if value is None:
                continue
            for name, each in (value if older.spreads else {older.name: value}).items():
                if values.get(name):
                    raise invalid(older.name, f"{older.name}: give {older.name} or {name}, one of them")
                values[name] = each
        return self._today(**values)


@cache  # decoders are cached for good, so there must be one of each
def older_form(tool: str, parameters: tuple[OlderParameter, ...]) -> OlderForm:
    """Return the older form of a tool with these additional parameters."""
    return OlderForm(REQUESTS[tool], parameters)


def _struct(today: type[Any], kinds: Mapping[str, Any]) -> type[Any]:
    """Return a struct with the fields of another one, and additional or retyped ones."""
    hints = get_type_hints(today, include_extras=True)
    members = {
        field.name: (field.name, hints[field.name], _with_default(field))
        for field in msgspec.structs.fields(today)
    }
    members |= {name: (name, kind, None) for name, kind in kinds.items()}
    return msgspec.defstruct(
        today.__name__, members.values(), frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def _with_default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.field(default=field.default)
