"""Swift."""

from __future__ import annotations

import re
from typing import Final

from greenroom.actors.content.syntax.languages.language import ImportedName, Language, hides_after
from greenroom.actors.content.syntax.places import Places
from greenroom.actors.content.syntax.source import Import

_DEFINITIONS: Final = """
(class_declaration declaration_kind: "class" name: (type_identifier) @name) @class
(class_declaration declaration_kind: "actor" name: (type_identifier) @name) @class
(class_declaration declaration_kind: "struct" name: (type_identifier) @name) @struct
(class_declaration declaration_kind: "enum" name: (type_identifier) @name) @enum
(class_declaration declaration_kind: "extension" name: (user_type) @name) @container
(protocol_declaration name: (type_identifier) @name) @interface
(enum_entry name: (simple_identifier) @name) @constant
(function_declaration name: [(simple_identifier) (custom_operator)] @name) @function
(protocol_function_declaration name: [(simple_identifier) (custom_operator)] @name) @method
(init_declaration name: "init" @name) @method
(typealias_declaration name: (type_identifier) @name) @type
(associatedtype_declaration name: (type_identifier) @name) @type
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @variable
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @variable
(macro_declaration (simple_identifier) @name) @macro

(import_declaration) @import
"""
_USES: Final = """
(call_expression . (simple_identifier) @call)
(call_expression . (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @call)))
(attribute (user_type (type_identifier) @call))
(macro_invocation (simple_identifier) @call)
(inheritance_specifier inherits_from: (user_type (type_identifier) @inherits))
(user_type (type_identifier) @type)
(simple_identifier) @other
(comment) @above
(multiline_comment) @above
"""
_IMPORT: Final = re.compile(
    r"(?:@?\w+(?:\([^)]*\))?\s+)*?import\s+(?:(?:typealias|struct|class|enum|protocol|let|var|func)\s+)?([\w.]+)"
)


def _names_of(text: str) -> list[ImportedName]:
    found = _IMPORT.match(text)
    module, _, name = found[1].partition(".") if found else ("", "", "")
    return [ImportedName(module, name or "*")] if module else []


def _swift(imported: Import, _importer: str, places: Places) -> list[str]:
    """Resolve a module to its target's files; a name to the file of that name."""
    files = places.targets.get(imported.module, [])
    return [path for path in files if path.endswith(f"/{imported.name}.swift")] or files


SWIFT: Final = Language(
    name="swift",
    title="Swift",
    suffixes="swift",
    package="tree_sitter_swift",
    extra="swift",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(line_string_literal) @string (multi_line_string_literal) @string (raw_string_literal) @string",
    hides=hides_after("private", "fileprivate"),
    resolve=_swift,
    names_of=_names_of,
    joins=". ?. !.",
    members_are_bare=True,
    shares_folder=True,
)
