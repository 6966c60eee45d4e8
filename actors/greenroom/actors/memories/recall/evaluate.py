"""Evaluation of search quality on a user's own memories: recall, hits, ranks, and what a score is worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import trio
from msgspec import Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.unicode_forms import composed
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.memory_types import SearchMode
from greenroom.actors.core.validation.parse import parse_request
from greenroom.actors.core.validation.strict_json import check_json
from greenroom.actors.memories.recall import replies
from greenroom.actors.memories.recall.key_resolution import PlacesOfKey
from greenroom.actors.memories.recall.memory_search import MemorySearch
from greenroom.actors.memories.recall.search import find, reply
from greenroom.actors.recall.query_times import warmed
from greenroom.actors.recall.reliability import Scored
from greenroom.actors.search.embedding.embedding_service import GetEmbedding
from greenroom.runtime import ProcedureContext, RuntimeClient

DEPTHS: Final = (1, 5, 10, 20, 50)
RANKED: Final = 10
"""How many of the best count for hits and nDCG."""
NEWER: Final = "newer"
EMPTY: Final = "empty"
MAX_QUERY: Final = 10_000
LOOK_SECONDS: Final = 0.1


class TrySearch(MemorySearch, frozen=True, kw_only=True):
    """A `MemorySearch` that counts for nothing: what it finds is not used more often by it."""

    async def run(self, context: ProcedureContext) -> replies.MemoriesFound:
        """Search, and keep no record of it."""
        began = trio.current_time()
        if self.time_expr is not None:
            await warmed()
        search = self.asked(self.window(context.now))
        return reply(await find(context, search), search, began, max_tokens=None, debug=None)


class SearchFilters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a search, as `MemorySearch` takes them."""

    time_expr: kinds.TimeWords | None = None
    after: kinds.After | None = None
    before: kinds.Before | None = None
    timezone: kinds.Zone | None = None
    tags: kinds.Tags | None = None
    tag_match: kinds.TagMatch = "any"
    kind: kinds.MemoryKind | None = None
    scope: kinds.Scope | None = None
    author: kinds.Author | None = None
    conversation_id: kinds.ConversationId | None = None


class JudgedQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a file of queries.

    Attributes:
        query: What is searched for; nothing in a line of a template that nobody has filled in.
        relevant: The keys, or the ids, of the memories that it should find; none where nothing has an answer.
        older: Those of memories that once were the answer, and that it should come before.
        namespace: Where; everything that the caller may see unless given.
        group: Under which name its figures are summed up besides.
        about: What a relevant memory says, for whoever writes the query. It is not read.
    """

    query: Annotated[str, Meta(max_length=MAX_QUERY)]
    relevant: list[str]
    older: list[str] = []
    namespace: kinds.Below | None = None
    filters: SearchFilters = SearchFilters()
    group: str | None = None
    about: str | None = None


class Judged(NamedTuple):
    """The result and figures of one judged query.

    Attributes:
        metrics: Those of `measure`.
        scored: The first memories that were found.
        missed: What is named in the query and was not found.
    """

    group: str | None
    metrics: dict[str, float]
    milliseconds: float
    scored: list[Scored]
    missed: set[str]


def read_query(raw: bytes) -> JudgedQuery:
    """Return the query that is a line of a file.

    Raises:
        Refusal: it is none; the sentence names the field.
    """
    check_json(raw)
    query = parse_request(JudgedQuery, raw)
    if query.query and not query.query.strip():
        raise auth_errors.invalid("query", "query: it is blank")
    return query


def measure(
    ranked: Sequence[str],
    relevant: Sequence[str],
    depths: Sequence[int] = DEPTHS,
    *,
    older: Sequence[str] = (),
) -> dict[str, float]:
    """Return the figures of one answer.

    ``R@k`` is the share of the relevant memories among the first k, ``hit@10`` whether any is among the
    first 10, ``MRR`` one through the rank of the first, ``nDCG@10`` the gain of the first 10, each
    discounted by its rank, as a share of the best possible one. ``newer`` is whether a relevant one comes
    before all older ones, if there are such. Where nothing is relevant there is only ``empty``: whether
    nothing was found.
    """
    if not relevant:
        return {EMPTY: float(not ranked)}
    wanted = set(relevant)
    found = list(dict.fromkeys(ranked))
    if older:
        first = next((each for each in found if each in wanted or each in older), None)
        return {**measure(ranked, relevant, depths), NEWER: float(first in wanted)}
    figures = {f"R@{depth}": len(wanted.intersection(found[:depth])) / len(wanted) for depth in depths}
    ranks = [rank for rank, each in enumerate(found, start=1) if each in wanted]
    best = [rank for rank in ranks if rank <= RANKED]
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(RANKED, len(wanted)) + 1))
    return {
        **figures,
        f"hit@{RANKED}": float(bool(best)),
        "MRR": 1 / ranks[0] if ranks else 0.0,
        f"nDCG@{RANKED}": sum(1 / math.log2(rank + 1) for rank in best) / ideal,
    }


async def ready(runtime: RuntimeClient, principal: Principal) -> str:
    """Wait until searches go by meaning, or cannot; return which embedder there is, in words."""
    await runtime.query(TrySearch(query="?", limit=1), principal=principal)  # wakes it
    while True:
        found = await runtime.query(GetEmbedding(), principal=principal)
        if found.state == "off":
            return "by words alone: the embedder is none"
        if found.state == "failing":
            return f"by words alone: {found.trouble}"
        if found.state == "ready" and not found.actors_waiting:
            return f"with {found.space}"
        await trio.sleep(LOOK_SECONDS)


async def judged(
    runtime: RuntimeClient,
    principal: Principal,
    query: JudgedQuery,
    mode: SearchMode,
    limit: int,
    depths: Sequence[int],
) -> Judged:
    """Search for one query and measure the answer.

    Raises:
        GreenroomError: as `RuntimeClient.query`.
    """
    filters: dict[str, Any] = msgspec.structs.asdict(query.filters)
    asked = TrySearch(query=query.query, namespace=query.namespace, mode=mode, limit=limit, **filters)
    began = trio.current_time()
    answer: replies.MemoriesFound = await runtime.query(asked, principal=principal)
    taken = (trio.current_time() - began) * 1_000
    named = {composed(name): name for name in (*query.relevant, *query.older)}
    ranked = [
        each.memory_id if each.memory_id in named else named.get(composed(each.key), each.key)
        for each in answer.memories
    ]
    figures = measure(ranked, query.relevant, depths, older=query.older)
    best = zip(answer.memories[:RANKED], ranked, strict=False)
    scored = [Scored(each.relevance, name in query.relevant) for each, name in best]
    return Judged(query.group, figures, taken, scored, set(named.values()).difference(ranked))


async def unknown(runtime: RuntimeClient, principal: Principal, names: Iterable[str]) -> list[str]:
    """Return those that are the key of no memory that the caller may see.

    Raises:
        GreenroomError: as `RuntimeClient.query`.
    """
    missing = []
    for name in names:
        found = await runtime.query(PlacesOfKey(key=name), principal=principal)
        if not found.places:
            missing.append(name)
    return missing
