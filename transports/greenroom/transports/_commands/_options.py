"""What the settings say about the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from greenroom.runtime import RuntimeOptions

if TYPE_CHECKING:
    from greenroom.transports._settings import Settings

# Requests were drained before the runtime closes; what it still holds are tells and timers,
# which are stored and go on at the next start. So a signal need not wait for them.
_DRAIN_SECONDS: Final = 0.2


def runtime_options(settings: Settings) -> RuntimeOptions:
    """What the settings say about the runtime."""
    return RuntimeOptions(
        durability=settings.durability,
        max_size=settings.max_size,
        min_free=settings.min_free,
        drain_seconds=_DRAIN_SECONDS,
    )
