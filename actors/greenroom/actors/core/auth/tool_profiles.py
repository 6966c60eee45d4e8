"""The names of tool profiles and schema forms for lists of tools.

`greenroom.transports` decides which tools each profile lists; a key only stores the names.
"""

from typing import Final, Literal, get_args

ToolProfileName = Literal[
    "core", "all", "knowledge", "code", "shared-context", "services", "memory-search", "universal-memory"
]

TOOL_PROFILES: Final[tuple[str, ...]] = get_args(ToolProfileName)

SchemaForm = Literal["plain", "nullable"]
"""Schemas in the part of JSON Schema that every provider takes, or with null for OpenAI's strict mode."""

SCHEMA_FORMS: Final[tuple[SchemaForm, ...]] = get_args(SchemaForm)
