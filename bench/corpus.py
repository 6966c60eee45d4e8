"""Made-up conversations with sentences planted in them, and questions whose answers are known.

The filler is made of words that do not exist, drawn as real words are (few often, many
seldom). Planted sentences are English. Beside each stand decoys with some of its words,
so that a ranking must weigh, not just match.
"""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

SENDERS = ("ada", "grace", "linus")
VOCABULARY = 4_000
SEED = 2_024
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "or")]


class Planted(NamedTuple):
    """A sentence to be found first with either question; the second has typing errors."""

    sentence: str
    question: str
    mistyped: str
    decoys: tuple[str, ...]


PLANTED = (
    Planted(
        "the payment gateway times out whenever the invoices are exported",
        "payment gateway timing out",
        "paymnt gatewy timing out",
        ("the payment was confirmed by the bank", "the gateway drug of programming is a spreadsheet"),
    ),
    Planted(
        "we agreed that Ines migrates the customer database on Thursday",
        "who migrates the customer database",
        "who migrates the custmer databse",
        ("the customer was happy with the demonstration", "a database of birds would be useful"),
    ),
    Planted(
        "rotate the signing certificates before the staging cluster is rebuilt",
        "rotating signing certificates",
        "rotating sigining certifcates",
        ("the signing ceremony is at noon", "her certificates hang in the staging area"),
    ),
    Planted(
        "the nightly backup fails because the archive volume is mounted read only",
        "nightly backups failing on the archive volume",
        "nightly backps failing on the archve volume",
        ("the archive of the newspaper is open", "turn the volume down at night please"),
    ),
)


class Post(NamedTuple):
    """A message of the conversation."""

    sender: str
    content: str


def conversation(size: int) -> list[Post]:
    """Return so many messages, always the same, with `PLANTED` and the decoys spread over them."""
    chance = random.Random(SEED)
    words = list(
        {"".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))): None for _ in range(VOCABULARY)}
    )
    weights = list(itertools.accumulate(1 / (rank + 2) for rank in range(len(words))))

    def sentence() -> str:
        return " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(6, 26)))

    posts = [Post(chance.choice(SENDERS), sentence()) for _ in range(size)]
    special = [text for planted in PLANTED for text in (planted.sentence, *planted.decoys)]
    for place, text in zip(chance.sample(range(size), len(special)), special, strict=True):
        posts[place] = Post(chance.choice(SENDERS), text)
    return posts
