"""What is read from a source file. All of it may be stored, so a field is only ever added at the end."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal[
    "function",
    "method",
    "class",
    "struct",
    "interface",
    "trait",
    "enum",
    "type",
    "constant",
    "variable",
    "module",
    "macro",
]
Role = Literal["call", "inherits", "type", "other"]


class Symbol(msgspec.Struct, frozen=True, array_like=True):
    """A definition or declaration that others may use: never a variable of a function.

    Attributes:
        name: What it is called.
        kind: What it is; a function that belongs to a type is a method.
        scope: The names of what it is in, with dots between, in any language; empty at the top.
        line: The line that its name is in, counted from 1.
        first_line: Where it begins; a comment and decorators right above belong to it.
        last_line: Its last line.
        first_byte: Where it begins in the file, with what is above.
        last_byte: The first byte after it.
        name_byte: Where its name begins in the file.
        signature: How it begins, up to its body, in one line.
        summary: The first sentence of what describes it, a docstring or the comment above; often empty.
        is_public: Whether its language, or its name by custom, lets other files use it.
    """

    name: str
    kind: Kind
    scope: str
    line: int
    first_line: int
    last_line: int
    first_byte: int
    last_byte: int
    name_byte: int
    signature: str
    summary: str
    is_public: bool

    @property
    def path(self) -> str:
        """Its name after those of its scope, such as ``Class.method``."""
        return f"{self.scope}.{self.name}" if self.scope else self.name


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """A name that is used.

    Attributes:
        name: The name alone.
        role: What it is used for. Of role ``other`` are names of what the file defines or imports and names
            that begin with a capital, once in each symbol.
        line: Where, counted from 1.
        symbol: The path of the innermost symbol that uses it, of Rust's ``impl`` that of its type; empty at
            the top.
        qualifier: What stands before it, ``a.b`` of ``a.b.name``; empty where that is no chain of names.
    """

    name: str
    role: Role
    line: int
    symbol: str
    qualifier: str = ""


class Import(msgspec.Struct, frozen=True, array_like=True):
    """A name that is brought in from elsewhere; a statement that brings several has one for each.

    Attributes:
        module: From where, as it is written: ``..a.b``, ``./x``, ``crate::y``, ``<vector>``.
        name: Which name of it; ``*`` for all, empty for the module itself.
        alias: What it is called here, where that is another name.
        line: Where, counted from 1.
    """

    module: str
    name: str
    alias: str
    line: int


class CodeChunk(msgspec.Struct, frozen=True, array_like=True):
    """A passage of a source file: whole definitions where they fit, else parts of one.

    Attributes:
        text: The passage.
        scope: The path of the innermost symbol that it is a part of; empty at the top.
        symbols: The paths of the symbols whose names are in it.
        first_line: Its first line, counted from 1.
        last_line: Its last line.
        first_byte: Where it begins in the file.
        last_byte: The first byte after it.
    """

    text: str
    scope: str
    symbols: list[str]
    first_line: int
    last_line: int
    first_byte: int
    last_byte: int


class Source(msgspec.Struct, frozen=True, array_like=True):
    """A source file as it was read.

    Attributes:
        path: As it was given.
        language: Its language by its name, such as ``python``; empty where that is none of the table.
        symbols: In the order in which they begin.
        references: In the order of the file.
        imports: In the order of the file.
        chunks: In the order of the file; together they have all of its text but blank lines.
        summary: The first sentence of what the file says about itself; often empty.
        is_broken: Whether parts of it are not of the language; the rest was read all the same.
        notice: Why it was read as text alone, or not to the end; empty where all was read.
    """

    path: str
    language: str
    symbols: list[Symbol]
    references: list[Reference]
    imports: list[Import]
    chunks: list[CodeChunk]
    summary: str = ""
    is_broken: bool = False
    notice: str = ""
