"""The table of MCP clients: the files in which they list servers, and their hooks."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from greenroom.actors.sessions.requests.hook_events import HookName

Format = Literal["json", "yaml", "toml"]
SERVER: Final = "greenroom"
"""The server's name in a client's file."""


class Own(NamedTuple):
    """The commands of a client that add a server to its settings and remove it."""

    add: tuple[str, ...]  # the arguments to add; the entry follows as JSON
    remove: tuple[str, ...]


SECONDS: Final[Mapping[HookName, int]] = {
    "session-start": 10,
    "user-prompt": 5,
    "pre-compact": 10,
    "post-tool": 5,
    "stop": 10,
    "session-end": 3,  # the most that Codex allows
}
"""Seconds that a client allows each hook; each hook ends earlier by itself."""


class Event(NamedTuple):
    """An event of a client."""

    name: str  # the client's name for it
    matcher: str = ""  # the client's filter for the event, such as names of tools; empty for all


class HookClient(NamedTuple):
    """The hooks of a client."""

    file: str  # its JSON file of hooks, below the home folder; ``hooks`` has a list for each event
    # Its event for each useful hook. Most clients need no event per tool call, which would start a process
    # each time: the transcript has the calls.
    events: Mapping[HookName, Event]
    # An environment variable that names another folder, and the file below that folder.
    variable: tuple[str, str] | None = None
    grouped: bool = True  # whether a list has groups of hooks, each with a matcher, instead of hooks
    unit: int = 1  # its units of time per second
    start: Mapping[str, int] = {}  # further members of a new file
    # The member that disables all hooks (dotted path), and the value with which it does.
    off: tuple[str, bool] | None = None
    # A TOML file next to it, with the hooks that the user trusts; the client runs no others.
    trust: str | None = None
    after: str = "start a new session"


@dataclass(frozen=True)
class Client:
    """A client with a file that lists servers."""

    title: str
    linux: str  # its file below the home folder, or below the current folder for a project's file
    key: str  # the member of the file that maps names to servers
    macos: str | None = None  # the file on macOS; None if the path is the same
    # An environment variable that names another folder, and the file below that folder.
    variable: tuple[str, str] | None = None
    format: Format = "json"
    # Commands that show that the client is installed; the first existing one reports the version.
    programs: tuple[str, ...] = ()
    sign: str | None = None  # a folder below the home folder that also shows that it is installed
    extension: str | None = None  # its id as an extension of VS Code
    # Members of an entry besides the command and its arguments.
    more: Mapping[str, Any] = field(default_factory=dict)
    command: str = "command"  # the entry's member for the command
    # Its own commands to edit the file; they are used because it may run and write the file meanwhile.
    own: Own | None = None
    project: bool = False  # whether the file belongs to the current project; used only if a command names it
    after: str = "restart it"
    hooks: HookClient | None = None

    def path(self, platform: str = sys.platform) -> Path:
        """Return the path of the client's file, which may not exist."""
        if self.project:
            return Path.cwd() / self.linux
        if self.variable is not None:
            folder = Path(os.environ.get(self.variable[0], ""))
            if folder.is_absolute():
                return folder / self.variable[1]
        below = (self.macos if platform == "darwin" else None) or self.linux
        # Programs that follow the XDG rules use this folder if it is set.
        config = Path(os.environ.get("XDG_CONFIG_HOME", ""))
        if platform != "darwin" and below.startswith(".config/") and config.is_absolute():
            return config / below.removeprefix(".config/")
        return Path.home() / below

    def program(self) -> str | None:
        """Return the path of the client's command, if the command exists."""
        return next((found for each in self.programs if (found := shutil.which(each))), None)

    def extension_folders(self) -> list[Path]:
        """Return the folders of the client's installed versions as a VS Code extension."""
        if self.extension is None:
            return []
        return sorted((Path.home() / ".vscode/extensions").glob(f"{self.extension}-[0-9]*"))

    def is_installed(self) -> bool:
        """Whether the client's program, its file or its own folder exists."""
        path = self.path()
        own_folder = path.parent not in {Path.home(), Path.cwd()} and path.parent.is_dir()
        sign = self.sign is not None and (Path.home() / self.sign).is_dir()
        return path.exists() or own_folder or sign or bool(self.program() or self.extension_folders())

    def entry(self, command: str, arguments: list[str]) -> dict[str, Any]:
        """Return the client's entry for the server."""
        return {**self.more, self.command: command, "args": arguments}


_CODE_LINUX: Final = ".config/Code/User/"
_MAC: Final = "Library/Application Support/"
_STDIO: Final = {"type": "stdio"}
_EVENTS: Final[Mapping[HookName, Event]] = {
    "session-start": Event("SessionStart"),
    "user-prompt": Event("UserPromptSubmit"),
    "pre-compact": Event("PreCompact"),
    "stop": Event("Stop"),
    "session-end": Event("SessionEnd"),
}
"""The events of Claude Code, and of Codex."""

CLIENTS: Final[Mapping[str, Client]] = {
    "claude-desktop": Client(
        "Claude Desktop",
        ".config/Claude/claude_desktop_config.json",
        "mcpServers",
        macos=f"{_MAC}Claude/claude_desktop_config.json",
        after="quit it, windows and all, and start it again",
    ),
    "claude-code": Client(
        "Claude Code",
        ".claude.json",
        "mcpServers",
        variable=("CLAUDE_CONFIG_DIR", ".claude.json"),
        programs=("claude",),
        more=_STDIO,
        own=Own(
            add=("mcp", "add-json", "--scope", "user", SERVER),
            remove=("mcp", "remove", "--scope", "user", SERVER),
        ),
        after="start a new session; `/mcp` there shows the server",
        hooks=HookClient(
            ".claude/settings.json",
            _EVENTS,
            variable=("CLAUDE_CONFIG_DIR", "settings.json"),
            off=("disableAllHooks", True),
            after="start a new session; `/hooks` there shows them",
        ),
    ),
    "claude-code-project": Client(
        "Claude Code, this project",
        ".mcp.json",
        "mcpServers",
        programs=("claude",),
        more=_STDIO,
        project=True,
        after="start a new session in this folder, and approve the server there",
    ),
    "cursor": Client(
        "Cursor",
        ".cursor/mcp.json",
        "mcpServers",
        programs=("cursor",),
        more=_STDIO,
        after="look at its settings under MCP, and switch it on",
        # A reply to `beforeSubmitPrompt` does not reach its model, so `user-prompt` is missing.
        hooks=HookClient(
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
    ),
    "vscode": Client(
        "VS Code",
        f"{_CODE_LINUX}mcp.json",
        "servers",
        macos=f"{_MAC}Code/User/mcp.json",
        programs=("code",),
        more=_STDIO,
        after="run `MCP: List Servers`, start it, and trust it; agent mode has its tools",
    ),
    "windsurf": Client(
        "Windsurf",
        ".codeium/windsurf/mcp_config.json",
        "mcpServers",
        programs=("windsurf",),
        after="refresh the servers in its settings",
    ),
    "zed": Client(
        "Zed",
        ".config/zed/settings.json",
        "context_servers",
        programs=("zed", "zeditor"),
        more={"source": "custom"},  # client versions of 2025 require it
        after="look at the settings of its agent panel: a green dot shows that it runs",
    ),
    "cline": Client(
        "Cline",
        ".cline/data/settings/cline_mcp_settings.json",
        "mcpServers",
        variable=("CLINE_DATA_DIR", "settings/cline_mcp_settings.json"),
        programs=("cline",),
        sign=".cline",
        extension="saoudrizwan.claude-dev",
        more=_STDIO,
        after="look at its MCP servers; in a terminal `cline config mcp` lists them",
    ),
    "continue": Client(
        "Continue",
        ".continue/mcpServers/greenroom.json",  # a file of our own: the client's other file has a list
        "mcpServers",
        variable=("CONTINUE_GLOBAL_DIR", "mcpServers/greenroom.json"),
        programs=("cn",),
        sign=".continue",
        extension="continue.continue",
        more=_STDIO,
        after="take agent mode, the only one with tools",
    ),
    "codex": Client(
        "Codex CLI",
        ".codex/config.toml",
        "mcp_servers",
        variable=("CODEX_HOME", "config.toml"),
        format="toml",
        programs=("codex",),
        after="start a new session; `/mcp` there shows the server",
        hooks=HookClient(
            ".codex/hooks.json",
            _EVENTS,
            variable=("CODEX_HOME", "hooks.json"),
            trust="config.toml",
            after="start a new session, and trust them there with `/hooks`: they do not run before",
        ),
    ),
    "gemini": Client(
        "Gemini CLI",
        ".gemini/settings.json",
        "mcpServers",
        variable=("GEMINI_CLI_HOME", ".gemini/settings.json"),
        programs=("gemini",),
        after="start a new session in a folder that it trusts; `/mcp` there shows the server",
        hooks=HookClient(
            ".gemini/settings.json",
            {
                "session-start": Event("SessionStart"),
                "user-prompt": Event("BeforeAgent"),
                # The automatic compaction precedes each request to the model.
                "pre-compact": Event("PreCompress", "manual"),
                "post-tool": Event("AfterTool", "^(run_shell_command|replace|write_file)$"),
                "stop": Event("AfterAgent"),
                "session-end": Event("SessionEnd"),
            },
            variable=("GEMINI_CLI_HOME", ".gemini/settings.json"),
            unit=1_000,
            off=("hooksConfig.enabled", False),
        ),
    ),
    "goose": Client(
        "Goose",
        ".config/goose/config.yaml",
        "extensions",
        variable=("GOOSE_PATH_ROOT", "config/config.yaml"),
        format="yaml",
        programs=("goose",),
        more={"name": SERVER, "type": "stdio", "enabled": True, "timeout": 300},
        command="cmd",
        after="start a new session",
    ),
}

HOOK_CLIENTS: Final[Mapping[str, HookClient]] = {
    name: client.hooks for name, client in CLIENTS.items() if client.hooks is not None
}
"""The hooks of each client that has them."""

BY_HAND: Final[Mapping[str, str]] = {
    "jetbrains": "JetBrains: Settings, Tools, AI Assistant, Model Context Protocol, Add, As JSON; paste this",
}
"""Clients with settings that the user edits by hand, and the place of the settings."""
