"""How much each signal counts: the one table behind the order of search results.

    strength  = sum of weight * signal
    relevance = 1 / (1 + exp(-(strength - MIDDLE) / WIDTH))

Strength is absolute: it does not depend on what else is found, so results of several namespaces can be
merged by it. `bench/` has the program that fits the weights to questions whose answers are
known, and measures them on conversations that they were not fitted to. A weight that is 0
leaves its signal out in that situation.

The situations: no embedder (or not yet); static word vectors; vectors of sentences; and
vectors of sentences and of tokens.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Situation = Literal["words", "static", "sentences", "tokens"]


class Weights(NamedTuple):
    """A signal's weight in each situation, and why there is such a signal."""

    words: float
    static: float
    sentences: float
    tokens: float
    reason: str


SIGNALS: Final[dict[str, Weights]] = {
    "words": Weights(
        0.11,
        0.0,
        0.0,
        0.0,
        "A memory that says the query's words is wanted; rare words say more than common ones (BM25).",
    ),
    "nearby": Weights(
        0.33,
        0.35,
        0.37,
        0.19,
        "What belongs together is told in several turns: words around a memory count with its own.",
    ),
    "conversation": Weights(
        0.14,
        0.08,
        0.11,
        0.1,
        "A conversation about what is asked is where to look, even if the answer itself uses other words.",
    ),
    "tags": Weights(0.4, 0.4, 0.4, 0.3, "Who tags a memory says what it is to be found by."),
    "key": Weights(4.0, 4.0, 4.0, 4.0, "Who asks for a memory by its key wants that one."),
    "mention": Weights(
        0.24,
        0.25,
        0.0,
        0.0,
        "A memory that speaks of the person who is asked about; less than being by them.",
    ),
    "author": Weights(
        2.05, 2.06, 1.86, 1.99, "Who is named in the query most often said themselves what is asked for."
    ),
    "company": Weights(
        2.45,
        2.61,
        2.66,
        2.6,
        "When people are named, a conversation in which all of them took part is meant.",
    ),
    "question": Weights(-0.43, -0.46, -0.36, -0.46, "A question seldom answers one."),
    "reply": Weights(0.18, 0.15, 0.14, 0.13, "What follows another person's question answers something."),
    "answer": Weights(0.19, 0.18, 0.17, 0.17, "... and the question's words say what it answers."),
    "opening": Weights(
        0.41,
        0.45,
        0.39,
        0.38,
        "News are told first: the first memories of a conversation say what happened since the last.",
    ),
    "length": Weights(
        0.22, 0.27, 0.6, 0.27, "A longer memory says more; what is short is often mere courtesy."
    ),
    "when": Weights(
        1.45, 1.44, 1.47, 1.44, "Asked when something was, a memory that names a time can say it."
    ),
    "temporal": Weights(
        0.23, 0.24, 0.2, 0.18, "A memory that names a time tells of something that happened."
    ),
    "month": Weights(
        3.51, 3.45, 3.53, 3.23, "A month or year named in the query is when the memory was made."
    ),
    "day": Weights(
        9.5,
        9.17,
        9.47,
        9.52,
        "A day named in the query: made on that day, or soon after, or just before what was planned for it.",
    ),
    "meaning": Weights(0.0, 3.44, 4.66, 1.78, "The memory means what is asked, whatever its words."),
    "theme": Weights(0.0, 1.63, 0.0, 0.0, "Something in the same conversation means what is asked."),
    "tokens": Weights(
        0.0,
        0.0,
        0.0,
        2.35,
        "For each word of the query something in the memory means it: finer than one vector a text.",
    ),
    "tokens nearby": Weights(0.0, 0.0, 0.0, 4.91, "... in it or in what stands next to it."),
}

MIDDLE: Final = 7.0
"""The strength that is a relevance of a half: a few rare words of a short query, and nothing else."""
WIDTH: Final = 3.0
"""How much more strength makes it three quarters (1.1 times that) or nineteen twentieths (3 times)."""


def weights(situation: Situation) -> dict[str, float]:
    """Return the weights of the signals that count."""
    found = {name: float(getattr(signal, situation)) for name, signal in SIGNALS.items()}
    return {name: weight for name, weight in found.items() if weight}
