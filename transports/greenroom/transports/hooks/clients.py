"""The clients that have hooks: where each is told of them, and which of its events is which hook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from greenroom.actors.schemas.hooks import HookName

SECONDS: Final[Mapping[HookName, int]] = {
    "session-start": 10,
    "user-prompt": 5,
    "pre-compact": 10,
    "post-tool": 5,
    "stop": 10,
    "session-end": 10,
}
"""How long a client lets each hook run; a hook ends sooner by itself."""


class Event(NamedTuple):
    """A client's event.

    Attributes:
        name: What the client calls it.
        matcher: What the client compares with the event, such as names of tools; empty for all.
    """

    name: str
    matcher: str = ""


class HookClient(NamedTuple):
    """A client with hooks.

    Attributes:
        file: Its file of hooks below the home folder: JSON, with lists by event under ``hooks``.
        events: Its event for each hook that it can have.
        grouped: Whether a list has groups of hooks with a matcher, and not the hooks themselves.
        unit: How many of its units of time are a second.
        start: Members of its file besides, where it has to be made.
        after: What its user does next.
    """

    file: str
    events: Mapping[HookName, Event]
    grouped: bool = True
    unit: int = 1
    start: Mapping[str, int] = {}
    after: str = "start a new session"


HOOK_CLIENTS: Final[Mapping[str, HookClient]] = {
    "claude-code": HookClient(
        ".claude/settings.json",
        {
            "session-start": Event("SessionStart"),
            "user-prompt": Event("UserPromptSubmit"),
            "pre-compact": Event("PreCompact"),
            "post-tool": Event("PostToolUse", "Bash|Edit|MultiEdit|Write|NotebookEdit"),
            "stop": Event("Stop"),
            "session-end": Event("SessionEnd"),
        },
        after="start a new session; `/hooks` there shows them",
    ),
    "codex": HookClient(
        ".codex/hooks.json",
        {
            "session-start": Event("SessionStart"),
            "user-prompt": Event("UserPromptSubmit"),
            "pre-compact": Event("PreCompact"),
            "post-tool": Event("PostToolUse", "Bash|apply_patch"),
            "stop": Event("Stop"),
            "session-end": Event("SessionEnd"),
        },
        after="start a new session, and trust them there with `/hooks`: they do not run before",
    ),
    "gemini": HookClient(
        ".gemini/settings.json",
        {
            "session-start": Event("SessionStart"),
            "user-prompt": Event("BeforeAgent"),
            "pre-compact": Event("PreCompress"),
            "post-tool": Event("AfterTool", "run_shell_command|replace|write_file"),
            "stop": Event("AfterAgent"),
            "session-end": Event("SessionEnd"),
        },
        unit=1_000,
    ),
    # What answers `beforeSubmitPrompt` does not reach its model.
    "cursor": HookClient(
        ".cursor/hooks.json",
        {
            "session-start": Event("sessionStart"),
            "pre-compact": Event("preCompact"),
            "post-tool": Event("postToolUse", "Shell|Write"),
            "stop": Event("stop"),
            "session-end": Event("sessionEnd"),
        },
        grouped=False,
        start={"version": 1},
        after="look at its settings under Hooks",
    ),
}
