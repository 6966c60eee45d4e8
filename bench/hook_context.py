"""What a hook puts before a prompt: how often the right memory, and how often one that has no place there.

Each world of `bench/notes` is a user's memories, but for `unseen` all were fitted to. Asked are its own
questions, some of which no note answers; the questions of other worlds; and `hook_prompts.txt`, what people
ask of a coding agent on any day. Whatever comes with the last two is noise, though a note that has to do with
an everyday prompt counts as that, too. Nothing here is asked of a model.

A use is seen by words that come back. How often it is seen where there was none: what a model says are five
other notes of the same world.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import trio

from bench import hook_answers, notes
from bench.harness import Figure, Plan, Report, Table, check
from greenroom.actors import (
    Agent,
    AnswerHook,
    HookEvent,
    MemoryStats,
    Principal,
    StoreMemory,
    open_greenroom,
)
from greenroom.actors.hooks.briefing.context_lines import is_used, marks_of
from greenroom.actors.hooks.briefing.prompt_memories import MOST_MEMORIES, MOST_TOKENS
from greenroom.runtime import RuntimeOptions

MOST_NOISE: Final = 3.0
"""Per cent of everyday prompts that may be given anything."""
MOST_FOREIGN: Final = 5.0
"""Per cent of questions about other worlds that may be given anything."""
LEAST_RIGHT: Final = 25.0
"""Per cent of questions that are given a memory that answers them, at least."""
OTHERS: Final = 5
FEW: Final = 12
"""Notes of a store that has few."""
EMBEDDERS: Final = ("none", "static")
NOTES: Final = Path(__file__).parent / "notes"
_PROMPTS: Final = Path(__file__).with_name("hook_prompts.txt")
ANN: Final = Principal(agent_id="coder", user="ann")


class Prompt(NamedTuple):
    """What is asked, what kind of question it is, and the keys of the notes that answer it."""

    text: str
    kind: str
    relevant: Sequence[str] = ()


class Answered(NamedTuple):
    """A prompt and the keys of what was given for it, and whether that kept to its limits."""

    prompt: Prompt
    given: list[str]
    milliseconds: float


def run(plan: Plan) -> Report:
    """Ask all worlds, with each embedder, and report."""
    seen, unseen = notes.load(NOTES), notes.load(NOTES / "unseen")
    worlds = [*seen, *unseen] if not plan.smoke else seen[:1]
    rows: list[list[str | int | float | None]] = []
    figures: list[Figure] = []
    for embedder in EMBEDDERS if not plan.smoke else EMBEDDERS[:1]:
        answers: list[Answered] = []
        for world in worlds:
            with plan.folder() as folder:
                answered = trio.run(partial(_ask, folder, world, _prompts(world, seen, plan), embedder))
            if world in unseen:
                rows.append([f"{world.name}, unseen", embedder, *_row(answered)])
            answers += answered
        few: list[Answered] = []
        for part in map(_part, worlds):
            with plan.folder() as folder:
                few += trio.run(partial(_ask, folder, part, _prompts(part, seen, plan), embedder))
        for name, some in (("all", answers), (f"{FEW} of each", few)):
            rows.append([name, embedder, *_row(some)])
            noise, foreign = _given(some, "everyday"), _given(some, "foreign")
            figures += [
                Figure(what=f"noise in per cent, {name}, {embedder}", value=noise, most=MOST_NOISE),
                Figure(
                    what=f"the same, foreign questions, {name}, {embedder}", value=foreign, most=MOST_FOREIGN
                ),
                Figure(what=f"right in per cent, {name}, {embedder}", value=_right(some), least=LEAST_RIGHT),
            ]
    tables, of_worlds = hook_answers.measure(plan)
    columns = ["memories", "embedder", "questions", "right memory %", "right one first %", "no answer %"]
    columns += ["everyday %", "foreign %", "memories a prompt", "CPU ms"]
    return Report(
        tables=[Table(title="what prompts are given", columns=columns, rows=rows), _uses(worlds), *tables],
        figures=figures + of_worlds,
    )


def _prompts(world: notes.World, seen: Iterable[notes.World], plan: Plan) -> list[Prompt]:
    own = [
        Prompt(each.query, each.group if each.group == "nothing" else "right", each.relevant)
        for each in world.questions
    ]
    foreign = [
        Prompt(each.query, "foreign")
        for other in seen
        if other.name not in world.name
        for each in other.questions[::3]
    ]
    everyday = [Prompt(line, "everyday") for line in _PROMPTS.read_text().splitlines()]
    every = plan.size(1, 12)
    return [*own[::every], *foreign[::every], *everyday[::every]]


def _part(world: notes.World) -> notes.World:
    """Return a store of few of a world's notes, with the questions that they answer."""
    drawn = random.Random(world.name).sample(world.notes, FEW)
    keys = {note.key for note in drawn}
    questions = [each for each in world.questions if keys & set(each.relevant)]
    return notes.World(f"{world.name} ({FEW})", drawn, questions)


async def _ask(folder: Path, world: notes.World, prompts: Sequence[Prompt], embedder: str) -> list[Answered]:
    """Put each prompt to a session of its own, and check what comes back."""
    options = RuntimeOptions(durability="process")
    async with open_greenroom(folder, embedder=embedder, secrets=folder, options=options) as runtime:
        agent = Agent(runtime, ANN)
        keys: dict[str, str] = {}
        for note in world.notes:
            stored = await agent.ask(StoreMemory(content=note.content, key=note.key, tags=note.tags))
            keys[stored.memory_id] = note.key
        while embedder != "none" and await waits(agent):  # noqa: ASYNC110 - nothing tells
            await trio.sleep(0.1)
        answered: list[Answered] = []
        for number, prompt in enumerate(prompts):
            event = HookEvent(
                id=f"{number:032x}",
                name="user-prompt",
                client="claude-code",
                session=str(number),
                project="bench-00000000",
                folder="/bench",
                at=notes.PRESENT,
                prompt=prompt.text,
            )
            began = time.process_time()
            answer = await runtime.query(AnswerHook(event=event), principal=ANN)
            took = (time.process_time() - began) * 1_000
            check(len(answer.memory_ids) <= MOST_MEMORIES, "a prompt is given too many memories")
            check(len(answer.context.encode()) <= 4 * (MOST_TOKENS + 100), "a prompt is given too much")
            again = msgspec.structs.replace(event, id=f"{number + 1_000_000:032x}")
            if answer.memory_ids:
                repeated = await runtime.query(AnswerHook(event=again), principal=ANN)
                check(not set(repeated.memory_ids) & set(answer.memory_ids), "a memory is given twice")
            answered.append(Answered(prompt, [keys[each] for each in answer.memory_ids], took))
    return answered


async def waits(agent: Agent) -> bool:
    """Return whether some notes have no vectors yet."""
    stats = await agent.ask(MemoryStats())
    return stats.embedding_space is None or stats.embedding_waiting > 0


def _row(answers: Sequence[Answered]) -> list[str | int | float | None]:
    questions = [each for each in answers if each.prompt.kind == "right"]
    times = sorted(each.milliseconds for each in answers)
    return [
        len(questions),
        _right(answers),
        _share(bool(each.given) and each.given[0] in each.prompt.relevant for each in questions),
        *(_given(answers, kind) for kind in ("nothing", "everyday", "foreign")),
        round(sum(len(each.given) for each in answers) / len(answers), 2),
        round(times[len(times) // 2], 1),
    ]


def _right(answers: Iterable[Answered]) -> float:
    return _share(
        bool(set(each.given) & set(each.prompt.relevant)) for each in answers if each.prompt.kind == "right"
    )


def _given(answers: Iterable[Answered], kind: str) -> float:
    """Return the share of the prompts of a kind that were given anything, in per cent."""
    return _share(bool(each.given) for each in answers if each.prompt.kind == kind)


def _share(counted: Iterable[bool]) -> float:
    flags = list(counted)
    return round(100 * sum(flags) / max(1, len(flags)), 1)


def _uses(worlds: Iterable[notes.World]) -> Table:
    """Return how often a use of a memory is seen where there was none."""
    rows: list[list[str | int | float | None]] = []
    for world in worlds:
        drawn = random.Random(world.name)
        texts = {note.key: note.content for note in world.notes}
        marked = [
            (key, marks_of(texts[key], question.query))
            for question in world.questions
            for key in question.relevant
        ]
        seen = [
            is_used(marks, drawn.sample([text for other, text in texts.items() if other != key], OTHERS))
            for key, marks in marked
        ]
        own = [is_used(marks, [texts[key]]) for key, marks in marked]
        rows.append([world.name, len(marked), _share(seen), _share(own)])
    columns = ["memories", "given", "seen though not used %", "seen when repeated %"]
    return Table(title="what counts as used", columns=columns, rows=rows)
