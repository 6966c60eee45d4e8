"""The clients that `greenroom setup` knows: where each keeps its servers, and in which form."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

Format = Literal["json", "yaml", "toml"]
SERVER: Final = "greenroom"
"""What the server is called in a client's file."""


@dataclass(frozen=True)
class Client:
    """A client with a file of servers.

    Attributes:
        title: What its makers call it.
        linux: Its file below the home folder, or below the current folder where it is a project's.
        macos: The same on macOS; None where it is the same.
        key: The member of the file that has the servers by name.
        program: The command whose presence shows that it is installed, besides the folder of its file.
        more: Members of the entry besides the command and its arguments.
        command: What the entry calls the command.
        project: Whether the file is that of the current project; taken only where it is named.
        after: What its user does next.
    """

    title: str
    linux: str
    key: str
    macos: str | None = None
    format: Format = "json"
    program: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    command: str = "command"
    project: bool = False
    after: str = "restart it"

    def path(self) -> Path:
        """Return where its file is, whether it is there or not."""
        if self.project:
            return Path.cwd() / self.linux
        below = (self.macos if sys.platform == "darwin" else None) or self.linux
        # What follows the freedesktop rules has its folder elsewhere where the user says so.
        config = Path(os.environ.get("XDG_CONFIG_HOME", ""))
        if sys.platform != "darwin" and below.startswith(".config/") and config.is_absolute():
            return config / below.removeprefix(".config/")
        return Path.home() / below

    def is_installed(self) -> bool:
        """Whether there are signs of it: its program, its file or a folder of its own."""
        path = self.path()
        own_folder = path.parent not in {Path.home(), Path.cwd()} and path.parent.is_dir()
        return path.exists() or own_folder or bool(self.program and shutil.which(self.program))

    def entry(self, command: str, arguments: list[str]) -> dict[str, Any]:
        """Return what stands under the server's name in its file."""
        return {**self.more, self.command: command, "args": arguments}


_CODE_LINUX: Final = ".config/Code/User/"
_MAC: Final = "Library/Application Support/"
_CODE_MAC: Final = f"{_MAC}Code/User/"
_CLINE: Final = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"

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
        program="claude",
        more={"type": "stdio"},
        after="start a new session; `/mcp` there shows the server",
    ),
    "claude-code-project": Client(
        "Claude Code, this project",
        ".mcp.json",
        "mcpServers",
        more={"type": "stdio"},
        project=True,
        after="start a new session in this folder, and approve the server when asked",
    ),
    "cursor": Client(
        "Cursor", ".cursor/mcp.json", "mcpServers", after="look at its settings under MCP, and switch it on"
    ),
    "vscode": Client(
        "VS Code",
        f"{_CODE_LINUX}mcp.json",
        "servers",
        macos=f"{_CODE_MAC}mcp.json",
        program="code",
        more={"type": "stdio"},
        after="run `MCP: List Servers`, start it, and trust it when asked; agent mode has its tools",
    ),
    "windsurf": Client(
        "Windsurf",
        ".codeium/windsurf/mcp_config.json",
        "mcpServers",
        program="windsurf",
        after="refresh the servers in its settings",
    ),
    "zed": Client(
        "Zed",
        ".config/zed/settings.json",
        "context_servers",
        program="zed",
        after="nothing: it takes the file up at once",
    ),
    "cline": Client(
        "Cline",
        f"{_CODE_LINUX}{_CLINE}",
        "mcpServers",
        macos=f"{_CODE_MAC}{_CLINE}",
        after="nothing: it takes the file up at once",
    ),
    "codex": Client(
        "Codex CLI",
        ".codex/config.toml",
        "mcp_servers",
        format="toml",
        program="codex",
        after="start a new session",
    ),
    "gemini": Client(
        "Gemini CLI", ".gemini/settings.json", "mcpServers", program="gemini", after="start a new session"
    ),
    "goose": Client(
        "Goose",
        ".config/goose/config.yaml",
        "extensions",
        format="yaml",
        program="goose",
        more={"name": SERVER, "type": "stdio", "enabled": True, "timeout": 300},
        command="cmd",
        after="start a new session",
    ),
}

BY_HAND: Final[Mapping[str, str]] = {
    "continue": "Continue: add this to the list `mcpServers` of ~/.continue/config.yaml",
    "jetbrains": "JetBrains: Settings, Tools, AI Assistant, Model Context Protocol, Add, As JSON; paste this",
}
"""Clients whose settings a person edits, and where."""
