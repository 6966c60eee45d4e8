"""What the services share: whom they ask, what they return, their "no", and Python values as strict JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Protocol, TypeVar

import msgspec

from greenroom.actors.auth.errors import not_serializable
from greenroom.runtime import Address, Message, Procedure, Query, Refusal

R = TypeVar("R")

MOST_DIGITS = 4_000


class Askable(Protocol):
    """What a service asks: a runtime of this event loop, or a `Database` from any."""

    async def ask(self, address: Address, message: Message[R], *, principal: Any = None) -> R:
        """Return an actor's reply, as `RuntimeClient.ask` does."""
        ...

    async def query(self, query: Query[R] | Procedure[R], *, principal: Any = None) -> R:
        """Return the answer of a query, as `RuntimeClient.query` does."""
        ...


class ServiceResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a service returns: ``result["status"]`` is ``result.status``, and ``dict(result)`` has all."""

    def __getitem__(self, name: str) -> Any:
        """Return the field of this name.

        Raises:
            KeyError: there is none.
        """
        if name not in self.__struct_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__struct_fields__)

    def keys(self) -> tuple[str, ...]:
        """Return the names of the fields."""
        return self.__struct_fields__

    def get(self, name: str, default: Any = None) -> Any:
        """Return the field of this name, or ``default`` where there is none."""
        return self[name] if name in self.__struct_fields__ else default


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

    @classmethod
    def of(cls, refusal: Refusal) -> ServiceError:
        """Return what a service says in the place of a refusal."""
        return cls(refusal.code, refusal.sentence, **refusal.details)
