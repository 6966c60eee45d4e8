"""Defaults that the actors and the settings of a server share."""

from __future__ import annotations

from typing import Final

AUDIT_DAYS: Final = 90
"""How long audit records are kept, in days."""
CONTENT_LIMIT: Final = 10_000
"""How long the content of a message may be, in characters."""
DEBOUNCE_SECONDS: Final = 0.1
"""Seconds within which changes of one resource become one notification."""
