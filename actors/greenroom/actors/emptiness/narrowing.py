"""Which filters of a listing leave nothing: found by asking again with fewer of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.actors.auth.principal import Principal
from greenroom.actors.base.emptiness import EmptyBecause, because, did_you_mean, quoted

_PAGED: Final = ("cursor", "offset")
"""Parameters that say where in a listing a page begins."""


class Asker(NamedTuple):
    """In whose name is looked why an answer is empty.

    Attributes:
        principal: Who asks: nothing is said that it could not ask for itself.
        ask: Returns the answer to a request of its own; it is counted nowhere.
        learns_workflows: Whether its calls are recorded as steps of work.
    """

    principal: Principal
    ask: Callable[[Any], Awaitable[Any]]
    learns_workflows: bool = False

    def because(self, code: str, **said: object) -> EmptyBecause:
        """Return a reason, with advice that the caller can follow."""
        return because(self.principal.scopes, code, **said)


class Filter(NamedTuple):
    """A parameter that narrows a listing.

    Attributes:
        values: Returns what things in an answer have of what it compares; None where no value is misspelled.
        widest: Its value that leaves everything.
    """

    values: Callable[[Any], Iterable[str | None]] | None = None
    widest: Any = None


class Listing(NamedTuple):
    """A listing whose request can be asked again with other parameters.

    Attributes:
        what: What it lists, as sentences call it.
        filters: What narrows it, by parameter; ``outer.inner`` is a member of an object.
        wide: Parameters with which much is listed at once.
    """

    what: str
    filters: Mapping[str, Filter] = {}
    wide: Mapping[str, Any] = {"limit": 200, "max_tokens": None}

    async def explain(self, asker: Asker, request: Any, reply: Any) -> EmptyBecause:
        """Return why an answer of it is empty."""
        if getattr(reply, "left_out", None):
            return asker.because("over_budget", what=self.what)
        begins = [name for name in _PAGED if getattr(request, name, None)]
        if begins:
            return asker.because("no_more", filters=begins[0])
        given = {name: value_of(request, name) for name in self.filters if self._narrows(request, name)}
        wide = {name: value for name, value in self.wide.items() if name in request.__struct_fields__}
        whole = _with(
            msgspec.structs.replace(request, **wide), {name: self.filters[name].widest for name in given}
        )
        found = await asker.ask(whole) if given else reply
        if found.lacks_reason:
            return asker.because("nothing_stored", what=self.what)
        alone = {
            name: value
            for name, value in given.items()
            if len(given) == 1 or (await asker.ask(_with(whole, {name: value}))).lacks_reason
        }
        return self.no_match(asker, alone or given, found)

    def no_match(self, asker: Asker, filters: Mapping[str, Any], found: Any) -> EmptyBecause:
        """Return that filters leave nothing of what an answer has."""
        near = ""
        for name, value in filters.items():
            values = self.filters[name].values
            if values is not None:
                near = near or did_you_mean(value, {each for each in values(found) if each})
        said = " and ".join(quoted(name, value) for name, value in filters.items())
        return asker.because("filter_matches_nothing", what=self.what, filters=said, near=near)

    def _narrows(self, request: Any, name: str) -> bool:
        """Return whether a filter may leave something out."""
        return value_of(request, name) not in (self.filters[name].widest, [])


def value_of(request: Any, name: str) -> Any:
    """Return the value of a parameter, or of a member of one."""
    outer, _, inner = name.partition(".")
    value = getattr(request, outer)
    return getattr(value, inner, None) if inner else value


def _with(request: Any, values: Mapping[str, Any]) -> Any:
    """Return a request with other values of parameters, or of members of them."""
    for name, value in values.items():
        outer, _, inner = name.partition(".")
        if inner:
            value = msgspec.structs.replace(getattr(request, outer), **{inner: value})  # noqa: PLW2901 (as a part)
        request = msgspec.structs.replace(request, **{outer: value})
    return request
