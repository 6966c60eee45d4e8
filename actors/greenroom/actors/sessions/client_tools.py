"""The tools that sessions travel between: how each is recognised, and how a file is mentioned in it.

What is not in the table is a tool, too: it goes by its own name, and files are mentioned by their paths.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

UNKNOWN: Final = "unknown"
_RULED_OUT: Final = re.compile(r"[^a-z0-9_.-]+")
_BY_WAY_OF: Final = re.compile(
    r"\s*\(via [^)]*\)|-via-mcp-remote.*|-mcp-client$|\s*v?\d+(\.\d+)+$", re.IGNORECASE
)


class ClientTool(NamedTuple):
    """A tool.

    Attributes:
        tool_id: What sessions call it.
        title: What people call it.
        names: The names that it gives itself in ``clientInfo``, as `_plain` writes them.
        mention: How a file is mentioned in it, with ``{}`` for the path.
        rules: The file in which a project tells it what to do; None where there is none.
    """

    tool_id: str
    title: str
    names: tuple[str, ...] = ()
    mention: str = "`{}`"
    rules: str | None = None


ADAPTERS: Final = (
    ClientTool("claude-desktop", "Claude Desktop", ("claude-ai", "claude-desktop", "claude")),
    ClientTool("claude-code", "Claude Code", ("claude-code",), "@{}", "CLAUDE.md"),
    ClientTool("cursor", "Cursor", ("cursor", "cursor-vscode", "cursor-agent"), "@{}", ".cursor/rules"),
    ClientTool(
        "vscode",
        "VS Code",
        ("visual-studio-code", "visual-studio-code-insiders", "vscode", "vs-code", "code"),
        "#file:{}",
        ".github/copilot-instructions.md",
    ),
    ClientTool("windsurf", "Windsurf", ("windsurf", "windsurf-client", "codeium"), "@{}", ".windsurf/rules"),
    ClientTool("zed", "Zed", ("zed", "zed-editor"), "@{}", ".rules"),
    ClientTool(
        "continue",
        "Continue",
        ("continue", "continue-client", "continue-cli-client"),
        "@{}",
        ".continue/rules",
    ),
    ClientTool("cline", "Cline", ("cline", "cline-bot"), "@/{}", ".clinerules"),
)
"""The tools that are known."""

_BY_NAME: Final = {name: adapter for adapter in ADAPTERS for name in (adapter.tool_id, *adapter.names)}


def client_tool(name: str | None) -> ClientTool:
    """Return the tool that gives itself this name, or the one that goes by it."""
    plain = _plain(name or "")
    known = _BY_NAME.get(plain)
    return (
        known
        if known is not None
        else ClientTool(plain or UNKNOWN, (name or "").strip()[:100] or "this tool")
    )


def _plain(name: str) -> str:
    """Return a name in small letters, without versions and without the word of what it came by."""
    short = _BY_WAY_OF.sub("", name.strip())
    return _RULED_OUT.sub("-", short.lower()).strip("-.")[:100]
