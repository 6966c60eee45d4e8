"""Go."""

from __future__ import annotations

import re
from typing import Final

from greenroom.actors.content.syntax.languages.language import Language
from greenroom.actors.content.syntax.places import Places, below, prefixes
from greenroom.actors.content.syntax.source import Import

_DEFINITIONS: Final = """
(function_declaration name: (identifier) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @scope
    (pointer_type (type_identifier) @scope)
    (generic_type type: (type_identifier) @scope)
    (pointer_type (generic_type type: (type_identifier) @scope))]))
  name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
(interface_type (method_elem name: (field_identifier) @name) @method)
(source_file (const_declaration (const_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @variable)))

(import_spec path: (interpreted_string_literal (interpreted_string_literal_content) @from)) @import
(import_spec name: (package_identifier) @star
  path: (interpreted_string_literal (interpreted_string_literal_content) @from)) @import
"""
_VERSION: Final = re.compile(r"v\d+")
_USES: Final = """
(call_expression function: (identifier) @call)
(call_expression function: (selector_expression field: (field_identifier) @call))
(field_declaration_list (field_declaration !name type: (type_identifier) @inherits))
(field_declaration_list (field_declaration !name type: (qualified_type name: (type_identifier) @inherits)))
(interface_type (type_elem . (type_identifier) @inherits .))
(interface_type (type_elem . (qualified_type name: (type_identifier) @inherits) .))
(type_identifier) @type
(identifier) @other
(selector_expression field: (field_identifier) @other)
(comment) @above
"""


def _go(imported: Import, _importer: str, places: Places) -> list[str]:
    """Resolve an import to a package's folder: the path that follows the module's path."""
    for module in prefixes(imported.module, "/"):
        if module in places.modules:
            folder = below(places.modules[module], imported.module[len(module) :].strip("/"))
            return [
                path
                for path in places.folder(folder)
                if path.endswith(".go") and not path.endswith("_test.go")
            ]
    return []


def _package(module: str) -> str:
    """Return the name of an imported package."""
    parts = module.split("/")
    return parts[-2] if len(parts) > 1 and _VERSION.fullmatch(parts[-1]) else parts[-1]


GO: Final = Language(
    name="go",
    title="Go",
    suffixes="go",
    package="tree_sitter_go",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(interpreted_string_literal) @string (raw_string_literal) @string",
    hides=lambda _signature, name: not name[:1].isupper(),
    resolve=_go,
    binds=_package,
    shares_folder=True,
)
