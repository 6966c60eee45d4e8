"""Find the filters that exclude every result, by repeating the search with fewer filters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.empty_reasons import EmptyBecause, explain_empty, explain_no_match

Values = Callable[[Any], Iterable[str | None]]

_PAGED: Final = ("cursor", "offset")
"""Parameters for the position of a page in a listing."""
_WIDE: Final = {"limit": 200, "max_tokens": None}


class Asker(NamedTuple):
    """The identity for which a reason is found.

    Attributes:
        principal: The caller; a reason reveals only data that the caller could see itself.
        ask: Sends a request of our own and returns its answer; it is not counted.
    """

    principal: Principal
    ask: Callable[[Any], Awaitable[Any]]
    learns_workflows: bool = False

    def because(self, code: str, **parameters: object) -> EmptyBecause:
        """Return a reason, with advice that the caller can follow."""
        return explain_empty(self.principal.scopes, code, **parameters)


class Filter(NamedTuple):
    """A parameter that narrows a search.

    Attributes:
        values: Returns the values in an answer that the filter compares; None if they cannot be misspelt.
        widest: The value that excludes nothing.
    """

    values: Values | None = None
    widest: Any = None


Why = Callable[[Asker, Any, Any], Awaitable[EmptyBecause | None]]
"""Returns why an answer to a request is empty, or None if it finds no reason."""


class Explanation(NamedTuple):
    """How the reason for an empty answer is found.

    Attributes:
        what: The searched or listed items, as sentences name them.
        filters: The narrowing parameters; ``outer.inner`` is a member of an object.
        first: The check before the filters.
        last: The check after the filters. If no check finds a reason, nothing is stored.
        wide: Parameters for a large page.
    """

    what: str
    filters: Mapping[str, Filter] = {}
    first: Why | None = None
    last: Why | None = None
    wide: Mapping[str, Any] = _WIDE

    async def explain(self, asker: Asker, request: Any, reply: Any) -> EmptyBecause:
        """Return why an answer is empty."""
        if getattr(reply, "left_out", None):
            return asker.because("over_budget", what=self.what)
        if getattr(reply, "next_cursor", None):
            return asker.because("goes_on", what=self.what)
        begins = [name for name in _PAGED if getattr(request, name, None)]
        if begins:
            return asker.because("no_more", filters=begins[0])
        found = self.first and await self.first(asker, request, reply)
        found = found or await self._no_match(asker, request)
        found = found or (self.last and await self.last(asker, request, reply))
        return found or asker.because("nothing_stored", what=self.what)

    async def _no_match(self, asker: Asker, request: Any) -> EmptyBecause | None:
        """Return the filters that exclude everything, if there are results without them."""
        given = {
            name: value
            for name, filter_ in self.filters.items()
            if (value := value_of(request, name)) not in (filter_.widest, [])
        }
        if not given:
            return None
        wide = {name: value for name, value in self.wide.items() if name in request.__struct_fields__}
        whole = _with(request, wide | {name: self.filters[name].widest for name in given})
        found = await asker.ask(whole)
        if found.lacks_reason:
            return None
        alone = {
            name: value
            for name, value in given.items()
            if len(given) == 1 or (await asker.ask(_with(whole, {name: value}))).lacks_reason
        }
        return explain_no_match(
            asker.principal.scopes, self.what, alone or given, partial(self._read_values, found)
        )

    def _read_values(self, found: Any, name: str) -> set[str]:
        """Return the values in an answer that a filter compares."""
        values = self.filters[name].values
        return set() if values is None else {each for each in values(found) if each}


def value_of(request: Any, name: str) -> Any:
    """Return the value of a parameter, or of a parameter's member."""
    outer, _, inner = name.partition(".")
    value = getattr(request, outer)
    return getattr(value, inner, None) if inner else value


def _with(request: Any, values: Mapping[str, Any]) -> Any:
    """Return a request with other values for parameters or their members."""
    for name, value in values.items():
        outer, _, inner = name.partition(".")
        new = msgspec.structs.replace(getattr(request, outer), **{inner: value}) if inner else value
        request = msgspec.structs.replace(request, **{outer: new})
    return request
