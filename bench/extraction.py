"""What plain rules find in turns of sessions: how much of it is right, and how much of what is there.

The turns in `bench/turns` are made up, and labelled with what is to be found in them; most have nothing, and
many look as if they had. The rules were fitted to one half, and not changed for the other.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bench.harness import Figure, Plan, Report, Table, check
from greenroom.actors.hooks.extraction.extraction import found_in
from greenroom.actors.sessions.requests.hook_events import Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenroom.actors.hooks.extraction.findings import Finding

TURNS = Path(__file__).parent / "turns"
HALVES = ("development", "held-out")
RULES = ("decision", "preference", "remember", "fix", "command")
LEAST_PRECISION = 0.95


class Expected(msgspec.Struct, frozen=True):
    """What is to be found: by which rule, at which turn, and words of its text."""

    turn: int
    rule: str
    words: list[str]


class Case(msgspec.Struct, frozen=True):
    """Turns, and what is to be found in them."""

    id: str
    turns: list[Turn]
    expected: list[Expected]


class Score(NamedTuple):
    """Of one half, by rules.

    Attributes:
        right: What was found and is right.
        wrong: What was found and is not.
        missed: What is there and was not found.
        words: What was wrong, and what was missed.
    """

    right: Counter[str]
    wrong: Counter[str]
    missed: Counter[str]
    words: list[str]


def run(plan: Plan) -> Report:
    """Find what there is in both halves, and many turns in a row."""
    scores = {half: judged(cases_of(half)) for half in HALVES}
    rows = [
        [half, rule, *_shares(score.right[rule], score.wrong[rule], score.missed[rule])]
        for half, score in scores.items()
        for rule in RULES
    ]
    totals = {half: _shares(*(sum(each.values()) for each in score[:3])) for half, score in scores.items()}
    rows += [[half, "all", *shares] for half, shares in totals.items()]
    turns = [turn for half in HALVES for case in cases_of(half) for turn in case.turns]
    many = (turns * (400 // len(turns) + 1))[:400]
    found = found_in(many)
    check(found == found_in(many), "the same turns have other findings a second time")
    began = time.process_time()
    rounds = plan.size(20, 1)
    for _ in range(rounds):
        found_in(many)
    spent = (time.process_time() - began) / rounds * 1_000
    return Report(
        tables=[
            Table(
                title="findings of plain rules",
                columns=["half", "rule", "there", "found", "precision", "recall"],
                rows=rows,
            ),
            Table(
                title="400 turns in a row", columns=["what", "processor time, ms"], rows=[["found", spent]]
            ),
        ],
        figures=[
            Figure(what=f"precision, {half}", value=float(shares[2] or 0), least=LEAST_PRECISION)
            for half, shares in totals.items()
        ],
    )


def cases_of(half: str) -> list[Case]:
    """Return the cases of one half."""
    lines = (TURNS / f"{half}.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Case) for line in lines]


def judged(cases: Sequence[Case]) -> Score:
    """Return how findings compare with what is to be found."""
    score = Score(Counter(), Counter(), Counter(), [])
    for case in cases:
        rest = list(case.expected)
        for each in found_in(case.turns):
            match = next((label for label in rest if _fits(label, each)), None)
            if match is None:
                score.wrong[each.rule] += 1
                score.words.append(f"{case.id}: wrong {each.rule}: {each.text}")
            else:
                rest.remove(match)
                score.right[each.rule] += 1
        score.missed.update(label.rule for label in rest)
        score.words.extend(f"{case.id}: missed {label.rule}: {label.words}" for label in rest)
    return score


def _fits(label: Expected, found: Finding) -> bool:
    same = label.turn == found.turn and label.rule == found.rule
    return same and all(word.casefold() in found.text.casefold() for word in label.words)


def _shares(right: int, wrong: int, missed: int) -> list[int | float | None]:
    found, there = right + wrong, right + missed
    return [there, found, right / found if found else None, right / there if there else None]
