"""Token budgets of answers, and cursors: lists cut to whole items, and the opaque position where they go on.

Each model counts tokens differently, and no model's tokenizer is at hand. A token is four bytes of
UTF-8 here: English prose has some 4.2 to a token in today's models and JSON some 3; a letter of Greek or
Cyrillic has two bytes, a Chinese character three, which errs on the side of too many tokens.

A cursor carries check bytes over itself and over the request it belongs to, so a
mangled one, or one from another listing, is refused instead of misread. It is no
secret and grants nothing: what lies behind it goes through the policy again.
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
    """What is larger than the whole budget: what it costs, about, and how it is read alone."""

    tokens: int
    message_id: int | None = None
    session_id: str | None = None
    memory_id: str | None = None
    key: str | None = None
    version: int | None = None


class BudgetedList(msgspec.Struct, Generic[T], frozen=True):
    """The part of a list that fits into a token budget.

    Attributes:
        kept: What fits, in the order of the list.
        passed: Behind how many of the list the next page begins: each of these is kept or named.
        tokens: What the kept ones cost; not told where there is no budget.
        left_out: How many of the list are not kept; not told where there is no budget.
        over_budget: The names of those that alone are larger than the budget; not told where there are none.
    """

    kept: list[T]
    passed: int
    tokens: int | UnsetType = UNSET
    left_out: int | UnsetType = UNSET
    over_budget: list[OverBudget] | UnsetType = UNSET


def estimate_tokens(text: str | bytes) -> int:
    """Return about how many tokens a text is: its bytes in UTF-8 by four, rounded up."""
    size = (
        len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode(errors="surrogatepass"))
    )
    return tokens_of_size(size)


def tokens_of_size(size: int) -> int:
    """Return about how many tokens so many bytes of UTF-8 are."""
    return -(-size // BYTES_PER_TOKEN)


def tokens_of(thing: Any) -> int:
    """Estimate how many tokens a value takes as JSON."""
    return estimate_tokens(msgspec.json.encode(thing))


def take_in_order(
    things: Sequence[T], max_tokens: int | None, name: Callable[[T], dict[str, Any]]
) -> BudgetedList[T]:
    """Take items in order until the budget is spent; None: everything.

    One that alone is larger than the budget is named and passed over: it must not hide the others.

    Args:
        things: What there is, best or first first.
        max_tokens: The budget.
        name: Returns by which member and value of `OverBudget` a thing is known.
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
    """Return the things that fit into a budget, the first ones first, and what they cost.

    One that does not fit is passed over, and those after it still have their chance.
    """
    kept, spent = [], 0
    for thing in things:
        cost = tokens_of(thing)
        if spent + cost <= max_tokens:
            kept.append(thing)
            spent += cost
    return kept, spent


def encode(position: bytes, binding: str) -> str:
    """Return ``position`` as text that is good for the listing named by ``binding`` only."""
    return base64.urlsafe_b64encode(position + _check(position, binding)).rstrip(b"=").decode()


def decode(cursor: str, binding: str, size: int | None = None) -> bytes:
    """Return the position in a cursor of the same listing.

    Args:
        cursor: The cursor.
        binding: The name of the listing.
        size: How many bytes every position of that listing has; None: any number.

    Raises:
        Refusal: ``VALIDATION_ERROR``: mangled, made up, or from another listing.
    """
    if len(cursor) > MAX_CHARS:
        raise _invalid()
    try:
        sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise _invalid() from None
    position, check = sealed[:-CHECK_BYTES], sealed[-CHECK_BYTES:]
    # Encoding again catches the spare bits of the last character.
    if check != _check(position, binding) or encode(position, binding) != cursor:
        raise _invalid()
    if size is not None and len(position) != size:  # anybody can compute check bytes
        raise _invalid()
    return position


def decode_number(cursor: str, binding: str) -> int:
    """Return the position in a cursor of the same listing, where each is a number above 0 of eight bytes.

    Raises:
        Refusal: ``VALIDATION_ERROR``, as `decode`.
    """
    number = int.from_bytes(decode(cursor, binding, 8))
    if not number:
        raise _invalid()
    return number


def _check(position: bytes, binding: str) -> bytes:
    told_apart = len(position).to_bytes(2) + position + binding.encode()
    return blake2b(told_apart, digest_size=CHECK_BYTES, person=b"greenroom cursor").digest()


def _invalid() -> Refusal:
    return auth_errors.invalid(
        "cursor",
        "cursor: it is not one that this listing gave with these arguments; start again without a cursor",
    )
