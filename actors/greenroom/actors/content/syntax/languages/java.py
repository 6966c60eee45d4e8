"""Java."""

from __future__ import annotations

import re
from typing import Final

from greenroom.actors.content.syntax.languages.language import Language, in_packages

_DEFINITIONS: Final = """
(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(annotation_type_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_constant name: (identifier) @name) @constant
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(compact_constructor_declaration name: (identifier) @name) @method
(annotation_type_element_declaration name: (identifier) @name) @method
(class_body (field_declaration declarator: (variable_declarator name: (identifier) @name)) @variable)
(interface_body (constant_declaration declarator: (variable_declarator name: (identifier) @name)) @constant)

(import_declaration (scoped_identifier scope: (_) @from name: (_) @name) . ";") @import
(import_declaration (scoped_identifier) @from (asterisk) @name) @import
"""
_USES: Final = """
(method_invocation name: (identifier) @call)
(method_reference (identifier) @call .)
(object_creation_expression type: (type_identifier) @call)
(object_creation_expression type: (generic_type . (type_identifier) @call))
(object_creation_expression type: (scoped_type_identifier (type_identifier) @call .))
(marker_annotation name: (identifier) @call)
(annotation name: (identifier) @call)
(superclass (type_identifier) @inherits)
(superclass (generic_type . (type_identifier) @inherits))
(superclass (scoped_type_identifier (type_identifier) @inherits .))
(super_interfaces (type_list (type_identifier) @inherits))
(super_interfaces (type_list (generic_type . (type_identifier) @inherits)))
(extends_interfaces (type_list (type_identifier) @inherits))
(extends_interfaces (type_list (generic_type . (type_identifier) @inherits)))
(type_identifier) @type
(identifier) @other
(line_comment) @above
(block_comment) @above
"""
_HIDDEN: Final = re.compile(r"\b(?:private|protected)\b")
JAVA: Final = Language(
    name="java",
    title="Java",
    suffixes="java",
    package="tree_sitter_java",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(string_literal) @string",
    hides=lambda signature, _name: bool(_HIDDEN.search(signature)),
    resolve=in_packages(".java", ".kt"),
    members_are_bare=True,
    shares_folder=True,
    imports_members=True,
    type_is_first=True,
)
