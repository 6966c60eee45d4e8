"""What MCP clients see of a model message: one text, and whose it is. Pure functions."""

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
"""Characters that a message may have where nothing else is configured."""


def as_event(message: ModelMessage, agent_id: str, longest: int) -> Event:
    """Return an event that shows a message to whoever reads the session.

    Args:
        message: What a user, a tool or a model said.
        agent_id: Who the model is, in the session.
        longest: The most characters of the text; of a longer one the end is left out.
    """
    texts = list(_texts(message))
    text = "\n".join(texts) or f"({', '.join(part.part_kind for part in message.parts) or message.kind})"
    said = any(isinstance(part, UserPromptPart | TextPart) for part in message.parts)
    from_user = isinstance(message, ModelRequest) and said
    return Event(
        event_type="message" if said else "tool_call",
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
