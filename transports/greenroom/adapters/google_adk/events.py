"""Convert the kit's events: their text becomes a message's text, everything else its metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from greenroom.actors.app.services.base import from_json
from greenroom.actors.content.text.truncate import truncate_middle
from greenroom.actors.sessions.requests.requests import EventView
from greenroom.adapters.base.extras import needs
from greenroom.adapters.google_adk.names import actor_of

with needs("google-adk"):
    from google.adk.events.event import Event
    from google.genai import types

WHOLE: Final = "adk"
"""The member of an event's content or metadata that holds the kit's event."""
_TEXT_AT: Final = "text_at"
"""The member that holds the number of the part from which the message's text comes."""
_IN_PARTS: Final = "in_parts"
"""The member that marks an event as too large for a message; it holds the event's type."""
_LONGEST_SHOWN: Final = 10_000
_MESSAGE_ID = re.compile(r"message_[0-9]+", re.ASCII)


def texts_in(content: types.Content | None) -> list[str]:
    """Return the texts of a content, without thoughts."""
    return [text for _, text in _texts(content)]


def text_of(content: types.Content | None) -> str:
    """Return the texts of a content, joined by line ends."""
    return "\n".join(texts_in(content))


def _content_of(event: Event, whole: dict[str, Any]) -> dict[str, Any]:
    """Return the content for the Greenroom event; `restore` makes the kit's event of it."""
    texts = _texts(event.content)
    if not texts:
        return {WHOLE: whole}
    metadata: dict[str, Any] = {WHOLE: whole}
    if len(texts) == 1:
        at = texts[0][0]
        metadata[_TEXT_AT] = at
        del whole["content"]["parts"][at]["text"]
    return {"text": text_of(event.content), "metadata": metadata}


def _preview_of(event: Event) -> dict[str, Any]:
    """Return what agents see of an event that is too large for a message."""
    text = text_of(event.content)
    return {"text": truncate_middle(text, _LONGEST_SHOWN)} if text else {_IN_PARTS: _type_of(event)}


def _type_of(event: Event) -> str:
    """Return the type of the Greenroom event."""
    if event.get_function_calls() or event.get_function_responses():
        return "tool_call"
    if _texts(event.content):
        return "message"
    has_thoughts = any(part.thought for part in _parts(event.content))
    return "reflection" if has_thoughts else "action"


def restore(event: EventView) -> Event | None:
    """Return the kit's event; None if a passport left it out.

    An agent's message from outside the kit becomes an event with its text.
    """
    content = from_json(event.content)
    if {*content} == {_IN_PARTS} and not is_message(event.event_id):
        return None
    text, metadata = content.get("text"), content.get("metadata", content)
    if is_message(event.event_id) or not isinstance(metadata, dict) or WHOLE not in metadata:
        message = text if isinstance(text, str) else json.dumps(content, ensure_ascii=False)
        author = event.actor.removeprefix("agent:")
        role = "user" if author == "user" else "model"
        return Event(
            id=event.event_id,
            author=author,
            timestamp=event.timestamp.timestamp(),
            content=types.Content(role=role, parts=[types.Part(text=message)]),
        )
    whole = metadata[WHOLE]
    if _TEXT_AT in metadata:
        whole["content"]["parts"][metadata[_TEXT_AT]]["text"] = text
    return Event.model_validate(whole)


def to_append(event: Event, is_kept: Callable[[str], bool]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the Greenroom event's fields, and the changes of the state that are kept."""
    whole = json.loads(event.model_dump_json(exclude_none=True))
    delta = {key: value for key, value in whole["actions"]["state_delta"].items() if is_kept(key)}
    whole["actions"]["state_delta"] = delta
    fields = {
        "event_id": event.id,
        "event_type": _type_of(event),
        "actor": actor_of(event.author),
        "content": _content_of(event, whole),
        "shown": _preview_of(event),
        "is_final_response": event.is_final_response(),
    }
    at = time_of(event)
    return (fields if at is None else {**fields, "timestamp": at.isoformat()}), delta


def is_message(event_id: str) -> bool:
    """Return whether an event is a tool's message, not the kit's event."""
    return _MESSAGE_ID.fullmatch(event_id) is not None


def time_of(event: Event) -> datetime | None:
    """Return the time to the microsecond; None outside of the years 1 to 9999."""
    try:
        return datetime.fromtimestamp(event.timestamp, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _parts(content: types.Content | None) -> list[types.Part]:
    return [] if content is None else content.parts or []


def _texts(content: types.Content | None) -> list[tuple[int, str]]:
    """Return the texts of a content without thoughts, each with the number of its part."""
    return [(at, part.text) for at, part in enumerate(_parts(content)) if part.text and not part.thought]
