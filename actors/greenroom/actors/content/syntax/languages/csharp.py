"""C#."""

from __future__ import annotations

import re
from posixpath import basename
from typing import Final

from greenroom.actors.content.syntax.languages.language import ImportedName, Language, hides_after
from greenroom.actors.content.syntax.places import Places
from greenroom.actors.content.syntax.source import Import

_DEFINITIONS: Final = """
(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(struct_declaration name: (identifier) @name) @struct
(interface_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_member_declaration name: (identifier) @name) @constant
(delegate_declaration name: (identifier) @name) @type
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(local_function_statement name: (identifier) @name) @function
(property_declaration name: (identifier) @name) @variable
(event_declaration name: (identifier) @name) @variable
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @variable
(field_declaration (modifier "const")
  (variable_declaration (variable_declarator name: (identifier) @name))) @constant
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @variable

(using_directive) @import
"""
_NAMED: Final = """[
  (identifier) {0}
  (generic_name (identifier) {0})
  (qualified_name name: (identifier) {0})
  (qualified_name name: (generic_name (identifier) {0}))
  (nullable_type (identifier) {0})
  (nullable_type (generic_name (identifier) {0}))
  (array_type type: (identifier) {0})
  (array_type type: (generic_name (identifier) {0}))]"""
_CALLED: Final = "[(identifier) @call (generic_name (identifier) @call)]"
_USES: Final = f"""
(invocation_expression function: {_CALLED})
(invocation_expression function: (member_access_expression name: {_CALLED}))
(invocation_expression function: (conditional_access_expression (member_binding_expression name: {_CALLED})))
(object_creation_expression type: {_NAMED.format("@call")})
(attribute name: {_NAMED.format("@call")})
(base_list {_NAMED.format("@inherits")})
(base_list (primary_constructor_base_type type: {_NAMED.format("@inherits")}))
(_ type: (identifier) @type)
(_ type: (qualified_name name: (identifier) @type))
(_ returns: (identifier) @type)
(_ returns: (qualified_name name: (identifier) @type))
(generic_name (identifier) @type)
(nullable_type (identifier) @type)
(type_argument_list (identifier) @type)
(type_parameter_constraint (identifier) @type)
(identifier) @other
(comment) @above
"""
_USING: Final = re.compile(
    r"(?:global\s+)?using\s+(?:static\s+|unsafe\s+)*(?:@?(\w+)\s*=\s*)?(?:global::)?([\w.]+)"
)


def _names_of(text: str) -> list[ImportedName]:
    """Return the names of `using`: all names of a namespace or class, or one name."""
    found = _USING.match(text)
    if found is None:
        return []
    alias, path = found[1], found[2]
    if not alias:
        return [ImportedName(path, "*")]
    space, _, name = path.rpartition(".")
    return [ImportedName(space, name, alias)]


def _csharp(imported: Import, _importer: str, places: Places) -> list[str]:
    """Resolve a namespace to folders of that name, and a type to its file."""
    if imported.name != "*":
        return _files(imported.module, imported.name, places)
    space, _, name = imported.module.rpartition(".")
    return _files(imported.module, "", places) or _files(space, name, places)


def _files(space: str, name: str, places: Places) -> list[str]:
    folders = dict.fromkeys([*places.folders_named(space), *places.in_project(space)])
    files = (path for folder in folders for path in places.folder(folder) if path.endswith(".cs"))
    return [path for path in files if not name or basename(path) == f"{name}.cs"]


CSHARP: Final = Language(
    name="csharp",
    title="C#",
    suffixes="cs csx",
    package="tree_sitter_c_sharp",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="""(string_literal) @string (verbatim_string_literal) @string (raw_string_literal) @string
      (interpolated_string_expression) @string""",
    hides=hides_after("private", "protected"),
    resolve=_csharp,
    names_of=_names_of,
    members_are_bare=True,
    shares_folder=True,
    type_is_first=True,
)
