"""The clients that `greenroom setup` knows: where each keeps its servers, and in which form."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

Format = Literal["json", "yaml", "toml"]
SERVER: Final = "greenroom"
"""What the server is called in a client's file."""


class Own(NamedTuple):
    """The commands with which a client puts a server into its own settings, and takes it out.

    Attributes:
        add: Its arguments; the entry follows, as JSON.
        remove: Its arguments.
    """

    add: tuple[str, ...]
    remove: tuple[str, ...]


@dataclass(frozen=True)
class Client:
    """A client with a file of servers.

    Attributes:
        title: What its makers call it.
        linux: Its file below the home folder, or below the current folder where it is a project's.
        key: The member of the file that has the servers by name.
        macos: The same on macOS; None where it is the same.
        variable: The variable of the environment with another folder, and the file below that.
        format: The format of the file.
        programs: The commands that show that it is installed; the first one there tells its version.
        sign: The folder below the home folder that shows it, besides that of its file.
        extension: What it is called as an extension of VS Code.
        more: Members of the entry besides the command and its arguments.
        command: What the entry calls the command.
        own: Its own commands, used where it may be running and write the file meanwhile.
        project: Whether the file is that of the current project; taken only where it is named.
        after: What its user does next.
    """

    title: str
    linux: str
    key: str
    macos: str | None = None
    variable: tuple[str, str] | None = None
    format: Format = "json"
    programs: tuple[str, ...] = ()
    sign: str | None = None
    extension: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    command: str = "command"
    own: Own | None = None
    project: bool = False
    after: str = "restart it"

    def path(self, platform: str = sys.platform) -> Path:
        """Return where its file is, whether it is there or not."""
        if self.project:
            return Path.cwd() / self.linux
        if self.variable is not None:
            told = Path(os.environ.get(self.variable[0], ""))
            if told.is_absolute():
                return told / self.variable[1]
        below = (self.macos if platform == "darwin" else None) or self.linux
        # What follows the freedesktop rules has its folder elsewhere where the user says so.
        config = Path(os.environ.get("XDG_CONFIG_HOME", ""))
        if platform != "darwin" and below.startswith(".config/") and config.is_absolute():
            return config / below.removeprefix(".config/")
        return Path.home() / below

    def program(self) -> str | None:
        """Return the path of its command, if it is there."""
        return next((found for each in self.programs if (found := shutil.which(each))), None)

    def extension_folders(self) -> list[Path]:
        """Return the folders of its versions as an extension."""
        if self.extension is None:
            return []
        return sorted((Path.home() / ".vscode/extensions").glob(f"{self.extension}-[0-9]*"))

    def is_installed(self) -> bool:
        """Whether there are signs of it: its program, its file or a folder of its own."""
        path = self.path()
        own_folder = path.parent not in {Path.home(), Path.cwd()} and path.parent.is_dir()
        sign = self.sign is not None and (Path.home() / self.sign).is_dir()
        return path.exists() or own_folder or sign or bool(self.program() or self.extension_folders())

    def entry(self, command: str, arguments: list[str]) -> dict[str, Any]:
        """Return what stands under the server's name in its file."""
        return {**self.more, self.command: command, "args": arguments}


_CODE_LINUX: Final = ".config/Code/User/"
_MAC: Final = "Library/Application Support/"
_STDIO: Final = {"type": "stdio"}

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
    ),
    "claude-code-project": Client(
        "Claude Code, this project",
        ".mcp.json",
        "mcpServers",
        programs=("claude",),
        more=_STDIO,
        project=True,
        after="start a new session in this folder, and approve the server when asked",
    ),
    "cursor": Client(
        "Cursor",
        ".cursor/mcp.json",
        "mcpServers",
        programs=("cursor",),
        more=_STDIO,
        after="look at its settings under MCP, and switch it on",
    ),
    "vscode": Client(
        "VS Code",
        f"{_CODE_LINUX}mcp.json",
        "servers",
        macos=f"{_MAC}Code/User/mcp.json",
        programs=("code",),
        more=_STDIO,
        after="run `MCP: List Servers`, start it, and trust it when asked; agent mode has its tools",
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
        more={"source": "custom"},  # versions of 2025 do not read it without
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
        ".continue/mcpServers/greenroom.json",  # one of ours alone: its other file has a list
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
    ),
    "gemini": Client(
        "Gemini CLI",
        ".gemini/settings.json",
        "mcpServers",
        variable=("GEMINI_CLI_HOME", ".gemini/settings.json"),
        programs=("gemini",),
        after="start a new session in a folder that it trusts; `/mcp` there shows the server",
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

BY_HAND: Final[Mapping[str, str]] = {
    "jetbrains": "JetBrains: Settings, Tools, AI Assistant, Model Context Protocol, Add, As JSON; paste this",
}
"""Clients whose settings a person edits, and where."""
