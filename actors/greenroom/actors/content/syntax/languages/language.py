"""An entry of the table of languages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from greenroom.actors.content.syntax.places import Places
from greenroom.actors.content.syntax.source import Import

Resolve = Callable[[Import, str, Places], list[str]]
"""Returns the files that an import means, given the importer's path."""


_WORD: Final = re.compile(r"\w+")


class ImportedName(NamedTuple):
    """An imported name: its module, its name in the module, and its local alias."""

    module: str
    name: str = ""
    alias: str = ""


class Language(NamedTuple):
    """A language, and how its trees are read.

    Queries name their captures. A whole definition is captured by its kind (`function`, `class` … of
    `source.Kind`), as `prototype` for a function without body, or as `container` if it contains names but is
    no symbol. Beside it, `name` is the definition's name, `scope` its stated owner, `doc` its docstring. For
    imports, `import` is the whole statement, and `from`, `name` and `alias` are parts of it. `default` is the
    local name of the module's default, `star` the local name of the module. `about` describes the file. A
    used name is captured by its role (`call`, `inherits`, `type`, `other`). `above`, such as a comment,
    belongs to the definition below it.

    Attributes:
        name: Its name in records and replies.
        suffixes: The extensions of its files, separated by spaces.
        definitions: The query for definitions and imports; each match has one of them.
        uses: The query for used names, and for comments.
        strings: The query for string literals, as `string`.
        hides: Whether a definition is private, judged by its signature and name.
        names_of: Parses the text of an import; if it is absent, the query's captures are used.
        extra: The extra that installs the package; empty if the default install has the package.
        version: A number that is raised when the queries change, so that files are read again.
        names: Whole names of its files, separated by spaces.
        joins: The operators between a qualifier and a name, separated by spaces.
        binds: Returns the local name of a module that is imported without a name; may be empty.
        members_are_bare: Whether code in a type uses the type's members without a qualifier.
        shares_folder: Whether files in one folder share their names and do not re-export imports.
        opens: Whether an import that states no names imports all names.
        includes: Whether imported text acts as if it stood at the place of the import, in any scope.
        imports_members: Whether members of a type can be imported like members of a package.
        imports_by_path: Whether code can use a path of names without an import.
        type_is_first: Whether a parameter's type comes before its name.
    """

    name: str
    title: str
    suffixes: str
    package: str
    definitions: str
    uses: str
    strings: str
    hides: Callable[[str, str], bool]
    resolve: Resolve
    names_of: Callable[[str], list[ImportedName]] | None = None
    function: str = "language"
    extra: str = ""
    version: int = 1
    names: str = ""
    joins: str = ". ?. -> ::"
    binds: Callable[[str], str] = lambda _module: ""
    members_are_bare: bool = False
    shares_folder: bool = False
    opens: bool = False
    includes: bool = False
    imports_members: bool = False
    imports_by_path: bool = False
    type_is_first: bool = False


def hides_after(*words: str) -> Callable[[str, str], bool]:
    """Return a test for private definitions: one of the words stands before the name."""
    hiding = frozenset(words)

    def hides(signature: str, name: str) -> bool:
        return not hiding.isdisjoint(_WORD.findall(signature.partition(name)[0]))

    return hides
