"""Bash and shells with a similar syntax."""

from __future__ import annotations

import re
from posixpath import dirname
from typing import Final

from greenroom.actors.content.syntax.languages.language import ImportedName, Language
from greenroom.actors.content.syntax.places import Places, as_list, below
from greenroom.actors.content.syntax.source import Import

_DEFINITIONS: Final = """
(function_definition name: (word) @name) @function
(program (variable_assignment name: (variable_name) @name) @variable)
(program (declaration_command "readonly" (variable_assignment name: (variable_name) @name)) @constant)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @variable)

(command name: (command_name (word) @_source) (#any-of? @_source "source" ".")) @import
"""
_USES: Final = """
(command name: (command_name (word) @call))
(simple_expansion (variable_name) @other)
(expansion (variable_name) @other)
(comment) @above
"""
_SOURCED: Final = re.compile(r"(?:source|\.)\s+(?:--\s+)?(.*)", re.DOTALL)
_CLEAR: Final = re.compile(r"[^$<>()`]+")
_FOUND_OUT: Final = re.compile(r".*(?:[)}`]|\$\w+)/", re.DOTALL)
"""The computed beginning of a path, usually the folder of the script."""


def _names_of(text: str) -> list[ImportedName]:
    found = _SOURCED.match(text)
    path = found[1].replace('"', "").replace("'", "").strip() if found else ""
    if begins := _FOUND_OUT.match(path):
        path = path[begins.end() :]
    return [] if not path or not _CLEAR.fullmatch(path) else [ImportedName(path.split()[0])]


def _bash(imported: Import, importer: str, places: Places) -> list[str]:
    """Resolve a path from the importer's folder, from the root, or by a unique end."""
    found = places.first([below(dirname(importer), imported.module), below("", imported.module)])
    return as_list(found or places.ending(below("", imported.module), importer))


BASH: Final = Language(
    name="bash",
    title="Bash",
    suffixes="sh bash bats zsh ksh",
    names=".bashrc .bash_profile .bash_aliases .profile .zshrc",
    package="tree_sitter_bash",
    definitions=_DEFINITIONS,
    uses=_USES,
    strings="(string) @string (raw_string) @string",
    hides=lambda _signature, name: name.startswith("_"),
    resolve=_bash,
    names_of=_names_of,
    opens=True,
    includes=True,
)
