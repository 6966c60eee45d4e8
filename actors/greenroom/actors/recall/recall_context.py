"""`recall_context`: the best memories for a task that fit into a budget of tokens."""

from __future__ import annotations

from msgspec import UNSET

from greenroom.actors.auth.namespaces import below_root
from greenroom.actors.base import budget
from greenroom.actors.recall import replies
from greenroom.actors.recall.search import SearchSpec, count_uses, find
from greenroom.actors.schemas import memory_types as kinds
from greenroom.actors.schemas.memory_replies import MemoryFilters
from greenroom.runtime import Procedure, ProcedureContext

BOOST = 0.1
"""The part of quality: it decides between memories that are about as relevant."""
CANDIDATES = 100


class RecallContext(Procedure[replies.ContextRecalled], frozen=True, kw_only=True):
    """Recall what helps with a task, as much as fits into the budget."""

    task: kinds.Task
    max_tokens: kinds.Budget = 2_000
    namespace: kinds.Below | None = None
    tags: kinds.Tags | None = None
    kind: kinds.AKind | None = None

    async def run(self, context: ProcedureContext) -> replies.ContextRecalled:
        """Search, and fill the budget from the best on; what does not fit leaves room for what does."""
        filters = MemoryFilters(namespace=below_root(self.namespace), tags=self.tags or None, kind=self.kind)
        search = SearchSpec(self.namespace, self.task, "hybrid", BOOST, filters, CANDIDATES)
        outcome = await find(context, search)
        candidates = [replies.recalled(each) for each in outcome.hits if not each.memory.withheld]
        kept, tokens = budget.take_fitting(candidates, self.max_tokens)
        count_uses(context, outcome, ((each.namespace, each.memory_id) for each in kept))
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
