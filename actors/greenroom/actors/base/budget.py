"""A budget of tokens for what a model reads: whole things only, and what is left out is counted or named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.base.token_estimate import estimate_tokens
from greenroom.actors.schemas.replies import OverBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


class Cut(msgspec.Struct, Generic[T], frozen=True):
    """What of a list is given where there is a budget.

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


def tokens_of(thing: Any) -> int:
    """Return what a thing costs a model that reads it as JSON, about."""
    return estimate_tokens(msgspec.json.encode(thing))


def cut(things: Sequence[T], max_tokens: int | None, name: Callable[[T], dict[str, Any]]) -> Cut[T]:
    """Return what fits into a budget one after the other; None: everything.

    One that alone is larger than the budget is named and passed over: it must not hide the others.

    Args:
        things: What there is, best or first first.
        max_tokens: The budget.
        name: Returns by which member and value of `OverBudget` a thing is known.
    """
    if max_tokens is None:
        return Cut(list(things), len(things))
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
    return Cut(kept, passed, spent, len(things) - len(kept), large or UNSET)


def fill(things: Sequence[T], max_tokens: int) -> tuple[list[T], int]:
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
