"""Progress notifications of long requests, for clients that ask for them."""

from __future__ import annotations

from typing import Any, Final

import trio

from greenroom.actors import ProgressCallback
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.response_encoder import encode

INTERVAL_SECONDS: Final = 0.1
"""Seconds between two tellings at least."""


def report_for(call: Call) -> ProgressCallback | None:
    """Return the callback that sends progress to a call's client; None where none was asked for."""
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
