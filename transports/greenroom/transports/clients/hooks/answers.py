"""The reply of a hook: text for the model, and a line for the user."""

from __future__ import annotations

from typing import Final

from greenroom.actors.sessions.requests.hook_events import HookAnswer

_PARTIAL: Final = "(Greenroom: partial, since it was found by words alone.)"


def texts_of(found: HookAnswer) -> tuple[str, str]:
    """Return the text for the model, and the line for the user about unreviewed findings."""
    context = f"{found.context}\n{_PARTIAL}" if found.context and found.partial else found.context
    return context, _of_findings(found.found) if found.found else ""


def _of_findings(number: int) -> str:
    what = "one thing that may be" if number == 1 else f"{number} things that may be"
    return (
        f"Greenroom: {what} worth remembering came up since your last session. `greenroom review list` "
        "shows them; sessions are given what you accept, and, unless `reviewed_only` is set, what you typed."
    )
