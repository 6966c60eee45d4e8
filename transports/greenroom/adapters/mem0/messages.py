"""What `add` is given: one text, one message or several; and which texts of them are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from greenroom.adapters.mem0.errors import ValidationError

Extractor = Callable[[Sequence[dict[str, Any]]], Sequence[str]]
"""Makes of messages the texts that are worth keeping, each of which becomes a memory."""


class Kept(NamedTuple):
    """A text that is to be kept.

    Attributes:
        text: The text.
        role: Who said it, where it is a message.
        name: By which name, where that is told.
    """

    text: str
    role: str | None = None
    name: str | None = None


def read(messages: Any) -> list[Kept]:
    """Return the texts of messages; those of the system, and what is no message, are left out as mem0 does.

    Raises:
        ValidationError: it is neither a text, a message nor a list.
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    elif isinstance(messages, dict):
        messages = [messages]
    elif not isinstance(messages, list):
        raise ValidationError(
            "messages must be str, dict, or list[dict]",
            "VALIDATION_003",
            {"provided_type": type(messages).__name__, "valid_types": ["str", "dict", "list[dict]"]},
            "Convert your input to a string, dictionary, or list of dictionaries.",
        )
    return [
        Kept(text, each["role"], name if isinstance(name := each.get("name"), str) and name else None)
        for each in messages
        if isinstance(each, dict) and isinstance(each.get("role"), str) and each["role"] != "system"
        if (text := _text(each.get("content"))).strip()
    ]


def _text(content: Any) -> str:
    """Return the text of a message; of several parts those that are text, a line each."""
    if isinstance(content, list):
        parts = [
            part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"
        ]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def extracted(extractor: Extractor, kept: Sequence[Kept]) -> list[Kept]:
    """Return what an extractor makes of messages."""
    said = [
        {"role": each.role, "content": each.text} | ({"name": each.name} if each.name else {})
        for each in kept
    ]
    return [Kept(text) for text in extractor(said) if text.strip()]
