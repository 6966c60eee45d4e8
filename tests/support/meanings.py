"""An embedder of somebody's own, as `python:support.meanings:Meanings` names it: it knows a few synonyms.

A text's vector says which of some subjects it is about. It can be held up, and told to fail.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from harness import PATIENCE

SUBJECTS = (
    ("refund", "refunded", "money", "back", "repay"),
    ("office", "closed", "building", "shut"),
    ("painted", "sunrise", "picture", "drew"),
    ("replicas", "deployed", "servers", "running"),
)


class Control:
    """What the tests tell the embedders of this process.

    Attributes:
        trouble: Why none embeds; None when they do.
        texts: What was embedded, in order.
    """

    def __init__(self) -> None:
        self.trouble: str | None = None
        self.texts: list[str] = []
        self._go_on = threading.Event()
        self._arrived = threading.Event()
        self.release()

    def hold(self) -> None:
        """Let none embed a text that is kept until `release`."""
        self._arrived.clear()
        self._go_on.clear()

    def release(self) -> None:
        """Let them go on."""
        self._go_on.set()

    def wait_until_held(self) -> None:
        """Return when one has begun to embed, and cannot go on."""
        assert self._arrived.wait(PATIENCE)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a row for each text."""
        self._arrived.set()
        assert self._go_on.wait(PATIENCE)
        if self.trouble is not None:
            raise RuntimeError(self.trouble)
        self.texts += texts
        return [row(text) for text in texts]


CONTROL = Control()


def row(text: str) -> list[float]:
    """Return by subject how many of its words a text has, and a little of everything."""
    words = text.lower().replace(".", " ").replace("?", " ").split()
    return [0.1 + sum(word in subject for word in words) for subject in SUBJECTS]


class Meanings:
    """The embedder; see the module."""

    name = "meanings:1"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a row for each text."""
        return [row(text) for text in texts] if texts == ["probe"] else CONTROL.embed(texts)

    def embed_query(self, text: str) -> list[float]:
        """Return the row of what is searched for."""
        if CONTROL.trouble is not None:
            raise RuntimeError(CONTROL.trouble)
        return row(text)
