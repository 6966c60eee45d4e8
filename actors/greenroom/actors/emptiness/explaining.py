"""The reasons of empty answers, by the request that was answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
import trio

from greenroom.actors.audit.query import GetAuditLog
from greenroom.actors.base.emptiness import EmptyBecause
from greenroom.actors.emptiness import code, conversations, documents
from greenroom.actors.emptiness.narrowing import Asker, Explained, Filter
from greenroom.actors.keys.admin import ListApiKeys
from greenroom.actors.orchestrations.workflows import GetWorkflowPatterns, SuggestNextAction
from greenroom.actors.recall.emptiness import WhyNoneListed
from greenroom.actors.schemas.memories import ListMemories
from greenroom.actors.schemas.replies import ListReply
from greenroom.runtime import GreenroomError

R = TypeVar("R", bound=ListReply)

SECONDS: Final = 1.0
"""How long is looked why an answer is empty; then it goes without."""
_STEPS: Final = "steps"


async def _of_memories(asker: Asker, request: ListMemories, _: Any) -> EmptyBecause:
    reason: EmptyBecause = await asker.ask(WhyNoneListed(request=request))
    return reason


async def _of_steps(asker: Asker, _request: Any, reply: Any) -> EmptyBecause | None:
    """Return that no steps are recorded, or not enough to find something that comes again."""
    if not reply.steps:
        return asker.because("nothing_stored" if asker.learns_workflows else "learning_off", what=_STEPS)
    return None


async def _nothing_repeated(asker: Asker, _request: Any, reply: Any) -> EmptyBecause:
    return asker.because("nothing_repeated", count=f"{reply.steps:,}")


EXPLAINED: Final[Mapping[type[Any], Explained]] = {
    **conversations.EXPLAINED,
    **documents.EXPLAINED,
    **code.EXPLAINED,
    ListMemories: Explained("memories", first=_of_memories),
    GetWorkflowPatterns: Explained(
        _STEPS, {"context": Filter(widest=[])}, _of_steps, _nothing_repeated, wide={}
    ),
    SuggestNextAction: Explained(_STEPS, {"context": Filter()}, _of_steps, _nothing_repeated, wide={}),
    GetAuditLog: Explained(
        "records",
        {
            **{
                name: Filter(lambda found, name=name: (getattr(each, name) for each in found.records))  # type: ignore[misc]
                for name in ("action", "agent", "user", "key_id", "session_id")
            },
            "outcome": Filter(),
            "after": Filter(),
            "before": Filter(),
        },
    ),
    ListApiKeys: Explained("API keys", {"include_ended": Filter(widest=True)}),
}
"""Of each request whose answer may be empty, but of searches for memories: these say it themselves."""


async def explained(asker: Asker, request: Any, reply: R) -> R:
    """Return an empty answer with the reason why it is empty."""
    reason: EmptyBecause | None = None
    with trio.move_on_after(SECONDS):
        try:
            reason = await EXPLAINED[type(request)].explain(asker, request, reply)
        except GreenroomError:  # what cannot be looked up costs nobody the answer
            reason = None
    return msgspec.structs.replace(reply, empty_because=reason or asker.because("unexplained"))
