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
    """An imported name: its module, its name there, its alias here."""

    module: str
    name: str = ""
    alias: str = ""


class Language(NamedTuple):
    """A language and how its trees are read.

    Queries name their captures. A whole definition is captured by its kind (`function`, `class` … of
    `source.Kind`), as `prototype` for a function without body, or as `container` if it contains names but is
    no symbol. Beside it `name` is its name, `scope` its stated owner, `doc` its docstring. Of imports,
    `import` is the whole statement and `from`, `name` and `alias` are parts; `default` is the local name of
    the module's default, `star` that of the module. `about` describes the file. A used name is captured by
    its role (`call`, `inherits`, `type`, `other`). `above` belongs to the definition below it, such as a
    comment.

    Attributes:
        name: Its name in records and replies.
        suffixes: The extensions of its files, separated by spaces.
        definitions: The query for definitions and imports, one for each match.
        uses: The query for used names, and for comments.
        strings: The query for string literals, as `string`.
        hides: Whether a definition is private, by its signature and name.
        names_of: Parses the text of an import; without it the query's captures are used.
        extra: The extra with the package; empty if the default install has it.
        version: Raised when its queries change, so that files are read again.
        names: Whole names of its files, separated by spaces.
        joins: The operators between a qualifier and a name, separated by spaces.
        binds: Returns the local name of a module imported without a name; may be empty.
        members_are_bare: Whether members of a type are used within it without a qualifier.
        shares_folder: Whether files of one folder share their names and re-export no imports.
        opens: Whether an import without names imports all of them.
        includes: Whether imported text acts as if it were written there, in any scope.
        imports_members: Whether members of a type can be imported like those of a package.
        imports_by_path: Whether a path of names needs no import.
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
    """Return a test for private definitions: one of the words comes before the name."""
    hiding = frozenset(words)

    def hides(signature: str, name: str) -> bool:
        return not hiding.isdisjoint(_WORD.findall(signature.partition(name)[0]))

    return hides
