"""The log as JSON, a line an entry, for programs that collect logs."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

from greenroom.actors.core.auth.key_format import without_keys
from greenroom.transports.base.observability.request_log import EVENT


class JsonLines(logging.Formatter):
    """Formats an entry as one JSON object; of an exception it has the type and the places, never the text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the entry's line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": at.replace("+00:00", "Z"), "level": record.levelname.lower()}
        event = getattr(record, EVENT, None)
        if isinstance(event, dict):
            line.update(event)
        else:
            line.update(event="log", logger=record.name, message=record.getMessage())
        if record.exc_info is not None and record.exc_info[1] is not None:
            line.update(_described(record.exc_info[1]))
        return without_keys(json.dumps(line, ensure_ascii=True))


def dropped(count: int) -> str:
    """Return the line that stands for entries that nobody read."""
    level, message = logging.WARNING, "entries before this one were dropped: nobody read them"
    record = logging.LogRecord(__name__, level, "", 0, f"{count} {message}", None, None)
    return JsonLines().format(record)


def _described(error: BaseException) -> dict[str, Any]:
    """Return the type of an error, of those in its group, and where it was raised."""
    parts = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    frames = traceback.extract_tb(error.__traceback__)
    described: dict[str, Any] = {
        "error": type(error).__name__,
        "at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }
    if parts:
        described["errors"] = [_described(part) for part in parts]
    return described
