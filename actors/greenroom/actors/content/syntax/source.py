"""Parsed source files and their lines; they are stored, so append new fields."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, Literal

import msgspec

from greenroom.actors.content.syntax.origins import Origin

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
    """A definition or declaration that others may use; never a local variable.

    Attributes:
        kind: Its kind; a function of a type is a method.
        scope: The names of its scopes, joined by dots in every language; empty at the top level.
        line: The line in which its name stands, from 1.
        first_line: Its first line, including a comment and decorators directly above.
        first_byte: Where it starts in the file, including the parts above.
        signature: Its beginning up to the body, in one line.
        summary: The first sentence of its docstring or comment; often empty.
        is_public: Whether other files may use it, by the language's rules or by convention.
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
        """Its qualified name, such as ``Class.method``."""
        return f"{self.scope}.{self.name}" if self.scope else self.name


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """A use of a name.

    Attributes:
        role: How the name is used. Role ``other`` has names that the file defines or imports and capitalized
            names, once in each symbol.
        symbol: The path of the innermost enclosing symbol. In an ``impl`` of Rust, the path of its type;
            empty at the top level.
        qualifier: The names before it, ``a.b`` in ``a.b.name``; empty if there are none.
    """

    name: str
    role: Role
    line: int
    symbol: str
    qualifier: str = ""


class Import(msgspec.Struct, frozen=True, array_like=True):
    """An imported name; a statement with several names becomes several imports.

    Attributes:
        module: The module as written: ``..a.b``, ``./x``, ``crate::y``, ``<vector>``.
        name: The name in the module; ``*`` for all names, empty for the module itself.
        alias: Its local name, if this is different.
    """

    module: str
    name: str
    alias: str
    line: int


class CodeChunk(msgspec.Struct, frozen=True, array_like=True):
    """A passage and the symbols that it defines; a whole definition if that fits."""

    text: str
    scope: str
    symbols: list[str]
    first_line: int
    last_line: int
    first_byte: int
    last_byte: int


class Source(msgspec.Struct, frozen=True, array_like=True):
    """A parsed source file.

    Attributes:
        language: The name of its language, such as ``python``; empty if unknown.
        chunks: The chunks, in the order of the file; together they cover all but blank lines.
        summary: The first sentence of the file's description; often empty.
        is_broken: Whether it has syntax errors.
        notice: Why the file was read only as text, or not completely; else empty.
        origin: Where its text comes from; None if its language is unknown.
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
    origin: Origin | None = None


_LINE_END: Final = re.compile(rb"\n")


class Lines:
    """The lines of a file's bytes, from 1."""

    def __init__(self, data: bytes) -> None:
        self.starts = [0, *(end.end() for end in _LINE_END.finditer(data))]

    def of(self, offset: int) -> int:
        """Return the line of a byte, given the byte's offset."""
        return bisect_right(self.starts, offset)

    def start_of(self, line: int) -> int:
        """Return the start of a line."""
        return self.starts[line - 1]
