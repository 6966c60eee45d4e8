"""JSON schemas of requests and replies, made small, because a model pays for each character.

msgspec's own schemas name every struct and refer to it; here each is inlined where it is used. Parts that a
reader can do without (titles, null defaults) are left out, as are the structs' docstrings, which address
programmers. Listed schemas also omit limits; the refusal of an argument states its limit.

Parameters are listed in one of two forms, which accept the same arguments. The plain form has one type per
value, no null and no unions: every model provider accepts that. The nullable form is for OpenAI's strict
mode, which requires each property: in this form, null stands for an absent argument. Clients make the
outermost object strict themselves. Inner objects are listed as strict, because Pydantic AI does not look into
an object that admits null.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from greenroom.actors.core.auth.tool_profiles import SchemaForm
from greenroom.actors.core.validation.coercion import is_guarded

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
_NULL = {"type": "null"}
_MEMBERS = {"properties": "object", "required": "object", "items": "array", "minItems": "array"}
"""The keywords that apply to only one type."""
# In JSON schema `$` ends the text; in Python a newline may follow. Few decoders know lookahead.
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
    return _with_enums_typed(_schema(request, _NOISE))


def listed_input(request: type[msgspec.Struct], form: SchemaForm) -> dict[str, Any]:
    """Return the schema of a tool's parameters, as listed."""
    listed = _listed(input_schema(request))
    if form == "plain":
        return _plain(listed)
    nullable = _nullable(listed, request.__name__)
    return {**_with_inner(nullable, _strict), "additionalProperties": False}


def output_schema(reply: Any) -> dict[str, Any]:
    """Return the schema of a tool's answer: names and types, without descriptions."""
    return _schema(reply, _OUTPUT_NOISE)


def _listed(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove limits, and the statement that other members are forbidden."""
    listed = _without(schema, _LIMITS | {"additionalProperties"})
    if isinstance(listed.get("default"), dict):
        del listed["default"]  # each member has a default of its own
    if "properties" in listed:
        listed["properties"] = {
            name: _listed(field) for name, field in listed["properties"].items() if _RARE not in field
        }
    if "items" in listed:
        listed["items"] = _listed(listed["items"])
    if "anyOf" in listed:
        listed["anyOf"] = [_listed(choice) for choice in listed["anyOf"]]
    return listed


def _with_enums_typed(schema: dict[str, Any]) -> dict[str, Any]:
    """Add the type of an enumeration: some providers require it."""
    typed = _with_inner(schema, _with_enums_typed)
    if "enum" in typed:
        typed["type"] = ["string", "null"] if None in typed["enum"] else "string"
    return typed


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Write a schema with one type per value, which is the first declared type."""
    while "anyOf" in schema:
        first = next(choice for choice in schema["anyOf"] if choice != _NULL)
        schema = {**first, **_without(schema, {"anyOf"})}
    declared = schema["type"]
    kind = next(each for each in declared if each != "null") if isinstance(declared, list) else declared
    foreign = {member for member, holder in _MEMBERS.items() if holder != kind}
    plain = {**_without(schema, foreign), "type": kind}
    if "enum" in plain:
        plain["enum"] = [value for value in plain["enum"] if value is not None]
    return _with_inner(plain, _plain)


def _nullable(schema: dict[str, Any], request: str, top: str | None = None) -> dict[str, Any]:
    """Let each optional parameter be null, if null means absent.

    Defaults go into the description: not every provider accepts ``default`` in strict mode.
    """
    schema = _with_types_together(schema)
    if "string" in schema.get("type", ()):
        return schema  # any JSON: its members are not parameters
    if "items" in schema:
        schema = {**schema, "items": _nullable(schema["items"], request, top)}
    if "properties" not in schema:
        return schema
    required = schema.get("required", ())
    properties = {}
    for name, declared in schema["properties"].items():
        field = _describe_default(_nullable(declared, request, top or name))
        may_be_null = name not in required and not is_guarded(request, {name, top or name})
        properties[name] = _with_null(field) if may_be_null else field
    return {**schema, "properties": properties}


def _with_types_together(schema: dict[str, Any]) -> dict[str, Any]:
    """Write a union of types as one schema with several types, as smolagents requires."""
    choices = schema.get("anyOf", ())
    if not choices or any("enum" in each for each in choices):
        return schema
    together = {key: value for each in choices for key, value in each.items()}
    return {**together, **_without(schema, {"anyOf"}), "type": [each["type"] for each in choices]}


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Close the objects in a schema, and require each member."""
    strict = _with_inner(schema, _strict)
    if "properties" not in strict:
        return strict
    return {**strict, "required": list(strict["properties"]), "additionalProperties": False}


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        choices = schema["anyOf"]
        return schema if _NULL in choices else {**schema, "anyOf": [*choices, _NULL]}
    declared = schema["type"]
    types = declared if isinstance(declared, list) else [declared]
    if "null" in types:
        return schema
    enum = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*types, "null"], **enum}


def _describe_default(schema: dict[str, Any]) -> dict[str, Any]:
    if "default" not in schema:
        return schema
    value = schema["default"]
    default = value if isinstance(value, str) and value else msgspec.json.encode(value).decode()
    words = [each for each in (schema.get("description"), f"default {default}") if each]
    return {**_without(schema, {"default"}), "description": "; ".join(words)}


def _schema(type: Any, noise: AbstractSet[str]) -> dict[str, Any]:
    (root,), definitions = msgspec.json.schema_components([type], ref_template=_REFERENCE + "{name}")

    def slim(schema: dict[str, Any]) -> dict[str, Any]:
        # Outside first: cut parts must not be followed, because a struct may contain itself.
        cut = _without_noise(_cut(_resolved(schema, definitions)), noise)
        return _with_null_folded(_with_plain_pattern(_with_inner(cut, slim)))

    return slim(root)


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Inline a struct where it is referred to, with the keywords beside the reference."""
    while "$ref" in schema:
        target = _without(definitions[schema["$ref"].removeprefix(_REFERENCE)], {"description"})
        schema = {**target, **_without(schema, {"$ref"})}
    return schema


def _cut(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove the contents of summarised parts, and hidden properties and keywords."""
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
    """Write ``anyOf: [X, null]`` as X with null among its types or values."""
    choices = schema.get("anyOf")
    if not isinstance(choices, list) or len(choices) != 2 or _NULL not in choices:  # noqa: PLR2004
        return schema
    other = next(choice for choice in choices if choice != _NULL)
    if "anyOf" in other:
        return {**other, **_without(schema, {"anyOf"}), "anyOf": [*other["anyOf"], _NULL]}
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
