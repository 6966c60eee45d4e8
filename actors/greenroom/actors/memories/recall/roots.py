"""Choose the namespace roots that a search asks, best first, and when it may stop."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import msgspec
import trio

from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import (
    agent_namespace,
    below_root,
    is_below,
    memory_address,
    root_of,
    user_namespace,
)
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.memories.recall.scatter_gather import Gathered, Root, ask_each, merge_hits
from greenroom.actors.memories.recall.summary_index import SummaryFollower
from greenroom.actors.memories.requests.keyvalue_requests import SummarizeRoot
from greenroom.actors.memories.requests.replies import MemoryFilters, RootSearchResult
from greenroom.actors.memories.requests.requests import FindMemories
from greenroom.actors.memories.storage import directory
from greenroom.actors.memories.storage.directory import ListNamespaces
from greenroom.actors.search.embedding.vectors import QueryVectors
from greenroom.runtime import (
    ActorQuarantinedError,
    IndexReader,
    OverloadedError,
    Procedure,
    ProcedureContext,
    Slices,
)

MOST = 100
"""The most roots that one search asks. Without more visible ones, it asks all."""
UNKNOWN = 16
"""Roots without a summary that are searched; if more, summaries come first."""
SUMMARIZING = 0.5
"""The part of the caller's own time for making summaries; the rest is for the search itself."""
ROUND = 4
"""The number of roots in a round, after which the hits are compared: each root may have to activate."""
FIRST = 16
"""The most roots in the first round, which has one for each requested hit."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """The roots to ask.

    Attributes:
        roots: Their names, the best first.
        chosen_from: How many roots may match; None if ``roots`` has all visible ones.
        unknown: Roots without a summary.
    """

    roots: list[str]
    chosen_from: int | None = None
    unknown: list[str] = []


class ChooseRoots(Procedure[Chosen], frozen=True, kw_only=True):
    """Choose the roots that a search asks, among those with visible memories; internal.

    Attributes:
        below: As `ListNamespaces.prefix`.
        text: The query, if there is one.
        mode: The mode of the search.
        filters: Its filters.
        vectors: The query's vectors; with them, memories that share no word with the query can match.
    """

    runs = "snapshot"

    below: kinds.Below | None = None
    text: str | None = None
    mode: kinds.SearchMode = "semantic"
    filters: MemoryFilters = MemoryFilters()
    vectors: QueryVectors | None = None

    def run(self, reader: IndexReader) -> Slices[Chosen]:
        """Read the directory if it is short, otherwise the summary index."""
        few = self._list_few(reader)
        if few is not None:
            return Chosen(roots=few)
        overview = yield from reader.cached(SummaryFollower).update(reader)
        yield from import_in_thread("greenroom.actors.memories.recall.root_ranking")
        from greenroom.actors.memories.recall.root_ranking import (  # noqa: PLC0415 - needs numpy, loaded by now
            RootQuery,
            RootRanking,
        )

        query = RootQuery(self.below, self.text, self.mode == "exact", self.filters, self.vectors)
        choice = RootRanking(overview, query, reader.principal)
        if len(choice.visible) <= MOST:
            return Chosen(roots=choice.visible)
        found = yield from choice.rank()
        return Chosen(
            roots=[overview.name(number) for number in found[:MOST]],
            chosen_from=len(found),
            unknown=choice.unknown,
        )

    def _list_few(self, reader: IndexReader) -> list[str] | None:
        """Return all visible roots; None if there are too many rows to read."""
        root = None if self.below is None else names.root_of(self.below)
        found: list[str] = []
        prefix = names.tag_of_root(root) if root is not None and ":" in root else b""
        for looked, row in enumerate(directory.rows(reader, prefix)):
            if looked == MOST:
                return None
            is_below = root is None or names.is_below(row.value.root, root)
            if is_below and directory.may_have_something(reader.principal, row.value):
                found.append(row.value.root)
        return found


class Roots(NamedTuple):
    """The roots to ask.

    Attributes:
        ordered: The roots; the best first if they were chosen.
        chosen_from: How many may match besides those that are searched anyway; None if all visible ones are
            here.
        anyway: How many of the first are searched in any case.
        unknown: How many others have no summary.
    """

    ordered: list[Root]
    chosen_from: int | None = None
    anyway: int = 0
    unknown: int = 0


async def roots_below(context: ProcedureContext, below: str | None) -> list[Root]:
    """Return all visible roots, in the order of their names."""
    found = _own(context, below)
    if found is None:
        found = {*await context.query(ListNamespaces(prefix=below)), *_also(context, below)}
    return _in_order(found)


async def roots_for(context: ProcedureContext, wanted: ChooseRoots) -> Roots:
    """Return the roots to search: all, or the best of too many."""
    found = _own(context, wanted.below)
    if found is not None:
        return Roots(_in_order(found))
    chosen = await context.query(wanted)
    to_summarize = chosen.unknown
    if len(chosen.unknown) > UNKNOWN:
        to_summarize = []  # the next search repeats what fails here
        unknown = [Root(name, memory_address(name)) for name in chosen.unknown]
        await _summarize(context, unknown)
        chosen = await context.query(wanted)
    also = _also(context, wanted.below)
    if chosen.chosen_from is None:
        return Roots(_in_order({*chosen.roots, *also}))
    for name in to_summarize:
        with suppress(OverloadedError, ActorQuarantinedError):  # the next search repeats it
            context.tell(memory_address(name), SummarizeRoot())
    return _to_roots(chosen, chosen.chosen_from, also)


async def _summarize(context: ProcedureContext, unknown: list[Root]) -> None:
    """Have roots write their summaries, as far as time and room allow."""
    now = trio.current_time()
    with trio.move_on_at(now + SUMMARIZING * (trio.current_effective_deadline() - now)):
        await ask_each(context, unknown, SummarizeRoot())


def _to_roots(chosen: Chosen, count: int, also: list[str]) -> Roots:
    unknown = chosen.unknown[:UNKNOWN]
    anyway = dict.fromkeys([*also, *unknown])
    ordered = dict.fromkeys([*anyway, *chosen.roots])
    return Roots(
        [Root(name, memory_address(name)) for name in ordered],
        count - sum(name in anyway for name in chosen.roots),
        len(anyway),
        len(chosen.unknown) - len(unknown),
    )


def _own(context: ProcedureContext, below: str | None) -> set[str] | None:
    """Return the caller's own root, if the search is of that one alone.

    It is always searched, because the directory lags behind writes in progress.
    """
    whole = below_root(below)
    if whole is not None and policy.may_write_namespace(context.principal, whole):
        return {root_of(whole)}
    return None


def _also(context: ProcedureContext, below: str | None) -> list[str]:
    """Return the caller's own roots, which are always searched for the same reason."""
    own = (user_namespace(context.principal), agent_namespace(context.principal))
    return [name for name in own if below is None or is_below(name, below) or is_below(below, name)]


def _in_order(found: set[str]) -> list[Root]:
    return [Root(name, memory_address(name)) for name in sorted(found)]


class Answers(NamedTuple):
    """The replies of the searched roots.

    Attributes:
        answers: The replies.
        searched: The number of searched roots.
        is_minimum: Whether other roots may match.
        partial: A sentence about other roots that may have better memories; None if there are none.
    """

    answers: Gathered[RootSearchResult]
    searched: int
    is_minimum: bool = False
    partial: str | None = None


async def ask_in_rounds(context: ProcedureContext, roots: Roots, message: FindMemories) -> Answers:
    """Ask all roots, or rounds of them until the first hits stay.

    Raises:
        GreenroomError: As `ask_each`.
    """
    if roots.chosen_from is None:
        return Answers(await ask_each(context, roots.ordered, message), len(roots.ordered))
    answers: Gathered[RootSearchResult] = Gathered([], [], None)
    count, is_full, is_settled = 0, False, False
    first: list[str] = []
    half = (message.limit + 1) // 2
    while count < len(roots.ordered) and not is_settled:
        end = count + ROUND if count else roots.anyway + max(ROUND, min(message.limit, FIRST))
        this_round = roots.ordered[count:end]
        more = await ask_each(context, this_round, message)
        answers = Gathered(
            answers.found + more.found, answers.failed + more.failed, answers.error or more.error
        )
        hits = merge_hits(answers.found, message.quality_boost)[: message.limit]
        best = [hit.memory.memory_id for hit in hits[:half]]
        is_settled = is_full and best == first
        is_full = len(hits) == message.limit
        count, first = count + len(this_round), best
    left = roots.chosen_from - (count - roots.anyway)
    return Answers(
        answers,
        count,
        is_minimum=left > 0 or roots.unknown > 0,
        partial=_describe_missing(roots, count, left if not is_settled else 0),
    )


def _describe_missing(roots: Roots, count: int, left: int) -> str | None:
    if left <= 0 and not roots.unknown:
        return None
    return (
        f"of more namespaces than one search asks the {count} that fit best were searched; "
        f"{max(0, left) + roots.unknown} others may have more: name a namespace, or ask with rarer words"
    )
