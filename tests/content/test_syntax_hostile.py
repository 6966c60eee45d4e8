"""Source files that are broken, deep, long or no text: each has an answer, and what is kept has limits."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.content.syntax import Source, read_source
from greenroom.actors.content.syntax.chunks import MAX_CHARACTERS
from greenroom.actors.content.syntax.languages import LANGUAGES, Language
from greenroom.actors.content.syntax.parse import MAX_BYTES, MAX_SYMBOLS, TOO_BROKEN, TOO_LONG, TOO_MANY

_MANY = 20_000
_MEMORY = 1 << 30
"""What a process that parses may take."""
_TOKENS = [
    *[
        "def",
        "class",
        "function",
        "fn",
        "func",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        ";",
        ":",
        "::",
        ",",
        ".",
        "=",
        "=>",
        "->",
        "*",
        "&",
        "#",
        "//",
        "/*",
        "*/",
        "'",
        "`",
        "${",
        "a",
        "B",
        "import",
    ],
    *["from", "use", "mod", "package", "include", "struct", "impl", "enum", "@", "\\", "\x00", "é", "世"],
    '"',
    "\n",
    "\t",
]
_LONGEST = 8 * MAX_CHARACTERS


def _read(path: str, data: bytes) -> Source:
    """Read a file and look at what holds of each."""
    source = read_source(path, data)
    assert all(len(each.text.encode()) <= _LONGEST for each in source.chunks)
    assert all(len(each.path) < 10_000 for each in source.symbols)
    lines = [each.first_line for each in source.chunks]
    assert lines == sorted(lines)
    return source


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("a.py", b"x = " + b"(" * _MANY + b")" * _MANY),
        ("a.js", b"a" + b".b()" * _MANY),
        ("a.js", b"x=>" * _MANY),
        ("a.jsx", b"<a>" * _MANY),
        ("a.ts", b"type A = " + b"Array<" * _MANY),
        ("a.go", b"func f() {" + b"if x {" * _MANY + b"}" * _MANY),
        ("a.rs", b"use a" + b"::{b" * _MANY + b"}" * _MANY + b";"),
        ("a.rs", b"mod a {" * _MANY + b"}" * _MANY),
        ("a.java", b"class A {" * _MANY + b"}" * _MANY),
        ("a.c", b"void f() {" + b"if(x) " * _MANY + b"}"),
        ("a.cc", b"int " + b"a::" * _MANY + b"f() {}"),
        ("a.cc", b"namespace a {" * _MANY),
        ("a.cs", b"class A {" * _MANY),
        ("a.cs", b"class A { void F() { x = " + b"(" * _MANY + b"a" + b")" * _MANY + b"; } }"),
        ("a.cs", b"class A { void F() { a" + b".B()" * _MANY + b"; } }"),
        ("a.php", b"<?php $a = " + b"[" * _MANY + b"]" * _MANY + b";"),
        ("a.php", b"<?php $a" + b"->b()" * _MANY + b";"),
        ("a.rb", b"module A\n" * _MANY + b"end\n" * _MANY),
        ("a.rb", b"a" + b".b(1)" * _MANY),
        ("a.rb", b'"#{' * _MANY + b'}"' * _MANY),
        ("a.sh", b"if x; then\n" * _MANY + b"fi\n" * _MANY),
        ("a.sh", b"a=" + b"$(" * _MANY + b")" * _MANY),
        ("a.kt", b"class A {\n" * _MANY + b"}\n" * _MANY),
        ("a.kt", b"fun f() { a" + b".b { it }" * _MANY + b" }"),
        ("a.lua", b"function a()\n" * _MANY + b"end\n" * _MANY),
        ("a.lua", b"x = " + b"{" * _MANY + b"}" * _MANY),
        ("a.swift", b"struct A {\n" * _MANY + b"}\n" * _MANY),
        ("a.swift", b"a" + b".b()" * _MANY),
        ("a.scala", b"object A {\n" * _MANY + b"}\n" * _MANY),
        ("a.scala", b"import " + b"a.{b, " * 1_000 + b"}" * 1_000),  # its parser takes time by the square
        ("a.py", b"".join(b" " * depth + b"class A:\n" for depth in range(1_000))),
    ],
)
def test_a_deeply_nested_file_is_read(path: str, data: bytes) -> None:
    assert _read(path, data).chunks


@pytest.mark.parametrize("path", ["a.py", "a.js", "a.c"])
def test_a_file_without_structure_is_read_as_text(path: str) -> None:
    source = _read(path, b"(" * 50_000)
    assert (source.notice, source.is_broken, source.symbols) == (TOO_BROKEN, True, [])
    assert sum(len(each.text) for each in source.chunks) == 50_000


def test_a_file_that_is_too_long_is_read_as_text_and_says_so() -> None:
    source = _read("a.py", b"def f():\n    return 1\n\n" * (MAX_BYTES // 22))
    assert (source.language, source.notice, source.symbols) == ("python", TOO_LONG, [])
    assert len(source.chunks) > 1_000


def test_names_are_kept_up_to_a_limit_and_it_is_said() -> None:
    source = _read("a.js", b"".join(b"function f%d(){}\n" % number for number in range(MAX_SYMBOLS + 1)))
    assert (len(source.symbols), source.notice) == (MAX_SYMBOLS, TOO_MANY)


def test_what_is_around_a_mistake_is_found() -> None:
    source = _read("a.py", b"def before():\n    pass\n\n)) = = (\n\ndef after():\n    pass\n")
    assert source.is_broken
    assert {"before", "after"} <= {each.name for each in source.symbols}


@pytest.mark.parametrize(
    ("data", "summary"),
    [
        ("# Gr\u00fc\u00dfe.\ndef f(): pass\n".encode(), "Gr\u00fc\u00dfe."),
        ("# Gr\u00fc\u00dfe.\ndef f(): pass\n".encode("cp1252"), "Gr\u00fc\u00dfe."),
        ("# Gr\u00fc\u00dfe.\ndef f(): pass\n".encode("utf-16"), "Gr\u00fc\u00dfe."),
        ("# Gr\u00fc\u00dfe.\ndef f(): pass\n".encode("utf-8-sig"), "Gr\u00fc\u00dfe."),
        (b"# Hello.\r\ndef f():\r\n    pass\r\n", "Hello."),
        (b"# Hello.\ndef f(): pass\n\0\0\0", "Hello."),
    ],
)
def test_any_encoding_and_line_ends_are_read(data: bytes, summary: str) -> None:
    (symbol,) = _read("a.py", data).symbols
    assert (symbol.name, symbol.summary, symbol.line) == ("f", summary, 2)


@given(st.sampled_from(LANGUAGES), st.lists(st.sampled_from(_TOKENS)))
def test_any_tokens_have_an_answer_with_all_of_their_text(language: Language, tokens: list[str]) -> None:
    data = " ".join(tokens).encode()
    source = _read(f"a.{language.suffixes.split()[0]}", data)
    kept = b"".join(each.text.encode() for each in source.chunks)
    assert b"".join(kept.replace(b"\0", b"").split()) == b"".join(data.replace(b"\0", b"").split())


def test_importing_it_loads_no_grammar_and_a_missing_one_is_said() -> None:
    program = (
        "import sys; from greenroom.actors.content.syntax import read_source\n"
        "assert 'tree_sitter' not in sys.modules and 'trio' not in sys.modules\n"
        "sys.modules['tree_sitter'] = None\n"
        "source = read_source('a.py', b'def f(): pass')\n"
        "assert source.chunks and not source.symbols\n"
        "print(source.notice)"
    )
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert said.strip() == (
        "it was read as text: reading Python by syntax takes tree-sitter, not installed here: "
        "pip install tree-sitter"
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="macOS holds no process to its memory")
@pytest.mark.parametrize(
    ("path", "piece"), [("a.py", "("), ("a.js", "!function(e){return e.map(x=>x+1)}(y);")]
)
def test_the_longest_file_fits_into_the_memory_of_a_process_that_parses(path: str, piece: str) -> None:
    program = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))\n"
        "from greenroom.actors.content.syntax import read_source\n"
        "path, piece, most = sys.argv[1:]\n"
        "source = read_source(path, (piece.encode() * (int(most) // len(piece) + 1))[: int(most)])\n"
        "print(sum(len(each.text) for each in source.chunks))"
    )
    command = [sys.executable, "-c", program, path, piece, str(MAX_BYTES)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert int(said) == MAX_BYTES
