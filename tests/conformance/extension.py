"""What talks back, and logging, as handlers of an SDK server; with what else a bare one needs, prompts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

from conformance import asking, talking
from conformance.answers import ASKING_PROMPT, COMPLETED, PROMPTS, TALKS, prompt_blocks, text
from conformance.sdk_side import SdkSide
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    SetLevelRequestParams,
)

Context = talking.Context
Talking = Callable[[Context, CallToolRequestParams], Awaitable[CallToolResult | InputRequiredResult]]

_TALKING: Mapping[str, Talking] = {
    "test_tool_with_logging": talking.log_thrice,
    "test_logging_tool": talking.log_once,
    "test_tool_with_progress": talking.report_progress,
    "test_reconnection": talking.close_stream,
    "test_missing_capability": talking.need_sampling,
    "test_sampling": talking.sample,
    "test_elicitation": talking.elicit,
    "test_elicitation_sep1034_defaults": talking.elicit_with_defaults,
    "test_elicitation_sep1330_enums": talking.elicit_choices,
    "test_streaming_elicitation": asking.report_and_ask_name,
    "test_input_required_result_elicitation": asking.ask_name,
    "test_input_required_result_sampling": asking.ask_model,
    "test_input_required_result_list_roots": asking.ask_roots,
    "test_input_required_result_request_state": asking.ask_with_state,
    "test_input_required_result_multiple_inputs": asking.ask_all,
    "test_input_required_result_multi_round": asking.ask_twice,
    "test_input_required_result_tampered_state": asking.ask_with_state,
    "test_input_required_result_capabilities": asking.ask_as_declared,
}
assert _TALKING.keys() == TALKS.keys(), "what is declared is there, and nothing else"


def extend(server: Server[Any]) -> None:
    """Let an SDK server serve all of this; its other tools stay as they are."""
    others = server.get_request_handler("tools/call")

    async def call_tool(context: Context, params: CallToolRequestParams) -> Any:
        if params.name in _TALKING:
            return await _TALKING[params.name](context, params)
        if others is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        return await others.handler(context, params)

    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    server.add_request_handler("prompts/list", PaginatedRequestParams, _list_prompts)
    server.add_request_handler("completion/complete", CompleteRequestParams, _complete)
    server.add_request_handler("prompts/get", GetPromptRequestParams, _get_prompt)
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_level)
    sealed = RequestStateSecurity.ephemeral()
    server.middleware.append(RequestStateBoundary(sealed, default_audience=server.name))


@cache
def side() -> SdkSide:
    """Return what answers of this for a server of ours."""
    server: Server[Any] = Server("fixture", version="1")
    extend(server)
    return SdkSide(server)


async def _list_prompts(_context: Context, _params: PaginatedRequestParams) -> ListPromptsResult:
    return ListPromptsResult(
        prompts=[
            Prompt(
                name=name,
                description=prompt.description,
                arguments=[
                    PromptArgument(name=argument, description=f"The {argument}.", required=True)
                    for argument in prompt.required
                ],
            )
            for name, prompt in PROMPTS.items()
        ]
    )


async def _get_prompt(
    _context: Context, params: GetPromptRequestParams
) -> GetPromptResult | InputRequiredResult:
    if params.name != ASKING_PROMPT:
        try:
            return _prompt(*prompt_blocks(params.name, params.arguments or {}))
        except LookupError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
    answers = asking.filled_in(params, "user_context")
    if "context" not in answers:
        question = asking.to_user("What context should the prompt use?", context="string")
        return InputRequiredResult(input_requests={"user_context": question})
    return _prompt(text(f"Use this context: {answers['context']}"))


def _prompt(*blocks: Mapping[str, Any]) -> GetPromptResult:
    messages = [{"role": "user", "content": block} for block in blocks]
    return GetPromptResult.model_validate({"messages": messages})


async def _complete(_context: Context, params: CompleteRequestParams) -> CompleteResult:
    known = [word for word in COMPLETED if word.startswith(params.argument.value)]
    return CompleteResult(completion=Completion(values=known, total=len(known), has_more=False))


async def _set_level(_context: Context, _params: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()
