"""What a recall leaves out in a small store: tokens that are spared, and answers that are lost.

Notes of each world of `bench/notes` are drawn into stores of 12 to 60, and every question that one of them
answers is a task, twice: with a budget that all of the smallest fit into, as agents recall, and with a filter
that leaves every note, which takes the cut away. Tasks of other worlds, which nothing answers, tell how much
is recalled for nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from bench import notes
from bench.harness import Figure, Plan, Report, Table, check
from bench.hook_context import ANN, EMBEDDERS, NOTES, waits
from greenroom.actors import Agent, RecallContext, StoreMemory, open_greenroom
from greenroom.runtime import RuntimeOptions

if TYPE_CHECKING:
    from greenroom.actors import ContextRecalled

DRAWN: Final = {12: 8, 30: 5, 60: 3}
"""How many stores are drawn of each world, by how many notes are in one."""
FOREIGN: Final = 6
MOST_LOST: Final = 0.5
"""Points of the share of tasks whose answer is recalled that the cut may cost."""
MOST_SPENT: Final = 0.85
"""Tokens of a task that a note answers, by those without the cut."""
_KIND: Final = "semantic"


class Recalled(NamedTuple):
    """A task's two recalls.

    Attributes:
        answers: The keys of the notes that answer it.
        whole: Tokens of all notes' texts.
        cut: As agents recall.
        uncut: With a filter that leaves every note.
    """

    answers: frozenset[str]
    whole: int
    cut: ContextRecalled
    uncut: ContextRecalled


def run(plan: Plan) -> Report:
    """Recall from all stores, with each embedder, and report."""
    seen, unseen = notes.load(NOTES), notes.load(NOTES / "unseen")
    worlds = plan.size([*seen, *unseen], seen[:1])
    rows: list[list[str | int | float | None]] = []
    figures: list[Figure] = []
    for embedder in plan.size(EMBEDDERS, EMBEDDERS[:1]):
        every: list[Recalled] = []
        for size, stores in plan.size(DRAWN, {12: 1}).items():
            recalled: list[Recalled] = []
            for world in worlds:
                for number in range(stores):
                    drawn = random.Random(f"{world.name} {size} {number}")
                    with plan.folder() as folder:
                        recalled += trio.run(partial(_recall, folder, world, seen, size, embedder, drawn))
            rows.append([size, embedder, *_row(recalled)])
            every += recalled
        answered = [each for each in every if each.answers]
        figures += [
            Figure(
                what=f"points of answers lost, {embedder}",
                value=round(_share(answered, cut=False) - _share(answered, cut=True), 1),
                most=MOST_LOST,
            ),
            Figure(
                what=f"tokens by those without the cut, {embedder}",
                value=round(_tokens(answered, cut=True) / max(1.0, _tokens(answered, cut=False)), 2),
                most=MOST_SPENT,
            ),
        ]
    columns = ["notes", "embedder", "tasks", "right %", "uncut %", "tokens", "uncut tokens"]
    columns += ["dearer than all %", "uncut dearer %", "foreign tokens", "uncut foreign"]
    return Report(tables=[Table(title="recalls", columns=columns, rows=rows)], figures=figures)


async def _recall(
    folder: Path,
    world: notes.World,
    others: Iterable[notes.World],
    size: int,
    embedder: str,
    drawn: random.Random,
) -> list[Recalled]:
    """Put notes of a world into a store, and recall for its questions and for others."""
    kept = drawn.sample(world.notes, size)
    keys = {note.key for note in kept}
    tasks = [(each.query, keys & set(each.relevant)) for each in world.questions]
    tasks = [(task, answers) for task, answers in tasks if answers]
    foreign = [each.query for other in others if other.name != world.name for each in other.questions]
    if foreign:
        tasks += [(task, set()) for task in drawn.sample(foreign, FOREIGN)]
    whole = sum(len(note.content.encode()) for note in kept) // 4
    options = RuntimeOptions(durability="process")
    async with open_greenroom(folder, embedder=embedder, secrets=folder, options=options) as runtime:
        agent = Agent(runtime, ANN)
        for note in kept:
            await agent.ask(StoreMemory(content=note.content, key=note.key, tags=note.tags))
        while embedder != "none" and await waits(agent):  # noqa: ASYNC110 - nothing tells
            await trio.sleep(0.1)
        recalled: list[Recalled] = []
        for task, answers in tasks:
            cut = await agent.ask(RecallContext(task=task))
            uncut = await agent.ask(RecallContext(task=task, kind=_KIND))
            check(_keys(cut) <= _keys(uncut) or uncut.left_out > 0, "more is recalled with the cut")
            check(cut.memories[:5] == uncut.memories[:5], "the best are not the same with the cut")
            recalled.append(Recalled(frozenset(answers), whole, cut, uncut))
    return recalled


def _row(recalled: Sequence[Recalled]) -> list[str | int | float | None]:
    answered = [each for each in recalled if each.answers]
    foreign = [each for each in recalled if not each.answers]
    row: list[str | int | float | None] = [len(answered)]
    row += [_share(answered, cut=True), _share(answered, cut=False)]
    row += [round(_tokens(answered, cut=True)), round(_tokens(answered, cut=False))]
    row += [_dearer(answered, cut=True), _dearer(answered, cut=False)]
    return [*row, round(_tokens(foreign, cut=True)), round(_tokens(foreign, cut=False))]


def _of(each: Recalled, *, cut: bool) -> ContextRecalled:
    return each.cut if cut else each.uncut


def _keys(recalled: ContextRecalled) -> set[str]:
    return {memory.key for memory in recalled.memories}


def _share(recalled: Iterable[Recalled], *, cut: bool) -> float:
    """Return for how many tasks a note that answers them is recalled, in per cent."""
    return _percent(bool(_keys(_of(each, cut=cut)) & each.answers) for each in recalled)


def _dearer(recalled: Iterable[Recalled], *, cut: bool) -> float:
    """Return how many recalls cost more than the texts of all notes, in per cent."""
    return _percent(_of(each, cut=cut).tokens > each.whole for each in recalled)


def _tokens(recalled: Sequence[Recalled], *, cut: bool) -> float:
    return fmean(_of(each, cut=cut).tokens for each in recalled) if recalled else 0.0


def _percent(counted: Iterable[bool]) -> float:
    flags = list(counted)
    return round(100 * sum(flags) / max(1, len(flags)), 1)
