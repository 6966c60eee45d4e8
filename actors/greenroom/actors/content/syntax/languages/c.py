"""C and C++; headers are read as C++, which includes almost all of C."""

from __future__ import annotations

from posixpath import dirname
from typing import Final

from greenroom.actors.content.syntax.languages.language import Language
from greenroom.actors.content.syntax.places import Places, as_list, below
from greenroom.actors.content.syntax.source import Import

_PLAIN_NAME: Final = "(identifier) @name"
_ANY_NAME: Final = """[
  (identifier) @name
  (field_identifier) @name
  (destructor_name) @name
  (operator_name) @name
  (qualified_identifier) @name
  (template_function name: (identifier) @name)]"""


def _declared(name: str, *, has_references: bool) -> str:
    """Return the query for a function's declarator, which may be inside pointer declarators."""
    plain = f"(function_declarator declarator: {name})"
    pointer = f"(pointer_declarator declarator: {plain})"
    forms = [plain, pointer, f"(pointer_declarator declarator: {pointer})"]
    if has_references:
        forms.append(f"(reference_declarator {plain})")
    return "declarator: [" + "\n".join(forms) + "]"


def _definitions(name: str, *, has_references: bool) -> str:
    declared = _declared(name, has_references=has_references)
    return f"""
(function_definition {declared}) @function
(declaration {declared}) @prototype
(struct_specifier name: (type_identifier) @name body: (_)) @struct
(union_specifier name: (type_identifier) @name body: (_)) @struct
(enum_specifier name: (type_identifier) @name body: (_)) @enum
(enumerator name: (identifier) @name) @constant
(type_definition declarator: (type_identifier) @name) @type
(type_definition declarator: (pointer_declarator declarator: (type_identifier) @name)) @type
(type_definition declarator: (function_declarator
  declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name)))) @type
(preproc_function_def name: (identifier) @name) @macro
(preproc_def name: (identifier) @name value: (_)) @constant
(declaration (type_qualifier "const") declarator: (init_declarator declarator: [
  (identifier) @name (array_declarator declarator: (identifier) @name)])) @constant
(declaration declarator: [
  (identifier) @name
  (pointer_declarator declarator: (identifier) @name)
  (array_declarator declarator: (identifier) @name)
  (init_declarator declarator: (identifier) @name)
  (init_declarator declarator: (pointer_declarator declarator: (identifier) @name))
  (init_declarator declarator: (array_declarator declarator: (identifier) @name))]) @variable

(preproc_include path: [(string_literal) (system_lib_string)] @from) @import
"""


_CLASSES: Final = f"""
(class_specifier name: (type_identifier) @name body: (_)) @class
(class_specifier name: (template_type name: (type_identifier) @name) body: (_)) @class
(struct_specifier name: (template_type name: (type_identifier) @name) body: (_)) @struct
(namespace_definition name: (_) @name) @module
(alias_declaration name: (type_identifier) @name) @type
(concept_definition name: (identifier) @name) @type
(field_declaration {_declared(_ANY_NAME, has_references=True)}) @method
"""
_USES: Final = """
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (field_identifier) @call))
(type_identifier) @type
(identifier) @other
(comment) @above
"""
_CLASS_USES: Final = """
(call_expression function: (qualified_identifier name: (identifier) @call))
(call_expression function: (qualified_identifier name: (qualified_identifier name: (identifier) @call)))
(call_expression function: (qualified_identifier name: (template_function name: (identifier) @call)))
(call_expression function: (template_function name: (identifier) @call))
(call_expression function: (field_expression field: (template_method name: (field_identifier) @call)))
(base_class_clause (type_identifier) @inherits)
(base_class_clause (template_type name: (type_identifier) @inherits))
(base_class_clause (qualified_identifier name: (type_identifier) @inherits))
(base_class_clause (qualified_identifier name: (template_type name: (type_identifier) @inherits)))
(new_expression type: (type_identifier) @call)
(template_parameter_list) @above
"""


def _c(imported: Import, importer: str, places: Places) -> list[str]:
    """Resolve a quoted name beside the importer; resolve other names by a unique end."""
    name = imported.module[1:-1]
    beside = below(dirname(importer), name)
    if imported.module.startswith('"') and beside in places.files:
        return [beside]
    return as_list(places.ending(name, importer))


C: Final = Language(
    name="c",
    title="C",
    suffixes="c",
    package="tree_sitter_c",
    strings="(string_literal) @string",
    hides=lambda signature, _name: "static" in signature.split("(")[0].split(),
    definitions=_definitions(_PLAIN_NAME, has_references=False),
    uses=_USES,
    resolve=_c,
    members_are_bare=True,
    opens=True,
    includes=True,
    type_is_first=True,
)
CPP: Final = C._replace(
    name="cpp",
    title="C++",
    suffixes="cc cpp cxx c++ h hh hpp hxx h++ ipp inl tpp cu cuh",
    package="tree_sitter_cpp",
    definitions=_definitions(_ANY_NAME, has_references=True) + _CLASSES,
    uses=_CLASS_USES + _USES,
)
