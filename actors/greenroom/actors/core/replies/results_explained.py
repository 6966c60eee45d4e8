"""Replies that explain searches to people, and the functions that make these explanations.

On request, the search itself reports the signals, so the explanation is about the actual ranking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from greenroom.actors.core.replies.replies import Reply

NOTHING: Final = "it has nothing of the query"
"""The reason why a result has no rank at all, though it passes every filter."""


class SignalPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a signal in a result's strength: its value times its weight.

    Attributes:
        weight: From the table of weights; null if it has none.
        share: Its share of the strength; all shares add up to 1.
    """

    name: str
    part: float
    weight: float | None
    share: float


def signal_parts(parts: Mapping[str, float], weights: Mapping[str, float]) -> list[SignalPart]:
    """Return the parts of a result's strength with their shares, strongest first."""
    strength = sum(parts.values())
    found = [
        SignalPart(
            name=name,
            part=round(part, 4),
            weight=weights.get(name),
            share=round(part / strength, 4) if strength else 0.0,
        )
        for name, part in parts.items()
        if round(part, 4)
    ]
    return sorted(found, key=lambda each: -abs(each.part))


class NamedResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result requested by name; without a place if it does not match."""

    score: float
    place: int | None
    parts: dict[str, float]


class ResultExplained(msgspec.Struct, frozen=True, kw_only=True):
    """A passage, a message or a file that was found, and why.

    Attributes:
        id: A passage's corpus and number, a message's id, a file's path.
        title: Its location, or its author.
        text: Its beginning, or the part that matches best.
        place: Its rank in its mode, from 1; null if it is not among the best.
        score: Its measured relevance, 0-1.
        signals: The strongest first.
        decided: What else determined the score.
    """

    id: str
    title: str
    text: str
    place: int | None
    score: float
    signals: list[SignalPart]
    decided: str = ""
    corpus: str | None = None
    path: str | None = None


class ResultsOfMode(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one mode, best first.

    Attributes:
        places: The ranks of the first fifty, by id.
        how: How the query was executed, in words.
        partial: Why it may be incomplete.
    """

    mode: str
    hits: list[ResultExplained] = msgspec.field(default_factory=list)
    places: dict[str, int] = msgspec.field(default_factory=dict)
    total: int = 0
    milliseconds: float = 0.0
    how: str = ""
    partial: str | None = None


class WhyThatResult(msgspec.Struct, frozen=True, kw_only=True):
    """Why a requested item has its rank in a mode, or none.

    Attributes:
        place: Its rank; null if it is not among the first fifty.
        hit: How it is ranked; null if it is unknown or has no rank.
    """

    mode: str
    place: int | None
    reasons: list[str]
    hit: ResultExplained | None


class ResultsExplained(Reply, frozen=True, kw_only=True):
    """Answers `ExplainDocuments`, `ExplainSessionSearch` and `ExplainCode`.

    Attributes:
        about: The requested item, by mode.
        meanings: The meaning of each signal that counted, by name.
    """

    query: str
    modes: list[ResultsOfMode]
    corrected: dict[str, list[str]] = msgspec.field(default_factory=dict)
    unknown: list[str] = msgspec.field(default_factory=list)
    about: list[WhyThatResult] = msgspec.field(default_factory=list)
    meanings: dict[str, str]


def list_mode(
    mode: str,
    hits: Sequence[ResultExplained],
    limit: int,
    *,
    total: int,
    seconds: float,
    how: str,
    partial: str | None,
) -> ResultsOfMode:
    """Return all results of a mode, the first of them in full."""
    return ResultsOfMode(
        mode=mode,
        hits=list(hits[:limit]),
        places={hit.id: place for place, hit in enumerate(hits, 1)},
        total=total,
        milliseconds=round(seconds * 1_000, 3),
        how=how,
        partial=partial,
    )


def explain_place(mode: ResultsOfMode, hit: ResultExplained | None, why_not: str) -> WhyThatResult:
    """Return the rank of a requested result in a mode, or why it has none."""
    place = None if hit is None else mode.places.get(hit.id)
    return WhyThatResult(
        mode=mode.mode,
        place=place,
        reasons=[] if place is not None else [why_not],
        hit=None if hit is None else msgspec.structs.replace(hit, place=place),
    )


def meanings_of(
    modes: Sequence[ResultsOfMode], about: Sequence[WhyThatResult], known: Mapping[str, str]
) -> dict[str, str]:
    """Return the meanings of the signals in results."""
    hits = [hit for mode in modes for hit in mode.hits]
    hits += [each.hit for each in about if each.hit is not None]
    names = {part.name for hit in hits for part in hit.signals}
    return {name: why for name, why in known.items() if name in names}
