"""The reasons of empty answers, by the request that was answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
import trio

from greenroom.actors.app.emptiness.narrowing import Asker, Explained, Filter
from greenroom.actors.core.audit.query import GetAuditLog, GetAuditState, ReadAuditLog, filters_of, fits
from greenroom.actors.core.keys.admin import ListApiKeys
from greenroom.actors.core.replies.empty_reasons import EmptyBecause, no_match
from greenroom.actors.core.replies.replies import ListReply
from greenroom.actors.emptiness import code, conversations, documents
from greenroom.actors.memories.recall.emptiness import WhyNoneListed, seconds_for
from greenroom.actors.memories.requests.requests import ListMemories
from greenroom.actors.sessions.workflows.tools import GetWorkflowPatterns, SuggestNextAction
from greenroom.runtime import GreenroomError

R = TypeVar("R", bound=ListReply)

SECONDS: Final = 1.0
"""How long is looked why an answer is empty; then it goes without."""
MOST_RECORDS: Final = 1_000
"""Records of the audit log, the newest, among which one is looked for that fits a filter."""
_STEPS: Final = "steps"


async def _of_memories(asker: Asker, request: ListMemories, _: Any) -> EmptyBecause:
    reason: EmptyBecause = await asker.ask(WhyNoneListed(request=request))
    return reason


async def _of_records(asker: Asker, request: GetAuditLog, _: Any) -> EmptyBecause | None:
    """Return which filters no record fits; looking for that is no reading that the log tells of."""
    last = (await asker.ask(GetAuditState())).last
    found = (await asker.ask(ReadAuditLog(start=max(0, last - MOST_RECORDS), limit=MOST_RECORDS))).records
    if not found:
        return None
    given = {name: value for name, value in filters_of(request).items() if name != "limit"}
    alone = {
        name: value
        for name, value in given.items()
        if not any(fits(GetAuditLog(**{name: value}), each) for each in found)
    }
    return no_match(
        asker.principal.scopes,
        "records",
        alone or given,
        lambda name: {value for each in found if isinstance(value := getattr(each, name, None), str)},
    )


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
    GetAuditLog: Explained("records", first=_of_records),
    ListApiKeys: Explained("API keys", {"include_ended": Filter(widest=True)}),
}
"""Of each request whose answer may be empty, but of searches for memories: these say it themselves."""


async def explained(asker: Asker, request: Any, reply: R) -> R:
    """Return an empty answer with the reason why it is empty."""
    reason: EmptyBecause | None = None
    with trio.move_on_after(seconds_for(SECONDS)):
        try:
            reason = await EXPLAINED[type(request)].explain(asker, request, reply)
        except GreenroomError:  # what cannot be looked up costs nobody the answer
            reason = None
    return msgspec.structs.replace(reply, empty_because=reason or asker.because("unexplained"))
