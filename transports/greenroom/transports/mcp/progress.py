"""Progress notifications: how far a request is that takes a while, for a client that wants to know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from greenroom.transports.mcp.responses import encode

if TYPE_CHECKING:
    from greenroom.actors import ProgressCallback
    from greenroom.transports.mcp.calls import Call

INTERVAL_SECONDS: Final = 0.1
"""Seconds between two tellings at least."""


def report_for(call: Call) -> ProgressCallback | None:
    """Return what tells a call's client how far it is; None where the client did not ask."""
    token = _token_of(call.frame.params)
    if token is None:
        return None
    said, not_before = -1.0, -1.0

    def report(done: float, total: float, words: str) -> None:
        nonlocal said, not_before
        now = trio.current_time()
        # The protocol wants each progress to be more than the one before.
        if call.settled or done <= said or (now < not_before and done < total):
            return
        said, not_before = done, now + INTERVAL_SECONDS
        progress = {"progressToken": token, "progress": done, "total": total, "message": words}
        call.sink.send(
            encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}) + b"\n"
        )

    return report


def _token_of(params: dict[str, Any] | None) -> int | str | None:
    meta = None if params is None else params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if type(token) in {int, str} else None
