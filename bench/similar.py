"""Files that are like a given one: the test of a module, the module of a test, files of the same folder.

A *twin* is the only file of the same name but for what says that one is a test; it is looked for in all
files, both ways. A *sibling* is one of the other files of a folder that has 3 to 20 of source. Without
``--data`` the files are Greenroom's own. Beside `similar_files` there are the plain cosine of all terms
(tf-idf), and which share of the terms two files have in common, by rarity (a weighted overlap). Times are
processor time of the ready index.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean, median
from typing import TYPE_CHECKING, Final, NamedTuple

from bench import code_trees
from bench.code_trees import read_files, source_view
from bench.harness import Plan, Report, Table, check
from greenroom.actors.content.syntax import Places, compare_by_imports
from greenroom.actors.content.text.analyze import code_rules, tokens
from greenroom.actors.search.index.source_code import role_of
from greenroom.actors.search.ranking.likeness import count_terms, find_like_files, likeness_of
from greenroom.actors.search.ranking.weights import LIKENESS_WEIGHTS
from greenroom.runtime import finish

if TYPE_CHECKING:
    from greenroom.actors.content.syntax.source import Source
    from greenroom.actors.search.ranking.code_signals import SourceView

CANDIDATES: Final = 100
"""As many as the tool compares by their imports."""
_TEST: Final = re.compile(r"^tests?_|[._-]?(?:tests?|spec)$", re.IGNORECASE)
_OWN: Final = code_trees.ACTORS.parents[2]

Find = Callable[[str], Sequence[str]]
"""Returns the files that are most like one, likest first."""


class Asked(NamedTuple):
    """A file, and which are right."""

    path: str
    right: frozenset[str]


def run(plan: Plan) -> Report:
    """Ask everybody for the likes of every file."""
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    times: dict[str, list[float]] = {}
    for files in _trees(plan):
        twin, sibling = list(twins(files)), list(_siblings(files))
        asked = {"twin": twin[:: plan.size(1, 4)], "sibling": sibling[:: plan.size(3, 24)]}
        tree = _Tree(files)
        for name, make in CONTENDERS.items():
            find = make(tree)
            for kind, every in asked.items():
                for each in every:
                    began = time.process_time()
                    best = find(each.path)
                    times.setdefault(name, []).append(1_000 * (time.process_time() - began))
                    found.setdefault((kind, name), []).append(_measured(best, each.right))
    rows: list[Sequence[str | int | float | None]] = [
        [kind, len(given), name, *map(fmean, zip(*given, strict=True)), median(times[name])]
        for (kind, name), given in sorted(found.items(), key=lambda item: item[0][0])
    ]
    least = fmean(each[1] for each in found["twin", OURS])
    check(least >= 50, f"only {least:.0f} % of the twins were among the first five")
    columns = [
        "kind",
        "files",
        "search",
        "first right %",
        "one of five right %",
        "of five right %",
        "50 % ms",
    ]
    return Report(tables=[Table(title="Files that are like a given one", columns=columns, rows=rows)])


def _measured(best: Sequence[str], right: frozenset[str]) -> tuple[float, float, float]:
    hits = [path in right for path in best[:5]]
    return 100.0 * hits[0], 100.0 * any(hits), 100.0 * sum(hits) / min(5, len(right))


def _trees(plan: Plan) -> Iterable[Mapping[str, bytes]]:
    if plan.data is None or plan.mirrors is None:
        yield {
            str(path.relative_to(_OWN)): path.read_bytes()
            for folder in ("actors", "tests")
            for path in sorted((_OWN / folder).rglob("*.py"))
        }
        return
    seen: set[str] = set()
    for tree in code_trees.load(plan.data, plan.mirrors):
        repository = tree.name.partition(".")[2]
        if repository not in seen:
            seen.add(repository)
            yield tree.files


def twins(paths: Iterable[str]) -> Iterator[Asked]:
    """Yield files of which there is one test, and these."""
    named: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for path in paths:
        stem = path.rpartition("/")[2].rpartition(".")[0].lower()
        is_test = role_of(path, "source") == "test"
        named[_TEST.sub("", stem) if is_test else stem][is_test].append(path)
    for modules, tests in named.values():
        if len(modules) == len(tests) == 1:
            yield Asked(modules[0], frozenset(tests))
            yield Asked(tests[0], frozenset(modules))


def _siblings(paths: Iterable[str]) -> Iterator[Asked]:
    folders: dict[str, list[str]] = {}
    for path in paths:
        if role_of(path, "source") == "source" and "/" in path:
            folders.setdefault(path.rpartition("/")[0], []).append(path)
    for files in folders.values():
        if 3 <= len(files) <= 20 and len(folders) > 3:
            yield from (Asked(path, frozenset(files) - {path}) for path in files)


# -- contenders ----------------------------------------------------------------------------


class _Tree:
    """The files, and what contenders make of them, once for all who use it."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    @cached_property
    def view(self) -> SourceView:
        return source_view(self.sources)

    @cached_property
    def places(self) -> Places:
        texts = {path: data.decode("utf-8", "replace") for path, data in self.files.items()}
        return Places(self.files, texts)

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        return read_files(self.files)

    @cached_property
    def terms(self) -> _Terms:
        return _Terms(self.files)


def _greenroom(tree: _Tree, signals: frozenset[str] = frozenset(LIKENESS_WEIGHTS)) -> Find:
    view, places, sources = tree.view, tree.places, tree.sources

    def find(path: str) -> Sequence[str]:
        passages = [chunk.text for chunk in sources[path].chunks]
        terms = finish(count_terms(passages))
        found = finish(find_like_files(view, path, terms, limit=CANDIDATES))
        read = {each: sources[each] for each in [path, *(like.path for like in found)]}
        imports = compare_by_imports(path, read, places)
        scores = {
            each.path: likeness_of(
                {
                    name: value
                    for name, value in {**each.signals, **imports[each.path]}.items()
                    if name in signals
                }
            )
            for each in found
        }
        return sorted(scores, key=lambda each: (-scores[each], each))

    return find


def _terms_alone(tree: _Tree) -> Find:
    return _greenroom(tree, frozenset({"terms"}))


class _Terms:
    """How often each file has each term, and which files have one."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        rules = code_rules()
        self.of = {
            path: Counter(
                term for token in tokens(data.decode("utf-8", "replace"), rules) for term in token.posted
            )
            for path, data in files.items()
        }
        self.having: dict[str, dict[str, int]] = {}
        for path, counts in self.of.items():
            for term, count in counts.items():
                self.having.setdefault(term, {})[path] = count
        self.rarity = {
            term: math.log(1 + (len(files) - len(paths) + 0.5) / (len(paths) + 0.5))
            for term, paths in self.having.items()
        }


def _cosine(tree: _Tree) -> Find:
    terms = tree.terms

    def weight(term: str, count: int) -> float:
        return (1 + math.log(count)) * terms.rarity[term]

    lengths = {
        path: math.sqrt(sum(weight(term, count) ** 2 for term, count in counts.items())) or 1.0
        for path, counts in terms.of.items()
    }

    def find(path: str) -> Sequence[str]:
        scores: dict[str, float] = {}
        for term, count in terms.of[path].items():
            own = weight(term, count)
            for other, times in terms.having[term].items():
                scores[other] = scores.get(other, 0.0) + own * weight(term, times)
        return _best({other: score / lengths[other] for other, score in scores.items() if other != path})

    return find


def _overlap(tree: _Tree) -> Find:
    terms = tree.terms
    total = {path: sum(terms.rarity[term] for term in counts) for path, counts in terms.of.items()}

    def find(path: str) -> Sequence[str]:
        shared: dict[str, float] = {}
        for term in terms.of[path]:
            for other in terms.having[term]:
                shared[other] = shared.get(other, 0.0) + terms.rarity[term]
        return _best(
            {
                other: value / (total[path] + total[other] - value)
                for other, value in shared.items()
                if other != path
            }
        )

    return find


def _best(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda path: (-scores[path], path))[:CANDIDATES]


OURS: Final = "greenroom"
CONTENDERS: Final[Mapping[str, Callable[[_Tree], Find]]] = {
    OURS: _greenroom,
    "greenroom, terms alone": _terms_alone,
    "cosine of all terms (tf-idf)": _cosine,
    "terms in common, by rarity": _overlap,
}
