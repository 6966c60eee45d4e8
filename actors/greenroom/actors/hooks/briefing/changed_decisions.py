"""Decisions of the user that others changed, in the user's own last version."""

from __future__ import annotations

from typing import Final

from greenroom.actors.content.text.escape import escape_untrusted
from greenroom.actors.core.auth.namespaces import PROJECT, memory_address, segment
from greenroom.actors.hooks.briefing.context_lines import MOST_OF_MEMORY, Line, fit_lines, marks_of
from greenroom.actors.hooks.briefing.useful import TAGS_OF_RULES
from greenroom.actors.memories.recall.replies import GivenMemory
from greenroom.actors.memories.requests.overwritten import ListOverwritten, OverwrittenMemory
from greenroom.actors.sessions.requests.hook_events import HookEvent
from greenroom.actors.sessions.requests.hook_messages import HookState
from greenroom.runtime import GreenroomError, ProcedureContext

CHANGED: Final = "What the user decided, and others changed since"
"""The heading above such memories."""
_MOST: Final = 4
_NAME: Final = 40
_SOURCE: Final = 300
_HEADING_TOKENS: Final = (len(CHANGED) + 4) // 4 + 1


async def find_changed(
    context: ProcedureContext, event: HookEvent, state: HookState, budget: int
) -> list[Line]:
    """Find decisions and preferences of the user in the project's namespace that others have changed.

    Nothing that others wrote is given: neither the new text, nor a key or namespace, which they can change.
    """
    if not event.project:
        return []
    address = memory_address(PROJECT + segment(event.project))
    try:
        found = await context.ask(address, ListOverwritten(tags=sorted(TAGS_OF_RULES), limit=_MOST))
    except GreenroomError:  # an unavailable namespace must not hide the rest
        return []
    lines = [_render(each) for each in found if state.memories.get(each.own.memory_id) != each.own.version]
    return fit_lines(lines, budget - _HEADING_TOKENS, _MOST)[0]


def _render(changed: OverwrittenMemory) -> Line:
    own = changed.own
    by = segment(changed.by)[:_NAME] or "someone"
    call = f'retrieve_memory(memory_id="{own.memory_id}")'
    source = (
        f"the user's version {own.version}, {own.updated_at:%Y-%m-%d}; changed since by {by}, "
        f"{changed.at:%Y-%m-%d}; version {changed.version} is shown by {call}"
    )
    given = GivenMemory(
        memory_id=own.memory_id,
        version=own.version,
        namespace=own.namespace,
        key=own.key,
        score=None,
        signals={},
        marks=marks_of(own.text[:MOST_OF_MEMORY], ""),
    )
    return Line(f"{escape_untrusted(own.text, MOST_OF_MEMORY)} [{escape_untrusted(source, _SOURCE)}]", given)
