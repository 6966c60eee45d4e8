"""Ruby."""

from __future__ import annotations

import re
from posixpath import basename, dirname
from typing import Final

from greenroom.actors.content.syntax.languages.language import ImportedName, Language
from greenroom.actors.content.syntax.places import Places, as_list, below
from greenroom.actors.content.syntax.source import Import

_DEFINITIONS: Final = """
(class name: [(constant) (scope_resolution)] @name) @class
(module name: [(constant) (scope_resolution)] @name) @module
(method name: (_) @name) @function
(singleton_method name: (_) @name) @method
(alias name: (_) @name) @method
(assignment left: (constant) @name right: (call receiver: (constant) @_made method: (identifier) @_new)
  (#any-of? @_made "Class" "Struct" "Data") (#any-of? @_new "new" "define")) @class
(assignment left: (constant) @name) @constant
(call method: (identifier) @_accessor arguments: (argument_list (simple_symbol) @name @variable)
  (#any-of? @_accessor "attr_reader" "attr_writer" "attr_accessor"))
(call method: (identifier) @_define arguments: (argument_list . (simple_symbol) @name)
  (#any-of? @_define "define_method" "alias_method" "scope")) @method

(call !receiver method: (identifier) @_require arguments: (argument_list (string))
  (#any-of? @_require "require" "require_relative" "load" "autoload")) @import
"""
_USES: Final = """
(call method: [(identifier) (constant)] @call)
(class superclass: (superclass [(constant) @inherits (scope_resolution name: (constant) @inherits)]))
(call !receiver method: (identifier) @_mixed arguments: (argument_list
  [(constant) @inherits (scope_resolution name: (constant) @inherits)])
  (#any-of? @_mixed "include" "extend" "prepend"))
(call receiver: (constant) @type)
(call receiver: (scope_resolution name: (constant) @type))
(constant) @other
(identifier) @other
(comment) @above
"""
_REQUIRED: Final = re.compile(r"(\w+)[\s(]+(?::\w+\s*,\s*)?['\"]([^'\"#]+)['\"]")
_ROOTS: Final = frozenset({"", "lib", "src", "app", "spec", "test", "ext"})


def _names_of(text: str) -> list[ImportedName]:
    """Return the required names; relative ones begin with a dot."""
    found = _REQUIRED.match(text)
    if found is None:
        return []
    is_relative = found[1] == "require_relative" and not found[2].startswith(".")
    return [ImportedName(f"./{found[2]}" if is_relative else found[2])]


def _ruby(imported: Import, importer: str, places: Places) -> list[str]:
    """Resolve a relative path from the importer, other paths from a library's or app's root."""
    tail = f"{imported.module.removesuffix('.rb')}.rb"
    if tail.startswith("."):
        beside = below(dirname(importer), tail)
        return [beside] if beside in places.files else []
    found = places.ending(tail, importer)
    if found is None:
        return []
    root = found[: -len(tail)].rstrip("/")
    return as_list(found if basename(root) in _ROOTS or basename(dirname(root)) == "app" else None)


RUBY: Final = Language(
    name="ruby",
    title="Ruby",
    suffixes="rb rake gemspec ru podspec jbuilder",
    names="Gemfile Rakefile Guardfile Capfile Vagrantfile Podfile Fastfile Brewfile Dangerfile",
    package="tree_sitter_ruby",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(string) @string (heredoc_body) @string",
    hides=lambda signature, name: name.startswith("_") or signature.startswith(("private ", "protected ")),
    resolve=_ruby,
    names_of=_names_of,
    joins=". &. ::",
    members_are_bare=True,
    opens=True,
    includes=True,
)
