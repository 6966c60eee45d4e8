"""Errors as words, and made again on the other side."""

from __future__ import annotations

from typing import Any

import msgspec

from greenroom.runtime.base import errors
from greenroom.runtime.lmdb.keys import encode_json
from greenroom.runtime.sharing.frames import Failure

_WIRE_NAMES: dict[type[BaseException], str] = {errors.ActorQuarantinedError: "ActorSetAsideError"}
"""The names that travel, of errors that are called otherwise in this program."""
_BY_NAME: dict[str, type[errors.GreenroomError]] = {
    _WIRE_NAMES.get(each, each.__name__): each
    for each in (
        errors.ActorFailedError,
        errors.ActorQuarantinedError,
        errors.ConfigurationError,
        errors.DeadlineExceededError,
        errors.IdempotencyConflictError,
        errors.InvalidAddressError,
        errors.OverloadedError,
        errors.StorageFullError,
        errors.StoreDamagedError,
        errors.StoreError,
        errors.UnknownKindError,
    )
}


def failure_of(number: int, error: BaseException) -> Failure:
    """Return the word for an error that a relayed message ended with."""
    details: dict[str, Any] = {}
    name = _WIRE_NAMES.get(type(error), type(error).__name__)
    if isinstance(error, errors.Refusal):
        name = "Refusal"
        details = {"code": error.code, "details": error.details}
    elif isinstance(error, errors.OverloadedError):
        details = {"retry_after_ms": error.retry_after_ms}
    try:
        return Failure(number, name, str(error), encode_json(details))
    except (TypeError, ValueError) as problem:  # a Refusal's details may be anything
        return Failure(number, "ActorFailedError", f"the answer cannot be relayed: {problem}")


def error_of(failure: Failure) -> errors.GreenroomError:
    """Return the error that a word stands for."""
    try:
        details = msgspec.json.decode(failure.details, type=dict[str, Any])
        if failure.error == "Refusal":
            return errors.Refusal(str(details["code"]), failure.sentence, **details["details"])
        if failure.error == "OverloadedError":
            return errors.OverloadedError.of(failure.sentence, int(details["retry_after_ms"]))
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        pass
    return _BY_NAME.get(failure.error, errors.ActorFailedError)(failure.sentence)
