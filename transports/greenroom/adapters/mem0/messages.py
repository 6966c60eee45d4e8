"""The messages of `add`, and their texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Extractor = Callable[[Sequence[dict[str, Any]]], Sequence[str]]
"""Makes the texts of memories from messages."""


class ValidationError(Exception):
    """Arguments of ``add`` are wrong; the error has the same members as mem0's."""

    def __init__(self, message: str, error_code: str, details: dict[str, Any], suggestion: str) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = error_code
        self.details = details
        self.suggestion = suggestion
        self.debug_info: dict[str, Any] = {}


class Kept(NamedTuple):
    """A text to store."""

    text: str
    role: str | None = None  # the role, if the text comes from a message
    name: str | None = None  # the name in the message, if there is one


def read(messages: Any) -> list[Kept]:
    """Return the texts of messages; system messages and invalid ones are dropped as in mem0."""
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
    """Return the text of a message; text parts are joined by line ends."""
    if isinstance(content, list):
        parts = [
            part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"
        ]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def extract(extractor: Extractor, kept: Sequence[Kept]) -> list[Kept]:
    """Return the texts that an extractor makes of messages."""
    messages = [
        {"role": each.role, "content": each.text} | ({"name": each.name} if each.name else {})
        for each in kept
    ]
    return [Kept(text) for text in extractor(messages) if text.strip()]
