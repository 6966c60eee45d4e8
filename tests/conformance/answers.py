"""What the conformance suite expects to be there: tools, resources, and what they answer.

Plain data, and nothing about who serves it: the fixture takes it to Greenroom's own
dispatch, the floor to the SDK's server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
"""One red pixel."""
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQEAAACAAA=="
"""One sample of silence."""

NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


def image() -> dict[str, Any]:
    """Return a block with a picture."""
    return {"type": "image", "data": PNG, "mimeType": "image/png"}


def embedded(uri: str, mime_type: str, words: str) -> dict[str, Any]:
    """Return a block with a resource in it."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": words}}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A tool that gives the same blocks to whoever asks."""

    description: str
    blocks: Sequence[Mapping[str, Any]]
    is_error: bool = False
    input_schema: Mapping[str, Any] = field(default_factory=lambda: NO_ARGUMENTS)


_SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
_MIRRORED = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
    "additionalProperties": False,
}

TOOLS: Mapping[str, Answer] = {
    "test_simple_text": Answer(
        description="Answers with text.", blocks=[text("This is a simple text response for testing.")]
    ),
    "test_image_content": Answer(description="Answers with a picture.", blocks=[image()]),
    "test_audio_content": Answer(
        description="Answers with sound.", blocks=[{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]
    ),
    "test_embedded_resource": Answer(
        description="Answers with a resource.",
        blocks=[embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
    ),
    "test_multiple_content_types": Answer(
        description="Answers with text, a picture and a resource.",
        blocks=[
            text("Multiple content types test:"),
            image(),
            embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ],
    ),
    "test_error_handling": Answer(
        description="Always fails.",
        blocks=[text("This tool intentionally returns an error for testing")],
        is_error=True,
    ),
    "json_schema_2020_12_tool": Answer(
        description="Has a schema with the keywords of JSON Schema 2020-12.",
        blocks=[text("The schema is what counts.")],
        input_schema=_SCHEMA_2020_12,
    ),
    "test_custom_header": Answer(
        description="Has an argument that HTTP clients repeat in a header.",
        blocks=[text("The header agreed with the argument.")],
        input_schema=_MIRRORED,
    ),
}


@dataclass(frozen=True)
class Talk:
    """A tool that talks back, or a prompt; what it does is in `talking`, `asking` and `extension`."""

    description: str
    required: Sequence[str] = ()

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """What it takes: strings."""
        properties = {name: {"type": "string"} for name in self.required}
        return {**NO_ARGUMENTS, "properties": properties, "required": list(self.required)}


TALKS: Mapping[str, Talk] = {
    "test_tool_with_logging": Talk("Logs three messages while it works."),
    "test_logging_tool": Talk("Logs one message, to clients that asked for the log."),
    "test_tool_with_progress": Talk("Reports progress three times while it works."),
    "test_reconnection": Talk("Closes its stream and answers to the client that comes back."),
    "test_sampling": Talk("Asks the client's model.", ("prompt",)),
    "test_elicitation": Talk("Asks the user.", ("message",)),
    "test_elicitation_sep1034_defaults": Talk("Asks the user with a form that has defaults."),
    "test_elicitation_sep1330_enums": Talk("Asks the user with a form that has choices of every kind."),
    "test_missing_capability": Talk("Works only for clients that declare sampling."),
    "test_streaming_elicitation": Talk("Reports progress and then asks the user."),
    "test_input_required_result_elicitation": Talk("Asks the user for a name and greets."),
    "test_input_required_result_sampling": Talk("Asks the client's model for a capital."),
    "test_input_required_result_list_roots": Talk("Asks for the client's roots."),
    "test_input_required_result_request_state": Talk("Asks the user and keeps its state with the client."),
    "test_input_required_result_multiple_inputs": Talk("Asks the user, the model and for roots at once."),
    "test_input_required_result_multi_round": Talk("Asks the user twice, one after the other."),
    "test_input_required_result_tampered_state": Talk("Takes only the state that it gave."),
    "test_input_required_result_capabilities": Talk("Asks only in the ways that the client has declared."),
}


PROMPTS: Mapping[str, Talk] = {
    "test_simple_prompt": Talk("A prompt without arguments."),
    "test_prompt_with_arguments": Talk("A prompt with arguments.", ("arg1", "arg2")),
    "test_prompt_with_embedded_resource": Talk("A prompt with a resource in it.", ("resourceUri",)),
    "test_prompt_with_image": Talk("A prompt with a picture in it."),
    "test_input_required_result_prompt": Talk("A prompt that asks the user first."),
}


ASKING_PROMPT = "test_input_required_result_prompt"
"""The prompt that asks the user, in the way of 2026-07-28."""
COMPLETED = ("paris", "park", "party")
"""What every argument is completed with."""


def prompt_blocks(name: str, given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what a prompt says, a block for each message.

    Raises:
        LookupError: there is no such prompt, or it needs another argument.
    """
    if missing := [argument for argument in PROMPTS[name].required if argument not in given]:
        raise LookupError(f"The prompt {name} needs {', '.join(missing)}")
    match name:
        case "test_simple_prompt":
            return [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            return [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            words = "Embedded resource content for testing."
            instruction = text("Please process the embedded resource above.")
            return [embedded(given["resourceUri"], "text/plain", words), instruction]
        case "test_prompt_with_image":
            return [image(), text("Please analyze the image above.")]
    raise LookupError(f"Unknown prompt: {name}")


@dataclass(frozen=True, kw_only=True)
class Contents:
    """A resource: what reading it gives, and how it is listed."""

    uri: str
    name: str
    description: str
    mime_type: str
    text: str | None = None
    blob: str | None = None


RESOURCES: Sequence[Contents] = (
    Contents(
        uri="test://static-text",
        name="static text",
        description="Text that does not change.",
        mime_type="text/plain",
        text="This is the content of the static text resource.",
    ),
    Contents(
        uri="test://static-binary",
        name="static binary",
        description="A picture that does not change.",
        mime_type="image/png",
        blob=PNG,
    ),
    Contents(
        uri="test://watched-resource",
        name="watched resource",
        description="A resource to subscribe to.",
        mime_type="text/plain",
        text="Watched.",
    ),
)
TEMPLATE = "test://template/{id}/data"
_BEFORE, _AFTER = TEMPLATE.split("{id}")


def contents(uri: str) -> Contents | None:
    """Return the resource of that URI, listed or from the template; None if there is none."""
    for resource in RESOURCES:
        if resource.uri == uri:
            return resource
    if not (uri.startswith(_BEFORE) and uri.endswith(_AFTER)):
        return None
    number = uri.removeprefix(_BEFORE).removesuffix(_AFTER)
    return Contents(
        uri=uri,
        name=f"data of {number}",
        description="Made from the template.",
        mime_type="application/json",
        text=json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"}),
    )
