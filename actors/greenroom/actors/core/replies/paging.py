"""Token budgets of replies, and cursors, the opaque positions in lists.

Each model counts tokens differently, and no tokenizer is available. Here a token is four bytes of UTF-8:
English prose has about 4.2 bytes a token in today's models, JSON about 3. A Greek or Cyrillic letter has two
bytes and a Chinese character three, so their tokens are overestimated.

A cursor contains check bytes over itself and its request, so a damaged cursor, or a cursor of another
listing, is refused. It is no secret and grants nothing: the policy applies to every page.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.runtime import Refusal

T = TypeVar("T")

BYTES_PER_TOKEN = 4
CHECK_BYTES = 6
MAX_CHARS = 200


class OverBudget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item that is larger than the whole budget: its tokens and its names."""

    tokens: int
    message_id: int | None = None
    session_id: str | None = None
    memory_id: str | None = None
    key: str | None = None
    version: int | None = None


class BudgetedList(msgspec.Struct, Generic[T], frozen=True):
    """The part of a list that fits into a token budget, if there is one.

    The next page begins after ``passed`` items. Items that alone exceed the budget are named.
    """

    kept: list[T]
    passed: int
    tokens: int | UnsetType = UNSET
    left_out: int | UnsetType = UNSET
    over_budget: list[OverBudget] | UnsetType = UNSET


def estimate_tokens(text: str | bytes) -> int:
    """Estimate the tokens of a text: its bytes of UTF-8 divided by four, rounded up."""
    size = (
        len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode(errors="surrogatepass"))
    )
    return tokens_of_size(size)


def tokens_of_size(size: int) -> int:
    """Estimate the tokens of a number of bytes of UTF-8."""
    return -(-size // BYTES_PER_TOKEN)


def tokens_of(thing: Any) -> int:
    """Estimate the tokens of a value as JSON."""
    return estimate_tokens(msgspec.json.encode(thing))


def fit_to_budget(
    things: Sequence[T], max_tokens: int | None, name: Callable[[T], dict[str, Any]]
) -> BudgetedList[T]:
    """Keep items in order until the budget is spent; None means no limit.

    An item that alone exceeds the budget is skipped, so that it does not hide the others. It is named by the
    members of `OverBudget` that ``name`` returns.
    """
    if max_tokens is None:
        return BudgetedList(list(things), len(things))
    kept: list[T] = []
    large: list[OverBudget] = []
    spent = passed = 0
    for thing in things:
        cost = tokens_of(thing)
        if cost > max_tokens:
            large.append(OverBudget(tokens=cost, **name(thing)))
        elif spent + cost > max_tokens:
            break
        else:
            kept.append(thing)
            spent += cost
        passed += 1
    return BudgetedList(kept, passed, spent, len(things) - len(kept), large or UNSET)


def take_fitting(things: Sequence[T], max_tokens: int) -> tuple[list[T], int]:
    """Return the items that fit into a budget, tried in order, and their tokens."""
    kept, spent = [], 0
    for thing in things:
        cost = tokens_of(thing)
        if spent + cost <= max_tokens:
            kept.append(thing)
            spent += cost
    return kept, spent


def encode(position: bytes, binding: str) -> str:
    """Encode a position as a cursor that is valid only for the listing ``binding``."""
    return base64.urlsafe_b64encode(position + _check(position, binding)).rstrip(b"=").decode()


def decode(cursor: str, binding: str, size: int | None = None) -> bytes:
    """Decode the position in a cursor of the listing ``binding``, whose positions have ``size`` bytes.

    Raises:
        Refusal: ``VALIDATION_ERROR``: damaged, forged, or from another listing.
    """
    if len(cursor) > MAX_CHARS:
        raise _invalid()
    try:
        sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise _invalid() from None
    position, check = sealed[:-CHECK_BYTES], sealed[-CHECK_BYTES:]
    # The cursor is encoded again to find changed spare bits in the last character.
    if check != _check(position, binding) or encode(position, binding) != cursor:
        raise _invalid()
    if size is not None and len(position) != size:  # any client can compute check bytes
        raise _invalid()
    return position


def decode_number(cursor: str, binding: str) -> int:
    """Decode a cursor of a listing whose positions are numbers above 0, of eight bytes."""
    number = int.from_bytes(decode(cursor, binding, 8))
    if not number:
        raise _invalid()
    return number


def _check(position: bytes, binding: str) -> bytes:
    checked = len(position).to_bytes(2) + position + binding.encode()
    return blake2b(checked, digest_size=CHECK_BYTES, person=b"greenroom cursor").digest()


def _invalid() -> Refusal:
    return auth_errors.invalid(
        "cursor",
        "cursor: it is not one that this listing gave with these arguments; start again without a cursor",
    )
