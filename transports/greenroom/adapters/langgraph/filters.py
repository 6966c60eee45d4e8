"""Filters of a search, and conditions of a list of namespaces."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from greenroom.adapters.base.extras import needs

with needs("langgraph"):
    from langgraph.store.base import MatchCondition

_ORDERS: Final[dict[str, Callable[[float, float], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def fits(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Return whether an item's value matches a filter, member by member."""
    return all(_is(value.get(name), expected) for name, expected in (wanted or {}).items())


def _is(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(found, name, other) for name, other in wanted.items())
        return isinstance(found, Mapping) and fits(found, wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(wanted)
            and all(_is(one, other) for one, other in zip(found, wanted, strict=True))
        )
    return bool(found == wanted)


def _compares(found: Any, name: str, wanted: Any) -> bool:
    if name == "$eq":
        return bool(found == wanted)
    if name == "$ne":
        return bool(found != wanted)
    compare = _ORDERS.get(name)
    if compare is None:
        raise ValueError(f"the filter's operator {name!r} is none of $eq, $ne, {', '.join(_ORDERS)}")
    try:
        return compare(float(found), float(wanted))
    except (TypeError, ValueError):  # only numbers have an order
        return False


def matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Return whether a namespace begins or ends with a path; ``*`` matches any label."""
    if condition.match_type not in {"prefix", "suffix"}:
        raise ValueError(f"the condition {condition.match_type!r} is none of prefix and suffix")
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return not path or all(wanted in {"*", label} for wanted, label in zip(path, part, strict=True))
