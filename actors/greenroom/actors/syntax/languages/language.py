"""What is known of a language: one row of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


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
        names_of: Reads an import whose text alone says what it means; else the query's parts do.
        version: Raised when its queries find more, or otherwise: files are then read again.
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
    names_of: Callable[[str], list[ImportedName]] | None = None
    version: int = 1
