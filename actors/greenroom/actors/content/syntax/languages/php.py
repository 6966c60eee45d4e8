"""PHP, also within HTML."""

from __future__ import annotations

import re
from posixpath import dirname
from typing import Final

from greenroom.actors.content.syntax.languages.language import ImportedName, Language, hides_after
from greenroom.actors.content.syntax.places import Places, as_list, below, prefixes
from greenroom.actors.content.syntax.source import Import

_DEFINITIONS: Final = """
(class_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @interface
(trait_declaration name: (name) @name) @trait
(enum_declaration name: (name) @name) @enum
(enum_case name: (name) @name) @constant
(function_definition name: (name) @name) @function
(method_declaration name: (name) @name) @method
(const_declaration (const_element (name) @name)) @constant
(property_declaration (property_element name: (variable_name (name) @name))) @variable
(property_promotion_parameter name: (variable_name (name) @name)) @variable
(expression_statement (function_call_expression function: (name) @_define
  arguments: (arguments . (argument (string (string_content) @name)))) (#eq? @_define "define")) @constant

(namespace_use_declaration) @import
(require_expression) @import
(require_once_expression) @import
(include_expression) @import
(include_once_expression) @import
"""
_NAMED: Final = "[(name) {0} (qualified_name (name) {0})]"
_USES: Final = f"""
(function_call_expression function: {_NAMED.format("@call")})
(member_call_expression name: (name) @call)
(nullsafe_member_call_expression name: (name) @call)
(scoped_call_expression name: (name) @call)
(object_creation_expression {_NAMED.format("@call")})
(attribute {_NAMED.format("@call")})
(base_clause {_NAMED.format("@inherits")})
(class_interface_clause {_NAMED.format("@inherits")})
(use_declaration {_NAMED.format("@inherits")})
(named_type {_NAMED.format("@type")})
(name) @other
(comment) @above
"""
_USE: Final = re.compile(r"use\s+(?:function\s+|const\s+)?(.*?)\s*;?$", re.DOTALL | re.IGNORECASE)
_GROUP: Final = re.compile(r"([^{]*?)\\?\s*\{([^}]*)\}?", re.DOTALL)
_AS: Final = re.compile(r"\s+as\s+", re.IGNORECASE)
_QUOTED: Final = re.compile(r"(__DIR__|dirname\s*\(\s*__FILE__\s*\))?[\s.]*(?:'([^']+)'|\"([^\"$]+)\")")
_MOST: Final = 1_000


def _names_of(text: str) -> list[ImportedName]:
    r"""Return what a statement such as `use A\{B, C as D}` or `require` imports."""
    found = _USE.match(text)
    if found is None:
        path = _QUOTED.search(text)
        return (
            []
            if path is None
            else [ImportedName((path[2] or path[3]).lstrip("/") if path[1] else path[2] or path[3])]
        )
    group = _GROUP.fullmatch(found[1])
    space, names = (group[1], group[2]) if group else ("", found[1])
    return [_named(space, part.strip()) for part in names.split(",")[:_MOST] if part.strip()]


def _named(space: str, text: str) -> ImportedName:
    path, *alias = _AS.split(text.removeprefix("function ").removeprefix("const "))
    whole = f"{space}\\{path}" if space else path
    module, _, name = whole.strip("\\").rpartition("\\")
    return ImportedName(module, name, alias[0] if alias else "")


def _php(imported: Import, importer: str, places: Places) -> list[str]:
    """Resolve a class by composer.json or its namespace's folder; without a name, resolve a path."""
    if not imported.name:
        beside = below(dirname(importer), imported.module)
        return [beside] if beside in places.files else as_list(places.ending(imported.module, importer))
    for path in (f"{imported.module}\\{imported.name}", imported.module):  # the module alone is for functions
        for space in prefixes(path, "\\"):
            rest = path[len(space) :].strip("\\").replace("\\", "/")
            found = places.first(
                f"{below(folder, rest)}.php" for folder in places.namespaces.get(space, ()) if rest
            )
            if found is not None:
                return [found]
    return as_list(
        places.ending(f"{imported.module}\\{imported.name}.php".replace("\\", "/").lstrip("/"), importer)
    )


PHP: Final = Language(
    name="php",
    title="PHP",
    suffixes="php phtml php5 inc",
    package="tree_sitter_php",
    function="language_php",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(string) @string (encapsed_string) @string",
    hides=hides_after("private", "protected"),
    resolve=_php,
    names_of=_names_of,
    joins="-> ?-> :: \\",
    shares_folder=True,
    opens=True,
    includes=True,
    type_is_first=True,
)
