"""The answers of failed tool calls: one JSON object per kind of failure.

A sentence says what happened and what is still true, without internals.
"""

from __future__ import annotations

import logging
import math
from typing import Any

import msgspec

from greenroom.actors.core.auth.key_format import mask_keys
from greenroom.runtime import (
    ActorQuarantinedError,
    DeadlineExceededError,
    IdempotencyConflictError,
    OverloadedError,
    RecordDamagedError,
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
    """Return the answer to a call that raised this error.

    An unexpected error is logged with its traceback, and answered with ``INTERNAL_ERROR`` without its text.
    """
    if isinstance(error, Refusal):
        return Failure(False, mask_keys(error.sentence), error.code, _without_keys(error.details))
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
            if isinstance(error, RecordDamagedError) and error.entry:  # names the entry, but no path
                entry = {name: value for name, value in error.entry.items() if name != "what"}
                return Failure(False, mask_keys(_as_sentence(error)), code, _without_keys(entry))
            if not isinstance(error, StorageFullError):
                details = {"outcome": "not_done"} if isinstance(error, DeadlineExceededError) else {}
                return Failure(False, sentence, code, details)
            # An error without numbers may name a path in its sentence.
            why = str(error) if error.numbers else "the disk is full; make room on it"
            return Failure(False, f"{sentence} {why[0].upper()}{why[1:]}.", code, dict(error.numbers))
    logger.error("a request failed", exc_info=error)
    return Failure(False, "The server failed at this request; it was not carried out.", "INTERNAL_ERROR", {})


def _as_sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[0].upper()}{text[1:]}."


def _without_keys(details: dict[str, Any]) -> dict[str, Any]:
    """Mask API keys in the texts of details, which a caller may have sent."""
    return {name: mask_keys(value) if isinstance(value, str) else value for name, value in details.items()}


def timeout_failure(seconds: float) -> Failure:
    """Return the answer to a tool call that timed out."""
    sentence = (
        f"The request was not answered within {seconds:g} s. If it was begun, it is carried out whole; "
        "repeat it with the same idempotency_key to learn its outcome."
    )
    details = {"deadline_ms": round(seconds * 1000), "outcome": "unknown"}
    return Failure(False, sentence, "DEADLINE_EXCEEDED", details)


def rate_limit_refusal(seconds: float) -> Refusal:
    """Return the refusal of a request beyond its key's rate limit, with `retry_after_ms`."""
    milliseconds = math.ceil(seconds * 1_000)
    sentence = f"too many requests by this key; nothing was done; repeat this in {milliseconds} ms"
    return Refusal("RATE_LIMITED", sentence, retry_after_ms=milliseconds)
