"""What the services share: their "no", and Python values to strict JSON and back, so that nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from greenroom.actors.auth.errors import not_serializable
from greenroom.runtime import Refusal

MOST_DIGITS = 4_000


def to_json(value: Any) -> bytes:
    """Return the JSON of a value that comes back equal from it.

    Raises:
        Refusal: ``SERIALIZATION_ERROR``: JSON has nothing like it (a tuple, a key that is no text, NaN, …).
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        unchanged = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise not_serializable(f"this is no value for JSON: {error}") from None
    if not unchanged:
        raise not_serializable(
            "this is no value for JSON: keys must be texts, and a sequence must be a list and no tuple"
        )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise not_serializable(f"a text holds a lone surrogate at character {error.start}") from None


def from_json(raw: msgspec.Raw) -> Any:
    """Return the value of JSON; an integer of thousands of digits comes as a `decimal.Decimal`."""
    return json.loads(bytes(raw), parse_int=_integer)


def plain(value: Any) -> Any:
    """Return a mapping as the dictionary that JSON has; anything else as it is."""
    return dict(value) if isinstance(value, Mapping) else value


def _integer(digits: str) -> int | Decimal:
    # Python refuses to make an int of so many digits, as it would take too long.
    return int(digits) if len(digits) < MOST_DIGITS else Decimal(digits)


class ServiceError(Refusal, ValueError):
    """A service says no: an unknown session, a taken id, an impossible step, a value that cannot be kept.

    It is a ``ValueError`` with the ``code``, ``sentence`` and ``details`` of the `Refusal` that an MCP
    client would get. Nothing was changed. Errors that are not the caller's (a full store, a mailbox
    that is full) are no `ServiceError`.
    """
