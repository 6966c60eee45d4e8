"""What comes next, by replay: each command of public command histories is suggested before it is learned.

Beside the model stand the two it must beat: the commands that came most often so far, and a first-order
Markov chain, which goes by the last command alone and is filled up with the most frequent ones. All learn
from the same steps, and none is asked for a command whose program is masked. Confidences are held against
how often they came true. The data are given by ``--data`` (`bench/README.md` says which); without them
nothing but the answers is checked, on made-up histories.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import trio

from bench.harness import Figure, Plan, Report, Table, check
from greenroom.actors import Agent, Principal, RecordWorkflowStep, SuggestNextAction, open_greenroom
from greenroom.actors.sessions.workflows.patterns import match_patterns, mine
from greenroom.actors.sessions.workflows.prediction import predict
from greenroom.actors.sessions.workflows.shapes import NAMELESS, Word, build_shape
from greenroom.actors.sessions.workflows.timeline import FREQUENT, MOST_STEPS, Step, Timeline
from greenroom.runtime import finish

T = TypeVar("T")

FITTED_ON = {f"User{number}" for number in range(5, 31, 5)}
"""By whose commands the model's numbers were chosen; they are not replayed."""
_FIRST = 5
_WANTED = 3
_BETWEEN_MININGS = 200
_BINS = 10
_COMPARED = 200
_MINUTE = 60_000_000


class History(NamedTuple):
    """The commands of one person, or of one course: one session after the other."""

    sessions: Sequence[Sequence[str]]


class Score:
    """How often the next command was among the first suggestions, and what their confidences were worth."""

    def __init__(self) -> None:
        self.steps = 0
        self.first = 0
        self.hits = 0
        self.seconds = 0.0
        self.bins: defaultdict[int, list[tuple[float, bool]]] = defaultdict(list)

    def note(self, suggested: Sequence[str], came: str) -> None:
        """Count one step."""
        self.steps += 1
        self.first += suggested[:1] == [came]
        self.hits += came in suggested

    def note_confidence(self, confidence: float, came_true: object) -> None:
        """Keep a confidence, and whether it came true."""
        self.bins[min(_BINS - 1, int(confidence * _BINS))].append((confidence, bool(came_true)))

    @property
    def error(self) -> float:
        """The expected calibration error: by how much confidences are off on average."""
        total = sum(map(len, self.bins.values()))
        off = (
            abs(sum(confidence - came_true for confidence, came_true in said)) for said in self.bins.values()
        )
        return sum(off) / total if total else 0.0


def run(plan: Plan) -> Report:
    """Replay and report."""
    trio.run(_compare_with_tool, plan.size(_COMPARED, 40))
    if plan.smoke or plan.data is None:
        if not plan.smoke:
            print("workflows: not shown: --data names no folder of command histories", file=sys.stderr)
        sets = {"made up": [History([_made_up(plan.size(500, 200))])]}
    else:
        sets = dict(_found(plan.data))
    tables: list[Table] = []
    figures: list[Figure] = []
    rows: list[list[Any]] = []
    calibration: list[list[Any]] = []
    for name, histories in sets.items():
        scores, patterns = _replayed(histories)
        for contender, score in scores.items():
            ms = score.seconds / score.steps * 1_000
            rows.append(
                [name, contender, score.steps, score.first / score.steps, score.hits / score.steps, ms]
            )
        model, chain, frequent = scores["model"], scores["first-order chain"], scores["most frequent"]
        for what, score in (("suggestion", model), ("pattern", patterns)):
            for place, said in sorted(score.bins.items()):
                meant = sum(confidence for confidence, _ in said) / len(said)
                calibration.append(
                    [
                        name,
                        what,
                        f"{place / _BINS:.1f}",
                        len(said),
                        meant,
                        sum(true for _, true in said) / len(said),
                    ]
                )
        check(model.hits >= frequent.hits, f"{name}: the model is worse than the most frequent commands")
        figures += [
            Figure(
                what=f"{name}: hit@3 against the first-order chain", value=model.hits / chain.hits, least=1.0
            ),
            Figure(what=f"{name}: calibration error of suggestions", value=model.error, most=0.05),
            Figure(what=f"{name}: calibration error of patterns", value=patterns.error, most=0.1),
        ]
    tables.append(
        Table(
            title="the next command",
            columns=["histories", "contender", "steps", "hit@1", "hit@3", "processor ms a step"],
            rows=rows,
        )
    )
    tables.append(
        Table(
            title="what confidences are worth",
            columns=["histories", "of", "from", "said", "confidence", "came true"],
            rows=calibration,
        )
    )
    return Report(tables=tables, figures=figures)


def _replayed(histories: Iterable[History]) -> tuple[dict[str, Score], Score]:
    scores = {"most frequent": Score(), "first-order chain": Score(), "model": Score()}
    patterns = Score()
    for history in histories:
        _Replay(scores, patterns).run(history)
    return scores, patterns


class _Replay:
    """One history, command by command."""

    def __init__(self, scores: dict[str, Score], patterns: Score) -> None:
        self._scores = scores
        self._patterns_score = patterns
        self._timeline = Timeline()
        self._counts: Counter[str] = Counter()
        self._after: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._words: Counter[Word] = Counter()
        self._number = 0

    def run(self, history: History) -> None:
        for session, commands in enumerate(history.sessions):
            shapes = [self._shape(command) for command in commands]
            last: str | None = None
            patterns: list[Any] = []
            for place, shape in enumerate(shapes):
                if self._number % _BETWEEN_MININGS == 0:
                    patterns = finish(mine(self._timeline, self._now))
                if self._number >= _FIRST and shape != NAMELESS:
                    self._suggest(shapes[:place], last, shape)
                    self._follow(patterns, shapes, place)
                self._learn(str(session), last, shape)
                last = shape

    @property
    def _now(self) -> int:
        return self._number * _MINUTE

    def _shape(self, command: str) -> str:
        shape = build_shape(command, lambda word: self._words[word] + 1 >= FREQUENT)
        self._words.update(shape.words)
        return shape.text

    def _suggest(self, before: Sequence[str], last: str | None, came: str) -> None:
        often = _named(self._counts)
        self._time("most frequent", lambda: often, came)
        self._time("first-order chain", lambda: self._chained(last, often), came)
        context = before[-20:]
        found = self._time(
            "model",
            lambda: [
                (each.command, each.probability)
                for each in finish(predict(self._timeline, context, self._now))[:_WANTED]
            ],
            came,
        )
        for command, probability in found:
            self._scores["model"].note_confidence(probability, command == came)

    def _time(self, contender: str, suggest: Callable[[], list[Any]], came: str) -> list[Any]:
        score = self._scores[contender]
        began = time.process_time()
        found = suggest()
        score.seconds += time.process_time() - began
        score.note([each if isinstance(each, str) else each[0] for each in found], came)
        return found

    def _chained(self, last: str | None, often: Sequence[str]) -> list[str]:
        after = [] if last is None else _named(self._after[last])
        return list(dict.fromkeys([*after, *often]))[:_WANTED]

    def _follow(self, patterns: Sequence[Any], shapes: Sequence[str], place: int) -> None:
        """Note whether the pattern that is suggested first came true, with what may be in between."""
        for match in match_patterns(patterns, shapes[max(0, place - 20) : place], 1) if place else ():
            rest = match.pattern.commands[match.done :]
            following = iter(shapes[place : place + len(rest) + 1])
            self._patterns_score.note_confidence(match.confidence, all(each in following for each in rest))

    def _learn(self, session: str, last: str | None, shape: str) -> None:
        self._number += 1
        self._counts[shape] += 1
        if last is not None:
            self._after[last][shape] += 1
        self._timeline.add(Step(self._number, shape, session=session, passed=True, at=self._now))
        if len(self._timeline) > MOST_STEPS:
            self._timeline.forget_oldest()


async def _compare_with_tool(steps: int) -> None:
    """Check that the tool answers what the model says, step by step."""
    timeline = Timeline()
    context: deque[str] = deque(maxlen=20)
    with tempfile.TemporaryDirectory() as folder:
        async with open_greenroom(folder, embedder="none") as runtime:
            agent = Agent(runtime, Principal(agent_id="bench"))
            for number, command in enumerate(_made_up(steps), 1):
                told = await agent.ask(SuggestNextAction(limit=_WANTED))
                said = finish(predict(timeline, list(context), 0))[:_WANTED]
                found = {each.command: each.confidence for each in told.suggestions}
                check(list(found) == [each.command for each in said], f"step {number}: {found} for {said}")
                check(
                    all(abs(found[each.command] - each.probability) < 0.001 for each in said),
                    f"step {number}: {found} for {said}",
                )
                await agent.ask(RecordWorkflowStep(command=command))
                timeline.add(Step(number, command, session="s", passed=True, at=0))
                context.append(command)


def _named(counts: Counter[str]) -> list[str]:
    """Return the most frequent commands whose program has a name: nobody could do what has none."""
    return [command for command, _ in counts.most_common(_WANTED + 1) if command != NAMELESS][:_WANTED]


def _made_up(steps: int) -> list[str]:
    """Return commands of somebody who edits, tests and commits, and looks around between that."""
    chance = random.Random(7)
    commands: list[str] = []
    while len(commands) < steps:
        commands += ["vim", "make"] * chance.choice((1, 1, 2, 3))
        commands += chance.choice((["ls"], [], ["git diff"]))
        commands += ["git add", "git commit", "git push"]
    return commands[:steps]


def _found(data: Path) -> Iterator[tuple[str, list[History]]]:
    """Yield the sets that are in a folder."""
    users = sorted(path for path in data.rglob("User*") if path.is_file() and path.name not in FITTED_ON)
    if users:
        yield "commands of 44 Unix users", [History([path.read_text().split()[:2_000]]) for path in users]
    courses: defaultdict[str, list[list[str]]] = defaultdict(list)
    for path in sorted(data.rglob("*-useractions.json")):
        rows = msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]])
        lines = [
            str(row["cmd"])
            for row in sorted(rows, key=lambda row: str(row["timestamp_str"]))
            if row.get("cmd")
        ]
        if lines:
            courses[path.parent.parent.name].append(lines)
    if courses:
        yield "one trainee alone", [History([lines]) for course in courses.values() for lines in course]
        yield "trainees of a course, one after another", [History(course) for course in courses.values()]
