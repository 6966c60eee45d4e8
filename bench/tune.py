"""Fits the weights of the ranking: `python -m bench.tune [--data DIR] [--notes DIR] [--onnx DIR]`.

``--data`` has conversations, ``--notes`` worlds of notes (see `bench.tune_notes`), each with questions.

Prints, for each situation (see `greenroom.actors.search.ranking.weights`), what weights fitted to all other
conversations reach on each conversation, then what is lost without each signal, and at the end the
weights fitted to all of them, as they stand in the table. The weights are fitted to three kinds of
stores at once: one for each conversation, one of all conversations, and questions with a typing error.

Nothing is written. Whoever changes the table looks at what a change brings: differences of less than
half a per cent are chance.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench import fitting, minilm, trials, tune_notes
from bench.harness import Table, Value, as_text
from bench.ranked_corpus import ORDER, Remembering, table_of, view_of
from greenroom.actors.memories.storage.embedding import strip_author
from greenroom.actors.search.embedding.models.minilm import load_minilm
from greenroom.actors.search.embedding.models.minilm_install import install_unpacked, installing
from greenroom.actors.search.embedding.models.onnx import OnnxEmbedder
from greenroom.actors.search.embedding.models.static import load_static
from greenroom.actors.search.index import Document
from greenroom.actors.search.ranking.query import RankQuery
from greenroom.actors.search.ranking.weights import VectorSet, weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bench.locomo import Turn
    from greenroom.actors.search.embedding.embedder import LocalEmbedder

SEED = 7
AT_LEAST_0 = frozenset({"words", "nearby", "conversation"})
HELD_BY_HAND = frozenset({"tags", "key"})
"""Signals that these conversations have nothing for."""
_COLUMNS = ("own store", "merged", "mistyped")


class Trial(NamedTuple):
    """A question: its conversation, and the example for the fit."""

    conversation: str
    example: fitting.Example


Sets = dict[str, list[Trial]]


def main() -> int:
    """Fit, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.tune", description=__doc__, allow_abbrev=False)
    parser.add_argument("--data", type=Path, metavar="DIR", help="conversations with questions")
    parser.add_argument("--notes", type=Path, metavar="DIR", help="worlds of notes with questions")
    parser.add_argument(
        "--onnx", type=Path, metavar="DIR", help="a model with vectors of tokens; else MiniLM, if installed"
    )
    parser.add_argument("--ablate", action="store_true", help="also measure without each signal (minutes)")
    parser.add_argument(
        "--kept", action="store_true", help="measure the weights that stand in the table only"
    )
    chosen = parser.parse_args()
    fitted: dict[VectorSet, dict[str, float]] = {}
    of_notes: dict[VectorSet, dict[str, float]] = {}
    for situations, local, beside in _plans(chosen.onnx):
        if chosen.data is not None:
            sets = _sets(trials.load(chosen.data), local, beside)
            for situation in situations:
                _measure(sets, situation, kept=chosen.kept, ablate=chosen.ablate)
                if not chosen.kept:
                    fitted[situation] = _fit(sets, _names(situation))
        if chosen.notes is not None:
            asked = tune_notes.read(chosen.notes, Remembering(local))
            for situation in situations:
                of_notes[situation] = tune_notes.measured(asked, situation, kept=chosen.kept)
    for what, found in (("conversations", fitted), ("worlds of notes", of_notes)):
        if found and not chosen.kept:
            print(as_text(_weights(what, found)))
    return 0


def _plans(onnx: Path | None) -> Iterator[tuple[Sequence[VectorSet], LocalEmbedder, float]]:
    """Return situations, their embedder, and what questions to the lesser kinds of stores weigh."""
    yield ("words", "static"), load_static(), 0.5
    if onnx is not None:
        yield ("sentences", "tokens"), _onnx(onnx), 0.2
    elif (package := minilm.installed()) is not None:
        with tempfile.TemporaryDirectory() as models, installing(Path(models)) as unfinished:
            model = install_unpacked(package.parents[1], unfinished, Path(models))
            yield ("sentences", "tokens"), load_minilm(model, lambda: None), 0.2


def _onnx(folder: Path) -> LocalEmbedder:
    from greenroom.actors.search.embedding.models.onnx_export import read_export  # noqa: PLC0415 - only for this

    return OnnxEmbedder(read_export(folder), lambda: None)


def _names(situation: VectorSet) -> list[str]:
    return [name for name in weights("conversation", situation) if name not in HELD_BY_HAND]


# -- measuring ---------------------------------------------------------------


def _measure(sets: Sets, situation: VectorSet, *, kept: bool, ablate: bool) -> None:
    names = _names(situation)
    if kept:
        table = weights("conversation", situation)
        found = {
            kind: _scores(of, lambda _: [table[name] for name in names], names) for kind, of in sets.items()
        }
        print(as_text(_as_table(f"{situation}: the table as it stands", {"all signals": found})))
        return
    rows = {"all signals": _crossed(sets, names)}
    for left in names if ablate else ():
        rows[f"without {left}"] = _crossed(sets, [name for name in names if name != left])
    print(as_text(_as_table(f"{situation}: fitted to the other conversations", rows)), flush=True)


def _as_table(title: str, rows: Mapping[str, Mapping[str, list[float]]]) -> Table:
    kinds = next(iter(rows.values()))
    wanted = [trials.MEASURES.index(name) for name in ("recall@10", "MRR")]
    columns = ["", *(f"{kind} {trials.MEASURES[at]} %" for kind in kinds for at in wanted)]
    lines: list[list[Value]] = [
        [name, *(found[kind][at] for kind in kinds for at in wanted)] for name, found in rows.items()
    ]
    return Table(title=title, columns=columns, rows=lines)


def _crossed(
    sets: Sets, names: Sequence[str], near: Mapping[str, float] | None = None
) -> dict[str, list[float]]:
    conversations = sorted({trial.conversation for of in sets.values() for trial in of})
    fitted = {
        conversation: list(_fit(sets, names, without=conversation, near=near).values())
        for conversation in conversations
    }
    return {kind: _scores(of, fitted.__getitem__, names) for kind, of in sets.items()}


def _scores(
    of: Sequence[Trial], weights_for: Callable[[str], Sequence[float]], names: Sequence[str]
) -> list[float]:
    columns = [ORDER.index(name) for name in names]
    rows = []
    for trial in of:
        strength = trial.example.values[:, columns] @ np.array(weights_for(trial.conversation), np.float32)
        rows.append(
            trials.measures(np.argsort(-strength, kind="stable").tolist(), trial.example.answers.tolist())
        )
    return trials.mean(rows)


def _fit(
    sets: Sets,
    names: Sequence[str],
    *,
    without: str | None = None,
    near: Mapping[str, float] | None = None,
) -> dict[str, float]:
    columns = [ORDER.index(name) for name in names]
    least = [place for place, name in enumerate(names) if name in AT_LEAST_0]
    examples = [trial.example for of in sets.values() for trial in of if trial.conversation != without]
    start = None if near is None else np.array([near[name] for name in names])
    found = fitting.fit(examples, columns, at_least_0=least, start=start)
    return dict(zip(names, found.tolist(), strict=True))


def _weights(what: str, fitted: Mapping[VectorSet, Mapping[str, float]]) -> Table:
    rows: list[list[Value]] = [
        [name, *(f"{found[name]:.2f}" if name in found else "" for found in fitted.values())]
        for name in ORDER
    ]
    return Table(title=f"weights fitted to all {what}", columns=["signal", *fitted], rows=rows)


# -- the stores --------------------------------------------------------------


def _sets(given: trials.Trials, local: LocalEmbedder, beside: float) -> Sets:
    """Return the questions of the three kinds of stores; those of the last two weigh ``beside``."""
    embedder = Remembering(local)
    alone = [[name] for name in given.conversations]
    return {
        "own store": [trial for names in alone for trial in _trials(given, names, embedder, 1.0)],
        "merged": list(_trials(given, given.conversations, embedder, beside)),
        "mistyped": [
            trial for names in alone for trial in _trials(given, names, embedder, beside, typing=True)
        ],
    }


def _trials(
    given: trials.Trials,
    conversations: Sequence[str],
    embedder: Remembering,
    weight: float,
    *,
    typing: bool = False,
) -> list[Trial]:
    turns = [turn for turn in given.turns if turn.conv in conversations]
    documents = [_document(number, turn) for number, turn in enumerate(turns, 1)]
    view = view_of(documents, [strip_author(turn.text, turn.speaker) for turn in turns], embedder)
    rows = {(turn.conv, turn.id): row for row, turn in enumerate(turns)}
    found = []
    for query in given.queries:
        if query.conv in conversations:
            text = trials.mistyped(query.question, SEED) if typing else query.question
            table = table_of(view, RankQuery.read(text, embedder.query(text)))
            answers = np.array(sorted({rows[query.conv, turn] for turn in query.evidence}))
            found.append(Trial(query.conv, fitting.Example(table, answers, weight)))
    return found


def _document(number: int, turn: Turn) -> Document:
    made = int(datetime.fromisoformat(f"{turn.date}+00:00").timestamp() * 1e6)
    return Document(
        id=number,
        partition="",
        namespace="project:tune",
        text=turn.text,
        key=turn.id.replace(":", "."),
        author=turn.speaker,
        conversation=f"{turn.conv}.{turn.session}",
        position=turn.position,
        created_at=made,
        updated_at=made,
    )


if __name__ == "__main__":
    sys.exit(main())
