"""Kotlin."""

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
(class_declaration "interface" name: (identifier) @name) @interface
(class_declaration (modifiers (class_modifier "enum")) name: (identifier) @name) @enum
(class_declaration name: (identifier) @name) @class
(object_declaration name: (identifier) @name) @class
(companion_object name: (identifier) @name) @class
(enum_entry (identifier) @name) @constant
(function_declaration (user_type . (identifier) @scope) . "." . name: (identifier) @name) @function
(function_declaration name: (identifier) @name) @function
(type_alias type: (identifier) @name) @type
(class_parameter ["val" "var"] (identifier) @name) @variable
(property_declaration (modifiers (property_modifier "const"))
  (variable_declaration (identifier) @name)) @constant
(property_declaration (variable_declaration (identifier) @name)) @variable

(import) @import
"""
_TYPE: Final = "(user_type (identifier) {0} .)"
_USES: Final = f"""
(call_expression . (identifier) @call)
(call_expression . (navigation_expression (identifier) @call .))
(annotation (constructor_invocation {_TYPE.format("@call")}))
(annotation {_TYPE.format("@call")})
(delegation_specifier (constructor_invocation (user_type (identifier) @inherits)))
(delegation_specifier (user_type (identifier) @inherits))
(delegation_specifier (explicit_delegation . (user_type (identifier) @inherits)))
(user_type (identifier) @type)
(identifier) @other
(line_comment) @above
(block_comment) @above
"""
_IMPORT: Final = re.compile(r"import\s+([\w.`]+?)(\.\*)?(?:\s+as\s+(\w+))?\s*;?$")


def _names_of(text: str) -> list[ImportedName]:
    found = _IMPORT.match(text.strip())
    if found is None:
        return []
    path = found[1].replace("`", "")
    if found[2]:
        return [ImportedName(path, "*")]
    module, _, name = path.rpartition(".")
    return [ImportedName(module, name, found[3] or "")]


KOTLIN: Final = Language(
    name="kotlin",
    title="Kotlin",
    suffixes="kt kts",
    package="tree_sitter_kotlin",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(string_literal) @string (multiline_string_literal) @string",
    hides=hides_after("private", "protected"),
    resolve=in_packages(".kt", ".java", has_functions=True),
    names_of=_names_of,
    joins=". ?. !!. ::",
    members_are_bare=True,
    shares_folder=True,
    imports_members=True,
)
