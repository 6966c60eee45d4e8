"""Checks of options by name: refuse unknown ones and suggest the nearest."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a suggestion of the nearest known word; empty if none is near."""
    import difflib  # noqa: PLC0415 - needed after a mistake only

    plain = {each.lower(): each for each in known}
    found = difflib.get_close_matches(given.lower().replace("-", "_"), plain, n=1)
    return f"; did you mean {plain[found[0]]!r}?" if found else ""


def refuse_unknown(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for an option that a function does not have; suggest the nearest."""
    names = sorted(known)
    for name in given:
        if name not in names:
            raise TypeError(f"{function}() has no option {name!r}{did_you_mean(name, names)}")


def option_names(declared: Any) -> frozenset[str]:
    """Return the keys of a ``TypedDict`` and of its bases."""
    names: frozenset[str] = declared.__required_keys__ | declared.__optional_keys__
    return names


def check_options(declared: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function with ``**options`` refuse unknown options when it is called.

    The known options are the parameters of its signature and the keys of a ``TypedDict``.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        own = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
        known = option_names(declared) | own

        @wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            refuse_unknown(function.__name__, options, known)
            return function(*args, **options)

        return call

    return decorate
