"""JavaScript and TypeScript, with and without JSX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import dirname, join
from typing import Final

from greenroom.actors.content.syntax.languages.language import Language
from greenroom.actors.content.syntax.places import Places, as_list, below, is_in
from greenroom.actors.content.syntax.source import Import

_FUNCTIONS: Final = "[(function_expression) (arrow_function) (generator_function)]"
_PATTERNS: Final = """[
  (array_pattern (identifier) @name)
  (object_pattern [
    (shorthand_property_identifier_pattern) @name
    (pair_pattern value: (identifier) @name)])]"""
_DEFINITIONS: Final = f"""
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(method_definition name: (_) @name) @method
(variable_declarator name: (identifier) @name value: {_FUNCTIONS}) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(assignment_expression left: (member_expression object: (_) @scope property: (_) @name)
  right: {_FUNCTIONS}) @function
(assignment_expression left: (member_expression object: (_) @scope property: (_) @name)
  right: (class)) @class
(pair key: [(property_identifier) @name (string (string_fragment) @name)] value: {_FUNCTIONS}) @function
(assignment_expression left: (member_expression object: (member_expression
  property: (property_identifier) @_prototype) @scope property: (_) @name)
  (#eq? @_prototype "prototype")) @method
(function_expression name: (identifier) @name) @function
(generator_function name: (identifier) @name) @function
(class name: (_) @name) @class
(program (lexical_declaration (variable_declarator name: {_PATTERNS})) @constant)
(program (variable_declaration (variable_declarator name: {_PATTERNS})) @variable)
(export_statement (lexical_declaration (variable_declarator name: {_PATTERNS})) @constant)
(program (lexical_declaration "const" (variable_declarator name: (identifier) @name) @constant))
(program (lexical_declaration "let" (variable_declarator name: (identifier) @name) @variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @constant))

(import_statement source: (string (string_fragment) @from)) @import
(import_statement (import_clause (identifier) @default) source: (string (string_fragment) @from)) @import
(import_statement (import_clause (namespace_import (identifier) @star))
  source: (string (string_fragment) @from)) @import
(import_statement
  (import_clause (named_imports (import_specifier name: (_) @name alias: (identifier)? @alias)))
  source: (string (string_fragment) @from)) @import
(export_statement source: (string (string_fragment) @from)) @import
(export_statement (export_clause (export_specifier name: (_) @name alias: (_)? @alias))
  source: (string (string_fragment) @from)) @import
(variable_declarator name: (identifier) @star value: (call_expression function: (identifier) @_require
  arguments: (arguments . (string (string_fragment) @from))) (#eq? @_require "require")) @import
(variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @name)
  value: (call_expression function: (identifier) @_require
  arguments: (arguments . (string (string_fragment) @from))) (#eq? @_require "require")) @import
(call_expression function: [(import) (identifier)] @_require
  arguments: (arguments . (string (string_fragment) @from)) (#any-of? @_require "require" "import")) @import
"""
_CLASSES: Final = """
(class_declaration name: (_) @name) @class
"""
_FIELDS: Final = f"""
(field_definition property: (property_identifier) @name value: {_FUNCTIONS}) @method
"""
_TYPED: Final = f"""
(abstract_class_declaration name: (_) @name) @class
(public_field_definition name: (_) @name value: {_FUNCTIONS}) @method
(abstract_method_signature name: (_) @name) @method
(interface_body (method_signature name: (_) @name) @method)
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(enum_body [(property_identifier) @name (enum_assignment name: (property_identifier) @name)] @constant)
(type_alias_declaration name: (_) @name) @type
(internal_module name: (_) @name) @module
(module name: (_) @name) @module
(function_signature name: (identifier) @name) @function
(ambient_declaration (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
(ambient_declaration (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(import_statement (import_require_clause (identifier) @star source: (string (string_fragment) @from))) @import
"""
_USES: Final = """
(call_expression function: (identifier) @call)
(call_expression function: (member_expression property: (_) @call))
(new_expression constructor: (identifier) @call)
(new_expression constructor: (member_expression property: (_) @call))
(identifier) @other
(shorthand_property_identifier) @other
(comment) @above
(decorator) @above
"""
_MARKUP: Final = """
(jsx_opening_element name: (identifier) @call)
(jsx_self_closing_element name: (identifier) @call)
(jsx_opening_element name: (member_expression property: (_) @call))
(jsx_self_closing_element name: (member_expression property: (_) @call))
"""
_HERITAGE: Final = """
(class_heritage (identifier) @inherits)
(class_heritage (member_expression property: (_) @inherits))
"""
_TYPED_USES: Final = """
(extends_clause value: (identifier) @inherits)
(extends_clause value: (member_expression property: (_) @inherits))
(implements_clause (type_identifier) @inherits)
(implements_clause (generic_type name: (type_identifier) @inherits))
(implements_clause (nested_type_identifier name: (_) @inherits))
(extends_type_clause type: (type_identifier) @inherits)
(extends_type_clause type: (generic_type name: (type_identifier) @inherits))
(extends_type_clause type: (nested_type_identifier name: (_) @inherits))
(type_identifier) @type
"""
_SCRIPTS: Final = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_COMPILED: Final[Mapping[str, tuple[str, ...]]] = {
    ".js": (".ts", ".tsx"),
    ".jsx": (".tsx",),
    ".mjs": (".mts",),
    ".cjs": (".cts",),
}
_HIDDEN: Final = re.compile(r"\b(?:private|protected)\b")


def _hides(signature: str, name: str) -> bool:
    return name.startswith(("_", "#")) or bool(_HIDDEN.match(signature))


def _script(imported: Import, importer: str, places: Places) -> list[str]:
    """Resolve `./a` to a file or `index`; resolve other names by aliases or packages."""
    module = imported.module
    if module.startswith("."):
        return as_list(_script_file(below(dirname(importer), module), places))
    for alias in places.aliases:
        if is_in(importer, alias.folder) and (
            module == alias.prefix if alias.is_whole else module.startswith(alias.prefix)
        ):
            found = _script_file(below(alias.target, module[len(alias.prefix) :]), places)
            if found is not None:
                return [found]
    parts = module.split("/")
    size = 2 if module.startswith("@") else 1
    folder = places.packages.get("/".join(parts[:size]))
    if folder is None:
        return []
    rest = "/".join(parts[size:]) or "index"
    return as_list(
        next(filter(None, (_script_file(join(folder, source, rest), places) for source in ("src", ""))), None)
    )


def _script_file(path: str, places: Places) -> str | None:
    stem, dot, suffix = path.rpartition(".")
    compiled = [stem + end for end in _COMPILED.get(dot + suffix, ())]
    indexes = [join(path, f"index{end}") for end in _SCRIPTS]
    return places.first([path, *(path + end for end in _SCRIPTS), *compiled, *indexes])


JAVASCRIPT: Final = Language(
    name="javascript",
    title="JavaScript",
    suffixes="js jsx mjs cjs",
    package="tree_sitter_javascript",
    strings="(string) @string (template_string) @string",
    hides=_hides,
    definitions=_DEFINITIONS + _CLASSES + _FIELDS,
    uses=_HERITAGE + _USES + _MARKUP,
    resolve=_script,
    opens=True,
)
TYPESCRIPT: Final = JAVASCRIPT._replace(
    name="typescript",
    title="TypeScript",
    suffixes="ts mts cts",
    package="tree_sitter_typescript",
    function="language_typescript",
    definitions=_DEFINITIONS + _CLASSES + _TYPED,
    uses=_TYPED_USES + _USES,
)
TSX: Final = TYPESCRIPT._replace(
    name="tsx",
    title="TSX",
    suffixes="tsx",
    function="language_tsx",
    uses=TYPESCRIPT.uses + _MARKUP,
)
