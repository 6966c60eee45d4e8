"""mem0's filters: ids of the owner, and conditions on the metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from greenroom.runtime.base.arguments import refuse_unknown

IDENTITIES = ("user_id", "agent_id", "run_id")
_EXAMPLE = "Example: filters={'user_id': 'u1'}"


def identity(value: Any, name: str) -> str | None:
    """Return an id as text without surrounding blanks; None if there is no id."""
    if value is None:
        return None
    if isinstance(value, bool | list | dict):
        raise ValueError(f"Invalid {name}: it takes a text, and got {type(value).__name__}.")  # noqa: TRY004
    trimmed = str(value).strip()
    if not trimmed:
        raise ValueError(f"Invalid {name}: cannot be empty or whitespace-only. Provide a valid identifier.")
    if any(character.isspace() for character in trimmed):
        raise ValueError(
            f"Invalid {name}: cannot contain whitespace. Provide a valid identifier without spaces."
        )
    return trimmed


def check(
    filters: Mapping[str, Any] | None, others: Mapping[str, Any], method: Callable[..., Any]
) -> dict[str, Any]:
    """Check filters, and trim their ids."""
    beside = {*IDENTITIES} & set(others)
    if beside:
        raise ValueError(
            f"Top-level entity parameters {beside} are not supported in {method.__name__}(). "
            "Use filters={'user_id': '...'} instead."
        )
    refuse_unknown(method.__name__, others, set(signature(method).parameters) - {"others"})
    given = dict(filters or {})
    for name in IDENTITIES:
        if name in given:
            given[name] = identity(given[name], name)
    if all(given.get(name) is None for name in IDENTITIES):
        raise ValueError(f"filters must contain at least one of: user_id, agent_id, run_id. {_EXAMPLE}")
    _check(given)
    return given


def check_numbers(top_k: Any, threshold: Any = None) -> None:
    """Check the limit and the threshold of a search."""
    if threshold is not None:
        if not isinstance(threshold, int | float):
            raise ValueError("threshold must be a valid number")
        if not 0 <= threshold <= 1:
            raise ValueError(f"Invalid threshold: {threshold}. Must be between 0 and 1 (inclusive).")
    if not isinstance(top_k, int) or isinstance(top_k, bool):
        raise ValueError("top_k must be a valid integer")  # noqa: TRY004  as mem0 does
    if top_k < 0:
        raise ValueError(f"Invalid top_k: {top_k}. Must be a non-negative integer.")


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, wanted: bool(value == wanted),
    "ne": lambda value, wanted: bool(value != wanted),
    "gt": lambda value, wanted: bool(value > wanted),
    "gte": lambda value, wanted: bool(value >= wanted),
    "lt": lambda value, wanted: bool(value < wanted),
    "lte": lambda value, wanted: bool(value <= wanted),
    "in": lambda value, wanted: value in wanted,
    "nin": lambda value, wanted: value not in wanted,
    "contains": lambda value, wanted: wanted in value,
    "icontains": lambda value, wanted: str(wanted).casefold() in str(value).casefold(),
}
_LOGIC = ("AND", "OR", "NOT")


def _check(filters: Mapping[str, Any]) -> None:
    for name, wanted in filters.items():
        if name in _LOGIC:
            if not isinstance(wanted, list) or not (wanted or name == "AND"):
                kind = "list" if name == "AND" else "non-empty list"
                raise ValueError(f"{name} operator requires a {kind} of conditions")
            for each in wanted:
                if not isinstance(each, Mapping):
                    sentence = f"{name} operator requires conditions that are dictionaries, and got {each!r}"
                    raise ValueError(sentence)  # noqa: TRY004  as for all filters
                _check(each)
        elif isinstance(wanted, Mapping):
            for operator in wanted:
                if operator not in _OPERATORS:
                    raise ValueError(f"Unsupported metadata filter operator: {operator}")


def fits(payload: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Return whether a memory matches filters; a filter that is None matches all."""
    return all(_fits(payload, name, wanted) for name, wanted in filters.items() if wanted is not None)


def _fits(payload: Mapping[str, Any], name: str, wanted: Any) -> bool:
    if name == "AND":
        return all(fits(payload, each) for each in wanted)
    if name == "OR":
        return any(fits(payload, each) for each in wanted)
    if name == "NOT":
        return not any(fits(payload, each) for each in wanted)
    if isinstance(wanted, Mapping):
        return all(_holds(payload, name, operator, value) for operator, value in wanted.items())
    return name in payload and (wanted == "*" or bool(payload[name] == wanted))


def _holds(payload: Mapping[str, Any], name: str, operator: str, wanted: Any) -> bool:
    if name not in payload:
        return operator in {"ne", "nin"}
    try:
        return _OPERATORS[operator](payload[name], wanted)
    except TypeError:  # values that cannot be compared do not match
        return False
