"""Errors of embedders."""

from __future__ import annotations

from greenroom.runtime import GreenroomError


class EmbedderError(GreenroomError):
    """The embedder cannot be loaded, or cannot embed now; searches compare words alone.

    Unlike `TextRefusedError`, it does not concern the texts. An endpoint may state the seconds until a retry.
    """

    def __init__(self, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class ModelMissingError(EmbedderError):
    """The model is not in the configured place."""


class TextRefusedError(EmbedderError):
    """An endpoint refuses this text and will always do so; other texts are not affected."""
