"""The types of tool parameters, with their limits and short descriptions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth.policy import Visibility
from greenroom.runtime import Message

MAX_MESSAGE_ID = (1 << 53) - 1

# In Python, `$` also matches before a last newline; with the lookahead, every dialect matches the same.
SESSION_ID = r"^[A-Za-z0-9_.-]{1,128}(?!\n)$"
_TAKES_SESSION_ID = "1 to 128 characters of A-Z, a-z, 0-9, _ . -"
SessionId = Annotated[
    str, Meta(pattern=SESSION_ID, description="the session's id", extra={"takes": _TAKES_SESSION_ID})
]
OrCurrent = Annotated[
    str, Meta(pattern=SESSION_ID, description="default: current", extra={"takes": _TAKES_SESSION_ID})
]
"""A session's id; if absent, the client's current session is meant."""
BoundTo = Annotated[SessionId, Meta(description="this session's; null = global")]
Purpose = Annotated[str, Meta(min_length=1, max_length=500, description="what the session is for")]
Name = Annotated[str, Meta(min_length=1, max_length=128)]
UserId = Annotated[Name, Meta(description="you; no one else is allowed")]
Content = Annotated[
    str,
    Meta(
        min_length=1,
        description="what to say; 10,000 characters unless configured",
        extra={"takes": "a string of at least 1 character"},
        extra_json_schema={"maxLength": 1_048_576},
    ),
]
"""The content of a message. The session's actor knows and names the configured limit."""
MessageType = Annotated[
    str, Meta(min_length=1, max_length=50, description="any word of yours; human_input: by a person")
]
MessageId = Annotated[int, Meta(ge=0, le=MAX_MESSAGE_ID)]
Sender = Annotated[str, Meta(min_length=1, max_length=100, description="the agent's id")]
SearchText = Annotated[str, Meta(min_length=1, max_length=500, description="words that were said")]
Score = Annotated[float, Meta(ge=0, le=100, description="least score, 0-100")]
Instant = Annotated[datetime, Meta(tz=True)]
"""A time; `parse_request` reads a date, or a time without an offset, as UTC."""
DayEnd = Annotated[datetime, Meta(tz=True, extra={"ends_day": True})]
"""An `Instant`; a date means its end."""
Start = Annotated[Instant, Meta(description="date or time, included; UTC unless it says")]
End = Annotated[Instant, Meta(description="date or time, not included")]
LastTime = Annotated[DayEnd, Meta(description="date, to its end, or time; included")]
Offset = Annotated[int, Meta(ge=0, description="how many to skip")]
Cursor = Annotated[str, Meta(description="next_cursor")]
IdempotencyKey = Annotated[str, Meta(min_length=1, max_length=255, description="same key = done once")]

Limit100 = Annotated[int, Meta(ge=1, le=100, description="how many")]
Limit200 = Annotated[int, Meta(ge=1, le=200, description="how many")]
Limit1000 = Annotated[int, Meta(ge=1, le=1000, description="how many")]
Budget = Annotated[int, Meta(ge=1, description="tokens at most")]
Hours = Annotated[float, Meta(gt=0, description="how far back; null = all")]
Rows = Annotated[int, Meta(ge=1, description="newest ones only; null = all")]

MemoryKey = Annotated[
    str,
    Meta(
        max_length=255,
        description="its name",
        pattern='^[^/\\\\:*?"<>|\\x00-\\x1f\\x7f-\\x9f]+(?!\\n)$',
        extra={"takes": '1 to 255 characters, none of / \\ : * ? " < > | and no control characters'},
    ),
]
Prefix = Annotated[str, Meta(max_length=255, description="what the key begins with")]
MAX_LIFETIME = 31_536_000
Lifetime = Annotated[int, Meta(ge=1, le=MAX_LIFETIME, description="seconds")]
MemoryScope = Annotated[
    str,
    Meta(pattern=SESSION_ID, description="null = global, all = both", extra={"takes": _TAKES_SESSION_ID}),
]

Json = msgspec.Raw
"""Any JSON value, stored as the received bytes."""

OBJECT = {"is_object": True}
"""Marks raw JSON that must be an object."""
JsonObject = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"}, extra=OBJECT)]
"""A JSON object, stored as the received bytes."""

_NOTE = {"note": {"type": "string"}}
"""A member for objects with free members, because OpenAI's strict mode refuses objects without members."""
_ELEMENTS = ["string", "number", "boolean", "object", "null"]
GivenJson = Annotated[
    msgspec.Raw,
    Meta(
        description="any JSON value",
        extra_json_schema={
            "type": [*_ELEMENTS, "array"],
            "properties": _NOTE,
            "items": {"type": _ELEMENTS, "properties": _NOTE},
        },
    ),
]
"""A `Json` that is a parameter."""
OR_TEXT = {"type": ["object", "string"], "properties": _NOTE}
"""The schema of an object that may come as JSON in a string."""
GivenObject = Annotated[
    msgspec.Raw,
    Meta(description="any members, or that as JSON text", extra_json_schema=OR_TEXT, extra=OBJECT),
]
"""A `JsonObject` that is a parameter; it may come as JSON in a string."""

Changes = Annotated[
    msgspec.Raw, Meta(description="merged by top-level key", extra_json_schema=OR_TEXT, extra=OBJECT)
]
"""A `GivenObject` whose keys replace existing keys."""

SentVisibility = Annotated[Visibility, Meta(description="private: only you; agent_only: agents of your type")]
SinceId = Annotated[int, Meta(ge=0, le=MAX_MESSAGE_ID, description="only messages after this one")]
OldVersion = Annotated[int, Meta(ge=1, description="default newest")]
ProjectId = Annotated[str, Meta(min_length=1, max_length=128, description="only its members see it")]

SessionStatus = Literal["created", "active", "paused", "terminated", "archived"]
CLOSED: frozenset[SessionStatus] = frozenset({"terminated", "archived"})
NewStatus = Annotated[SessionStatus, Meta(description="what it becomes")]


RARE = Meta(extra_json_schema={"x-rare": True})
"""Marks a member that models seldom need in an argument: only the reference describes it."""

BRIEF = {"x-brief": True}
"""Marks a field that is listed without its members; only the reference describes the members."""

UNLISTED = {"x-unlisted": True}
"""Marks a field of a request that is no parameter: an alias of the tool sets it.

In a reply it marks a rare field that only the reference describes.
"""

NUMBER = {"x-number": True}
"""Marks a parameter that is listed as a number but also accepts a word."""


def no_fields() -> msgspec.Raw:
    """Return the empty JSON object, the default of every `JsonObject`."""
    return msgspec.Raw(b"{}")


class StatusOfSession(Message[SessionStatus | None], frozen=True, kw_only=True):
    """Read a session's status; None if it is hidden. Other requests depend on this request."""
