"""The tools that sessions travel between: how each is recognised, and how a file is mentioned in it.

What is not in the table is a tool, too: it goes by its own name, and files are mentioned by their paths.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from greenroom.actors.schemas import session_travel as travel

UNKNOWN: Final = "unknown"
_SHOWN: Final = 10
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


def briefing(context: travel.SessionContext, purpose: str, tool: str | None) -> str:
    """Return a context in words: what an agent that takes the work up is to know first."""
    mention = client_tool(tool).mention
    lines = [f"Session: {purpose}"]
    work = context.workflow_state
    if work is not None:
        step = "" if work.step is None else f", at: {work.step}"
        lines.append(f"Task ({work.status}): {work.task}{step}")
        lines += [f"Next: {each}" for each in work.next[:_SHOWN]]
        lines += [f"Waits for: {each}" for each in work.blockers[:_SHOWN]]
    for made in context.decisions[:_SHOWN]:
        lines.append(f"Decided: {made.what}" + ("" if made.why is None else f" (because {made.why})"))
    if context.files_accessed:
        named = " ".join(mention.format(file.path) for file in context.files_accessed[:_SHOWN])
        lines.append(f"Files: {named}")
    if context.recent_searches:
        lines.append(
            "Searched for: " + "; ".join(search.query for search in context.recent_searches[:_SHOWN])
        )
    return "\n".join(lines)


def _plain(name: str) -> str:
    """Return a name in small letters, without versions and without the word of what it came by."""
    short = _BY_WAY_OF.sub("", name.strip())
    return _RULED_OUT.sub("-", short.lower()).strip("-.")[:100]
