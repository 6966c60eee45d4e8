"""What hooks give in `bench.hook_worlds`: the curve of right against wrong answers, and starts of sessions.

The curve does not take the product's bar, but each bar at which a given share of the unrelated prompts gets
something. What the product gives at its own bar is in the other table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import trio

from bench import hook_worlds
from bench.harness import Figure, Plan, Table
from bench.hook_worlds import AGENT, PROJECT, Asked, Moment, World
from bench.minilm import installed
from greenroom.actors import Agent, AnswerHook, EmbedderChoice, MemoryStats, open_greenroom
from greenroom.actors.memories.recall.search_all_roots import SearchSpec, find
from greenroom.actors.memories.recall.unasked import FIRST, Judge, for_a_prompt
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.search.embedding.models.minilm_install import install_unpacked, installing
from greenroom.runtime import Procedure, ProcedureContext, RuntimeOptions

WRONG: Final = (0, 3, 6, 10, 20)
"""The curve has the bars at which at most this share of the unrelated prompts, in per cent, gets anything."""
MOST_WRONG: Final = 3.0
LEAST: Final = {"static": (53.0, 15.0), "minilm": (70.0, 50.0)}
"""By embedder: the least share of all prompts with an answer that get it, and of those in other words."""
LEAST_AT_START: Final = 80.0
_CANDIDATES: Final = 50


class _Judged(Procedure[list[tuple[str, float]]], frozen=True, kw_only=True):
    """The memories for a prompt, each with the figure by which it is given, the likeliest first."""

    text: str

    async def run(self, context: ProcedureContext) -> list[tuple[str, float]]:
        """Search as the hook of a prompt does."""
        search = SearchSpec(
            None,
            self.text,
            "semantic",
            0.0,
            MemoryFilters(unreviewed=False),
            _CANDIDATES,
            min_relevance=None,
            dated=False,
        )
        outcome = await find(context, for_a_prompt(search, self.text, context.principal, PROJECT))
        judge = Judge(self.text, outcome)
        found = [(hit.memory.memory_id, judge.figure_of(hit)) for hit in outcome.hits]
        return sorted(found, key=lambda each: -each[1])


class Answer(NamedTuple):
    """A prompt, the memories given for it, and those that are near it with their figures."""

    prompt: Asked
    given: list[str]
    judged: list[tuple[str, float]]


class Answers(NamedTuple):
    """What one world was given: for its prompts, and at the start of a session."""

    world: World
    prompts: list[Answer]
    start: list[str]

    @property
    def at_start(self) -> float:
        """The share of the memories needed at the start that were given."""
        needed = set(self.world.needed_at_start)
        return len(needed & set(self.start)) / len(needed)

    @property
    def outdated(self) -> int:
        """How many outdated memories were given without what replaced them, and beside it at the start."""
        alone = [
            old
            for answer in self.prompts
            for old, new in self.world.outdated.items()
            if old in answer.given and new not in answer.given
        ]
        return len(alone) + len(set(self.start) & set(self.world.outdated))


def measure(plan: Plan) -> tuple[list[Table], list[Figure]]:
    """Ask all worlds with each embedder; the figures are those of the unseen worlds."""
    worlds = hook_worlds.load()
    halves = {"tuned": worlds[: hook_worlds.TUNED], "unseen": worlds[hook_worlds.TUNED :]}
    if plan.smoke:
        halves = {"tuned": worlds[:1]}
    given: list[list[str | int | float | None]] = []
    curve: list[list[str | int | float | None]] = []
    figures: list[Figure] = []
    with plan.folder() as models:
        for choice in _choices(models, plan):
            for half, some in halves.items():
                found = [_ask(plan, world, choice, linked=True) for world in some]
                given.append([half, choice.kind, *_row(found)])
                curve += [[half, choice.kind, most, *_at(found, most)] for most in WRONG]
                if half == "unseen":
                    figures += _figures(choice.kind, found)
                if half == "unseen" and choice.kind != "minilm":
                    unlinked = [_ask(plan, world, choice, linked=False) for world in some]
                    given.append([f"{half}, nobody says what replaced what", choice.kind, *_row(unlinked)])
    names = ["worlds", "embedder"]
    shares = ["same words %", "other words %", "all with an answer %"]
    rest = ["unrelated %", "consent %", "memories a prompt", "needed at the start %", "outdated alone"]
    tables = [
        Table(title="what ten worlds are given", columns=[*names, *shares, *rest], rows=given),
        Table(title="right against wrong", columns=[*names, "at most wrong %", *shares], rows=curve),
    ]
    return tables, figures


def _choices(models: Path, plan: Plan) -> list[EmbedderChoice]:
    """Return the word vectors, and MiniLM if its weights are in the environment."""
    choices = [EmbedderChoice(kind="static")]
    weights = None if find_spec("onnxruntime") is None or plan.smoke else installed()
    if weights is not None:
        with installing(models) as unfinished:
            install_unpacked(weights.parents[1], unfinished, models)
        choices.append(EmbedderChoice(kind="minilm", models=models))
    return choices


def _ask(plan: Plan, world: World, choice: EmbedderChoice, *, linked: bool) -> Answers:
    with plan.folder() as folder:
        return trio.run(partial(_ask_in, folder, world, choice, linked=linked))


async def _ask_in(folder: Path, world: World, choice: EmbedderChoice, *, linked: bool) -> Answers:
    clock = Moment()
    options = RuntimeOptions(durability="process")
    async with open_greenroom(
        folder, embedder=choice, clock=clock, secrets=folder, options=options
    ) as runtime:
        ids = await hook_worlds.fill(runtime, world, clock, linked=linked)
        agent = Agent(runtime, AGENT)
        while choice.kind != "none" and (await agent.ask(MemoryStats())).embedding_waiting:  # noqa: ASYNC110 - nothing tells
            await trio.sleep(0.05)
        start = AnswerHook(event=hook_worlds.event("session-start", "start", clock))
        began = await runtime.query(start, principal=AGENT)
        prompts: list[Answer] = []
        for number, prompt in enumerate(world.prompts):
            event = hook_worlds.event("user-prompt", f"p{number}", clock, prompt=prompt.text)
            answer = await runtime.query(AnswerHook(event=event), principal=AGENT)
            judged = await runtime.query(_Judged(text=prompt.text), principal=AGENT)
            known = [(ids[memory_id], figure) for memory_id, figure in judged]
            prompts.append(Answer(prompt, [ids[each] for each in answer.memory_ids], known))
        return Answers(world, prompts, [ids[each] for each in began.memory_ids])


def _row(found: Sequence[Answers]) -> list[str | int | float | None]:
    every = [each for world in found for each in world.prompts]
    return [
        *_right(every, {id(each): set(each.given) for each in every}),
        *(
            _share(bool(each.given) for each in every if each.prompt.kind == kind)
            for kind in ("unrelated", "continue")
        ),
        round(sum(len(each.given) for each in every) / len(every), 2),
        _at_start(found),
        sum(world.outdated for world in found),
    ]


def _right(answers: Sequence[Answer], given: dict[int, set[str]]) -> list[float]:
    """Return the shares that got what answers them: in the same words, in others, and together."""
    kinds = (("same_words",), ("other_words",), ("same_words", "other_words"))
    return [
        _share(
            bool(given[id(each)] & set(each.prompt.answer)) for each in answers if each.prompt.kind in kind
        )
        for kind in kinds
    ]


def _at(found: Sequence[Answers], most: float) -> list[float]:
    """Return the right shares at the bar that at most ``most`` per cent of the unrelated prompts exceed."""
    every = [each for world in found for each in world.prompts]
    unrelated = sorted(
        (each.judged[0][1] for each in every if each.prompt.kind == "unrelated" and each.judged), reverse=True
    )
    count = sum(each.prompt.kind == "unrelated" for each in every)
    bar = unrelated[int(count * most / 100)]
    best = {id(each): {known for known, figure in each.judged[:FIRST] if figure > bar} for each in every}
    return _right(every, best)


def _at_start(found: Sequence[Answers]) -> float:
    return round(100 * sum(world.at_start for world in found) / len(found), 1)


def _figures(embedder: str, found: Sequence[Answers]) -> list[Figure]:
    _, other, every, wrong, *_ = map(_number, _row(found))
    least_all, least_other = LEAST[embedder]
    return [
        Figure(what=f"unseen worlds, wrong in per cent, {embedder}", value=wrong, most=MOST_WRONG),
        Figure(what=f"unseen worlds, right in per cent, {embedder}", value=every, least=least_all),
        Figure(what=f"the same in other words, {embedder}", value=other, least=least_other),
        Figure(what=f"needed at the start, {embedder}", value=_at_start(found), least=LEAST_AT_START),
    ]


def _number(value: str | float | None) -> float:
    assert isinstance(value, int | float), "it is a share"
    return float(value)


def _share(counted: Iterable[bool]) -> float:
    flags = list(counted)
    return round(100 * sum(flags) / max(1, len(flags)), 1)
