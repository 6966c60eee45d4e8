"""What goes wrong with embedders."""

from __future__ import annotations

from greenroom.runtime import GreenroomError


class EmbedderError(GreenroomError):
    """The embedder cannot be loaded, or cannot embed now; searches go by words alone.

    Its sentence says what is missing and how to get it. Unlike `TextRefusedError` it is not about the texts.

    Args:
        sentence: What is missing.
        retry_after: After how many seconds another try makes sense, where an endpoint says so.
    """

    def __init__(self, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class ModelMissingError(EmbedderError):
    """The model is not where it is said to be."""


class TextRefusedError(EmbedderError):
    """An endpoint will not embed this text however often it is asked; others it does. Leave this one out."""
