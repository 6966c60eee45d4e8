"""Replies that explain searches of documents, sessions and code, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from greenroom.actors.core.replies.replies import Reply


class SignalPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a signal in a result's strength: its value times its weight.

    All shares add up to 1.
    """

    name: str
    part: float
    weight: float | None
    share: float


def signal_parts(parts: Mapping[str, float], weights: Mapping[str, float]) -> list[SignalPart]:
    """Return the parts of a strength with their shares, the strongest first."""
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
    """A result requested by name, with its place from 1, if it matches."""

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
        corpus: The corpus of a passage or a file; null for messages.
        path: The path of the document or file; null for messages.
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
        milliseconds: How long it took.
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
    """Why a requested item has its place in a mode, or none."""

    mode: str
    place: int | None
    reasons: list[str]
    hit: ResultExplained | None


class ResultsExplained(Reply, frozen=True, kw_only=True):
    """Answers `ExplainDocuments`, `ExplainSessionSearch` and `ExplainCode`.

    Attributes:
        corrected: Searched spellings for unknown words.
        unknown: Unknown words without a similar one.
        meanings: The meaning of each signal that counted, by name.
    """

    query: str
    modes: list[ResultsOfMode]
    corrected: dict[str, list[str]] = msgspec.field(default_factory=dict)
    unknown: list[str] = msgspec.field(default_factory=list)
    about: list[WhyThatResult] = msgspec.field(default_factory=list)
    meanings: dict[str, str]


def meanings_of(
    modes: Sequence[ResultsOfMode], about: Sequence[WhyThatResult], known: Mapping[str, str]
) -> dict[str, str]:
    """Return the meanings of the signals in results."""
    hits = [hit for mode in modes for hit in mode.hits]
    hits += [each.hit for each in about if each.hit is not None]
    names = {part.name for hit in hits for part in hit.signals}
    return {name: why for name, why in known.items() if name in names}
