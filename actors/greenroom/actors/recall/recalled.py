"""What a recall told an agent, for the ledger of its user: ids, versions and reasons, and no texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.memories.recall.replies import RecalledMemory
from greenroom.actors.memories.recall.search import SearchResult
from greenroom.actors.schemas.hook_work import KIND, GivenMemory, NoteRecalled
from greenroom.runtime import ActorQuarantinedError, Address, OverloadedError, ProcedureContext

MOST_SIGNALS: Final = 6
_MOST_TASK: Final = 400


def note_recall(
    context: ProcedureContext,
    task: str,
    outcome: SearchResult,
    kept: Sequence[RecalledMemory],
    tokens: int,
) -> None:
    """Tell the ledger of the caller's user what was recalled; nobody waits for it.

    Who looks on as another agent is not that one, which was told nothing.
    """
    if context.principal.seen_by is not None:
        return
    told = {each.memory_id for each in kept}
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
            if hit.memory.memory_id in told
        ],
        tokens=tokens,
        partial=outcome.partial is not None,
        left_out={why: count for why, count in left_out.items() if count},
    )
    with suppress(OverloadedError, ActorQuarantinedError):  # it is not in the ledger then
        context.tell(Address(KIND, user_namespace(context.principal)), note)


def strongest(components: Mapping[str, float]) -> dict[str, float]:
    """Return the signals that counted, the strongest first."""
    counted = sorted(components.items(), key=lambda each: -abs(each[1]))
    return dict([(name, value) for name, value in counted if value][:MOST_SIGNALS])
