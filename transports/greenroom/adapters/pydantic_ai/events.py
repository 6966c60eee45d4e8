"""Model messages as MCP clients see them: a text and its author. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from greenroom.actors import Event
from greenroom.adapters.base.extras import needs

with needs("pydantic-ai"):
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        RetryFeedbackPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

LONGEST: Final = 10_000
"""The default limit of a message's characters."""


def as_event(message: ModelMessage, agent_id: str, longest: int) -> Event:
    """Convert a message to an event for those who read the session.

    Args:
        message: A message of a user, a tool or a model.
        agent_id: The model's id in the session.
        longest: Most characters of the text; the end of a longer one is cut.
    """
    texts = list(_texts(message))
    text = "\n".join(texts) or f"({', '.join(part.part_kind for part in message.parts) or message.kind})"
    has_text = any(isinstance(part, UserPromptPart | TextPart) for part in message.parts)
    from_user = isinstance(message, ModelRequest) and has_text
    return Event(
        event_type="message" if has_text else "tool_call",
        actor="user" if from_user else f"agent:{agent_id}",
        content={"text": text if len(text) <= longest else f"{text[: longest - 1]}…"},
    )


def _texts(message: ModelMessage) -> Iterator[str]:
    for part in message.parts:
        match part:
            case UserPromptPart(content=str(text)) | TextPart(content=text):
                yield text
            case UserPromptPart(content=contents):
                for content in contents:
                    yield content if isinstance(content, str) else f"({content.kind})"
            case ToolCallPart():
                yield f"{part.tool_name}({part.args_as_json_str()})"
            case ToolReturnPart():
                yield f"{part.tool_name}: {part.model_response_str()}"
            case RetryFeedbackPart(content=str(text)):
                yield text
            case _:
                pass
