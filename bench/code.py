"""Questions about source code, each asked for its file: beside FTS5, keywords as one greps, and a peer.

Without ``--data`` the source is Greenroom's own, and a question is the first sentence of a function's
docstring, which is not in the source any more. With ``--data`` and ``--mirrors`` there are public
repositories, and questions of three kinds: S is what somebody may ask of a code base, C the subject of a
commit (right is what it changed), D the first sentence of a docstring. An answer is a file; files of which
several are right are found by the first of them. All search the same files; times are processor time of the
ready index.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log2
from statistics import fmean, median
from typing import Final, NamedTuple

from bench import code_trees
from bench.code_peers import PIN, SEMBLE, Timed, semble
from bench.code_trees import Question, Tree, origins_of, read_files, source_view
from bench.harness import Figure, Plan, Report, Table, check, percentile
from bench.rivals import sqlite_fts5
from greenroom.actors.content.text.analyze import STOP_WORDS
from greenroom.actors.search.ranking.code import rank_files
from greenroom.actors.search.ranking.code_signals import CodeQuery
from greenroom.runtime import finish

DEPTH: Final = 10
PIECE: Final = 50
"""Lines of a piece that FTS5 searches."""
AIMS: Final[Mapping[str, Mapping[str, float]]] = {
    "S": {"recall@1 %": 72, "recall@10 %": 98, "nDCG@10": 0.86},
    "C": {"recall@10 %": 95, "MRR %": 73},
    "D": {"recall@10 %": 98},
}
MEASURES: Final = ("recall@1 %", "recall@10 %", "MRR %", "nDCG@10")
_WORD: Final = re.compile(r"\w+")

Find = Callable[[str], Sequence[str]]
"""Returns files, best first."""


class Answer(NamedTuple):
    """What one contender answered: its measures, in the order of `MEASURES`, and milliseconds."""

    measures: tuple[float, float, float, float]
    milliseconds: float


def run(plan: Plan) -> Report:
    """Ask everybody everything."""
    answers: dict[tuple[str, str], list[Answer]] = {}
    for tree in _trees(plan):
        for name, make in CONTENDERS.items():
            find = _timed(make(tree.files))
            answers.setdefault((tree.kind, name), []).extend(_asked(find, tree.questions))
        if plan.peers is not None:
            with plan.folder() as folder, semble(plan.peers, tree.files, folder) as find:
                answers.setdefault((tree.kind, PEER), []).extend(_asked(find, tree.questions))
    rows: list[Sequence[str | int | float | None]] = []
    figures: list[Figure] = []
    for (kind, name), given in sorted(answers.items(), key=lambda item: item[0][0]):
        measures = [fmean(values) for values in zip(*(answer.measures for answer in given), strict=True)]
        times = [answer.milliseconds for answer in given]
        rows.append([kind, len(given), name, *measures, median(times), percentile(times, 95)])
        if name == OURS:
            check(measures[1] >= 60, f"only {measures[1]:.0f} % were found of {kind}")
            for what, least in AIMS.get(kind, {}).items():
                value = measures[MEASURES.index(what)]
                figures.append(Figure(what=f"{kind}, {what}", value=value, least=least))
    table = Table(
        title="Questions, each asked for its file",
        columns=["kind", "questions", "search", *MEASURES, "50 % ms", "95 % ms"],
        rows=rows,
    )
    return Report(tables=[table], figures=figures)


def _trees(plan: Plan) -> Iterable[Tree]:
    if plan.data is None or plan.mirrors is None:
        return [code_trees.own(plan.size(1, 12))]
    return code_trees.load(plan.data, plan.mirrors)


def _asked(find: Timed, questions: Sequence[Question]) -> list[Answer]:
    answers: list[Answer] = []
    for question in questions:
        found, taken = find(question.query)
        answers.append(Answer(measured(list(dict.fromkeys(found)), question), taken))
    return answers


def _timed(find: Find) -> Timed:
    def timed(text: str) -> tuple[Sequence[str], float]:
        began = time.process_time()
        found = find(text)
        return found, 1_000 * (time.process_time() - began)

    return timed


def measured(files: Sequence[str], question: Question) -> tuple[float, float, float, float]:
    """Return whether the first and one of the first ten are right, 1 / rank (in per cent), and nDCG."""
    worth = dict.fromkeys(question.secondary, 0.5) | dict.fromkeys(question.files, 1.0)
    rank = next((rank for rank, file in enumerate(files, 1) if file in question.files), 0)
    gained = _gain(worth.get(file, 0.0) for file in files[:DEPTH])
    best = _gain(sorted(worth.values(), reverse=True)[:DEPTH])
    return 100.0 * (rank == 1), 100.0 * (0 < rank <= DEPTH), 100 / rank if rank else 0.0, gained / best


def _gain(values: Iterable[float]) -> float:
    return sum(value / log2(place) for place, value in enumerate(values, 2))


# -- contenders ----------------------------------------------------------------------------


def _greenroom(files: Mapping[str, bytes]) -> Find:
    sources = read_files(files)
    view = source_view(sources)
    origin = origins_of(sources)

    def find(text: str) -> Sequence[str]:
        ranked = finish(rank_files(view, CodeQuery.read(text), limit=DEPTH, origin=origin))
        return [found.path for found in ranked.files]

    return find


def _pieces(files: Mapping[str, bytes]) -> Find:
    """Return FTS5's search of pieces of `PIECE` lines."""
    texts: dict[str, str] = {}
    for path, data in files.items():
        lines = data.decode("utf-8", "replace").splitlines()
        for start in range(0, len(lines), PIECE):
            texts[f"{start} {path}"] = "\n".join(lines[start : start + PIECE])
    search = sqlite_fts5(texts)

    def find(text: str) -> Sequence[str]:
        return [place.partition(" ")[2] for place in search(text)]

    return find


def _keywords(files: Mapping[str, bytes]) -> Find:
    """Return what one does with grep: files by how many of the words they have, then how often."""
    texts = {path: data.decode("utf-8", "replace").lower() for path, data in files.items()}

    def find(text: str) -> Sequence[str]:
        words = {word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS}
        which: Counter[str] = Counter()
        times: Counter[str] = Counter()
        for word in words:
            for path, content in texts.items():
                if count := content.count(word):
                    which[path] += 1
                    times[path] += count
        return sorted(which, key=lambda path: (-which[path], -times[path], path))

    return find


OURS: Final = "greenroom, words"
PEER: Final = f"{SEMBLE} {PIN}, the same vectors"
CONTENDERS: Final[Mapping[str, Callable[[Mapping[str, bytes]], Find]]] = {
    OURS: _greenroom,
    "SQLite FTS5, pieces of 50 lines": _pieces,
    "keywords, as one greps": _keywords,
}
