"""JSON schemas of requests and replies, made small: a model pays for each character.

msgspec's own schemas name every struct and refer to it; here each is written where it
is used, and what a reader can tell without (titles, null defaults) is left out, like
the structs' docstrings, which speak to programmers. What is listed leaves out limits, too, which
a refusal tells to those few who come near them.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

_REFERENCE = "#/$defs/"
_NOISE = frozenset({"title", "examples"})
_OUTPUT_NOISE = _NOISE | {"description", "default"}
_BRIEF = "x-brief"
_UNLISTED = "x-unlisted"
_RARE = "x-rare"
_NUMBER = "x-number"
_LIMITS = frozenset(
    {"minLength", "maxLength", "maxItems", "pattern", "minimum", "maximum", "exclusiveMinimum"}
)
# In JSON schema's dialect `$` ends the text; in Python a newline may follow it. Few decoders know lookahead.
_PYTHONS_END = r"(?!\n)$"
_SAYS_NOTHING: tuple[tuple[str, Any], ...] = (
    ("default", None),
    ("default", {}),
    ("default", []),
    ("required", []),
    ("additionalProperties", {}),
)


def input_schema(request: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schema of a tool's parameters, with every limit."""
    schema = _schema(request, _NOISE)
    for field in schema["properties"].values():
        if "enum" in field:  # some models' providers want the type said
            field["type"] = ["string", "null"] if None in field["enum"] else "string"
    return schema


def listed_input(request: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schema of a tool's parameters as it is listed."""
    return {**_listed(input_schema(request)), "additionalProperties": False}


def output_schema(reply: Any) -> dict[str, Any]:
    """Return the schema of a tool's answer: names and types, without prose."""
    return _schema(reply, _OUTPUT_NOISE)


def _listed(schema: dict[str, Any]) -> dict[str, Any]:
    """Leave out limits, and what says that unlisted members are none."""
    listed = _without(schema, _LIMITS | {"additionalProperties"})
    if "properties" in listed:
        listed["properties"] = {
            name: _listed(field) for name, field in listed["properties"].items() if _RARE not in field
        }
    if "items" in listed:
        listed["items"] = _listed(listed["items"])
    if "anyOf" in listed:
        listed["anyOf"] = [_listed(choice) for choice in listed["anyOf"]]
    return listed


def _schema(type: Any, noise: AbstractSet[str]) -> dict[str, Any]:
    (root,), definitions = msgspec.json.schema_components([type], ref_template=_REFERENCE + "{name}")

    def slim(schema: dict[str, Any]) -> dict[str, Any]:
        # Outside first: what is cut there must not be followed, since a struct may be in itself.
        cut = _without_noise(_cut(_resolved(schema, definitions)), noise)
        return _with_null_folded(_with_plain_pattern(_with_inner(cut, slim)))

    return slim(root)


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Write a struct where it is referred to; what is said beside the reference counts."""
    while "$ref" in schema:
        target = _without(definitions[schema["$ref"].removeprefix(_REFERENCE)], {"description"})
        schema = {**target, **_without(schema, {"$ref"})}
    return schema


def _cut(schema: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is inside of what is told in brief, and properties and words that nobody is told of."""
    if _NUMBER in schema:
        choices = [each for each in schema["anyOf"] if "enum" not in each]
        return _without(schema, {_NUMBER, "anyOf"}) | (
            choices[0] if len(choices) == 1 else {"anyOf": choices}
        )
    if _BRIEF in schema:
        choices = schema.get("anyOf", [])
        return {"type": ["object", "null"] if {"type": "null"} in choices else schema.get("type", "object")}
    if "properties" not in schema:
        return schema
    told = {name: field for name, field in schema["properties"].items() if _UNLISTED not in field}
    return {**schema, "properties": told}


def _without_noise(schema: dict[str, Any], noise: AbstractSet[str]) -> dict[str, Any]:
    return {
        key: value for key, value in schema.items() if key not in noise and (key, value) not in _SAYS_NOTHING
    }


def _with_inner(schema: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Change the schemas inside of one."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(item) for item in value]
        return change(value) if isinstance(value, dict) else value

    return {
        key: {name: change(field) for name, field in value.items()} if key == "properties" else changed(value)
        for key, value in schema.items()
    }


def _with_plain_pattern(schema: dict[str, Any]) -> dict[str, Any]:
    if "pattern" not in schema:
        return schema
    return {**schema, "pattern": schema["pattern"].replace(_PYTHONS_END, "$")}


def _with_null_folded(schema: dict[str, Any]) -> dict[str, Any]:
    """Write ``anyOf: [X, null]`` as X whose type admits null too."""
    choices = schema.get("anyOf")
    if not isinstance(choices, list) or len(choices) != 2 or {"type": "null"} not in choices:  # noqa: PLR2004
        return schema
    other = next(choice for choice in choices if choice != {"type": "null"})
    folded = dict(other)
    if isinstance(other.get("type"), str):
        folded["type"] = [other["type"], "null"]
    elif "enum" not in other:
        return schema
    if "enum" in other:
        folded["enum"] = [*other["enum"], None]
    return {**folded, **_without(schema, {"anyOf"})}


def _without(mapping: dict[str, Any], keys: AbstractSet[str]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}
