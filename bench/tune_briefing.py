"""Fits the weights of `greenroom.actors.sessions.summary`: ``python -m bench.tune_briefing`` prints them.

A logistic regression with a penalty, on the units of the sessions that are for fitting. A unit that has a
part of a marked sentence must be known; one that was taken back counts as much as three that need not be.
What is printed of the choice leaves each session out in turn: it is summarised by the weights of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bench.briefing import BYTES, Session, carried, sessions
from greenroom.actors.content.text.escape import escape_untrusted
from greenroom.actors.sessions.summary.features import Conversation, Features, Utterance
from greenroom.actors.sessions.summary.summary import summarize
from greenroom.actors.sessions.summary.units import units
from greenroom.runtime import finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bench.briefing import Mark

    Floats = npt.NDArray[np.floating[Any]]

PENALTY: Final = 0.3
OF_REVOKED: Final = 3.0
ENVELOPE: Final = 180
"""Bytes of a briefing that are no talk, about."""
_OVERLAP: Final = 10
_STEPS: Final = 10


class Sample(NamedTuple):
    """The units of a session: their features, whether each must be known, and how much it counts."""

    session: Session
    values: Floats
    known: Floats
    counts: Floats


def main() -> None:
    """Fit and print."""
    samples = [_sample(each) for each in sessions() if each.half == "tune"]
    for name, weight in zip((*Features._fields, "none"), fitted(samples), strict=True):
        print(f"{name}={weight:.1f}")
    left_out = [
        (each.session, _summary(each.session, fitted([other for other in samples if other is not each])))
        for each in samples
    ]
    print(carried(left_out))


def fitted(samples: Sequence[Sample]) -> Floats:
    """Return the weights of the features, and the log-odds without any, by Newton's steps."""
    values = np.vstack([each.values for each in samples])
    values = np.hstack([values, np.ones((len(values), 1))])
    known = np.hstack([each.known for each in samples])
    counts = np.hstack([each.counts for each in samples])
    penalty = PENALTY * np.eye(values.shape[1])
    penalty[-1, -1] = 0
    found: Floats = np.zeros(values.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-values @ found))
        slope = values.T @ (counts * (chance - known)) + penalty @ found
        bend = (values * (counts * chance * (1 - chance))[:, None]).T @ values + penalty
        found = found - np.linalg.solve(bend, slope)
    return found


def _sample(session: Session) -> Sample:
    said = _as_read(session)
    cut = [list(units(each.text)) for each in said]
    conversation = Conversation(said, cut)
    values, known, revoked = [], [], []
    for place, message in enumerate(session.message):
        for unit, features in zip(cut[place], conversation.features(place), strict=True):
            values.append([*map(float, features)])
            known.append(_has(unit.text, message.id, session.fact))
            revoked.append(_has(unit.text, message.id, session.revoked))
    is_known = np.array(known, float)
    counts = 1 + (OF_REVOKED - 1) * np.array(revoked, float) * (1 - is_known)
    return Sample(session, np.array(values), is_known, counts)


def _as_read(session: Session) -> list[Utterance]:
    """Return its messages as a briefing has them: all people are called alike."""
    return [each._replace(sender="a person") if each.by_person else each for each in session.said()]


def _has(text: str, message: int, marks: Sequence[Mark]) -> bool:
    return any(
        mark.message == message
        and _overlap(escape_untrusted(text, len(text)), escape_untrusted(mark.quote, len(mark.quote)))
        for mark in marks
    )


def _overlap(text: str, quote: str) -> bool:
    """Return whether one has the other in it, or begins as the other ends."""
    if text in quote or quote in text:
        return True
    return any(
        first[:length] == second[-length:]
        for first, second in ((text, quote), (quote, text))
        for length in range(_OVERLAP, min(len(text), len(quote)) + 1)
    )


def _summary(session: Session, found: Floats) -> str:
    lines = finish(
        summarize(
            _as_read(session),
            BYTES - ENVELOPE,
            weights=Features(*map(float, found[:-1])),
            none=float(found[-1]),
        )
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
