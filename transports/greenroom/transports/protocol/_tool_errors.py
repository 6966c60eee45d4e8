"""What a failed tool call answers: one JSON object per kind of failure.

A sentence tells the model what happened and what remains true, never the insides.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from greenroom.runtime import (
    ActorSetAsideError,
    DeadlineExceededError,
    IdempotencyConflictError,
    OverloadedError,
    Refusal,
    RuntimeClosedError,
    StorageFullError,
    StoreDamagedError,
)

logger = logging.getLogger(__name__)

_PLAIN: dict[type[Exception], tuple[str, str]] = {
    StorageFullError: (
        "STORAGE_FULL",
        "The store has no room for this; nothing was changed. Reading and deleting still work.",
    ),
    IdempotencyConflictError: (
        "IDEMPOTENCY_CONFLICT",
        "This idempotency_key was used with other arguments before; nothing was changed. Use a new key.",
    ),
    DeadlineExceededError: (
        "DEADLINE_EXCEEDED",
        "The time for this request ran out before it was begun; nothing was done.",
    ),
    RuntimeClosedError: (
        "SHUTTING_DOWN",
        "The server is stopping; repeat this with the same idempotency_key at its next start.",
    ),
    StoreDamagedError: (
        "STORE_DAMAGED",
        "A stored record that this needs is damaged; see `greenroom verify` and `greenroom restore`.",
    ),
    ActorSetAsideError: (
        "SET_ASIDE",
        "What this request is about failed too often and is set aside until the operator admits it again.",
    ),
}


def tool_error(error: Exception) -> bytes:
    """Return the JSON that answers a tool call which ended in this error.

    An error that is nobody's answer is logged with its traceback and answered
    ``INTERNAL_ERROR`` without its text.
    """
    if isinstance(error, Refusal):
        return _object(error.code, error.sentence, error.details)
    if isinstance(error, OverloadedError):
        sentence = f"Too many requests are waiting for this; repeat it in {error.retry_after_ms} ms."
        return _object("OVERLOADED", sentence, {"retry_after_ms": error.retry_after_ms})
    for kind, (code, sentence) in _PLAIN.items():
        if isinstance(error, kind):
            return _object(code, sentence, {})
    logger.error("a tool call failed", exc_info=error)
    return _object("INTERNAL_ERROR", "The server failed at this request; it was not carried out.", {})


def overdue(seconds: float) -> bytes:
    """Return the JSON that answers a tool call whose time ran out."""
    sentence = (
        f"The request was not answered within {seconds:g} s. If it was begun, it is carried out whole; "
        "repeat it with the same idempotency_key to learn its outcome."
    )
    return _object("DEADLINE_EXCEEDED", sentence, {"deadline_ms": round(seconds * 1000)})


def _object(code: str, sentence: str, details: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"success": False, "error": sentence, "code": code, "details": details})
