"""Convert items of a conversation to events of a session, and back.

An event's content has the unchanged item at one of two places:

- ``{"text": …, "metadata": {"item": …, "text_at": […]}}`` for a message; agents see the text. If the item
  has only one text, it is null there, and ``text_at`` is the path to it; ``middle`` is the part that was cut
  from a text that is too long for a message;
- ``{"item": …}`` for all other items.

Agents see the text of an item over 1 MB, cut in the middle, or its type; see `Event.shown`.
"""

from __future__ import annotations

import copy
from typing import Any, Final, Literal, NamedTuple

from greenroom.actors.content.text.truncate import truncate_middle

EventType = Literal["message", "action", "tool_call", "reflection"]

LONGEST_TOGETHER: Final = 10_000
"""The most characters that agents see of an item with several texts."""
IN_PARTS: Final = "in_parts"
"""The member that marks an item as too large for a message; it holds the item's type."""
_GAP: Final = "…"
_ACTORS: Final = {"user": "user", "system": "system", "developer": "system"}
_ROLES: Final = frozenset({*_ACTORS, "assistant"})
_TEXTS: Final = ("text", "refusal")


class Content(NamedTuple):
    """The type, role and content of an item's event."""

    event_type: EventType
    role: str | None  # ``user``, ``system``, or None for the agent
    content: dict[str, Any]  # the content of the event


def content_of(item: Any, longest: int | None) -> Content:
    """Convert an item to an event's content."""
    role = _role(item)
    if role is None:
        return Content(_event_type(item), None, {"item": item})
    actor = _ACTORS.get(role)
    texts = _texts(item)
    if not texts:
        return Content("action", actor, {"item": item})
    if len(texts) > 1:
        most = LONGEST_TOGETHER if longest is None else min(longest, LONGEST_TOGETHER)
        text = truncate_middle("\n".join(text for _, text in texts), most)
        return Content("message", actor, {"text": text, "metadata": {"item": item}})
    [(path, text)] = texts
    metadata = {"item": _with(item, path, None), "text_at": path}
    half = 0 if longest is None else (longest - len(_GAP)) // 2
    if longest is not None and len(text) > longest and half > 0:
        metadata["middle"] = text[half:-half]
        text = f"{text[:half]}{_GAP}{text[-half:]}"
    return Content("message", actor, {"text": text, "metadata": metadata})


def preview_of(item: Any, longest: int | None) -> dict[str, Any]:
    """Return what agents see of an item that is too large for a message."""
    texts = [text for _, text in _texts(item)] if _role(item) is not None else []
    if not texts:
        kind = item.get("type") if isinstance(item, dict) else None
        return {IN_PARTS: kind if isinstance(kind, str) else "item"}
    most = LONGEST_TOGETHER if longest is None else min(longest, LONGEST_TOGETHER)
    return {"text": truncate_middle("\n".join(texts), most), "metadata": {IN_PARTS: "message"}}


def is_lost(content: dict[str, Any]) -> bool:
    """Return whether a passport left the item out because of its size."""
    return IN_PARTS in content or ("item" not in content and IN_PARTS in content["metadata"])


def item_of(content: dict[str, Any]) -> Any:
    """Return the item of an event's content."""
    if "item" in content:
        return content["item"]
    metadata = content["metadata"]
    if "text_at" not in metadata:
        return metadata["item"]
    text, middle = content["text"], metadata.get("middle")
    if middle is not None:
        half = len(text) // 2
        text = text[:half] + middle + text[half + len(_GAP) :]
    return _with(metadata["item"], metadata["text_at"], text)


def _role(item: Any) -> str | None:
    """Return the role of an item that is a message, else None."""
    if not isinstance(item, dict) or item.get("type", "message") != "message":
        return None
    role = item.get("role")
    return role if isinstance(role, str) and role in _ROLES else None


def _event_type(item: Any) -> EventType:
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(kind, str):
        return "action"
    if kind == "reasoning":
        return "reflection"
    return "tool_call" if "_call" in kind or kind.startswith(("mcp_", "tool_")) else "action"


def _texts(item: dict[str, Any]) -> list[tuple[list[str | int], str]]:
    """Return the texts of a message, each with its path."""
    content = item.get("content")
    if isinstance(content, str):
        return [(["content"], content)] if content else []
    parts = content if isinstance(content, list) else []
    return [
        (["content", number, name], part[name])
        for number, part in enumerate(parts)
        if isinstance(part, dict)
        for name in _TEXTS
        if isinstance(part.get(name), str) and part[name]
    ]


def _with(item: dict[str, Any], path: list[str | int], value: str | None) -> dict[str, Any]:
    """Return an item with another value at a path; everything on the path is copied."""
    changed: Any = copy.copy(item)
    place = changed
    for step in path[:-1]:
        place[step] = copy.copy(place[step])
        place = place[step]
    place[path[-1]] = value
    return dict(changed)
