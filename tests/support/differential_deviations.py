"""Where our frames are deliberately stricter than the SDK's, as one table; everything else must agree.

The SDK's transports hand on what pydantic can read as a JSON-RPC message, drop the rest without a word,
and repair a little. Ours answer every line that asks for something, and refuse what could be read in two
ways. A line that the table names goes to our server alone: it must get the one answer that stands there
and have no other effect, so the conversation goes on alike on both sides.

The lines are judged by Python's own parser and not by ours, so that a line which ours refuses for no
reason of the table is found.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, METHOD_NOT_FOUND = -32700, -32600, -32602, -32601
UNREADABLE = (PARSE_ERROR, INVALID_REQUEST)
DEEP = 150  # brackets within brackets; pydantic ends at 200, msgspec at the interpreter's recursion limit

MISSING: Any = object()


class Line:
    """A line as Python reads it.

    Attributes:
        text: The line as text; None when it is not UTF-8.
        value: What it holds; MISSING when it is not JSON.
        repeats: Where a key stands twice: "message" or "params".
    """

    def __init__(self, raw: bytes) -> None:
        self.text: str | None = None
        self.value: Any = MISSING
        self.repeats: set[str] = set()
        try:
            self.text = raw.decode()
            self.value = json.loads(self.text, object_pairs_hook=_Object, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return
        for where, value in (("params", self.member("params")), ("message", self.value)):
            if isinstance(value, _Object) and value.repeats:
                self.repeats.add(where)

    def member(self, *path: str) -> Any:
        """Return what stands at a path in the message, or MISSING."""
        value = self.value
        for key in path:
            value = value.get(key, MISSING) if isinstance(value, dict) else MISSING
        return value

    @property
    def id(self) -> Any:
        return self.member("id")

    @property
    def method(self) -> Any:
        return self.member("method")

    @property
    def is_request(self) -> bool:
        return self.id is not MISSING and self.method is not MISSING

    @property
    def values(self) -> Iterator[Any]:
        """Everything in the message, keys included."""
        return _everything(self.value)


class _Object(dict[str, Any]):
    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeats = len(self) != len(pairs)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _everything(value: Any) -> Iterator[Any]:
    yield value
    parts: Iterator[Any] = iter(())
    if isinstance(value, dict):
        parts = (part for pair in value.items() for part in pair)
    elif isinstance(value, list):
        parts = iter(value)
    for part in parts:
        yield from _everything(part)


_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])')


def depth(text: str) -> int:
    """Return how many brackets are open at once, at most."""
    deepest = level = 0
    for token in _BRACKETS.finditer(text):
        level += (token[1] is not None) - (token[2] is not None)
        deepest = max(deepest, level)
    return deepest


def is_id(value: Any) -> bool:
    """Return whether JSON-RPC lets a value be a request's id."""
    return isinstance(value, str) or type(value) is int


def coerced(id: Any) -> Any:
    """Return an id as the SDK looks requests up: "7" is 7."""
    try:
        return int(id) if isinstance(id, str) else id
    except ValueError:
        return id


Ids = Collection[tuple[type, Any]]
"""The ids of open requests with their types, so that 7 and "7" are two."""


class Deviation(NamedTuple):
    """One row of the table.

    Attributes:
        name: What is wrong with the line.
        codes: The errors of which our server answers one; ANY for any one answer, NONE for silence.
        under_id: Whether the answer carries the line's id; otherwise null, for none can be told.
        reason: Why we do not do what the SDK does.
        applies: Tells whether a line is of this kind, given the open ids; earlier rows were asked before.
    """

    name: str
    codes: tuple[int, ...] | str
    under_id: bool
    reason: str
    applies: Callable[[Line, Ids], bool]


ANY, NONE = "any", "none"

DEVIATIONS = (
    Deviation(
        "not UTF-8", (PARSE_ERROR,), False,
        "the SDK puts replacement characters into what is stored",
        lambda line, _: line.text is None,
    ),
    Deviation(
        "deeply nested", ANY, False,
        "the SDK drops it in silence; ours is answered under its id when that can be told",
        lambda line, _: line.text is not None and depth(line.text) > DEEP,
    ),
    Deviation(
        "not JSON, and does not begin as an object", UNREADABLE, False,
        "the SDK drops it in silence; which of its two faults ours is told of first does not matter",
        lambda line, _: line.value is MISSING and line.text is not None and line.text.lstrip()[:1] != "{",
    ),
    Deviation(
        "not JSON, with an escaped surrogate before the fault", ANY, False,
        "the SDK drops it in silence; ours is answered under its id when that can be told",
        lambda line, _: line.value is MISSING and line.text is not None and "\\ud" in line.text.lower(),
    ),
    Deviation(
        "not JSON", (PARSE_ERROR,), False,
        "the SDK drops it in silence, and takes NaN and Infinity, which are no JSON",
        lambda line, _: line.value is MISSING,
    ),
    Deviation(
        "no object", (INVALID_REQUEST,), False,
        "the SDK drops batches and values in silence",
        lambda line, _: not isinstance(line.value, dict),
    ),
    Deviation(
        "a key of the message twice", (INVALID_REQUEST,), False,
        "two readers of it would see two messages",
        lambda line, _: "message" in line.repeats,
    ),
    Deviation(
        "an id that is null, a boolean, a fraction or no scalar", (INVALID_REQUEST,), False,
        "the SDK takes it for a notification, and the asker waits for ever",
        lambda line, _: line.id is not MISSING and not is_id(line.id) and not _is_response(line),
    ),
    Deviation(
        "an id that is no Unicode", (INVALID_REQUEST,), False,
        "the SDK drops it in silence",
        lambda line, _: line.id is not MISSING and _is_broken(line.id),
    ),
    Deviation(
        "an endless id", (INVALID_REQUEST,), False,
        "it would be echoed",
        lambda line, _: is_id(line.id) and len(json.dumps(line.id)) > 1_000,
    ),
    Deviation(
        "another jsonrpc", (INVALID_REQUEST,), True,
        "the SDK drops it in silence",
        lambda line, _: line.member("jsonrpc") != "2.0",
    ),
    Deviation(
        "neither a method nor an outcome", (INVALID_REQUEST,), True,
        "the SDK drops it in silence",
        lambda line, _: not {"method", "result", "error"} & set(line.value),
    ),
    Deviation(
        "a method that is no text", (INVALID_REQUEST,), True,
        "the SDK drops it in silence",
        lambda line, _: line.method is not MISSING
        and (not isinstance(line.method, str) or _is_broken(line.method)),
    ),
    Deviation(
        "an endless method", (METHOD_NOT_FOUND,), True,
        "the SDK echoes it",
        lambda line, _: line.is_request and len(line.method) > 200,
    ),
    Deviation(
        "params of a request that are no object", (INVALID_PARAMS,), True,
        "the SDK drops it in silence",
        lambda line, _: line.is_request and not isinstance(line.member("params"), dict)
        and line.member("params") not in (MISSING, None),
    ),
    Deviation(
        "a key of params twice", (INVALID_PARAMS,), True,
        "two readers of it would see two requests",
        lambda line, _: line.is_request and "params" in line.repeats,
    ),
    Deviation(
        "a number out of range, or half a character", ANY, True,
        "the SDK passes infinity on, and drops a lone surrogate in silence",
        lambda line, _: line.is_request and any(_is_broken(value) for value in line.values),
    ),
    Deviation(
        "arguments that are no object", (INVALID_PARAMS, INVALID_REQUEST), True,
        "the SDK says the same with less words, and some refusals of either come before that",
        lambda line, _: line.is_request and line.method == "tools/call"
        and not isinstance(line.member("params", "arguments"), dict)
        and line.member("params", "arguments") not in (MISSING, None),
    ),
    Deviation(
        "an id in flight", (INVALID_REQUEST,), False,
        "the SDK runs both, and the client cannot tell the answers apart",
        lambda line, open_ids: line.is_request and (type(line.id), line.id) in open_ids,
    ),
    Deviation(
        "a cancellation of another id that looks alike", NONE, False,
        'the SDK takes "7" for 7',
        lambda line, open_ids: line.id is MISSING and line.method == "notifications/cancelled"
        and _takes_for_another(line.member("params", "requestId"), open_ids),
    ),
)  # fmt: skip


def deviation_of(line: Line, open_ids: Ids, table: Sequence[Deviation]) -> Deviation | None:
    """Return the row that a line falls under, or None if both sides must take it alike."""
    return next((row for row in table if row.applies(line, open_ids)), None)


def _is_response(line: Line) -> bool:
    return line.id is None and line.method is MISSING


def _is_broken(value: Any) -> bool:
    if isinstance(value, float):
        return math.isinf(value)
    return isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value)


def _takes_for_another(id: Any, open_ids: Ids) -> bool:
    return (
        is_id(id)
        and (type(id), id) not in open_ids
        and any(coerced(other) == coerced(id) for _, other in open_ids)
    )
