"""How well memories are found, and in what time, beside what one would take instead.

Two kinds of memories are asked for: turns of conversations (`--data DIR`), each conversation a store, and
stand-alone notes of our own making (`bench/notes`), each two worlds a store. Greenroom gets them by
`greenroom import` and is asked over stdio with `memory_search`, 50 memories an answer. Beside it are SQLite's
full-text search, rank-bm25 and nothing but the cosine of the same vectors, in this process; with `--peers`
also two memory servers over stdio (see `bench.peers`).

The weights of the ranking were fitted to such conversations and notes: `bench.tune` tells what they reach on
those that they were not fitted to.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bench import locomo, minilm, notes, peers, question_sets, rivals, trials
from bench.client import serving
from bench.harness import Figure, Plan, Report, Table, percentile
from bench.imported import import_memories, search, settle
from bench.present_server import command as present_server
from bench.question_sets import Question, Store
from bench.servers import greenroom
from greenroom.actors import EmbedderChoice, read_choice
from greenroom.actors.memories.recall.evaluate import Scored, expected_error, tenths
from greenroom.actors.search.embedding.models.minilm_install import install_unpacked, installing

if TYPE_CHECKING:
    from bench.harness import Value

AGENT = "bench"
LIMIT = 50
SEED = 11
NOTES = Path(__file__).with_name("notes")
UNSEEN = NOTES / "unseen"
"""A world to which nothing was fitted."""
RELIABLE_ERROR = 0.05
INTERVAL = 1.96
"""Standard errors on either side within which 95 % of all samples lie."""

Find = Callable[[str, str], Sequence[str]]
"""Returns the ids of memories, best first, for a store's name and a question's words."""
Open = Callable[[Sequence[Store], Path], AbstractContextManager[Find]]
"""Makes stores searchable; what it needs on disk it puts into the folder."""


class Answer(NamedTuple):
    """What a question found, and in how many milliseconds."""

    question: Question
    found: Sequence[str]
    milliseconds: float


Answers = Mapping[str, Sequence[Answer]]
"""Those of each contender."""


def run(plan: Plan) -> Report:
    """Measure Greenroom and the others on the same questions."""
    with plan.folder() as folder:
        embedders = _embedders(plan, folder / "models")
        parts = [
            _notes(plan, embedders, "stand-alone notes", question_sets.pairs_of_worlds(NOTES)),
            _notes(plan, embedders, "unseen notes", question_sets.worlds(UNSEEN)),
        ]
        if plan.data is not None:
            parts.append(_conversations(plan, plan.data, embedders))
            parts.append(_sessions(plan, plan.data, embedders))
    return Report(
        tables=[table for part in parts for table in part.tables],
        figures=[figure for part in parts for figure in part.figures],
    )


def _embedders(plan: Plan, models: Path) -> dict[str, EmbedderChoice]:
    """Return the embedders that are at hand, by what the tables call them."""
    found = {"words": read_choice("none"), "static": read_choice("static")}
    weights = minilm.installed()
    if weights is not None and not plan.smoke:
        with installing(models) as unfinished:
            install_unpacked(weights.parents[1], unfinished, models)
        found["MiniLM"] = read_choice("minilm", models=models)
    return found


# -- stand-alone notes -------------------------------------------------------

DEPTHS = {
    "paraphrase": 10,
    "plain": 10,
    "typo": 10,
    "two-hop": 10,
    "newer": 1,
    "history": 1,
    "relative": 1,
    "absolute": 1,
}
"""Of each group of questions, among how many of the first memories the answer must be."""
NOTHING = "nothing"
EMPTIED, WRONGLY_EMPTIED = "nothing, emptied %", "others emptied %"


def _notes(plan: Plan, embedders: Mapping[str, EmbedderChoice], title: str, every: Sequence[Store]) -> Report:
    scored: dict[str, list[Scored]] = {}
    present = notes.PRESENT.isoformat()
    contenders: dict[str, Open] = {
        f"greenroom, {name}": partial(
            _greenroom, embedder=embedder, at=present, scored=scored.setdefault(name, [])
        )
        for name, embedder in embedders.items()
    }
    stores = every[: plan.size(None, 1)]
    answers = _asked(plan, stores, contenders | _others(plan, embedders))
    rows = {name: _by_group(found) for name, found in answers.items()}
    columns = list(next(iter(rows.values())))
    least = min(len(store.memories) for store in stores)
    table = _table(f"{title}, {least} or more in a store", rows, columns, answers)
    figures = [
        Figure(what=f"{title}, {name}: {column}", value=rows[f"greenroom, {name}"][column].mean, least=least)
        for name, wanted in WANTED.items()
        if name in embedders
        for column, least in wanted.items()
        if column in columns
    ]
    calibration = _calibration(title, scored)
    return Report(
        tables=[table, *calibration.tables], figures=[] if plan.smoke else [*figures, *calibration.figures]
    )


class Share(NamedTuple):
    """A mean in per cent, and how far the true one may be from it: half of the 95 % interval."""

    mean: float
    within: float


def _by_group(answers: Sequence[Answer]) -> dict[str, Share]:
    """Return the columns of a contender's row. A question that several stores were asked counts once."""
    columns: dict[str, dict[str, list[float]]] = {}
    for answer in answers:
        for column, value in _marks(answer.question, answer.found).items():
            columns.setdefault(column, {}).setdefault(answer.question.text, []).append(value)
    return {
        column: _share([statistics.fmean(each) for each in columns[column].values()])
        for column in COLUMNS
        if column in columns
    }


def _marks(question: Question, found: Sequence[str]) -> dict[str, float]:
    if question.group == NOTHING:
        return {EMPTIED: float(not found)}
    depth, relevant = DEPTHS[question.group], set(question.relevant)
    among = relevant.intersection(found[:depth])
    value = float(bool(among)) if depth == 1 else len(among) / len(relevant)
    return {_column(question.group): value, WRONGLY_EMPTIED: float(not found)}


def _column(group: str) -> str:
    return f"{group} @1 %" if DEPTHS[group] == 1 else f"{group} R@{DEPTHS[group]} %"


COLUMNS = [*map(_column, DEPTHS), EMPTIED, WRONGLY_EMPTIED]
WANTED: Mapping[str, Mapping[str, float]] = {
    "static": {"paraphrase R@10 %": 35, "newer @1 %": 80, "relative @1 %": 90, "typo R@10 %": 98},
    "MiniLM": {"paraphrase R@10 %": 75, "newer @1 %": 80, "relative @1 %": 90, "typo R@10 %": 98},
}


def _by_measure(answers: Sequence[Answer]) -> dict[str, Share]:
    """Return the columns of a contender's row, by `trials.MEASURES`."""
    rows = [trials.measures(each.found, each.question.relevant) for each in answers]
    columns = zip(*rows, strict=True)
    return {f"{name} %": _share(column) for name, column in zip(trials.MEASURES, columns, strict=True)}


def _share(values: Sequence[float]) -> Share:
    spread = statistics.pstdev(values) / len(values) ** 0.5
    return Share(100 * statistics.fmean(values), 100 * INTERVAL * spread)


# -- conversations -----------------------------------------------------------

MERGED, SLIPS = "one merged store", "one slip a question"
WANTED_OF_CONVERSATIONS: Mapping[str, Mapping[str, float]] = {
    "greenroom, static": {"recall@10": 82.6, "MRR": 67},
    f"greenroom, static, {SLIPS}": {"recall@10": 80},
    f"greenroom, static, {MERGED}": {"recall@10": 80},
    "greenroom, MiniLM": {"recall@10": 86, "MRR": 70},
}


def _conversations(plan: Plan, data: Path, embedders: Mapping[str, EmbedderChoice]) -> Report:
    scored: dict[str, list[Scored]] = {}
    stores = question_sets.conversations(data)
    answers: dict[str, list[Answer]] = {}
    for name, embedder in embedders.items():
        made = partial(_greenroom, embedder=embedder, scored=scored.setdefault(name, []))
        answers |= _asked(plan, stores, {f"greenroom, {name}": made})
    static = partial(_greenroom, embedder=embedders["static"], scored=[])
    answers |= _asked(plan, stores, {f"greenroom, static, {SLIPS}": static}, slips=True)
    answers |= _asked(plan, [question_sets.merged(stores)], {f"greenroom, static, {MERGED}": static})
    answers |= _asked(plan, stores, _others(plan, embedders))
    rows = {name: _by_measure(found) for name, found in answers.items()}
    columns = [f"{name} %" for name in trials.MEASURES]
    table = _table("turns of conversations", rows, columns, answers)
    figures = [
        Figure(
            what=f"conversations, {name}: {measure} %",
            value=rows[name][f"{measure} %"].mean,
            least=value,
        )
        for name, wanted in WANTED_OF_CONVERSATIONS.items()
        if name in rows
        for measure, value in wanted.items()
    ]
    calibration = _calibration("conversations", scored)
    return Report(
        tables=[table, *calibration.tables], figures=[] if plan.smoke else [*figures, *calibration.figures]
    )


def _sessions(plan: Plan, data: Path, embedders: Mapping[str, EmbedderChoice]) -> Report:
    tables = {name: locomo.measure(plan, data, embedder) for name, embedder in embedders.items()}
    first = next(iter(tables.values()))
    rows = [[name, *table.rows[0]] for name, table in tables.items()]
    return Report(tables=[Table(title=first.title, columns=["embedder", *first.columns], rows=rows)])


# -- both --------------------------------------------------------------------


def _others(plan: Plan, embedders: Mapping[str, EmbedderChoice]) -> dict[str, Open]:
    """Return what Greenroom is compared with; nothing in a smoke run."""
    if plan.smoke:
        return {}
    found = {name: _in_process(make) for name, make in rivals.METHODS.items()}
    for name, embedder in embedders.items():
        if embedder.kind != "none":
            found[f"bare cosine, {name}"] = _in_process(rivals.cosine(embedder))
    if plan.peers is not None:
        given = peers.Peers(plan.peers)
        found |= {
            "mcp-memory-service, semantic": partial(peers.memory_service, given),
            "mcp-memory-service, ranked": partial(peers.memory_service, given, mode="ranked"),
            "server-memory": partial(peers.memory_graph, given),
            "server-memory, word by word": partial(peers.memory_graph, given, by_word=True),
        }
    return found


def _asked(
    plan: Plan, stores: Sequence[Store], contenders: Mapping[str, Open], *, slips: bool = False
) -> dict[str, list[Answer]]:
    """Return what each contender answers to every question, or to some of them in a smoke run."""
    every = plan.size(1, 40)
    answers: dict[str, list[Answer]] = {}
    for name, made in contenders.items():
        answers[name] = []
        with plan.folder() as folder, made(stores, folder) as find:
            for store in stores:
                find(store.name, "anything")  # who is asked first loads the index
                for question in store.questions[::every]:
                    text = trials.mistyped(question.text, SEED) if slips else question.text
                    began = time.perf_counter()
                    found = find(store.name, text)
                    answers[name].append(Answer(question, found, (time.perf_counter() - began) * 1e3))
    return answers


@contextmanager
def _greenroom(
    stores: Sequence[Store],
    folder: Path,
    *,
    embedder: EmbedderChoice,
    scored: list[Scored],
    at: str | None = None,
) -> Iterator[Find]:
    """Import the stores into namespaces of their own, and serve them.

    Args:
        stores: What is searched.
        folder: Where the data is made.
        embedder: The one that Greenroom has.
        scored: Gets each of the first ten memories found, with its score.
        at: The present, if it matters.
    """
    source, data = folder / "memories.jsonl", folder / "data"
    source.write_bytes(msgspec.json.Encoder().encode_lines(question_sets.lines(stores)))
    flags = ["--agent", AGENT, "--embedder", embedder.kind]
    if embedder.models is not None:
        flags += ["--models", str(embedder.models)]
    import_memories(source, data, *flags)
    right = {(store.name, each.text): set(each.relevant) for store in stores for each in store.questions}
    served = greenroom(data, *flags) if at is None else present_server(data, at, embedder)
    with ExitStack() as stack:
        client = stack.enter_context(serving(served))
        if embedder.kind != "none":
            settle(client, f"project:{stores[0].name}")

        def find(name: str, text: str) -> Sequence[str]:
            told = search(client, text, f"project:{name}", limit=LIMIT, mode="semantic")
            if (relevant := right.get((name, text))) is not None:
                scored.extend(
                    Scored(each["relevance"], each["key"] in relevant) for each in told["memories"][:10]
                )
            return [each["key"] for each in told["memories"]]

        yield find


def _in_process(make: rivals.Make) -> Open:
    @contextmanager
    def opened(stores: Sequence[Store], _folder: Path) -> Iterator[Find]:
        finds = {store.name: make({each.id: each.text for each in store.memories}) for store in stores}
        yield lambda name, text: finds[name](text)

    return opened


def _table(
    title: str, rows: Mapping[str, Mapping[str, Share]], columns: Sequence[str], answers: Answers
) -> Table:
    """Return a row for each contender, and below them the widest interval of each column."""
    widest = [max(row[column].within for row in rows.values()) for column in columns]
    return Table(
        title=title,
        columns=["", *columns, "median ms", "95 % ms"],
        rows=[
            *(
                [name, *(row[each].mean for each in columns), *_times(answers[name])]
                for name, row in rows.items()
            ),
            ["± (95 %), at most", *widest, None, None],
        ],
    )


def _times(answers: Sequence[Answer]) -> list[Value]:
    times = [answer.milliseconds for answer in answers]
    return [statistics.median(times), percentile(times, 95)]


def _calibration(what: str, scored: Mapping[str, Sequence[Scored]]) -> Report:
    rows: list[list[Value]] = []
    for same in zip(*map(tenths, scored.values()), strict=True):
        row: list[Value] = [f"{same[0].least:.1f} to {same[0].most:.1f}"]
        for each in same:
            row += [each.found, None if each.right is None else 100 * each.right]
        rows.append(row)
    columns = ["score", *(column for name in scored for column in (f"{name}: n", f"{name}: right %"))]
    title = f"{what}: what share of the first ten was right, by score"
    return Report(
        tables=[Table(title=title, columns=columns, rows=rows)],
        figures=[
            Figure(
                what=f"{what}, {name}: expected error of the score",
                value=expected_error(each),
                most=RELIABLE_ERROR,
            )
            for name, each in scored.items()
        ],
    )
