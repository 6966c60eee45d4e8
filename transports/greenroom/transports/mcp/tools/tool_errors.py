"""The answers of failed tool calls: one JSON object per kind of failure.

A sentence tells the model what happened and what remains true, never the insides.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from greenroom.actors.core.auth.key_format import without_keys
from greenroom.runtime import (
    ActorQuarantinedError,
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
    ActorQuarantinedError: (
        "SET_ASIDE",
        "What this request is about failed too often and is set aside until the operator admits it again.",
    ),
}


class Failure(msgspec.Struct, frozen=True):
    """The JSON object that answers a failure."""

    success: bool
    error: str
    code: str
    details: dict[str, Any]


def tool_failure(error: Exception) -> Failure:
    """Return what answers a call which ended in this error.

    An error that is nobody's answer is logged with its traceback and answered
    ``INTERNAL_ERROR`` without its text.
    """
    if isinstance(error, Refusal):
        return Failure(False, without_keys(error.sentence), error.code, _without_keys(error.details))
    if isinstance(error, OverloadedError):
        if error.outcome == "unknown":
            sentence = (
                "The process that owns the folder does not answer, and may still carry this request out: "
                f"repeat it in {error.retry_after_ms} ms, with the same idempotency_key."
            )
        else:
            sentence = (
                "Too many requests wait for this, or the process that owns the folder does not answer; "
                f"nothing was done. Repeat it in {error.retry_after_ms} ms."
            )
        details = {"retry_after_ms": error.retry_after_ms, "outcome": error.outcome}
        return Failure(False, sentence, "OVERLOADED", details)
    for kind, (code, sentence) in _PLAIN.items():
        if isinstance(error, kind):
            if isinstance(error, DeadlineExceededError):
                return Failure(False, sentence, code, {"outcome": "not_done"})
            if not isinstance(error, StorageFullError):
                return Failure(False, sentence, code, {})
            # Without numbers, its own sentence may name a path.
            why = str(error) if error.numbers else "the disk is full; make room on it"
            return Failure(False, f"{sentence} {why[0].upper()}{why[1:]}.", code, dict(error.numbers))
    logger.error("a request failed", exc_info=error)
    return Failure(False, "The server failed at this request; it was not carried out.", "INTERNAL_ERROR", {})


def _without_keys(details: dict[str, Any]) -> dict[str, Any]:
    """Return details of which no text has an API key in it, which somebody may have given for a name."""
    return {name: without_keys(value) if isinstance(value, str) else value for name, value in details.items()}


def timeout_failure(seconds: float) -> Failure:
    """Return what answers a tool call whose time ran out."""
    sentence = (
        f"The request was not answered within {seconds:g} s. If it was begun, it is carried out whole; "
        "repeat it with the same idempotency_key to learn its outcome."
    )
    details = {"deadline_ms": round(seconds * 1000), "outcome": "unknown"}
    return Failure(False, sentence, "DEADLINE_EXCEEDED", details)
