"""Items of a conversation as events of a session, and back.

An event's content has the item, as it was given, at one of two places:

- ``{"text": …, "metadata": {"item": …, "text_at": […]}}`` for what somebody said: agents see the text as a
  message. Where it is one text, the item has null in its place, and ``text_at`` is the way to there;
- ``{"item": …}`` for all others.
"""

from __future__ import annotations

import copy
from typing import Any, Final, Literal, NamedTuple

from greenroom.actors.base.two_ends import two_ends

EventType = Literal["message", "action", "tool_call", "reflection"]

_ACTORS: Final = {"user": "user", "system": "system", "developer": "system"}
_ROLES: Final = frozenset({*_ACTORS, "assistant"})
_TEXTS: Final = ("text", "refusal")


class Content(NamedTuple):
    """What an event of an item is, and whose.

    Attributes:
        event_type: That of the event.
        role: Whose doing it was: ``user``, ``system``, or None for the agent.
        content: That of the event.
    """

    event_type: EventType
    role: str | None
    content: dict[str, Any]


def content_of(item: Any, longest: int | None) -> Content:
    """Return what becomes of an item.

    Args:
        item: Anything that JSON can hold.
        longest: How many characters a message may have; the middle of a longer text is left out of what
            agents see, and is in the item alone.
    """
    role = _role(item)
    if role is None:
        return Content(_event_type(item), None, {"item": item})
    actor = _ACTORS.get(role)
    texts = _texts(item)
    if not texts:
        return Content("action", actor, {"item": item})
    text = "\n".join(text for _, text in texts)
    if len(texts) > 1 or (longest is not None and len(text) > longest):
        shown = text if longest is None else two_ends(text, longest)
        return Content("message", actor, {"text": shown, "metadata": {"item": item}})
    [(path, _)] = texts
    metadata = {"item": _with(item, path, None), "text_at": path}
    return Content("message", actor, {"text": text, "metadata": metadata})


def item_of(content: dict[str, Any]) -> Any:
    """Return the item that an event's content was made of."""
    if "item" in content:
        return content["item"]
    metadata = content["metadata"]
    if "text_at" not in metadata:
        return metadata["item"]
    return _with(metadata["item"], metadata["text_at"], content["text"])


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
    """Return the texts of a message, each with the way to it."""
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
    """Return an item with another value at a place; what is on the way there is copied."""
    changed: Any = copy.copy(item)
    place = changed
    for step in path[:-1]:
        place[step] = copy.copy(place[step])
        place = place[step]
    place[path[-1]] = value
    return dict(changed)
