"""The order of files of source code for a query: signals and scores.

    strength = sum of weight * signal
    share    = strength / (the worth of all words of the query + EVEN)
    score, match = 1 / (1 + exp(-(share - middle) / width)), each with its own middle and width

A result is a file with its best passages. No score depends on the other results, so scores of different
queries can be compared.

The weights were fitted to 525 questions about 13 public repositories and rounded; on each repository they do
as well as weights fitted to the other twelve (`bench.tune_code`). Vectors are not used: `embedding.static`
moves the right file to the first place for only one question in a hundred, and these are all of one kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from greenroom.actors.core.replies.grades import NONE_LEAST, Least
from greenroom.actors.search.ranking import code_signals
from greenroom.actors.search.ranking.chunks import best_places
from greenroom.actors.search.ranking.code_origins import Copies, OriginOfFile, find_fetched
from greenroom.actors.search.ranking.code_signals import CodeQuery, SourceView
from greenroom.actors.search.ranking.sums import RankedRow, find_place, logistic, weigh
from greenroom.actors.search.ranking.view import Floats, Mask
from greenroom.actors.search.ranking.weights import CODE_WEIGHTS
from greenroom.runtime import Slices

GetOrigin = Callable[[str, int], OriginOfFile]
PASSAGES: Final = 3
"""The most passages of a file that are returned."""
EVEN: Final = 8.0
"""Added to the worth of a query's words, so that a single common word does not give certainty."""
_LOOKED_AT: Final = 30
"""Of this many more files than are wanted, the origin is looked at."""
_MORE: Final = 500
"""At most so many other files are compared with files that seem to be put together."""
_BEHIND: Final = 0.01
"""The strength by which a copy comes behind the weakest of its sources."""
_MATCH: Final = 0.11, 0.08
"""At this share the match is 0.5; one width above, it is 0.73.

Then 95 of 100 right files with half of the query's words have a match above 0.7 (`bench.scores`).
"""
_RELEVANCE: Final = 0.65, 0.124
"""The same for the score: the share of right files among the ten best. `bench.scores` fitted both numbers;
half of its questions were about another repository."""


class RankedFile(NamedTuple):
    """A file that was found.

    Attributes:
        score: Its measured relevance, 0 to 1.
        match: How well it matches, 0 to 1.
        rows: Its best passages, best first, as rows of the index.
        parts: What each signal added to its strength, or took from it.
    """

    path: str
    score: float
    match: float
    rows: Sequence[int]
    parts: Mapping[str, float]


class RankedFiles(NamedTuple):
    """The best files, best first.

    Attributes:
        total: How many files have a word of the query and at least the requested score.
        corrected: For each word that no file has, the terms that were looked up instead.
        unknown: Words that no file has and that resemble no known word.
        about: The file that the caller named, with the file's number as its row; None if none was named.
    """

    files: Sequence[RankedFile]
    total: int
    corrected: Mapping[str, tuple[str, ...]]
    unknown: Sequence[str]
    worth: float
    about: RankedRow | None = None


def rank_files(
    view: SourceView,
    query: CodeQuery,
    *,
    limit: int,
    least: Least = NONE_LEAST,
    below: Mask | None = None,
    about: int | None = None,
    origin: GetOrigin | None = None,
) -> Slices[RankedFiles]:
    """Return the ``limit`` best files.

    ``below`` are the files to look at, by number. The file ``about`` is reported even if it is not among the
    best. ``origin`` returns the origin of a file, by its path and the number of its document.
    """
    groups, corrected, unknown = yield from code_signals.read_terms(view, query)
    passages = yield from code_signals.score_passages(view, groups)
    values = yield from code_signals.file_signals(view, query, groups, passages)
    strength = np.zeros(len(view.corpus.authors), np.float32)
    for _, part in weigh(values, CODE_WEIGHTS):
        strength += part
    worth = sum(group.weight for group in groups)
    found = (values["passage"] > 0) | (values["path"] > 0)
    if origin is not None and not query.speaks_of_made:
        strongest = np.flatnonzero(found if below is None else found & below)
        strongest = strongest[best_places(strength[strongest], limit + _LOOKED_AT)]
        yield from _put_behind(view, query, strength, values, strongest.tolist(), origin)
    shares = strength / np.float32(worth + EVEN)
    for scale, wanted in ((_MATCH, least.score), (_RELEVANCE, least.relevance)):
        if wanted > 0:
            found &= logistic(shares, *scale) >= wanted
    if below is not None:
        found &= below
    files = np.flatnonzero(found)
    best = files[best_places(strength[files], limit)]
    scores, matches = (logistic(shares[best], *scale).tolist() for scale in (_RELEVANCE, _MATCH))
    ranked: list[RankedFile] = []
    for number, score, match in zip(best.tolist(), scores, matches, strict=True):
        ranked.append(
            RankedFile(
                path=view.corpus.authors[number],
                score=score,
                match=match,
                rows=_best_passages(view, passages, number),
                parts=_parts(values, number),
            )
        )
        yield
    named = None
    if about is not None:
        place = find_place(strength, found, about)
        score, match = (float(logistic(shares[about], *scale)) for scale in (_RELEVANCE, _MATCH))
        named = RankedRow(about, score, match, place, _parts(values, about))
    return RankedFiles(ranked, len(files), corrected, unknown, worth, named)


def _put_behind(
    view: SourceView,
    query: CodeQuery,
    strength: Floats,
    values: dict[str, Floats],
    strongest: Sequence[int],
    origin: GetOrigin,
) -> Slices[None]:
    """Lower the strength of files that programs wrote, that were fetched, or that are copies.

    A copy becomes weaker than all that it holds, and than the strongest file that it is a part of.
    """
    files: list[OriginOfFile] = []
    for number in strongest:
        files.append(origin(view.corpus.authors[number], int(view.documents[number])))
        yield
    known = Copies(files)
    yield
    if doubtful := known.find_doubtful():
        others = np.setdiff1d(np.flatnonzero(view.file_lengths), strongest)
        for number in others[best_places(strength[others], _MORE)].tolist():
            known.add(origin(view.corpus.authors[number], int(view.documents[number])), doubtful)
            yield
    copies = known.find()
    yield
    fetched = set() if query.speaks_of_aside else find_fetched(files, view.exists)
    for name, places in (
        ("made", [place for place, file in enumerate(files) if file.is_made and place not in copies]),
        ("aside", sorted(fetched)),
    ):
        lowered = [strongest[place] for place in places if not values[name][strongest[place]]]
        if lowered:
            values[name] = values[name].copy()
            values[name][lowered] = 1
            strength[lowered] += np.float32(CODE_WEIGHTS[name])
    yield
    behind = values["copy"] = values["copy"].copy()
    of_files = strength[strongest]
    for place, copy in copies.items():
        sources = [of_files[source] for source in copy.holds if source < len(strongest)]
        around = [of_files[source] for source in copy.is_part_of if source < len(strongest)]
        if place < len(strongest) and (sources or around):
            most = min([*sources, *([max(around)] if around else [])])
            behind[strongest[place]] = max(0.0, of_files[place] - most + _BEHIND)
    strength -= behind


def _parts(values: Mapping[str, Floats], number: int) -> dict[str, float]:
    """Return what each signal added to the strength of a file."""
    return {name: float(part) for name, part in weigh(values, CODE_WEIGHTS, number) if part}


def _best_passages(view: SourceView, strength: Floats, number: int) -> list[int]:
    """Return a file's best passages, each at least half as strong as the first."""
    rows = np.flatnonzero((view.corpus.author == number) & view.visible)
    best = rows[best_places(strength[rows], PASSAGES)]
    return [row for row in best.tolist() if strength[row] * 2 >= strength[best[0]]]
