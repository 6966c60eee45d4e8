"""Lua."""

from __future__ import annotations

from posixpath import basename, dirname, join
from typing import Final

from greenroom.actors.content.syntax.languages.language import Language
from greenroom.actors.content.syntax.places import Places, as_list
from greenroom.actors.content.syntax.source import Import

_REQUIRED: Final = """(function_call name: (identifier) @_require
  arguments: (arguments . (string content: (_) @from)) (#any-of? @_require "require" "dofile" "loadfile"))"""
_DEFINITIONS: Final = f"""
(function_declaration name: (identifier) @name) @function
(function_declaration name: (dot_index_expression table: (_) @scope field: (identifier) @name)) @function
(function_declaration name: (method_index_expression table: (_) @scope method: (identifier) @name)) @method
(assignment_statement (variable_list . name: (identifier) @name)
  (expression_list . value: (function_definition))) @function
(assignment_statement
  (variable_list . name: (dot_index_expression table: (_) @scope field: (identifier) @name))
  (expression_list . value: (function_definition))) @function
(field name: (identifier) @name value: (function_definition)) @function
(chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name))) @variable)
(chunk (assignment_statement (variable_list name: (identifier) @name)) @variable)

(variable_declaration (assignment_statement (variable_list . name: (identifier) @star .)
  (expression_list . value: {_REQUIRED} .))) @import
{_REQUIRED} @import
"""
_USES: Final = """
(function_call name: (identifier) @call)
(function_call name: (dot_index_expression field: (identifier) @call))
(function_call name: (method_index_expression method: (identifier) @call))
(identifier) @other
(comment) @above
"""
_ROOTS: Final = frozenset({"", "lua", "src", "lib"})


def _lua(imported: Import, importer: str, places: Places) -> list[str]:
    """Resolve a module to a file or `init`, beside the importer or in a root."""
    module = imported.module.removesuffix(".lua").replace(".", "/").strip("/")
    for tail in (f"{module}.lua", f"{module}/init.lua"):
        beside = join(dirname(importer), tail)
        if beside in places.files:
            return [beside]
        found = places.ending(tail, importer)
        if found and ("/" in module or basename(found[: -len(tail)].rstrip("/")) in _ROOTS):
            return as_list(found)
    return []


LUA: Final = Language(
    name="lua",
    title="Lua",
    suffixes="lua",
    names=".luacheckrc",
    package="tree_sitter_lua",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(string) @string",
    hides=lambda signature, name: name.startswith("_") or signature.startswith("local function"),
    resolve=_lua,
    joins=". :",
)
