"""Scala."""

from __future__ import annotations

import re
from typing import Final

from greenroom.actors.content.syntax.languages.language import (
    ImportedName,
    Language,
    hides_after,
    in_packages,
)

_DEFINITIONS: Final = """
(class_definition name: (identifier) @name) @class
(object_definition name: (identifier) @name) @class
(package_object name: (identifier) @name) @module
(trait_definition name: (identifier) @name) @trait
(enum_definition name: (identifier) @name) @enum
(simple_enum_case name: (identifier) @name) @constant
(full_enum_case name: (identifier) @name) @constant
(function_definition name: (_) @name) @function
(function_declaration name: (_) @name) @function
(type_definition name: (type_identifier) @name) @type
(given_definition name: (identifier) @name) @variable
(val_definition pattern: (identifier) @name) @variable
(var_definition pattern: (identifier) @name) @variable
(val_declaration name: (identifier) @name) @variable
(var_declaration name: (identifier) @name) @variable

(import_declaration) @import
"""
_NAMED: Final = """[
  (type_identifier) {0}
  (generic_type type: (type_identifier) {0})
  (stable_type_identifier (type_identifier) {0})]"""
_USES: Final = f"""
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression function: (generic_function function: (field_expression field: (identifier) @call)))
(instance_expression {_NAMED.format("@call")})
(annotation name: {_NAMED.format("@call")})
(extends_clause {_NAMED.format("@inherits")})
(derives_clause {_NAMED.format("@inherits")})
(type_identifier) @type
(identifier) @other
(comment) @above
(block_comment) @above
"""
_PART: Final = re.compile(  # before Python 3.11.5 a possessive group that backtracks matches too much
    r"((?:[\w$`]++\s*+\.\s*+)*)(?:\{([^{}]*+)\}|([\w$`*]++)(?:\s+as\s+(\w++))?)\s*+(?:,|$)"
)
_RENAMED: Final = re.compile(r"\s*(?:=>|\bas\b)\s*")
_ALL: Final = frozenset({"_", "*", "given"})
_MOST: Final = 1_000


def _names_of(text: str) -> list[ImportedName]:
    """Return the names of an import such as `import a.{B, C => D}, e._`."""
    found: list[ImportedName] = []
    for part in _PART.finditer(text.removeprefix("import").strip()):
        module = "".join(part[1].split()).strip(".").replace("`", "")
        for name in (
            part[2].split(",") if part[2] is not None else [f"{part[3]} as {part[4]}" if part[4] else part[3]]
        ):
            own, *alias = _RENAMED.split(name.strip())
            if alias != ["_"] and own:
                found.append(ImportedName(module, "*" if own.split()[0] in _ALL else own, *alias))
    return found[:_MOST]


SCALA: Final = Language(
    name="scala",
    title="Scala",
    suffixes="scala sc sbt mill",
    package="tree_sitter_scala",
    extra="scala",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(string) @string (interpolated_string) @string",
    hides=hides_after("private", "protected"),
    resolve=in_packages(".scala", ".java", has_functions=True),
    names_of=_names_of,
    joins=". #",
    members_are_bare=True,
    shares_folder=True,
    imports_members=True,
)
