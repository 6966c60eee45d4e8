"""What clients tell hooks and write into transcripts, built by the published references, and no recordings.

Claude Code: its reference of hooks, and what is generally known of its transcripts, which no page specifies.
Codex CLI: the JSON schemas that it generates of its hooks' input, and the lines of its rollouts.
Gemini CLI: the page "Hooks reference" of its documentation. Cursor: its page of hooks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
"""Looks like a token of GitHub's; nobody's."""

STOPS: dict[str, dict[str, Any]] = {
    "claude-code": {
        "session_id": "s-1",
        "transcript_path": "",
        "cwd": "/srv/app",
        "permission_mode": "default",
        "hook_event_name": "Stop",
        "stop_hook_active": False,
        "last_assistant_message": "Done.",
    },
    "codex": {
        "session_id": "s-1",
        "turn_id": "t-1",
        "transcript_path": None,
        "cwd": "/srv/app",
        "hook_event_name": "Stop",
        "model": "gpt",
        "permission_mode": "default",
        "stop_hook_active": False,
        "last_assistant_message": "Done.",
    },
    "gemini": {
        "session_id": "s-1",
        "transcript_path": "/home/ann/.gemini/tmp/x/chats/session-1.json",
        "cwd": "/srv/app",
        "hook_event_name": "AfterAgent",
        "timestamp": "2026-11-26T02:00:00Z",
        "prompt": "Use tabs from now on.",
        "prompt_response": "I will.",
        "stop_hook_active": False,
    },
    "cursor": {
        "conversation_id": "s-1",
        "generation_id": "g-1",
        "model": "m",
        "hook_event_name": "stop",
        "cursor_version": "3.24",
        "workspace_roots": ["/srv/app"],
        "user_email": None,
        "transcript_path": None,
        "status": "completed",
        "loop_count": 0,
    },
}


def line(**members: Any) -> str:
    return json.dumps(members) + "\n"


def said(role: str, text: str, **more: Any) -> str:
    """A line of a transcript of Claude Code."""
    return line(
        type=role, message={"role": role, "content": text}, timestamp="2026-11-26T02:00:00.000Z", **more
    )


def called(tool: str, key: str, **given: Any) -> str:
    block = {"type": "tool_use", "id": key, "name": tool, "input": given}
    return line(type="assistant", message={"role": "assistant", "content": [block]})


def returned(key: str, text: str, *, failed: bool = False) -> str:
    block = {"type": "tool_result", "tool_use_id": key, "content": text, "is_error": failed}
    return line(type="user", message={"role": "user", "content": [block]})


def transcript(home: Path, *lines: str, name: str = "s-1") -> Path:
    """Write a transcript where Claude Code keeps them."""
    path = home / ".claude" / "projects" / "-work-app" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    return path
