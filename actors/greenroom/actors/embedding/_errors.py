"""What goes wrong with embedders."""

from __future__ import annotations

from greenroom.runtime import GreenroomError


class EmbedderError(GreenroomError):
    """An embedder cannot be had, or cannot embed; what needs it goes on without, by words alone.

    Its sentence says what is missing and how to get it.
    """
