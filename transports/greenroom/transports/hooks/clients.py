"""The clients that have hooks: where each is told of them, and which of its events is which hook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from greenroom.actors.sessions.requests.hook_events import HookName

SECONDS: Final[Mapping[HookName, int]] = {
    "session-start": 10,
    "user-prompt": 5,
    "pre-compact": 10,
    "post-tool": 5,
    "stop": 10,
    "session-end": 3,  # Codex allows no more
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
        events: Its event for each hook that is of use: what is called is in the transcripts of most, and one
            program more for each call would be for nothing.
        variable: The variable of the environment with another folder, and the file below that.
        grouped: Whether a list has groups of hooks with a matcher, and not the hooks themselves.
        unit: How many of its units of time are a second.
        start: Members of its file besides, where it has to be made.
        off: The member of its file that switches all hooks off, by its names with dots between, and its value
            that does.
        trust: The file beside, in TOML, in which it notes which hooks its user trusts; it runs no others.
        after: What its user does next.
    """

    file: str
    events: Mapping[HookName, Event]
    variable: tuple[str, str] | None = None
    grouped: bool = True
    unit: int = 1
    start: Mapping[str, int] = {}
    off: tuple[str, bool] | None = None
    trust: str | None = None
    after: str = "start a new session"


HOOK_CLIENTS: Final[Mapping[str, HookClient]] = {
    "claude-code": HookClient(
        ".claude/settings.json",
        {
            "session-start": Event("SessionStart"),
            "user-prompt": Event("UserPromptSubmit"),
            "pre-compact": Event("PreCompact"),
            "stop": Event("Stop"),
            "session-end": Event("SessionEnd"),
        },
        variable=("CLAUDE_CONFIG_DIR", "settings.json"),
        off=("disableAllHooks", True),
        after="start a new session; `/hooks` there shows them",
    ),
    "codex": HookClient(
        ".codex/hooks.json",
        {
            "session-start": Event("SessionStart"),
            "user-prompt": Event("UserPromptSubmit"),
            "pre-compact": Event("PreCompact"),
            "stop": Event("Stop"),
            "session-end": Event("SessionEnd"),
        },
        variable=("CODEX_HOME", "hooks.json"),
        trust="config.toml",
        after="start a new session, and trust them there with `/hooks`: they do not run before",
    ),
    "gemini": HookClient(
        ".gemini/settings.json",
        {
            "session-start": Event("SessionStart"),
            "user-prompt": Event("BeforeAgent"),
            "pre-compact": Event(
                "PreCompress", "manual"
            ),  # the other comes before each question to its model
            "post-tool": Event("AfterTool", "^(run_shell_command|replace|write_file)$"),
            "stop": Event("AfterAgent"),
            "session-end": Event("SessionEnd"),
        },
        variable=("GEMINI_CLI_HOME", ".gemini/settings.json"),
        unit=1_000,
        off=("hooksConfig.enabled", False),
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
