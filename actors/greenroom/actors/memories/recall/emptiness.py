"""Explain an empty reply: the filter that leaves nothing, and similar values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.core.auth.namespaces import below_root, user_namespace
from greenroom.actors.core.replies.empty_reasons import EmptyBecause, explain_empty, explain_no_match
from greenroom.actors.core.replies.replies import ListReply
from greenroom.actors.memories.recall.scatter_gather import MOST, Root, ask_each, roots_below, sum_counts
from greenroom.actors.memories.recall.search_all_roots import SearchResult
from greenroom.actors.memories.requests.replies import MemoryFilters, RootSearchResult
from greenroom.actors.memories.requests.requests import FindMemories, ListMemories, MemoryStats
from greenroom.runtime import Procedure, ProcedureContext

R = TypeVar("R", bound=ListReply)

MOST_ROOTS: Final = 16
"""At most this many roots are searched for values that are spelled nearly like a filter's value."""
SECONDS: Final = 0.5
"""The time for this search, in seconds."""
MOST_LISTED: Final = 200
_MEMORIES: Final = "memories"
_PARAMETERS: Final = {
    "time": ("time_expr", "after", "before", "max_age_days"),
    "key_prefix": ("key_prefix", "session_id"),
    "least": ("min_relevance", "min_score"),
}
"""The parameters of a request that belong to a count, if they have other names than the count."""
_COUNTED: Final = {"namespace": "by_namespace", "tags": "by_tag", "author": "by_author"}
"""The member of the statistics that has the values of a filter."""
_LISTED: Final = {
    "key": "key",
    "key_prefix": "key",
    "conversation_id": "conversation_id",
    "session_id": "session_id",
}
"""The member of a memory that has a filter's values, for filters that the statistics lack."""
_NARROWING: Final = ("tags", "kind", "scope", "author", "conversation_id", "time", "min_importance")


def seconds_for(most: float) -> float:
    """Return the time to look for a reason: at most half of the remaining time."""
    return min(most, max(0.0, (trio.current_effective_deadline() - trio.current_time()) / 2))


async def with_reason(context: ProcedureContext, request: Any, found: SearchResult, answer: R) -> R:
    """Return the reply to a search, with the reason if it is empty."""
    if not answer.lacks_reason:
        return answer
    return msgspec.structs.replace(answer, empty_because=await _why_none_found(context, request, found))


async def _why_none_found(context: ProcedureContext, request: Any, found: SearchResult) -> EmptyBecause:
    scopes = context.principal.scopes
    if found.hits:
        return explain_empty(scopes, "over_budget", what=_MEMORIES)
    if found.damaged is not UNSET:
        return explain_empty(scopes, "damaged", why=found.damaged.sentence)
    if found.partial is not None or found.failed:
        why = found.partial or "not every namespace answered, as failed says"
        return explain_empty(scopes, "cut", why=why)
    if found.is_nothing and not _parameters(request, "least"):
        if context.sidecar is None or context.sidecar.is_off:
            return explain_empty(
                scopes, "no_embedder", what=_MEMORIES, why=found.absence or "no embedder runs"
            )
        return explain_empty(scopes, "nothing_relevant", what=_MEMORIES)
    return await _why_none_left(context, request, found.found)


class WhyNoneListed(Procedure[EmptyBecause], frozen=True, kw_only=True):
    """Find out why a listing of memories is empty; internal."""

    request: ListMemories

    async def run(self, context: ProcedureContext) -> EmptyBecause:
        """Count the memories after each filter."""
        filters = self.request.filters or MemoryFilters()
        below = self.request.namespace or user_namespace(context.principal)
        if filters.namespace is None:
            filters = msgspec.structs.replace(filters, namespace=below_root(below))
        counted = FindMemories(filters=filters, limit=1, use=False)
        answers = await ask_each(context, await roots_below(context, below), counted)
        return await _why_none_left(context, self.request, answers.found)


async def _why_none_left(
    context: ProcedureContext, request: Any, found: Sequence[RootSearchResult]
) -> EmptyBecause:
    """Return why nothing is left: which filter excludes all visible memories, if there are any."""
    scopes = context.principal.scopes
    # The reply must not reveal a root that has nothing for the caller.
    counts = sum_counts([each for each in found if each.counts.get("visible")])
    roots = await roots_below(context, None)
    are_many = len(roots) > MOST  # then the search did not ask all of them
    if counts:
        filters = next((_parameters(request, name) for name, count in counts.items() if not count), {})
        filters = filters or _parameters(request, "least")
        if not filters:
            return explain_empty(scopes, "no_such_text", what=_MEMORIES)
    else:
        filters = _parameters(request, "key") or _parameters(request, "namespace")
        if not filters and not are_many:
            return explain_empty(scopes, "nothing_stored", what=_MEMORIES)
        for name in () if filters else _NARROWING:
            filters |= _parameters(request, name)
    known: dict[str, set[str]] = {}
    if not are_many:
        with trio.move_on_after(seconds_for(SECONDS)):
            known = await _visible_values(context, roots, filters, are_all=not counts)
        if not counts and not known.get("namespace"):
            return explain_empty(scopes, "nothing_stored", what=_MEMORIES)
    if not filters:
        return explain_empty(scopes, "nothing_relevant", what=_MEMORIES)
    return explain_no_match(
        scopes, _MEMORIES, filters, lambda name: known.get(name.rpartition(".")[2], set())
    )


def _parameters(request: Any, name: str) -> dict[str, Any]:
    """Return the parameters of a request that belong to one count, by name."""
    given: dict[str, Any] = {}
    for each in _PARAMETERS.get(name, (name,)):
        for within, of in (("", request), ("filters.", getattr(request, "filters", None))):
            value = getattr(of, each, None)
            if value:
                given[within + each] = value
    return given


async def _visible_values(
    context: ProcedureContext, roots: Sequence[Root], filters: Mapping[str, Any], *, are_all: bool
) -> dict[str, set[str]]:
    """Map filters to visible values of their fields; with ``are_all``, include all counted fields."""
    names = {each.rpartition(".")[2] for each in filters}
    roots = roots[:MOST_ROOTS]
    known: dict[str, set[str]] = {}
    if are_all or names & _COUNTED.keys():
        counted = await ask_each(context, roots, MemoryStats())
        known = {
            name: {value for each in counted.found for value in getattr(each, member)}
            for name, member in _COUNTED.items()
        }
    uncounted = {name: _LISTED[name] for name in names & _LISTED.keys()}
    if uncounted:
        listed = await ask_each(context, roots, ListMemories(limit=MOST_LISTED))
        memories = [memory for each in listed.found for memory in each.memories]
        known |= {
            name: {value for memory in memories if (value := getattr(memory, member))}
            for name, member in uncounted.items()
        }
    return known
