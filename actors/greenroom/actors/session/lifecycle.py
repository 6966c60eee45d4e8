"""The statuses of a session and the steps between them."""

from __future__ import annotations

from greenroom.actors.auth.errors import invalid
from greenroom.actors.schemas.types import SessionStatus

OPEN: tuple[SessionStatus, ...] = ("active", "paused", "terminated")

STEPS: dict[SessionStatus, tuple[SessionStatus, ...]] = {
    "created": OPEN,
    "active": OPEN,
    "paused": OPEN,
    "terminated": ("archived",),
    "archived": (),
}

CLOSED: frozenset[SessionStatus] = frozenset({"terminated", "archived"})


def check_step(old: SessionStatus, new: SessionStatus) -> None:
    """Check that a session may go from ``old`` to ``new``.

    Raises:
        Refusal: ``VALIDATION_ERROR`` naming both and the steps that are allowed.
    """
    allowed = STEPS[old]
    if new not in allowed:
        choices = ", ".join(allowed) or "nothing more"
        raise invalid(
            "status",
            f"status: a session that is {old} cannot become {new}; it can become: {choices}",
            **{"from": old, "to": new, "allowed": list(allowed)},
        )


def seen_status(status: SessionStatus, visible_messages: int) -> SessionStatus:
    """Return the status as a reader sees it: its first message makes a session active."""
    return "active" if status == "created" and visible_messages else status
