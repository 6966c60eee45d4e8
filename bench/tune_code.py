"""Fits the weights of the ranking of source code: `python -m bench.tune_code --data DIR --mirrors DIR`.

The questions are those of `bench.code`. Prints what the weights that stand in the table reach, what weights
fitted to all other repositories reach on each repository, what is lost without each signal, and at the end
the weights fitted to all. Nothing is written. On some 500 questions less than one per cent is chance.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench import code_trees, fitting
from bench.code import MEASURES, measured
from bench.code_trees import Question
from bench.harness import Table, Value, as_text
from greenroom.actors.search.ranking.code_signals import (
    CodeQuery,
    file_signals,
    read_terms,
    score_passages,
)
from greenroom.actors.search.ranking.weights import CODE_WEIGHTS
from greenroom.runtime import finish

if TYPE_CHECKING:
    from bench.fitting import Floats

ORDER = [name for name in CODE_WEIGHTS if name not in {"made", "copy"}]
"""What depends on the origin of the strongest files is not fitted."""
HELD_BY_HAND = ("test", "prose")
"""No question of these sets is about tests or texts, so what fits them says nothing of who asks for these."""
DEPTH = 100


class Trial(NamedTuple):
    """A question, and the signals of the files that it may be about."""

    kind: str
    repository: str
    question: Question
    files: Sequence[str]
    values: Floats


def main() -> int:
    """Fit, measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.tune_code", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--data", type=Path, metavar="DIR", required=True, help="questions")
    parser.add_argument("--mirrors", type=Path, metavar="DIR", required=True, help="bare repositories")
    parser.add_argument("--ablate", action="store_true", help="also fit without each signal")
    chosen = parser.parse_args()
    trials = list(_trials(chosen.data, chosen.mirrors))
    kept = np.array([CODE_WEIGHTS[name] for name in ORDER])
    rows: list[Sequence[Value]] = [["as they stand", *_measures(trials, lambda _: kept)]]
    rows.append(["fitted to the others", *_measures(trials, _fitted_to_others(trials, ORDER))])
    for name in ORDER if chosen.ablate else ():
        rest = [each for each in ORDER if each != name]
        rows.append([f"without {name}", *_measures(trials, _fitted_to_others(trials, rest))])
    kinds = sorted({trial.kind for trial in trials})
    columns = ["weights", *(f"{kind} {what}" for kind in kinds for what in MEASURES)]
    print(as_text(Table(title="Questions about source code", columns=columns, rows=rows)), end="\n\n")
    found = _fit(trials, ORDER)
    weights: list[Sequence[Value]] = [
        [name, CODE_WEIGHTS[name], float(value)] for name, value in zip(ORDER, found, strict=True)
    ]
    print(as_text(Table(title="Weights", columns=["signal", "as they stand", "fitted to all"], rows=weights)))
    return 0


def _trials(data: Path, mirrors: Path) -> Iterable[Trial]:
    for tree in code_trees.load(data, mirrors):
        view = code_trees.source_view(code_trees.read_files(tree.files))
        files = view.corpus.authors
        for question in tree.questions:
            query = CodeQuery.read(question.query)
            groups, _, _ = finish(read_terms(view, query))
            found = finish(file_signals(view, query, groups, finish(score_passages(view, groups))))
            values = np.stack([found[name] for name in ORDER], axis=1)
            yield Trial(tree.kind, tree.name.partition(".")[2], question, files, values)


def _fit(trials: Sequence[Trial], names: Sequence[str]) -> Floats:
    """Return a weight for each signal of `ORDER`, 0 for those that are not among ``names``."""
    held = np.array([CODE_WEIGHTS[name] if name in HELD_BY_HAND and name in names else 0.0 for name in ORDER])
    columns = [place for place, name in enumerate(ORDER) if name in names and name not in HELD_BY_HAND]
    examples: list[fitting.Example] = []
    for trial in trials:
        answers = [trial.files.index(file) for file in trial.question.files if file in trial.files]
        # What a test has against it is little to what fits the sets: neither is it taken for another file.
        others = trial.values[:, ORDER.index("test")] == 0
        others[answers] = True
        places = np.flatnonzero(others)
        if answers:
            right = np.searchsorted(places, answers)
            examples.append(fitting.Example(trial.values[places], right))
    held[columns] = fitting.fit(examples, columns)
    return held


def _fitted_to_others(trials: Sequence[Trial], names: Sequence[str]) -> Callable[[str], Floats]:
    repositories = {trial.repository for trial in trials}
    fitted = {
        repository: _fit([trial for trial in trials if trial.repository != repository], names)
        for repository in repositories
    }
    return fitted.__getitem__


def _measures(trials: Sequence[Trial], weights: Callable[[str], Floats]) -> list[float]:
    """Return the measures of each kind of question, with the weights for each repository."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for trial in trials:
        strength = trial.values @ weights(trial.repository)
        best = np.argsort(-strength, kind="stable")[:DEPTH]
        files = [trial.files[place] for place in best.tolist()]
        found.setdefault(trial.kind, []).append(measured(files, trial.question))
    return [fmean(values) for kind in sorted(found) for values in zip(*found[kind], strict=True)]


if __name__ == "__main__":
    sys.exit(main())
