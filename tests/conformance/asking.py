"""The tools, and a prompt, that ask in the way of 2026-07-28.

Their result says what input they need; the client repeats its request with the answers
and with the state that the result gave it to keep.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from conformance.talking import Context, form, message, said
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    InputResponseRequestParams,
    ListRootsRequest,
    ListRootsResult,
    RootsCapability,
    SamplingCapability,
    TextContent,
)

Result = CallToolResult | InputRequiredResult

ASKED = "asked"
"""The state of a call whose questions are with the client."""


async def ask_name(_context: Context, params: CallToolRequestParams) -> Result:
    """Ask the user for a name and greet."""
    answers = filled_in(params, "user_name")
    if "name" not in answers:
        return InputRequiredResult(input_requests={"user_name": _name_please()})
    return said(f"Hello, {answers['name']}!")


async def report_and_ask_name(context: Context, params: CallToolRequestParams) -> Result:
    """Report progress and then ask, so that the question comes on a stream."""
    await context.session.report_progress(1, 2)
    return await ask_name(context, params)


async def ask_model(_context: Context, params: CallToolRequestParams) -> Result:
    """Ask the client's model for a capital."""
    result = (params.input_responses or {}).get("capital_question")
    if not isinstance(result, CreateMessageResult):
        question = _to_model("What is the capital of France?", 100)
        return InputRequiredResult(input_requests={"capital_question": question})
    return said(result.content.text if isinstance(result.content, TextContent) else "(no text)")


async def ask_roots(_context: Context, params: CallToolRequestParams) -> Result:
    """Ask for the client's roots."""
    result = (params.input_responses or {}).get("client_roots")
    if not isinstance(result, ListRootsResult):
        return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
    return said(", ".join(str(root.uri) for root in result.roots))


async def ask_with_state(_context: Context, params: CallToolRequestParams) -> Result:
    """Ask the user, and take up the state that the client kept meanwhile."""
    if params.request_state != ASKED or not filled_in(params, "confirm"):
        confirm = to_user("Please confirm", ok="boolean")
        return InputRequiredResult(input_requests={"confirm": confirm}, request_state=ASKED)
    return said("state-ok")


async def ask_all(_context: Context, params: CallToolRequestParams) -> Result:
    """Ask the user, the model and for roots at once."""
    requests: dict[str, InputRequest] = {
        "user_name": _name_please(),
        "greeting": _to_model("Generate a greeting", 50),
        "client_roots": ListRootsRequest(),
    }
    if params.request_state != ASKED or not requests.keys() <= (params.input_responses or {}).keys():
        return InputRequiredResult(input_requests=requests, request_state=ASKED)
    return said("All inputs came")


async def ask_twice(_context: Context, params: CallToolRequestParams) -> Result:
    """Ask the user for one thing, then for another; the first answer is in the state."""
    name, colour = filled_in(params, "step1").get("name"), filled_in(params, "step2").get("color")
    kept = json.loads(params.request_state or "{}")
    if "name" in kept and colour is not None:
        return said(f"{kept['name']} likes {colour}")
    if name is not None:
        second = to_user("Step 2: What is your favorite color?", color="string")
        return InputRequiredResult(input_requests={"step2": second}, request_state=json.dumps({"name": name}))
    first = to_user("Step 1: What is your name?", name="string")
    return InputRequiredResult(input_requests={"step1": first}, request_state="{}")


async def ask_as_declared(context: Context, params: CallToolRequestParams) -> Result:
    """Ask only in the ways that the client has declared."""
    sampling = ClientCapabilities(sampling=SamplingCapability())
    elicitation = ClientCapabilities(elicitation=ElicitationCapability())
    roots = ClientCapabilities(roots=RootsCapability())
    ways: tuple[tuple[str, ClientCapabilities, InputRequest], ...] = (
        ("greeting", sampling, _to_model("Generate a greeting", 50)),
        ("user_name", elicitation, _name_please()),
        ("client_roots", roots, ListRootsRequest()),
    )
    requests = {
        key: request
        for key, needed, request in ways
        if context.session.check_client_capability(needed) and key not in (params.input_responses or {})
    }
    return InputRequiredResult(input_requests=requests) if requests else said("Nothing left to ask")


def filled_in(params: InputResponseRequestParams, key: str) -> Mapping[str, Any]:
    """Return the form that the user filled in; nothing if there is none under that key."""
    answer = (params.input_responses or {}).get(key)
    if isinstance(answer, ElicitResult) and answer.action == "accept":
        return answer.content or {}
    return {}


def to_user(question: str, **fields: str) -> ElicitRequest:
    """Return a question to the user: a form of fields with their types."""
    schema = form(**{name: {"type": kind} for name, kind in fields.items()})
    return ElicitRequest(params=ElicitRequestFormParams(message=question, requested_schema=schema))


def _name_please() -> ElicitRequest:
    return to_user("What is your name?", name="string")


def _to_model(words: str, max_tokens: int) -> CreateMessageRequest:
    params = CreateMessageRequestParams(messages=[message(words)], max_tokens=max_tokens)
    return CreateMessageRequest(params=params)
