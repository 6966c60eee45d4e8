"""The judge of histories finds what is wrong with them, and nothing in those that are right."""

from __future__ import annotations

from math import inf

import pytest

from bench.history import Kind, Known, Operation, Stored, faults

KEY = "key"


def operation(
    token: str = "",
    place: int | None = None,
    *,
    sent: float = 0.0,
    seen: float = inf,
    told: str = "",
    stream: str = "",
    serial: int = 0,
    writer: str = "",
    known: Known = Known.NOTHING,
    repeated: bool = False,
) -> Operation:
    """Return an operation, in a stream of its own unless told otherwise, answered if it has a place."""
    made = Operation(KEY, token, stream=stream or f"{token}{sent}", serial=serial, sent=sent, writer=writer)
    made.known = known
    made.repeated = repeated
    if place is not None:
        made.answered(seen, place, told)
    return made


RIGHT: dict[str, tuple[Kind, list[Operation], list[Stored]]] = {
    "nothing": ("register", [], []),
    "a read of nothing, while it is written": (
        "register",
        [operation("a", 1, sent=0, seen=3), operation(place=0, sent=1, seen=2)],
        [Stored(1, "a")],
    ),
    "two reads that overlap a write, the first of which sees it": (
        "register",
        [
            operation("a", 1, sent=0, seen=9),
            operation(place=1, told="a", sent=1, seen=4),
            operation(place=0, sent=2, seen=5),
        ],
        [Stored(1, "a")],
    ),
    "a write without an answer that happened much later": (
        "register",
        [operation("a", sent=0), operation("b", 1, sent=1, seen=2)],
        [Stored(1, "b"), Stored(2, "a")],
    ),
    "a write without an answer that did not happen": (
        "log",
        [operation("a", sent=0), operation("b", 700, sent=1, seen=2), operation(place=1, sent=3, seen=4)],
        [Stored(700, "b")],
    ),
    "two writes answered in the other order than they happened": (
        "log",
        [operation("a", 10, sent=0, seen=5), operation("b", 20, sent=1, seen=4)],
        [Stored(10, "a"), Stored(20, "b")],
    ),
    "a read done again after the write that was sent after it": (
        "register",
        [
            operation(place=1, told="a", sent=0, seen=5, stream="s", serial=1),
            operation("a", 1, sent=1, seen=6, stream="s", serial=2),
        ],
        [Stored(1, "a")],
    ),
    "what was refused, and sent again after what was sent behind it": (
        "log",
        [
            operation("a", 20, sent=0, seen=9, stream="s", serial=1, repeated=True),
            operation("b", 10, sent=1, seen=2, stream="s", serial=2),
        ],
        [Stored(10, "b"), Stored(20, "a")],
    ),
    "what may have been done, and was": (
        "log",
        [operation("a", sent=0, known=Known.UNSURE)],
        [Stored(1, "a")],
    ),
}

WRONG: dict[str, tuple[str, Kind, list[Operation], list[Stored]]] = {
    "a lost write": ("is lost", "register", [operation("a", 1, seen=1)], []),
    "a lost write, another in its place": (
        "is lost",
        "register",
        [operation("a", 1, seen=1), operation("b", sent=2)],
        [Stored(1, "b")],
    ),
    "a doubled write": (
        "is there twice",
        "log",
        [operation("a", 10, seen=1)],
        [Stored(10, "a"), Stored(20, "a")],
    ),
    "a doubled write without an answer": (
        "is there twice",
        "log",
        [operation("a")],
        [Stored(1, "a"), Stored(2, "a")],
    ),
    "a write that nobody made": ("nobody wrote it", "log", [], [Stored(10, "a")]),
    "a write of somebody else": (
        "was written by even and is odd's",
        "log",
        [operation("a", 10, seen=1, writer="even")],
        [Stored(10, "a", "odd")],
    ),
    "a version left out": ("have gaps", "register", [operation("a", 2, seen=1)], [Stored(2, "a")]),
    "a log out of order": (
        "do not rise",
        "log",
        [operation("a", 20, seen=9), operation("b", 10, seen=9)],
        [Stored(20, "a"), Stored(10, "b")],
    ),
    "an answer with another's place": (
        "and stands at 2",
        "register",
        [operation("a", 1, seen=9), operation("b", 1, seen=9)],
        [Stored(1, "b"), Stored(2, "a")],
    ),
    "a refused write that was done": (
        "it was refused, and done",
        "log",
        [operation("a", known=Known.REFUSED)],
        [Stored(1, "a")],
    ),
    "a read of what was never there": (
        "version 1 was b, and is a",
        "register",
        [operation("a", 1, seen=1), operation(place=1, told="b", sent=2, seen=3)],
        [Stored(1, "a")],
    ),
    "a read of a future that did not come": (
        "it saw 2 writes of 1",
        "log",
        [operation("a", 10, seen=1), operation(place=2, sent=2, seen=3)],
        [Stored(10, "a")],
    ),
    "a stale read after an answered write": (
        "stands at 0.5",
        "register",
        [operation("a", 1, sent=0, seen=1), operation(place=0, sent=2, seen=3)],
        [Stored(1, "a")],
    ),
    "a stale read of a log": (
        "stands at 1.5",
        "log",
        [
            operation("a", 10, sent=0, seen=1),
            operation("b", 20, sent=2, seen=3),
            operation(place=1, sent=4, seen=5),
        ],
        [Stored(10, "a"), Stored(20, "b")],
    ),
    "a read before a read that saw more": (
        "stands at 0.5",
        "register",
        [
            operation("a", sent=0),
            operation(place=1, told="a", sent=1, seen=2),
            operation(place=0, sent=3, seen=4),
        ],
        [Stored(1, "a")],
    ),
    "a write before one that was answered before it was sent": (
        "stands at 1",
        "register",
        [operation("a", 2, sent=0, seen=1), operation("b", 1, sent=2, seen=3)],
        [Stored(1, "b"), Stored(2, "a")],
    ),
    "a write without an answer that happened before it was sent": (
        "stands at 1",
        "log",
        [operation("a", 20, sent=0, seen=1), operation("b", sent=2)],
        [Stored(10, "b"), Stored(20, "a")],
    ),
    "what one client sent in another order": (
        "happened before it",
        "log",
        [
            operation("a", 20, sent=0, seen=9, stream="s", serial=1),
            operation("b", 10, sent=1, seen=9, stream="s", serial=2),
        ],
        [Stored(10, "b"), Stored(20, "a")],
    ),
    "a read that does not see its own client's write": (
        "happened before it",
        "register",
        [
            operation("a", 1, sent=0, seen=9, stream="s", serial=1),
            operation(place=0, sent=1, seen=9, stream="s", serial=2),
        ],
        [Stored(1, "a")],
    ),
    "a gap in what was not answered": (
        "happened, but not the write of a",
        "log",
        [operation("a", sent=0, stream="s", serial=1), operation("b", sent=1, stream="s", serial=2)],
        [Stored(10, "b")],
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_found_in_a_right_history(name: str) -> None:
    assert faults(*RIGHT[name]) == []


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name: str) -> None:
    sentence, kind, operations, stored = WRONG[name]
    assert sentence in "; ".join(faults(kind, operations, stored))


def test_an_answer_that_differs_from_the_first_is_not_taken() -> None:
    write = operation("a", 1, seen=1)
    write.answered(2, 1)
    assert write.seen == 1
    with pytest.raises(ValueError, match="was answered with 1 at first, and then with 2"):
        write.answered(3, 2)
