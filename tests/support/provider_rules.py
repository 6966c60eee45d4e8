"""What each provider of models takes as the schema of a tool's parameters, as a table.

Each rule has a schema that breaks it, so that a test can show that it is held. That the table is true
`.ci/nightly` shows with the providers' own libraries (`tests/providers`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any, Final, NamedTuple

Schema = Mapping[str, Any]

_TYPES: Final = ("string", "number", "integer", "boolean", "object", "array")


MOST_WITHIN: Final = 10


class Rule(NamedTuple):
    """What the schemas of a tool must not be.

    Attributes:
        name: What is wrong where it is broken.
        is_broken: Whether one schema, of those within a tool's, breaks it.
        example: A schema of parameters that breaks it.
    """

    name: str
    is_broken: Callable[[Schema], bool]
    example: Schema


class Provider(NamedTuple):
    """A provider's rules.

    Attributes:
        tool_name: What a tool may be called.
        parameter_name: What a parameter may be called.
        longest_description: Characters that a tool's description may have.
        top: Members that the schema of all parameters may have; empty for any.
        rules: What holds of every schema within it.
        source: Where that is written.
    """

    tool_name: str
    rules: tuple[Rule, ...]
    source: str
    parameter_name: str = r"[A-Za-z0-9_.-]{1,64}"
    longest_description: int = 1_024
    top: frozenset[str] = frozenset()


def schemas_within(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and each one within it."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [
        schema[name] for name in ("items", "additionalProperties") if isinstance(schema.get(name), dict)
    ]
    for each in inner:
        yield from schemas_within(each)


def faults(provider: Provider, tool: Mapping[str, Any]) -> list[str]:
    """Return what a provider would not take of a listed tool."""
    schema, found = tool["inputSchema"], []
    if not re.fullmatch(provider.tool_name, tool["name"]):
        found.append("the tool's name")
    if not 0 < len(tool["description"]) <= provider.longest_description:
        found.append("the length of the description")
    if schema.get("type") != "object" or (provider.top and not schema.keys() <= provider.top):
        found.append("the outermost schema")
    for each in schemas_within(schema):
        found += [rule.name for rule in provider.rules if rule.is_broken(each)]
        names = each.get("properties", ())
        found += [f"the name {name}" for name in names if not re.fullmatch(provider.parameter_name, name)]
    return found


def depth(schema: Schema) -> int:
    """Return how many schemas are within one another."""
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [schema["items"]] if "items" in schema else []
    return 1 + max(map(depth, inner), default=0)


def _of(**schema: Any) -> Schema:
    """Return parameters of which one has this schema."""
    return {"type": "object", "properties": {"it": schema}}


def _keywords(*known: str) -> Callable[[Schema], bool]:
    return lambda schema: not schema.keys() <= set(known)


_ONE_TYPE: Final = Rule(
    "not one type", lambda schema: schema.get("type") not in _TYPES, _of(type=["string", "null"])
)
_NO_NULL: Final = Rule(
    "null to choose from", lambda schema: None in schema.get("enum", ()), _of(type="string", enum=["a", None])
)
_WORDS: Final = Rule(
    "a choice of no words",
    lambda schema: (
        "enum" in schema
        and (
            schema.get("type") != "string"
            or not all(isinstance(each, str) and each for each in schema["enum"])
        )
    ),
    _of(type="integer", enum=[1, 2]),
)
_UNION_OF_ITEMS: Final = Rule(
    "elements of several types",
    lambda schema: (
        isinstance(schema.get("items", {}).get("type"), list) or "anyOf" in schema.get("items", {})
    ),
    _of(type="array", items={"type": ["string", "object"]}),
)
_ELEMENTS: Final = Rule(
    "an array of unknown elements",
    lambda schema: "array" in schema.get("type", ()) and "items" not in schema,
    _of(type="array"),
)
_NO_CHOICE: Final = Rule(
    "a choice of schemas", lambda schema: "anyOf" in schema, _of(anyOf=[{"type": "string"}])
)
_NESTED_CHOICE: Final = Rule(
    "a choice within a choice",
    lambda schema: any("anyOf" in choice for choice in schema.get("anyOf", ())),
    _of(anyOf=[{"anyOf": [{"type": "string"}]}]),
)
_NO_TRUTHS: Final = Rule(
    "additionalProperties that is true or false",
    lambda schema: isinstance(schema.get("additionalProperties"), bool),
    {**_of(type="string"), "additionalProperties": False},
)
_KNOWN_MEMBERS: Final = Rule(
    "an object within that has no members",
    lambda schema: any(
        each.get("type") == "object" and not each.get("properties")
        for each in (*schema.get("properties", {}).values(), schema.get("items", {}))
    ),
    _of(type="object"),
)
_OWN_MEMBERS: Final = Rule(
    "members of another type",
    lambda schema: (
        ("object" not in schema.get("type", ()) and not schema.keys().isdisjoint({"properties", "required"}))
        or ("array" not in schema.get("type", ()) and "items" in schema)
    ),
    _of(type="string", properties={"a": {"type": "string"}}),
)
_REQUIRED: Final = Rule(
    "a required member that is not there",
    lambda schema: not set(schema.get("required", ())) <= schema.get("properties", {}).keys(),
    {**_of(type="string"), "required": ["other"]},
)
_FORMATS: Final = Rule(
    "an unknown format",
    lambda schema: schema.get("format", "date-time") not in {"date-time", "enum"},
    _of(type="string", format="uri"),
)
GEMINI_KEYWORDS: Final = (
    *("type", "format", "title", "description", "nullable", "default", "enum", "anyOf", "example", "pattern"),
    *("items", "minItems", "maxItems", "properties", "required", "minProperties", "maxProperties"),
    *("minimum", "maximum", "minLength", "maxLength", "propertyOrdering"),
)
"""The members of its schemas; in JSON they are written so."""
_GEMINI: Final = Rule("an unknown keyword", _keywords(*GEMINI_KEYWORDS), _of(type="string", const="a"))
_COMMON: Final = (
    *(_ONE_TYPE, _NO_NULL, _WORDS, _UNION_OF_ITEMS, _ELEMENTS, _NO_CHOICE, _NESTED_CHOICE, _NO_TRUTHS),
    *(_KNOWN_MEMBERS, _OWN_MEMBERS, _REQUIRED, _FORMATS, _GEMINI),
)
"""What all of them take, and no more."""

_CLOSED: Final = Rule(
    "an object that is not closed",
    lambda schema: "object" in schema.get("type", ()) and schema.get("additionalProperties") is not False,
    _of(type="string"),
)
_ALL_REQUIRED: Final = Rule(
    "a member that is not required",
    lambda schema: set(schema.get("properties", ())) != set(schema.get("required", ())),
    _of(type="string"),
)
_TYPED: Final = Rule(
    "neither a type nor a choice", lambda schema: not {"type", "anyOf"} & schema.keys(), _of(description="a")
)
_STRICT: Final = Rule(
    "an unknown keyword",
    _keywords(
        *("type", "description", "properties", "required", "additionalProperties", "items", "enum", "const"),
        *("anyOf", "minItems", "maxItems", "pattern", "format", "minimum", "maximum", "multipleOf"),
    ),
    _of(type="string", default="a"),
)
_FLAT: Final = Rule(
    "more than ten schemas within one another",
    lambda schema: depth(schema) > MOST_WITHIN,
    reduce(lambda inner, _: _of(**inner), range(MOST_WITHIN), _of(type="string")),
)

PROVIDERS: Final[Mapping[str, Provider]] = {
    "Gemini": Provider(
        r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}",
        _COMMON,
        "Gemini API, FunctionDeclaration and Schema; errors of its service on members of schemas",
    ),
    "OpenAI": Provider(
        r"[A-Za-z0-9_-]{1,64}",
        (_ELEMENTS, _REQUIRED, _OWN_MEMBERS),
        "OpenAI API, function calling",
    ),
    "Anthropic": Provider(
        r"[A-Za-z0-9_-]{1,64}",
        (_REQUIRED, _ELEMENTS),
        "Claude API, tool use: no choice at the top, names of parameters",
        top=frozenset({"type", "properties", "required"}),
    ),
    "Bedrock": Provider(
        r"[A-Za-z][A-Za-z0-9_-]{0,63}",
        (_REQUIRED, _ELEMENTS, _NO_CHOICE),
        "Amazon Bedrock, ToolSpecification; Amazon Nova takes three members at the top",
        top=frozenset({"type", "properties", "required"}),
    ),
    "Mistral": Provider(
        r"[A-Za-z0-9_-]{1,64}", (_REQUIRED, _ELEMENTS), "Mistral API, function calling: JSON Schema"
    ),
}
"""The providers that plain schemas are for; none of them takes less than what is written here."""

OPENAI_STRICT: Final = Provider(
    r"[A-Za-z0-9_-]{1,64}",
    (_CLOSED, _ALL_REQUIRED, _TYPED, _ELEMENTS, _NESTED_CHOICE, _STRICT, _FLAT),
    "OpenAI API, structured outputs; Azure takes no default there",
)
"""OpenAI's strict mode, which takes schemas that a client has converted."""
