"""A budget of tokens for what a model reads: whole things only, and a count of what was left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors._tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Page(msgspec.Struct, frozen=True):
    """What of a page fits into a budget.

    Attributes:
        count: How many things fit, from the first on.
        passed: After how many the next page begins: one that is larger than the budget alone is
            passed over, so that a reader who goes on gets to what is behind it.
        tokens: What they cost; not told where there is no budget.
        left_out: How many of the page did not fit; not told where there is no budget.
    """

    count: int
    passed: int
    tokens: int | UnsetType
    left_out: int | UnsetType


def tokens_of(thing: Any) -> int:
    """Return what a thing costs a model that reads it as JSON, about."""
    return estimate_tokens(msgspec.json.encode(thing))


def page(things: Sequence[Any], max_tokens: int | None) -> Page:
    """Return how many things fit into a budget one after the other; None: all of them."""
    if max_tokens is None:
        return Page(len(things), len(things), UNSET, UNSET)
    spent = count = 0
    for thing in things:
        cost = tokens_of(thing)
        if spent + cost > max_tokens:
            break
        spent += cost
        count += 1
    return Page(count, max(count, min(1, len(things))), spent, len(things) - count)


def best(things: Sequence[T], max_tokens: int | None) -> tuple[list[T], Page]:
    """Return of things in the order of their worth those that come first and fit into a budget.

    One that is larger than the budget alone is passed over: it must not hide the others.
    """
    if max_tokens is None:
        return list(things), page(things, None)
    costs = [tokens_of(thing) for thing in things]
    kept, spent = [], 0
    for thing, cost in zip(things, costs, strict=True):
        if spent + cost <= max_tokens:
            kept.append(thing)
            spent += cost
        elif cost <= max_tokens:
            break
    return kept, Page(len(kept), len(kept), spent, len(things) - len(kept))


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
