"""How long to leave alone what has failed."""

from __future__ import annotations

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 300.0


class Patience:
    """Twice as long after each failure, from a second to five minutes."""

    def __init__(self) -> None:
        self._failures = 0

    def after_failure(self, asked_for: float | None = None) -> float:
        """Return for how many seconds to wait now.

        Args:
            asked_for: How long the other side wants to be left alone, in seconds.
        """
        seconds = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0**self._failures)
        self._failures = min(self._failures + 1, 16)
        return min(LONGEST_SECONDS, max(seconds, asked_for or 0.0))

    def after_success(self) -> None:
        """Forget the failures."""
        self._failures = 0
