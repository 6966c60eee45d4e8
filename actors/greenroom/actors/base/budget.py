"""Token budgets of answers: estimated sizes, and lists cut to whole items, the rest counted or named.

Each model counts tokens differently, and no model's tokenizer is at hand. A token is four bytes of
UTF-8 here: English prose has some 4.2 to a token in today's models and JSON some 3; a letter of Greek or
Cyrillic has two bytes, a Chinese character three, which errs on the side of too many tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

T = TypeVar("T")

BYTES_PER_TOKEN = 4


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
