"""Scatter-gather over namespaces: choose the roots, ask their actors in parallel, and merge the hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec
import trio

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import (
    agent_namespace,
    below_root,
    is_below,
    memory_address,
    root_of,
    user_namespace,
)
from greenroom.actors.memories.recall.replies import FailedNamespace
from greenroom.actors.memories.requests.replies import FoundMemory, RootSearchResult
from greenroom.actors.memories.requests.requests import FindMemories
from greenroom.actors.memories.storage.directory import ListNamespaces
from greenroom.runtime import (
    ActorFailedError,
    ActorQuarantinedError,
    Address,
    DeadlineExceededError,
    GreenroomError,
    Message,
    OverloadedError,
    ProcedureContext,
    Refusal,
    StorageFullError,
    StoreDamagedError,
)

R = TypeVar("R")

MOST = 1_000
"""One search asks at most this many roots."""
BATCH = 100
"""After each batch of this many roots, only the best hits are kept."""
AT_ONCE = 64
"""At most this many requests run in parallel, because each actor may have to read its index first."""
OWNER_SECONDS = 10.0
"""The timeout of one actor, in seconds: an actor that hangs must not delay the replies of the others."""
SHARE = 0.8
"""The search may use this share of the caller's time; the rest is for the reply."""

_WHY: tuple[tuple[type[GreenroomError], str], ...] = (
    (ActorFailedError, "it failed at this search; ask again"),
    (ActorQuarantinedError, "it failed too often and is set aside until the operator admits it again"),
    (OverloadedError, "too many requests wait for it; ask again"),
    (DeadlineExceededError, "its time ran out before it was searched"),
    (StorageFullError, "there is no room to write what it has to make anew first"),
    (StoreDamagedError, "a stored record of it is damaged"),
)
_CONTAINED: tuple[type[GreenroomError], ...] = (Refusal, *(kind for kind, _ in _WHY))


class Root(NamedTuple):
    """A namespace root: its name, and the address of its actor."""

    name: str
    address: Address


class Gathered(NamedTuple, Generic[R]):
    """The replies, the namespaces without a reply (in order), and the first error."""

    found: list[R]
    failed: list[FailedNamespace]
    error: GreenroomError | None


def end_of_asking() -> float:
    """Return the time until which actors may reply, on trio's clock."""
    now = trio.current_time()
    return now + SHARE * (trio.current_effective_deadline() - now)


async def ask_each(
    context: ProcedureContext, roots: Sequence[Root], message: Message[R], end: float | None = None
) -> Gathered[R]:
    """Ask the actors of all roots until ``end``; report the failures of single actors.

    Raises:
        GreenroomError: A failure that concerns all actors: the runtime is closed, or the store failed.
    """
    if end is None:
        end = end_of_asking()
    if len(roots) == 1:  # the usual case, and a nursery costs as much as the request
        answers = [await _ask(context, roots[0], message, end)]
    else:
        answers = await _side_by_side(context, roots, message, end)
    found: list[R] = []
    failed: list[FailedNamespace] = []
    first: GreenroomError | None = None
    for root, answer in zip(roots, answers, strict=True):
        if isinstance(answer, GreenroomError):
            first = first or answer
            failed.append(FailedNamespace(namespace=root.name, error=_describe(answer)))
        else:
            found.append(answer)
    return Gathered(found, failed, first)


async def _side_by_side(
    context: ProcedureContext, roots: Sequence[Root], message: Message[R], end: float
) -> list[R | GreenroomError]:
    answers: dict[int, R | GreenroomError] = {}
    of_all: GreenroomError | None = None
    waiting = iter(enumerate(roots))

    async with trio.open_nursery() as nursery:

        async def work() -> None:
            nonlocal of_all
            try:
                for number, root in waiting:
                    answers[number] = await _ask(context, root, message, end)
            except GreenroomError as error:  # the nursery would wrap it in an exception group
                of_all = of_all or error
                nursery.cancel_scope.cancel()

        for _ in range(min(AT_ONCE, len(roots))):
            nursery.start_soon(work)
    if of_all is not None:
        raise of_all
    return [answers[number] for number in range(len(roots))]


async def _ask(context: ProcedureContext, root: Root, message: Message[R], end: float) -> R | GreenroomError:
    began = trio.current_time()
    with trio.move_on_at(min(began + OWNER_SECONDS, end)):
        try:
            return await context.ask(root.address, message)
        except _CONTAINED as error:
            return error
    return auth_errors.timed_out(trio.current_time() - began)


def _describe(error: GreenroomError) -> str:
    if isinstance(error, Refusal):
        return error.sentence
    return next(sentence for kind, sentence in _WHY if isinstance(error, kind))


def merge_hits(found: Sequence[RootSearchResult], boost: float = 0.0) -> list[FoundMemory]:
    """Merge all hits into one order: best first, newest first among equals.

    ``boost`` is the part of quality in the score.
    """
    together = sum(each.rivals for each in found)
    hits = [
        hit if each.rivals == together else _among(hit, together, boost)
        for each in found
        for hit in each.hits
    ]
    hits.sort(key=lambda hit: (-hit.score, -hit.memory.created_at.timestamp(), hit.memory.memory_id))
    return hits


def relevance_among(odds: float, together: float) -> float:
    """Return the relevance of a memory among the best of all namespaces."""
    return odds / (1 + max(odds, together))


def _among(hit: FoundMemory, together: float, boost: float) -> FoundMemory:
    """Return a hit with its relevance and score among the hits of all namespaces."""
    if hit.odds is None:
        return hit
    relevance = relevance_among(hit.odds, together)
    score = (1 - boost) * relevance + boost * (hit.quality or 0.0)
    return msgspec.structs.replace(hit, relevance=relevance, score=score)


def sum_counts(found: Sequence[RootSearchResult]) -> dict[str, int]:
    """Add up the counts of all replies, in the order of filtering."""
    counts: dict[str, int] = {}
    for each in found:
        for name, count in each.counts.items():
            counts[name] = counts.get(name, 0) + count
    return counts


class Roots(NamedTuple):
    """The roots to ask.

    Attributes:
        ordered: The roots; if there are too many, the caller's own and the first others by name.
        left_out: How many more are visible.
    """

    ordered: list[Root]
    left_out: int = 0

    @property
    def partial(self) -> str | None:
        """A sentence about the roots that are left out; None if none are."""
        if not self.left_out:
            return None
        return (
            f"of more namespaces than one search asks the first {len(self.ordered):,} by name were searched; "
            f"{self.left_out:,} others may have more: name a namespace"
        )


async def roots_below(context: ProcedureContext, below: str | None) -> list[Root]:
    """Return all visible roots, in the order of their names.

    The caller's own roots are always among them, because the directory lags behind writes in progress.
    """
    whole = below_root(below)
    if whole is not None and policy.may_write_namespace(context.principal, whole):
        found = {root_of(whole)}
    else:
        found = {*await context.query(ListNamespaces(prefix=below))}
        own = (user_namespace(context.principal), agent_namespace(context.principal))
        found |= {name for name in own if below is None or is_below(name, below) or is_below(below, name)}
    return [Root(name, memory_address(name)) for name in sorted(found)]


async def roots_to_ask(context: ProcedureContext, below: str | None) -> Roots:
    """Return the roots that one search asks."""
    found = await roots_below(context, below)
    if len(found) > MOST:
        own = {user_namespace(context.principal), agent_namespace(context.principal)}
        found.sort(key=lambda root: root.name not in own)
    return Roots(found[:MOST], max(0, len(found) - MOST))


async def search_roots(
    context: ProcedureContext, roots: list[Root], message: FindMemories
) -> Gathered[RootSearchResult]:
    """Search all roots; if there are many, keep only the best hits.

    Raises:
        GreenroomError: As `ask_each`.
    """
    end = end_of_asking()
    gathered = await ask_each(context, roots[:BATCH], message, end)
    for start in range(BATCH, len(roots), BATCH):
        more = await ask_each(context, roots[start : start + BATCH], message, end)
        gathered = Gathered(
            _only_best([*gathered.found, *more.found], message),
            gathered.failed + more.failed,
            gathered.error or more.error,
        )
    return gathered


def _only_best(found: list[RootSearchResult], message: FindMemories) -> list[RootSearchResult]:
    best = merge_hits(found, message.quality_boost)[: message.limit]
    kept = {hit.memory.memory_id for hit in best}
    return [
        msgspec.structs.replace(each, hits=[hit for hit in each.hits if hit.memory.memory_id in kept])
        for each in found
    ]
