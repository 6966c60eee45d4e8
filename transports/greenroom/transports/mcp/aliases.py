"""Older names of tools: what each is called now, and how its parameters read there.

A client written for one of the older systems calls these, so they stay callable; they are listed
under the profile of their system alone (`tool_profiles`), and every answer says what to call instead.
`ALIASES` is the whole truth; a name that a tool of today has as well (`told_by`) has its older
meaning where that parameter is given, and under a profile that says so also where nothing is
given that only the tool of today takes.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_type_hints

import msgspec

from greenroom.actors import REQUESTS, parse_request
from greenroom.runtime import Refusal

META_KEY = "greenroom/deprecated"
"""Under this key of ``_meta`` an answer tells the name's successor."""


class Alias(msgspec.Struct, frozen=True, eq=False):
    """An older name of a tool.

    Attributes:
        name: The older name.
        successor: The tool that carries it out.
        takes: Its parameters, each with the successor's; None when they are the same.
        required: Those of its parameters that must be given.
        defaults: What its own parameters are when left out, where that differs from the successor.
        fixed: What the successor is given besides.
        told_by: The parameter that tells this meaning from today's, where a tool has the name now.
        is_usual: Whether it is meant also without that parameter, unless another one tells that it is not.
        converts: How a parameter's value is written for the successor, where that differs.
    """

    name: str
    successor: str
    takes: Mapping[str, str] | None = None
    required: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = {}
    fixed: Mapping[str, Any] = {}
    told_by: str | None = None
    is_usual: bool = False
    converts: Mapping[str, Callable[[Any], Any]] = {}

    @property
    def request(self) -> type[msgspec.Struct]:
        """The struct whose fields are its parameters, with the limits that the successor's have."""
        return REQUESTS[self.successor] if self.takes is None else _request(self)

    @property
    def meta(self) -> dict[str, Any]:
        """What ``_meta`` of its answers says."""
        words = "" if self.takes is None else _renamed(self)
        hint = f"{self.name} is an older name; call {self.successor}{words}"
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
            return False  # it is refused for that, in today's words
        return self.told_by in given or (self.is_usual and given.keys() <= (self.takes or {}).keys())

    def parse(self, arguments: bytes) -> Any:
        """Return the successor's request for a call's arguments.

        Raises:
            Refusal: the arguments do not fit; it names the older parameter.
        """
        given = parse_request(self.request, arguments)
        if self.takes is None:
            return msgspec.structs.replace(given, **self.fixed) if self.fixed else given
        values = dict(self.fixed)
        for old, new in self.takes.items():
            value = getattr(given, old)
            if value is not None:
                values[new] = self.converts[old](value) if old in self.converts else value
        return REQUESTS[self.successor](**values)

    def reworded(self, error: Exception) -> Exception:
        """Return an error of the successor in the words of the older parameters."""
        if not isinstance(error, Refusal) or self.takes is None:
            return error
        field = error.details.get("field")
        old = next((old for old, new in self.takes.items() if new == field), field)
        if old == field:
            return error
        sentence = error.sentence
        if sentence.startswith(f"{field}"):
            sentence = f"{old}{sentence.removeprefix(str(field))}"
        return Refusal(error.code, sentence, **{**error.details, "field": old})


def _through(day: str) -> str:
    """Return an exclusive end for an inclusive one: a date means the whole day."""
    try:
        return (dt.date.fromisoformat(day) + dt.timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):  # a time, or what the successor refuses
        return day


_FIVE = {"n_results": 5}
_PROMISED = {"promises_id": True}
"""What that system's clients read of an answer is a session's id."""

ALIASES = (
    Alias(
        "retrieve_memory",
        "memory_search",
        {"query": "query", "n_results": "limit"},
        required=("query",),
        told_by="n_results",
    ),
    Alias(
        "recall_memory",
        "memory_search",
        {"query": "query", "time_expr": "time_expr", "n_results": "limit"},
        defaults=_FIVE,
    ),
    Alias(
        "recall_by_timeframe",
        "memory_search",
        {"start_date": "after", "end_date": "before", "n_results": "limit"},
        required=("start_date",),
        defaults=_FIVE,
        converts={"end_date": _through},
    ),
    Alias(
        "retrieve_with_quality_boost",
        "memory_search",
        {"query": "query", "quality_weight": "quality_boost", "n_results": "limit"},
        required=("query",),
        defaults={"quality_weight": 0.3, "n_results": 10},
        fixed={"mode": "hybrid"},
    ),
    Alias(
        "exact_match_retrieve",
        "memory_search",
        {"content": "query"},
        required=("content",),
        fixed={"mode": "exact"},
    ),
    Alias(
        "debug_retrieve",
        "memory_search",
        {"query": "query", "n_results": "limit"},
        required=("query",),
        defaults=_FIVE,
        fixed={"include_debug": True},
    ),
    Alias("omn_store_memory", "store_memory"),
    Alias("omn_retrieve_memory", "retrieve_memory"),
    Alias("omn_update_memory", "update_memory"),
    Alias("omn_forget_memory", "forget_memory"),
    Alias("omn_list_memories", "list_memories"),
    Alias("omn_memory_stats", "memory_stats"),
    Alias("omn_export_memories", "export_memories"),
    Alias("omn_import_memories", "import_memories"),
    Alias("omn_create_session", "start_session", fixed=_PROMISED),
    Alias("omn_start_session", "start_session", fixed=_PROMISED),
    Alias("omn_restore_session", "restore_session"),
    Alias("omn_get_session_context", "get_session_context"),
    Alias("omn_migrate_session", "migrate_session"),
    Alias("omn_export_session", "export_session"),
    Alias("omn_end_session", "end_session"),
)
"""Every older name."""


@functools.lru_cache(maxsize=64)  # each offer with other defaults has its own
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
    """Return a type that admits null without it."""
    choices = get_args(hint)
    return choices[0] if len(choices) == 2 and choices[1] is type(None) else hint  # noqa: PLR2004


def _renamed(alias: Alias) -> str:
    assert alias.takes is not None, "only a parameter of its own can have another name"
    renamed = [f"{new} for {old}" for old, new in alias.takes.items() if old != new]
    given = [f"{name} {msgspec.json.encode(value).decode()}" for name, value in alias.fixed.items()]
    return f" with {', '.join([*given, *renamed])}" if renamed or given else ""
