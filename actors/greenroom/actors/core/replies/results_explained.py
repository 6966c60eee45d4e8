"""Replies that explain searches of documents, sessions and code, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from greenroom.actors.core.replies.replies import Reply


class SignalPart(msgspec.Struct, frozen=True, kw_only=True):
    """What a signal adds to the strength of a result: its value times its weight.

    Attributes:
        weight: From the table of weights; null for what is in no table.
        share: Its part of the strength, by which the score is made: those of all signals make 1.
    """

    name: str
    part: float
    weight: float | None
    share: float


def signal_parts(parts: Mapping[str, float], weights: Mapping[str, float]) -> list[SignalPart]:
    """Return parts of a strength with what they are of it, the strongest first."""
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
    """What was asked about by its name, as one actor ranks it, whether it is among the best or not.

    Attributes:
        place: Where it is among all that was found there, from 1 on; None where it has nothing of the query.
        parts: What each signal added to its strength.
    """

    score: float
    place: int | None
    parts: dict[str, float]


class ResultExplained(msgspec.Struct, frozen=True, kw_only=True):
    """A passage, a message or a file that was found, and why.

    Attributes:
        id: A passage's corpus and number, a message's id, a file's path.
        title: Where it stands, or by whom it is.
        text: How it begins, or what of it has most of the query.
        place: Where it is in its mode, from 1 on; null where it is not among the best.
        score: Its measured relevance, 0-1.
        signals: The strongest first.
        decided: What made the score, where it is more than the signals.
        corpus: Of a passage or a file its corpus; null for messages, as ``path``.
        path: Of its document, or of itself.
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
    """What one mode finds, best first.

    Attributes:
        places: The place of each of the first fifty, by its id.
        total: How many there are.
        milliseconds: How long it took.
        how: How the query was carried out, in words.
        partial: Why some may be missing that another time would be found.
    """

    mode: str
    hits: list[ResultExplained] = msgspec.field(default_factory=list)
    places: dict[str, int] = msgspec.field(default_factory=dict)
    total: int = 0
    milliseconds: float = 0.0
    how: str = ""
    partial: str | None = None


class WhyThatResult(msgspec.Struct, frozen=True, kw_only=True):
    """Why what was asked about is where it is in a mode, or not there.

    Attributes:
        place: Its place; null where it is not among the first fifty.
        reasons: Why it is not there, in words.
        hit: How it is ranked; null where it is unknown, or has no rank.
    """

    mode: str
    place: int | None
    reasons: list[str]
    hit: ResultExplained | None


class ResultsExplained(Reply, frozen=True, kw_only=True):
    """Answers `ExplainDocuments`, `ExplainSessionSearch` and `ExplainCode`.

    Attributes:
        corrected: What was looked for instead of words that are nowhere.
        unknown: Words that are nowhere, and that nothing is like.
        about: About what was asked about, by mode.
        meanings: What each signal that counted is for, by its name.
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
    """Return what the signals of results are for."""
    hits = [hit for mode in modes for hit in mode.hits]
    hits += [each.hit for each in about if each.hit is not None]
    names = {part.name for hit in hits for part in hit.signals}
    return {name: why for name, why in known.items() if name in names}
