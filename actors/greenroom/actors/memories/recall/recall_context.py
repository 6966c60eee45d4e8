"""The tool `recall_context`, its injection log, and what hooks may give.

Hooks inject memories that no one requested: memories of the user and the project that probably matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta

from greenroom.actors.core.auth.namespaces import below_root, user_namespace
from greenroom.actors.core.git.projects import PlaceOfWork
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies import paging
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.recall import replies
from greenroom.actors.memories.recall.branches import set_apart_branches
from greenroom.actors.memories.recall.emptiness import with_reason
from greenroom.actors.memories.recall.replies import HOOKS, GivenMemory, NoteRecalled, RecalledMemory
from greenroom.actors.memories.recall.search_all_roots import (
    SearchResult,
    SearchSpec,
    count_uses,
    find,
)
from greenroom.actors.memories.recall.unasked import Judge, for_a_prompt
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.runtime import ActorQuarantinedError, Address, OverloadedError, Procedure, ProcedureContext

BOOST: Final = 0.1
"""The part of quality in the score: it decides between memories that are about equally relevant."""
CANDIDATES: Final = 100
LEAST_SHARE: Final = 0.1
"""In a small store, a memory needs this share of the best one's probability; see `bench recalled`."""
EXPLAINED: Final = 20
"""The injection log has the signals of this many best memories, and only the scores of the others."""
MOST_SIGNALS: Final = 6
_MOST_TASK: Final = 400


@operation(
    "recall_context",
    scope="memory:read",
    tool=ToolText(
        title="Recall for a task",
        description="Before you start on a task or touch something: be briefed. Puts together the "
        "background that will help and matters, all that you should know and be aware "
        "of first, as much as fits into your prompt.",
        weight=4,
    ),
)
class RecallContext(
    Procedure[replies.ContextRecalled], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Recall what helps with a task, as much as fits into the budget.

    Attributes:
        unreviewed: As in `MemoryFilters`; no parameter.
        unasked_for: The project (empty for none), if a hook recalls on its own. Then the reply has only
            memories of the user and of that project that probably matter; no parameter.
        place: Where the caller works; memories of other branches come last and name these; no parameter.
        older: Older ids of that project; no parameter.
    """

    task: kinds.Task
    max_tokens: kinds.Budget = 2_000
    namespace: kinds.Below | None = None
    tags: kinds.Tags | None = None
    kind: kinds.AKind | None = None
    unreviewed: Annotated[bool | None, Meta(extra_json_schema=types.UNLISTED)] = None
    unasked_for: Annotated[str | None, Meta(extra_json_schema=types.UNLISTED)] = None
    place: Annotated[PlaceOfWork | None, Meta(extra_json_schema=types.UNLISTED)] = None
    older: Annotated[list[str], Meta(extra_json_schema=types.UNLISTED)] = msgspec.field(default_factory=list)

    async def run(self, context: ProcedureContext) -> replies.ContextRecalled:
        """Search, and fill the budget with the best memories that fit.

        In a small store weak memories are left out. Otherwise every recall would return the whole store.
        """
        search = self.to_spec()
        if self.unasked_for is not None:
            projects = [self.unasked_for, *self.older] if self.unasked_for else []
            search = for_a_prompt(search, self.task, context.principal, projects)
        outcome = await find(context, search)
        hits = [each for each in outcome.hits if not each.memory.withheld]
        if self.unasked_for is not None:
            hits = Judge(self.task, outcome).likely(hits)
        if self.place is not None:
            hits = await set_apart_branches(self.place, hits)
        candidates = [replies.to_recalled(each) for each in hits]
        kept, tokens = paging.take_fitting(candidates, self.max_tokens)
        count_uses(context, outcome, ((each.namespace, each.memory_id) for each in kept))
        record_recall(context, self.task, outcome, kept, tokens)
        answer = replies.ContextRecalled(
            memories=kept,
            count=len(kept),
            tokens=tokens,
            max_tokens=self.max_tokens,
            left_out=len(hits) - len(kept),
            failed=outcome.failed,
            partial=True if outcome.partial else UNSET,
            partial_reason=outcome.partial or UNSET,
            damaged=outcome.damaged,
        )
        return await with_reason(context, self, outcome._replace(hits=hits), answer)

    def to_spec(self) -> SearchSpec:
        """Return the specification of this search."""
        filters = MemoryFilters(
            namespace=below_root(self.namespace),
            tags=self.tags or None,
            kind=self.kind,
            unreviewed=self.unreviewed,
        )
        is_narrowed = self.tags or self.kind is not None  # then weak memories are wanted as well
        return SearchSpec(
            self.namespace,
            self.task,
            "hybrid",
            BOOST,
            filters,
            CANDIDATES,
            reasons=EXPLAINED,
            least_share=0.0 if is_narrowed else LEAST_SHARE,
        )


# -- the injection log -------------------------------------------------------------------------


def record_recall(
    context: ProcedureContext,
    task: str,
    outcome: SearchResult,
    kept: Sequence[RecalledMemory],
    tokens: int,
) -> None:
    """Send an entry, without texts, to the user's injection log; do not wait.

    A caller that impersonates an agent leaves no entry, since that agent was given nothing.
    """
    if context.principal.seen_by is not None:
        return
    given = {each.memory_id for each in kept}
    large = sum(hit.memory.withheld for hit in outcome.hits)
    left_out = {
        "it is weak beside the best": outcome.weak,
        "it is too large for a list": large,
        "there was no room for it": len(outcome.hits) - large - len(kept),
    }
    note = NoteRecalled(
        task=task[:_MOST_TASK],
        memories=[
            GivenMemory(
                memory_id=hit.memory.memory_id,
                version=hit.memory.version,
                namespace=hit.memory.namespace,
                key="",
                score=round(hit.match, 4),
                signals=strongest(hit.components or {}),
            )
            for hit in outcome.hits
            if hit.memory.memory_id in given
        ],
        tokens=tokens,
        partial=outcome.partial is not None,
        left_out={why: count for why, count in left_out.items() if count},
    )
    with suppress(OverloadedError, ActorQuarantinedError):  # then the log lacks this entry
        context.tell(Address(HOOKS, user_namespace(context.principal)), note)


def strongest(components: Mapping[str, float]) -> dict[str, float]:
    """Return the signals that counted, the strongest first."""
    counted = sorted(components.items(), key=lambda each: -abs(each[1]))
    return dict([(name, value) for name, value in counted if value][:MOST_SIGNALS])
