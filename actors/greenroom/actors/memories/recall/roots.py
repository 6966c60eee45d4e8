"""Which owners a search asks, the best first, and on as long as it changes what comes first."""

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
from greenroom.actors.core.base.threads import imported
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.memory_types import QueryVectors
from greenroom.actors.memories.recall.scatter_gather import Gathered, Root, ask_each, merged
from greenroom.actors.memories.recall.summary_index import SummaryFollower
from greenroom.actors.memories.requests.replies import MemoryFilters, RootSearchResult
from greenroom.actors.memories.requests.requests import FindMemories
from greenroom.actors.memories.storage import directory
from greenroom.actors.memories.storage.directory import ListNamespaces, NamespaceRow
from greenroom.actors.schemas.keyvalue import SummarizeRoot
from greenroom.runtime import (
    ActorQuarantinedError,
    IndexReader,
    OverloadedError,
    ProcedureContext,
    Query,
    Slices,
)

MOST = 100
"""Roots that one search asks at most. Where there are no more, all are asked."""
UNKNOWN = 16
"""Roots that are asked although it is not known what there is; of more of them that is made known first."""
SUMMARIZING = 0.5
"""Of the caller's own time: what remains is for the search itself."""
ROUND = 4
"""How many of those that were chosen are asked before it is looked what came of it: each may have to wake."""
FIRST = 16
"""How many at most in the first round; as many as there are to be hits, if these are fewer."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to ask.

    Attributes:
        roots: Their names, those that fit best first.
        chosen_from: How many roots have something that can match; None: these are all that may be seen.
        unknown: Roots of which it is not known what there is.
    """

    roots: list[str]
    chosen_from: int | None = None
    unknown: list[str] = []


class ChooseRoots(Query[Chosen], frozen=True, kw_only=True):
    """Choose the roots that a search asks, among those below which its caller may see memories; internal.

    Attributes:
        below: As `ListNamespaces.prefix`.
        text: The query, if there is one.
        mode: Of the search.
        filters: What narrows it.
        vectors: The query as the embedder sees it; with it, what shares no word with the query can match.
    """

    below: kinds.Below | None = None
    text: str | None = None
    mode: kinds.SearchMode = "semantic"
    filters: MemoryFilters = MemoryFilters()
    vectors: QueryVectors | None = None

    def run(self, reader: IndexReader) -> Slices[Chosen]:
        """Read the directory if it is short, and look into the overview otherwise."""
        few = self._few(reader)
        if few is not None:
            return Chosen(roots=few)
        overview = yield from reader.cached(SummaryFollower).updated(reader)
        yield from imported("greenroom.actors.memories.recall.root_ranking")
        from greenroom.actors.memories.recall.root_ranking import RootQuery, RootRanking

        query = RootQuery(self.below, self.text, self.mode == "exact", self.filters, self.vectors)
        choice = RootRanking(overview, query, reader.principal, reader.should_yield)
        if len(choice.visible) <= MOST:
            return Chosen(roots=choice.visible)
        found = yield from choice.made()
        return Chosen(
            roots=[overview.name(number) for number in found[:MOST]],
            chosen_from=len(found),
            unknown=choice.unknown,
        )

    def _few(self, reader: IndexReader) -> list[str] | None:
        """Return all visible roots, or None if there are too many rows to look at each."""
        root = None if self.below is None else names.root_of(self.below)
        found: list[str] = []
        prefix = names.tag_of_root(root) if root is not None and ":" in root else b""
        for looked, row in enumerate(reader.rows(directory.INDEX, NamespaceRow, prefix=prefix)):
            if looked == MOST:
                return None
            is_below = root is None or names.is_below(row.value.root, root)
            if is_below and directory.may_have_something(reader.principal, row.value):
                found.append(row.value.root)
        return found


class Roots(NamedTuple):
    """Whom to ask.

    Attributes:
        ordered: The roots; where they were chosen those first that fit best.
        chosen_from: How many can match beside those asked anyway; None: all that may be seen are here.
        anyway: How many of the first are asked whatever they have.
        unknown: How many others may have something of which nothing is known.
    """

    ordered: list[Root]
    chosen_from: int | None = None
    anyway: int = 0
    unknown: int = 0


async def roots_below(context: ProcedureContext, below: str | None) -> list[Root]:
    """Return all roots, in the order of their names."""
    found = _own(context, below)
    if found is None:
        found = {*await context.query(ListNamespaces(prefix=below)), *_also(context, below)}
    return _in_order(found)


async def roots_for(context: ProcedureContext, wanted: ChooseRoots) -> Roots:
    """Return the roots to ask for what is wanted: all of them, or the best if there are too many."""
    found = _own(context, wanted.below)
    if found is not None:
        return Roots(_in_order(found))
    chosen = await context.query(wanted)
    told = chosen.unknown
    if len(chosen.unknown) > UNKNOWN:
        told = []  # of what fails now the next search tells again
        unknown = [Root(name, memory_address(name)) for name in chosen.unknown]
        await _summarized(context, unknown)
        chosen = await context.query(wanted)
    also = _also(context, wanted.below)
    if chosen.chosen_from is None:
        return Roots(_in_order({*chosen.roots, *also}))
    for name in told:
        with suppress(OverloadedError, ActorQuarantinedError):  # likewise
            context.tell(memory_address(name), SummarizeRoot())
    return _chosen(chosen, chosen.chosen_from, also)


async def _summarized(context: ProcedureContext, unknown: list[Root]) -> None:
    """Have it made known what there is, as far as there is time and room; the search tells of the rest."""
    now = trio.current_time()
    with trio.move_on_at(now + SUMMARIZING * (trio.current_effective_deadline() - now)):
        await ask_each(context, unknown, SummarizeRoot())


def _chosen(chosen: Chosen, count: int, also: list[str]) -> Roots:
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
    """Return the one root that the caller writes, if it is all that is searched.

    It is asked in any case: the directory is behind what is being written.
    """
    whole = below_root(below)
    if whole is not None and policy.may_write_namespace(context.principal, whole):
        return {root_of(whole)}
    return None


def _also(context: ProcedureContext, below: str | None) -> list[str]:
    """Return the caller's own roots, which are asked in any case, likewise."""
    own = (user_namespace(context.principal), agent_namespace(context.principal))
    return [name for name in own if below is None or is_below(name, below) or is_below(below, name)]


def _in_order(found: set[str]) -> list[Root]:
    return [Root(name, memory_address(name)) for name in sorted(found)]


class Answered(NamedTuple):
    """What the owners that were asked said.

    Attributes:
        answers: Theirs.
        asked: How many were asked.
        is_minimum: Whether others may have something that matches.
        partial: What is to be said of others that might have had better; None: nothing.
    """

    answers: Gathered[RootSearchResult]
    asked: int
    is_minimum: bool = False
    partial: str | None = None


async def ask_in_rounds(context: ProcedureContext, roots: Roots, message: FindMemories) -> Answered:
    """Ask all owners; those that were chosen until a full answer keeps its first half through a round.

    Raises:
        GreenroomError: as `ask_each`.
    """
    if roots.chosen_from is None:
        return Answered(await ask_each(context, roots.ordered, message), len(roots.ordered))
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
        hits = merged(answers.found, message.quality_boost)[: message.limit]
        best = [hit.memory.memory_id for hit in hits[:half]]
        is_settled = is_full and best == first
        is_full = len(hits) == message.limit
        count, first = count + len(this_round), best
    left = roots.chosen_from - (count - roots.anyway)
    return Answered(
        answers,
        count,
        is_minimum=left > 0 or roots.unknown > 0,
        partial=_what_is_missing(roots, count, left if not is_settled else 0),
    )


def _what_is_missing(roots: Roots, asked: int, left: int) -> str | None:
    if left <= 0 and not roots.unknown:
        return None
    return (
        f"of more namespaces than one search asks the {asked} that fit best were searched; "
        f"{max(0, left) + roots.unknown} others may have more: name a namespace, or ask with rarer words"
    )
