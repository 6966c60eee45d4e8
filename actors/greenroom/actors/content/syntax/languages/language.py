"""What is known of a language: one row of the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from greenroom.actors.content.syntax.places import Places
from greenroom.actors.content.syntax.source import Import

Resolve = Callable[[Import, str, Places], list[str]]
"""Returns the files that an import means, given the path of the file that has it."""


_WORD: Final = re.compile(r"\w+")


class ImportedName(NamedTuple):
    """What an import statement brings: from which module, which name of it, what it is called here."""

    module: str
    name: str = ""
    alias: str = ""


class Language(NamedTuple):
    """A language and how its trees are read.

    Queries name what they find. A whole definition is captured by its kind (`function`, `class` … of
    `source.Kind`), as `prototype` where it is a function's without body, or as `container` where it has
    names in it and is no symbol; beside it `name` is its name, `scope` what it says that it belongs to,
    `doc` a text in it that describes it. Of imports, `import` is the whole statement, `from`, `name` and
    `alias` are parts of it; `default` is what the module's default is called here, `star` what the module
    is. `about` describes the file. A name that is used is captured by its role (`call`, `inherits`, `type`,
    `other`). `above` belongs to the definition below it, such as a comment.

    Attributes:
        name: What it is called in records and answers.
        title: What people call it.
        suffixes: How names of its files end, with words between spaces.
        package: The package that has its grammar.
        function: The package's function that returns it.
        definitions: The query for definitions and imports, each match one of them.
        uses: The query for names that are used, and for comments.
        strings: The query for texts in quotes, as `string`.
        hides: Whether a signature and a name say that other files do not use it.
        resolve: Which files an import means.
        names_of: Reads an import whose text alone says what it means; else the query's parts do.
        extra: Which extra brings the package; empty where the default install does.
        version: Raised when its queries find more, or otherwise: files are then read again.
        names: Whole names of its files, with words between spaces.
        joins: What may stand between a name and the one before it, with words between spaces.
        binds: What a module is called where it is imported without a name; empty for nothing.
        members_are_bare: Whether a member of a type is used there without a name before it.
        shares_folder: Whether files of one folder know of each other, and hand on nothing that they import.
        opens: Whether an import without names brings in all of them.
        includes: Whether what is brought in is as if it stood there, in whatever scope.
        imports_members: Whether a member of a type is imported like what a package has.
        imports_by_path: Whether a path of names means what it leads to without being imported.
        type_is_first: Whether the type of a parameter stands before its name.
    """

    name: str
    title: str
    suffixes: str
    package: str
    function: str
    definitions: str
    uses: str
    strings: str
    hides: Callable[[str, str], bool]
    resolve: Resolve
    names_of: Callable[[str], list[ImportedName]] | None = None
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
    """Return what says whether one of some words stands before a name."""
    hiding = frozenset(words)

    def hides(signature: str, name: str) -> bool:
        return not hiding.isdisjoint(_WORD.findall(signature.partition(name)[0]))

    return hides
