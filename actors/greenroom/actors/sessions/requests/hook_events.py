"""What a client's hooks tell, and what they are answered. None of it is a tool."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

HookName = Literal["session-start", "user-prompt", "pre-compact", "post-tool", "stop", "session-end"]
"""Moments in a client's session at which it starts a command of ours."""

MAX_TURNS = 400
MAX_TURN = 20_000
"""Most turns of a hook event, the newest ones; most characters of one, of a longer one its two ends."""
MAX_PROMPT = 20_000
MOST_FOUND = 100

Short = Annotated[str, Meta(max_length=255)]
Aware = Annotated[datetime, Meta(tz=True)]
"""A time with its offset: without one it is no time to the store."""


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A turn of a client's transcript, without the secrets that were recognised in it.

    Attributes:
        role: Who said it: the person, the model, or a tool, whose output anybody may have written.
        text: What was said.
        tool: The tool that was called, of a call and of its output.
        command: The shell command that it ran.
        path: The file that it read or wrote.
        wrote: Whether it wrote that file.
        failed: Whether the tool said that it failed.
        at: When, if the transcript tells.
    """

    role: Literal["user", "assistant", "tool"]
    text: Annotated[str, Meta(max_length=MAX_TURN)] = ""
    tool: Short = ""
    command: Annotated[str, Meta(max_length=2_000)] = ""
    path: Annotated[str, Meta(max_length=4_096)] = ""
    wrote: bool = False
    failed: bool = False
    at: Aware | None = None


class HookEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one run of a hook has to tell.

    Attributes:
        id: Made for this run; what is written for it is written once.
        name: The hook.
        client: The client's name in the table of clients, such as ``claude-code``.
        session: The client's own id of its session.
        project: The project of the folder that it works in, as `project_of_path` names it.
        folder: That folder.
        at: When the hook ran.
        prompt: What the person typed, of ``user-prompt``.
        reason: Why a session starts or ends, in the client's word.
        turns: What the transcript has since the last run that kept it, oldest first.
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
    turns: Annotated[list[Turn], Meta(max_length=MAX_TURNS)] = msgspec.field(default_factory=list)


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a client's model is given.

    Attributes:
        context: Text for the model, delimited and named as data; empty where nothing is worth it.
        memory_ids: The memories that it has, in their order.
        partial: Whether it was made by words alone, or without what waits in the spool.
        found: How many memories that nobody has looked at rules made since the last session began, at most
            `MOST_FOUND`; told to the person, who alone can accept them.
    """

    context: str = ""
    memory_ids: list[str] = msgspec.field(default_factory=list)
    partial: bool = False
    found: int = 0
