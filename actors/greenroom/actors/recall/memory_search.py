"""`memory_search`: one search over all namespaces that the caller may see, or below one of them."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import msgspec
import trio
from msgspec import Meta

from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.auth.namespaces import below_root
from greenroom.actors.base.times import to_datetime
from greenroom.actors.recall import replies
from greenroom.actors.recall.search import SearchSpec, explained, find, reply
from greenroom.actors.recall.time_window import instant, time_window, time_zone, warmed
from greenroom.actors.schemas import memory_types as kinds
from greenroom.actors.schemas import types
from greenroom.actors.schemas.memory_replies import MemoryFilters
from greenroom.runtime import Procedure, ProcedureContext

HYBRID_BOOST = 0.3


class MemorySearch(Procedure[replies.MemoriesFound], frozen=True, kw_only=True):
    """Find memories in all namespaces that the caller may see, or below one."""

    query: kinds.SearchWords | None = None
    mode: kinds.AMode = "semantic"
    namespace: kinds.Below | None = None
    time_expr: kinds.TimeWords | None = None
    after: kinds.After | None = None
    before: kinds.Before | None = None
    timezone: kinds.Zone | None = None
    tags: kinds.Tags | None = None
    tag_match: kinds.ATagMatch = "any"
    kind: kinds.AKind | None = None
    scope: kinds.AScope | None = None
    author: kinds.Author | None = None
    conversation_id: kinds.ConversationId | None = None
    quality_boost: kinds.Boost | None = None
    limit: types.Limit100 = 10
    max_tokens: kinds.MaxTokens | None = None
    include_debug: Annotated[bool, Meta(description="say how it was ranked")] = False

    async def run(self, context: ProcedureContext) -> replies.MemoriesFound:
        """Ask every owner for its best and answer with the best of all.

        Raises:
            Refusal: a time is not understood, or there is nothing to search by.
        """
        began = trio.current_time()
        if self.time_expr is not None:
            await warmed()
        window = self._window(context.now)
        search = self._asked(window)
        outcome = await find(context, search)
        debug = explained(outcome, search, window) if self.include_debug else None
        return reply(outcome, search, began, max_tokens=self.max_tokens, mode=self.mode, debug=debug)

    def with_words_in(self, timezone: str) -> MemorySearch:
        """Return the same search with ``time_expr`` meant in a zone if it names none; the rest stays in UTC.

        Raises:
            Refusal: a time is not understood.
        """
        if self.timezone is not None or self.time_expr is None:
            return self
        after, before = (
            None if given is None else instant(field, given, dt.UTC).isoformat()
            for field, given in (("after", self.after), ("before", self.before))
        )
        return msgspec.structs.replace(self, timezone=timezone, after=after, before=before)

    def _asked(self, window: replies.TimeWindow | None) -> SearchSpec:
        query = self.query if self.query is None or self.query.strip() else None
        mode, boost = self.mode, self.quality_boost
        if boost is None:
            boost = HYBRID_BOOST if mode == "hybrid" else 0.0
        elif boost and mode == "exact":
            raise auth_errors.invalid(
                "quality_boost", "quality_boost: mode exact does not weigh; take mode hybrid"
            )
        elif boost:
            mode = "hybrid"
        if query is None and mode != "hybrid" and not self.tags and window is None:
            raise auth_errors.invalid(
                "query", "query: it is required unless time_expr, after, before or tags are given"
            )
        filters = MemoryFilters(
            namespace=below_root(self.namespace),
            tags=self.tags or None,
            tag_match=self.tag_match,
            kind=self.kind,
            scope=self.scope,
            author=self.author,
            conversation_id=self.conversation_id,
            after=None if window is None else window.after,
            before=None if window is None else window.before,
        )
        return SearchSpec(self.namespace, query, mode, boost, filters, self.limit, self.include_debug)

    def _window(self, now: int) -> replies.TimeWindow | None:
        zone: dt.tzinfo = dt.UTC
        name = "UTC"
        if self.timezone is not None or self.time_expr is not None:
            zone, name = time_zone(self.timezone)
        if self.time_expr is None and self.after is None and self.before is None:
            return None
        window = time_window(
            to_datetime(now),
            zone,
            time_expr=self.time_expr,
            after=self.after,
            before=self.before,
            bounds=dt.UTC if self.timezone is None else zone,
        )
        return replies.TimeWindow(
            after=window.after, before=window.before, time_expr=self.time_expr, timezone=name
        )
