"""Older names and forms of tools: their current tools, and how their parameters are read.

Clients of the older systems call these names, so they stay callable. They are listed only under the profile
of their system (`tool_profiles`), and every answer names the successor. `ALIASES` is complete. Where a
current tool has the same name, the parameter `told_by` selects the older meaning. Some profiles also select
the older meaning for calls without parameters that only the current tool has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, get_args, get_type_hints

import msgspec

from greenroom.actors import REQUESTS, parse_request
from greenroom.actors.core.auth.errors import invalid
from greenroom.actors.core.validation.coercion import MOST_CHANGES
from greenroom.actors.memories.recall.older_calls import OLDER_SEARCHES, OlderCall
from greenroom.transports.mcp.tools.profiles.profile import OlderParameter

META_KEY = "greenroom/deprecated"
"""The key of ``_meta`` under which an answer names the successor."""


class Alias(OlderCall, frozen=True, eq=False, kw_only=True):
    """An older name of a tool.

    Attributes:
        told_by: The parameter that selects this meaning, if a current tool has the same name.
        is_usual: Whether calls without that parameter mean it, too, unless another parameter excludes it.
    """

    successor: str
    told_by: str | None = None
    is_usual: bool = False

    @property
    def request(self) -> type[msgspec.Struct]:
        """The struct of its parameters, with the successor's limits."""
        return REQUESTS[self.successor] if self.takes is None else _request(self)

    @property
    def meta(self) -> dict[str, Any]:
        """The ``_meta`` of its answers."""
        hint = self.advice(self.successor)
        return {META_KEY: {"name": self.name, "successor": self.successor, "hint": hint}}

    def matches(self, arguments: bytes) -> bool:
        """Return whether a call with these arguments means the older tool."""
        if self.told_by is None:
            return True
        if self.told_by.encode() not in arguments and not self.is_usual:
            return False
        try:
            given = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False  # the current tool refuses such arguments
        return self.told_by in given or (self.is_usual and given.keys() <= (self.takes or {}).keys())

    def parse(self, arguments: bytes) -> Any:
        """Return the successor's request for a call's arguments."""
        given = parse_request(self.request, arguments, most_changes=MOST_CHANGES)
        if self.takes is None:
            return msgspec.structs.replace(given, **self.fixed) if self.fixed else given
        return REQUESTS[self.successor](**self.translate(msgspec.structs.asdict(given)))


_OMN = (
    "store_memory", "retrieve_memory", "update_memory", "forget_memory", "list_memories", "memory_stats",
    "export_memories", "import_memories", "set_preferences", "create_session", "start_session",
    "restore_session", "get_session_context", "migrate_session", "export_session", "end_session",
    "search_code_semantic", "semantic_search", "symbol_search", "outline", "dependency_search",
    "similar_files", "code_search", "read_file", "compress_text", "get_stats", "health_check",
    "record_workflow_step", "get_workflow_patterns", "suggest_next_action", "workflow_checkpoint",
)  # fmt: skip
"""The tools that an older system has under these names with the prefix ``omn_``."""
_NOW = {"create_session": "start_session", "semantic_search": "search_code_semantic"}
"""The current names of some of these tools."""
ALIASES = (
    *(
        Alias(
            **msgspec.structs.asdict(search),
            successor="memory_search",
            told_by="n_results" if search.name in REQUESTS else None,
        )
        for search in OLDER_SEARCHES
    ),
    *(Alias(name=f"omn_{name}", successor=_NOW.get(name, name)) for name in _OMN),
    Alias(name="omn1_read", successor="read_file"),
)
"""Every older name."""


@lru_cache(maxsize=64)  # one per offer with other defaults
def _request(alias: Alias) -> type[msgspec.Struct]:
    assert alias.takes is not None, "one with the same parameters has the successor's request"
    hints = get_type_hints(REQUESTS[alias.successor], include_extras=True)
    defaults = {field.name: field.default for field in msgspec.structs.fields(REQUESTS[alias.successor])}
    members: list[Any] = []
    for old, new in alias.takes.items():
        if old in alias.required:
            members.append((old, _without_none(hints[new])))
        else:
            members.append((old, hints[new], alias.defaults.get(old, defaults[new])))
    return msgspec.defstruct(
        f"Older_{alias.name}", members, frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def _without_none(hint: Any) -> Any:
    """Return a type without null, if it admits null."""
    choices = get_args(hint)
    return choices[0] if len(choices) == 2 and choices[1] is type(None) else hint  # noqa: PLR2004


class OlderForm:
    """The older form of a tool, with more or wider parameters; made by `older_form`."""

    def __init__(self, today: type[Any], parameters: tuple[OlderParameter, ...]) -> None:
        self._today = today
        self._parameters = parameters
        self.request = _with_parameters(today, {older.name: older.kind for older in parameters})
        self.listed = _with_parameters(
            today, {older.name: older.listed or older.kind for older in parameters}
        )

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


@cache  # decoders are cached forever, so there must be one of each
def older_form(tool: str, parameters: tuple[OlderParameter, ...]) -> OlderForm:
    """Return the older form of a tool with these additional parameters."""
    return OlderForm(REQUESTS[tool], parameters)


def _with_parameters(today: type[Any], kinds: Mapping[str, Any]) -> type[Any]:
    """Return a struct with another struct's fields; ``kinds`` adds fields or changes their types."""
    hints = get_type_hints(today, include_extras=True)
    members = {
        field.name: (field.name, hints[field.name], same_default(field))
        for field in msgspec.structs.fields(today)
    }
    members |= {name: (name, kind, None) for name, kind in kinds.items()}
    return msgspec.defstruct(
        today.__name__, members.values(), frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def same_default(field: msgspec.structs.FieldInfo, name: str | None = None) -> Any:
    """Return a field with the default of another field, or also without a default."""
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory, name=name)
    return msgspec.field(default=field.default, name=name)
