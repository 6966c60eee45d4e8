"""Evaluation of search quality on a user's own memories: recall, hits, ranks, reliability of scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import trio
from msgspec import Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.memory_types import SearchMode
from greenroom.actors.core.validation.parse import parse_request
from greenroom.actors.core.validation.strict_json import check_json
from greenroom.actors.memories.recall import replies
from greenroom.actors.memories.recall.key_resolution import PlacesOfKey
from greenroom.actors.memories.recall.query import load_time_words
from greenroom.actors.memories.recall.search_all_roots import find, reply
from greenroom.actors.memories.recall.search_requests import MemorySearch
from greenroom.actors.search.embedding.embedding_service import GetEmbedding
from greenroom.runtime import ProcedureContext, RuntimeClient

DEPTHS: Final = (1, 5, 10, 20, 50)
RANKED: Final = 10
"""The number of best results that count for hits and nDCG."""
NEWER: Final = "newer"
EMPTY: Final = "empty"
MAX_QUERY: Final = 10_000
LOOK_SECONDS: Final = 0.1
TENTHS: Final = 10


class TrySearch(MemorySearch, frozen=True, kw_only=True):
    """A `MemorySearch` that leaves no trace: it does not count its results as used."""

    async def run(self, context: ProcedureContext) -> replies.MemoriesFound:
        """Search, and keep no record of it."""
        began = trio.current_time()
        if self.time_expr is not None:
            await load_time_words()
        search = self.to_spec(self.window(context.now))
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
        query: The query; empty in a line of a template that is not filled in yet.
        relevant: The keys or ids of the memories that it should find; none if no memory is an answer.
        older: The keys or ids of memories that once were the answer, and should come later.
        group: The name of a group for which figures are summed up as well.
        about: What a relevant memory says, for the author of the query; it is not read.
    """

    query: Annotated[str, Meta(max_length=MAX_QUERY)]
    relevant: list[str]
    older: list[str] = []
    namespace: kinds.Below | None = None
    filters: SearchFilters = SearchFilters()
    group: str | None = None
    about: str | None = None


class Scored(NamedTuple):
    """The score of a result, 0 to 1, and whether it was right."""

    score: float
    right: bool


class Judged(NamedTuple):
    """The result and figures of one judged query.

    ``missed`` are the keys or ids in the query that were not found.
    """

    group: str | None
    metrics: dict[str, float]
    milliseconds: float
    scored: list[Scored]
    missed: set[str]


def read_query(raw: bytes) -> JudgedQuery:
    """Parse a line of a file of queries."""
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
    """Return the figures of one list of results.

    - ``R@k``: the share of the relevant memories among the first k.
    - ``hit@10``: whether any relevant memory is among the first 10.
    - ``MRR``: 1 divided by the rank of the first relevant memory.
    - ``nDCG@10``: the gain of the first 10, discounted by rank, as a share of the best possible gain.
    - ``newer``: whether a relevant memory comes before all older ones, if there are older ones.
    - ``empty``: whether nothing was found; the only figure if nothing is relevant.
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
    """Wait until searches compare meaning, or never will; return a phrase that names the embedder."""
    await runtime.query(TrySearch(query="?", limit=1), principal=principal)  # starts the embedder
    while True:
        found = await runtime.query(GetEmbedding(), principal=principal)
        if found.state == "off":
            return "by words alone: the embedder is none"
        if found.state == "failing":
            return f"by words alone: {found.trouble}"
        if found.state == "ready" and not found.actors_waiting:
            return f"with {found.space}"
        await trio.sleep(LOOK_SECONDS)


async def judge(
    runtime: RuntimeClient,
    principal: Principal,
    query: JudgedQuery,
    mode: SearchMode,
    limit: int,
    depths: Sequence[int],
) -> Judged:
    """Search for one query and measure the results."""
    filters: dict[str, Any] = msgspec.structs.asdict(query.filters)
    search = TrySearch(query=query.query, namespace=query.namespace, mode=mode, limit=limit, **filters)
    began = trio.current_time()
    answer: replies.MemoriesFound = await runtime.query(search, principal=principal)
    taken = (trio.current_time() - began) * 1_000
    named = {compose(name): name for name in (*query.relevant, *query.older)}
    ranked = [
        each.memory_id if each.memory_id in named else named.get(compose(each.key), each.key)
        for each in answer.memories
    ]
    figures = measure(ranked, query.relevant, depths, older=query.older)
    best = zip(answer.memories[:RANKED], ranked, strict=False)
    scored = [Scored(each.relevance, name in query.relevant) for each, name in best]
    return Judged(query.group, figures, taken, scored, set(named.values()).difference(ranked))


async def unknown(runtime: RuntimeClient, principal: Principal, names: Iterable[str]) -> list[str]:
    """Return the names that are not keys of visible memories."""
    missing = []
    for name in names:
        found = await runtime.query(PlacesOfKey(key=name), principal=principal)
        if not found.places:
            missing.append(name)
    return missing


# -- the reliability of scores -----------------------------------------------------------------


class Tenth(NamedTuple):
    """The results with a score in one tenth of the scale.

    Attributes:
        most: The least score of the next tenth; the last tenth includes 1.
        score: The mean score of its results; None without results.
        right: The share of right results; None without results.
    """

    least: float
    most: float
    found: int
    score: float | None
    right: float | None


def tenths(scored: Iterable[Scored]) -> list[Tenth]:
    """Sort results into ten tenths of the scale, the lowest first."""
    filled: list[list[Scored]] = [[] for _ in range(TENTHS)]
    for each in scored:
        filled[min(TENTHS - 1, int(each.score * TENTHS))].append(each)
    found: list[Tenth] = []
    for place, some in enumerate(filled):
        score, right = (fmean(column) for column in zip(*some, strict=True)) if some else (None, None)
        found.append(Tenth(place / TENTHS, (place + 1) / TENTHS, len(some), score, right))
    return found


def expected_error(scored: Sequence[Scored]) -> float:
    """Return the mean gap between a tenth's score and its share of right results."""
    gaps = (
        each.found * abs(each.score - each.right)
        for each in tenths(scored)
        if each.score is not None and each.right is not None
    )
    return sum(gaps) / max(1, len(scored))
