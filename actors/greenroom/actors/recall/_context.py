"""`recall_context`: the best memories for a task that fit into a budget of tokens."""

from __future__ import annotations

from msgspec import UNSET

from greenroom.actors import _budget
from greenroom.actors._namespaces import below_root
from greenroom.actors.recall import _replies as replies
from greenroom.actors.recall import _types
from greenroom.actors.recall._finding import Asked, find, note_uses
from greenroom.actors.requests import _memory_types as kinds
from greenroom.actors.requests._memory_replies import MemoryFilters
from greenroom.runtime import Desk, Procedure

BOOST = 0.1
"""The part of quality: it decides between memories that are about as relevant."""
CANDIDATES = 100


class RecallContext(Procedure[replies.ContextRecalled], frozen=True, kw_only=True):
    """Recall what helps with a task, as much as fits into the budget."""

    task: _types.Task
    max_tokens: _types.Budget = 2_000
    namespace: _types.Below | None = None
    tags: kinds.Tags | None = None
    kind: kinds.AKind | None = None

    async def run(self, desk: Desk) -> replies.ContextRecalled:
        """Search, and fill the budget from the best on; what does not fit leaves room for what does."""
        filters = MemoryFilters(namespace=below_root(self.namespace), tags=self.tags or None, kind=self.kind)
        search = Asked(self.namespace, self.task, "hybrid", BOOST, filters, CANDIDATES)
        outcome = await find(desk, search)
        candidates = [replies.recalled(each) for each in outcome.hits if not each.memory.withheld]
        kept, tokens = _budget.fill(candidates, self.max_tokens)
        note_uses(desk, outcome, ((each.namespace, each.memory_id) for each in kept))
        return replies.ContextRecalled(
            memories=kept,
            count=len(kept),
            tokens=tokens,
            max_tokens=self.max_tokens,
            left_out=len(outcome.hits) - len(kept),
            failed=outcome.failed,
            partial=True if outcome.partial else UNSET,
            partial_reason=outcome.partial or UNSET,
        )
