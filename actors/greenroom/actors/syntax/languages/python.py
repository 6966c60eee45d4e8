"""Python."""

from __future__ import annotations

from typing import Final

from greenroom.actors.syntax.languages.language import Language

_DEFINITIONS: Final = """
(function_definition name: (identifier) @name
  body: (block . (expression_statement (string) @doc))?) @function
(class_definition name: (identifier) @name
  body: (block . (expression_statement (string) @doc))?) @class
(module (expression_statement (assignment left: (identifier) @name) @variable))
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @variable)))
(type_alias_statement left: (type (identifier) @name)) @type
(type_alias_statement left: (type (generic_type (identifier) @name))) @type
(module . (comment)* . (expression_statement (string) @about))

(import_statement name: (dotted_name) @from) @import
(import_statement name: (aliased_import name: (dotted_name) @from alias: (identifier) @alias)) @import
(import_from_statement module_name: (_) @from name: (dotted_name) @name) @import
(import_from_statement module_name: (_) @from
  name: (aliased_import name: (dotted_name) @name alias: (identifier) @alias)) @import
(import_from_statement module_name: (_) @from (wildcard_import) @name) @import
"""
_USES: Final = """
(call function: (identifier) @call)
(call function: (attribute attribute: (identifier) @call))
(decorator (identifier) @call)
(decorator (attribute attribute: (identifier) @call))
(class_definition superclasses: (argument_list (identifier) @inherits))
(class_definition superclasses: (argument_list (attribute attribute: (identifier) @inherits)))
(class_definition superclasses: (argument_list (subscript value: (identifier) @inherits)))
(class_definition superclasses: (argument_list
  (subscript value: (attribute attribute: (identifier) @inherits))))
(type (identifier) @type)
(type (generic_type (identifier) @type))
(type (attribute attribute: (identifier) @type))
(type (subscript value: (identifier) @type))
(type (binary_operator (identifier) @type))
(identifier) @other
(comment) @above
(decorator) @above
"""
PYTHON: Final = Language(
    name="python",
    title="Python",
    suffixes="py pyi",
    package="tree_sitter_python",
    function="language",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(string) @string",
    hides=lambda _signature, name: name.startswith("_") and not name.endswith("__"),
)
