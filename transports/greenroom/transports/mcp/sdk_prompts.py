"""The methods of prompts, and completion, as handlers of the SDK's server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mcp_types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    ResourceTemplateReference,
)

from greenroom.actors import CompletePrompt, CompleteResource, GetPrompt, ListPrompts
from greenroom.actors.app.client.prompts import Prompt
from greenroom.transports.mcp.response_encoder import FRESH
from greenroom.transports.mcp.tools.content_blocks import Content

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from greenroom.transports.mcp.client_port import ClientPort
    from greenroom.transports.mcp.frames.calls import Call

    Context = ServerRequestContext[ClientPort, Call]

Ask = Callable[..., Awaitable[Any]]
"""Asks the domain in the name of a client: takes the context, a type of request and its fields.

Raises what the protocol answers.
"""


class PromptMethods:
    """What the SDK's server answers about prompts.

    Args:
        ask: Asks the domain.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def list(self, context: Context, params: PaginatedRequestParams) -> ListPromptsResult:
        """Answer a page of the prompts."""
        older = context.lifespan_context.offer.older_prompts
        page = await self._ask(context, ListPrompts, cursor=params.cursor, older=older)
        ttl, scope = FRESH
        listed: dict[str, Any] = {
            "prompts": list(map(_listed, page.prompts)),
            "ttlMs": ttl,
            "cacheScope": scope,
        }
        if page.next_cursor is not None:
            listed["nextCursor"] = page.next_cursor
        return ListPromptsResult.model_validate(listed)

    async def get(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """Answer a prompt, filled."""
        filled = await self._ask(context, GetPrompt, name=params.name, arguments=params.arguments or {})
        if isinstance(filled, Content):
            messages = [{"role": "user", "content": block} for block in filled.blocks]
            return GetPromptResult.model_validate({"messages": messages})
        message = {"role": "user", "content": {"type": "text", "text": filled.text}}
        return GetPromptResult.model_validate({"description": filled.description, "messages": [message]})

    async def complete(self, context: Context, params: CompleteRequestParams) -> CompleteResult:
        """Answer the values of an argument of a prompt, or of a variable of a resource template."""
        reference, argument = params.ref, params.argument
        known = {} if params.context is None else params.context.arguments or {}
        if isinstance(reference, ResourceTemplateReference):
            found = await self._ask(
                context,
                CompleteResource,
                template=reference.uri,
                argument=argument.name,
                value=argument.value,
                known=known,
            )
        else:
            found = await self._ask(
                context,
                CompletePrompt,
                prompt=reference.name,
                argument=argument.name,
                value=argument.value,
                arguments=known,
            )
        total = None if found.has_more else len(found.values)
        completion = Completion(values=found.values, has_more=found.has_more, total=total)
        return CompleteResult(completion=completion)


def _listed(prompt: Prompt) -> dict[str, Any]:
    return {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": [
            {"name": each.name, "description": each.description, "required": each.required}
            for each in prompt.arguments
        ],
    }
