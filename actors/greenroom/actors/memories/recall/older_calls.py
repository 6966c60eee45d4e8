"""Older names of the search over memories, with the current form of their parameters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UnsetType

from greenroom.actors.core.replies.replies import ListReply
from greenroom.runtime import Refusal


class OlderCall(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """An alias, and how to translate a call of it.

    Attributes:
        takes: The current name of each of its parameters; None if all names are the same.
        required: Its required parameters.
        defaults: The defaults of its parameters, if they differ from the current ones.
        fixed: Arguments that are always added.
        converts: Functions that convert the values of parameters whose form has changed.
    """

    name: str
    takes: Mapping[str, str] | None = None
    required: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = {}
    fixed: Mapping[str, Any] = {}
    converts: Mapping[str, Callable[[Any], Any]] = {}

    def translate(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the arguments of an older call to current ones; None means absent."""
        values = dict(self.fixed)
        for old, new in (self.takes or {}).items():
            value = self.defaults.get(old) if given[old] is None else given[old]
            if value is not None:
                values[new] = self.converts[old](value) if old in self.converts else value
        return values

    def advice(self, successor: str) -> str:
        """Return the sentence that names the current call."""
        renamed = [f"{new} for {old}" for old, new in (self.takes or {}).items() if old != new]
        given = [f"{name} {msgspec.json.encode(value).decode()}" for name, value in self.fixed.items()]
        words = f" with {', '.join([*given, *renamed])}" if self.takes and (renamed or given) else ""
        return f"{self.name} is an older name; call {successor}{words}"

    def reword(self, error: Any) -> Any:
        """Return an error or empty reply with the older names of parameters."""
        if isinstance(error, ListReply) and not isinstance(error.empty_because, UnsetType):
            because = error.empty_because
            for older, today in (self.takes or {}).items():
                because = because.with_parameter(today, older)
            return msgspec.structs.replace(error, empty_because=because)
        if not isinstance(error, Refusal):
            return error
        field = error.details.get("field")
        old = next((old for old, new in (self.takes or {}).items() if new == field), field)
        if old == field:
            return error
        sentence = error.sentence
        if sentence.startswith(f"{field}"):
            sentence = f"{old}{sentence.removeprefix(str(field))}"
        return type(error)(error.code, sentence, **{**error.details, "field": old})


def _through(day: str) -> str:
    """Convert an inclusive end to an exclusive one: a date includes its whole day."""
    try:
        return (dt.date.fromisoformat(day) + dt.timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):  # it is a time, or a value that the search refuses
        return day


_FIVE = {"n_results": 5}

OLDER_SEARCHES = (
    OlderCall(
        name="retrieve_memory",
        takes={"query": "query", "n_results": "limit"},
        required=("query",),
        defaults=_FIVE,
    ),
    OlderCall(
        name="recall_memory",
        takes={"query": "query", "time_expr": "time_expr", "n_results": "limit"},
        defaults=_FIVE,
    ),
    OlderCall(
        name="recall_by_timeframe",
        takes={"start_date": "after", "end_date": "before", "n_results": "limit"},
        required=("start_date",),
        defaults=_FIVE,
        converts={"end_date": _through},
    ),
    OlderCall(
        name="retrieve_with_quality_boost",
        takes={"query": "query", "quality_weight": "quality_boost", "n_results": "limit"},
        required=("query",),
        defaults={"quality_weight": 0.3, "n_results": 10},
        fixed={"mode": "hybrid"},
    ),
    OlderCall(
        name="exact_match_retrieve",
        takes={"content": "query"},
        required=("content",),
        fixed={"mode": "exact"},
    ),
    OlderCall(
        name="debug_retrieve",
        takes={"query": "query", "n_results": "limit"},
        required=("query",),
        defaults=_FIVE,
        fixed={"include_debug": True},
    ),
)
"""The older names of the one search."""
