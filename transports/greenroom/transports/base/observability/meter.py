"""Count and time completed requests, at a cost of under a microsecond per request.

This module knows no output format; `snapshot` hands the figures to a reader. Only one thread writes, so
a reader in that thread sees every request whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

Outcome = Literal["ok", "tool_error", "error", "cancelled"]
"""How a request ended: answered; answered by the tool with an error; answered with a JSON-RPC
error; withdrawn by its client and not answered."""

OUTCOMES: Final[tuple[Outcome, ...]] = ("ok", "tool_error", "error", "cancelled")

BUCKET_BOUNDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
"""The upper bounds of the time classes, in seconds; the last class has no bound."""

OTHER: Final = "other"
"""The name for every unknown method and tool, instead of the client's name for it."""

API: Final = "api"
"""The method name for requests that came as HTTP and JSON."""

METHODS: Final = frozenset(
    {
        API,
        "completion/complete",
        "initialize",
        "logging/setLevel",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "server/discover",
        "subscriptions/listen",
        "tools/call",
        "tools/list",
    }
)
"""The methods that are counted under their own name."""


class RequestCounts(NamedTuple):
    """Counts of the requests of one kind with one outcome.

    Attributes:
        method: The method, or `OTHER`.
        tool: The tool, or `OTHER`; empty for a method that calls none.
        buckets: The count of each time class: a class for each of `BUCKET_BOUNDS`, and one for longer times.
    """

    method: str
    tool: str
    outcome: Outcome
    buckets: tuple[int, ...]
    seconds: float


class RequestMeter:
    """Count requests by method, tool and outcome, and sort their times into classes."""

    __slots__ = ("_others", "_rows", "_tools")

    def __init__(self, tools: Iterable[str]) -> None:
        self._tools = dict.fromkeys(tools)
        # One row for each kind: the counts of the classes, then the seconds. Rows of tools exist from the
        # start, because a reader that computes rates would miss the first value of a new row.
        self._rows: dict[tuple[str, str | None, Outcome], list[float]] = {
            ("tools/call", tool, outcome): _row() for tool in self._tools for outcome in OUTCOMES
        }
        self._others: dict[tuple[str, str | None, Outcome], list[float]] = {}

    def record(self, method: str, tool: str | None, outcome: Outcome, seconds: float) -> None:
        """Count one completed request."""
        try:
            row = self._rows[method, tool, outcome]
        except KeyError:
            row = self._new_row(method, tool, outcome)
        row[bisect_left(BUCKET_BOUNDS, seconds)] += 1
        row[-1] += seconds

    def snapshot(self, *, with_idle: bool = True) -> list[RequestCounts]:
        """Return the current figures; methods except tools/call appear after their first call.

        Without ``with_idle``, the tools that were never called are left out; there are many.
        """
        return [
            RequestCounts(method, tool or "", outcome, tuple(map(int, row[:-1])), row[-1])
            for rows in (self._rows, self._others)
            for (method, tool, outcome), row in rows.items()
            if with_idle or any(row)
        ]

    def _new_row(self, method: str, tool: str | None, outcome: Outcome) -> list[float]:
        """Add and return the row of a kind that `_rows` lacks.

        An unknown name never becomes a key, or else a client could fill the memory with names.
        """
        known_tool = tool is None or tool in self._tools
        rows = self._rows if method in METHODS and known_tool else self._others
        kind = method if method in METHODS else OTHER, tool if known_tool else OTHER, outcome
        return rows.setdefault(kind, _row())


def _row() -> list[float]:
    return [0] * (len(BUCKET_BOUNDS) + 1) + [0.0]
