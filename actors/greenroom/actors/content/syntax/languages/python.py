"""Python."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from posixpath import dirname, join
from typing import Final

from greenroom.actors.content.syntax.languages.language import Language
from greenroom.actors.content.syntax.places import Places, as_list, below
from greenroom.actors.content.syntax.source import Import

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
_FILES: Final = (".py", ".pyi", "/__init__.py", "/__init__.pyi")
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


def _python(imported: Import, importer: str, places: Places) -> list[str]:
    """Resolve `a.b` below a root: around the importer, its `src`, or a unique root."""
    dots = len(imported.module) - len(imported.module.lstrip("."))
    module = imported.module[dots:].replace(".", "/")
    tails = [tail for tail in (f"{module}/{imported.name}", module) if imported.name or tail == module]
    if dots:
        base = dirname(importer)
        for _ in range(dots - 1):
            base = below(base, "..")
        return as_list(places.first(_python_files(below(base, tail.strip("/")) for tail in tails)))
    if module.partition("/")[0] in sys.stdlib_module_names:
        return []
    for tail in tails:
        found = places.first(_python_files(join(root, tail) for root in places.python_roots(importer)))
        if found is None:
            ends = _FILES if "/" in tail else _FILES[2:]  # a single name would fit too many files
            endings = (places.ending(tail + end, importer) for end in ends)
            found = next((path for path in endings if path and _is_top(path, tail, places)), None)
        if found is not None:
            return [found]
    return []


def _python_files(stems: Iterable[str]) -> Iterable[str]:
    return (stem + end if stem else end.removeprefix("/") for stem in stems for end in _FILES)


def _is_top(path: str, tail: str, places: Places) -> bool:
    """Return whether the first name of a module is a top-level name."""
    root = path[: path.rindex(tail)].rstrip("/")
    return join(root, "__init__.py") not in places.files


PYTHON: Final = Language(
    name="python",
    title="Python",
    suffixes="py pyi",
    package="tree_sitter_python",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(string) @string",
    hides=lambda _signature, name: name.startswith("_") and not name.endswith("__"),
    resolve=_python,
    binds=lambda module: module,
)
