"""Hook events and their replies; none is a tool."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.git.git_files import Revision
from greenroom.actors.core.git.projects import PlaceOfWork
from greenroom.actors.sessions.requests.hook_limits import MAX_PROMPT as MAX_PROMPT
from greenroom.actors.sessions.requests.hook_limits import MAX_TURN as MAX_TURN
from greenroom.actors.sessions.requests.hook_limits import MAX_TURNS as MAX_TURNS

HookName = Literal["session-start", "user-prompt", "pre-compact", "post-tool", "stop", "session-end"]
"""The moments of a client's session at which the client runs our hook."""

MOST_FOUND = 100

Short = Annotated[str, Meta(max_length=255)]
Aware = Annotated[datetime, Meta(tz=True)]
"""A time with an offset, which the store needs."""


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A turn of a client's transcript, with recognised secrets removed.

    ``role`` is the person, the model, or a tool; anyone may have written a tool's output. ``by_program``
    means that a program passed the message to the client, so that the person need not have typed it.
    """

    role: Literal["user", "assistant", "tool"]
    text: Annotated[str, Meta(max_length=MAX_TURN)] = ""
    tool: Short = ""
    command: Annotated[str, Meta(max_length=2_000)] = ""
    path: Annotated[str, Meta(max_length=4_096)] = ""
    wrote: bool = False
    failed: bool = False
    at: Aware | None = None
    by_program: bool = False


class HookEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The report of one run of a hook.

    Attributes:
        id: Created for this run, so that the server stores the event once.
        client: The name of the client in the table of clients, such as ``claude-code``.
        project: The project of the folder that the client works in, as `find_project` says.
        older: The ids that older versions gave to that folder.
        branch: The branch that is checked out there, and ``commit`` its commit.
        turns: The turns of the transcript since the last stored run, oldest first.
    """

    id: Annotated[str, Meta(pattern="^[0-9a-f]{32}(?!\\n)$")]
    name: HookName
    client: Annotated[str, Meta(min_length=1, max_length=100)]
    session: Annotated[str, Meta(min_length=1, max_length=255)]
    project: Short
    folder: Annotated[str, Meta(max_length=4_096)]
    at: Aware
    prompt: Annotated[str, Meta(max_length=MAX_PROMPT)] = ""
    reason: Short = ""
    older: Annotated[list[Short], Meta(max_length=4)] = msgspec.field(default_factory=list)
    branch: Short = ""
    commit: Short = ""
    turns: Annotated[list[Turn], Meta(max_length=MAX_TURNS)] = msgspec.field(default_factory=list)

    @property
    def projects(self) -> tuple[str, ...]:
        """The ids of the folder's project, the present one first; empty for no project."""
        return (self.project, *self.older) if self.project else ()

    @property
    def place(self) -> PlaceOfWork:
        """The folder, and what was checked out there."""
        return PlaceOfWork(self.folder, self.branch, self.commit)

    @property
    def revision(self) -> Revision:
        """What was checked out in the folder."""
        return Revision(self.branch, self.commit)


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The text that a hook adds to the context of a client's model.

    Attributes:
        context: Text for the model, delimited and marked as data; empty if nothing is relevant.
        partial: Whether vectors, or events still in the spool, were missing.
        found: How many unreviewed memories rules made since the last session began, at most `MOST_FOUND`. The
            person sees the number, and only the person can accept them.
    """

    context: str = ""
    memory_ids: list[str] = msgspec.field(default_factory=list)
    partial: bool = False
    found: int = 0
