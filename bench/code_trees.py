"""Source trees, and questions whose right files are known: public repositories', or this repository's own.

A tree is made with git from a folder of mirrors, without a work tree: `git ls-tree` and `git cat-file`. Its
files stay in memory.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.actors.content.syntax import language_of, read_source
from greenroom.actors.content.syntax.origins import NO_ORIGIN
from greenroom.actors.content.syntax.source import Source
from greenroom.actors.content.text.analyze import code_rules
from greenroom.actors.search.index.corpus import Corpus
from greenroom.actors.search.index.source_code import source_document
from greenroom.actors.search.ranking.code import GetOrigin
from greenroom.actors.search.ranking.code_origins import OriginOfFile
from greenroom.actors.search.ranking.code_signals import SourceView
from greenroom.runtime import finish

MOST_BYTES: Final = 1_000_000
ACTORS: Final = Path(__file__).parent.parent / "actors" / "greenroom" / "actors"
_SENTENCE: Final = re.compile(r"[^.:;(`\n]{20,}")
_REGULAR: Final = frozenset({"100644", "100755"})


class Question(NamedTuple):
    """A question.

    Attributes:
        query: What is asked.
        files: The right files.
        secondary: Files that are half right.
    """

    query: str
    files: Sequence[str]
    secondary: Sequence[str] = ()


class Tree(NamedTuple):
    """A source tree and what is asked of it.

    Attributes:
        name: What it is called.
        kind: What kind of questions it has.
        files: Bytes by path.
        questions: What is asked.
    """

    name: str
    kind: str
    files: Mapping[str, bytes]
    questions: Sequence[Question]


class _Corpus(msgspec.Struct, frozen=True):
    """A row of `corpora.*.json`: a revision of a repository, and which bytes of it are blanked."""

    repo: str
    rev: str
    root: str | None
    blanked: Mapping[str, Sequence[tuple[int, int]]] = {}


def load(data: Path, mirrors: Path) -> Iterator[Tree]:
    """Yield the trees of a folder of questions.

    Args:
        data: Has `queries.*.jsonl` (``set``, ``corpus``, ``query``, ``files``) and `corpora.*.json`.
        mirrors: Has a bare repository for each ``repo``: `owner+name/repo`.
    """
    corpora: dict[str, _Corpus] = {}
    for path in sorted(data.glob("corpora.*.json")):
        corpora.update(msgspec.json.decode(path.read_bytes(), type=dict[str, _Corpus]))
    lines = [line for path in sorted(data.glob("queries.*.jsonl")) for line in path.read_bytes().splitlines()]
    rows: list[dict[str, Any]] = [msgspec.json.decode(line) for line in lines]
    for name, corpus in corpora.items():
        asked = [row for row in rows if row["corpus"] == name and "files" in row]
        if not asked:
            continue
        questions = [Question(row["query"], row["files"], row.get("secondary", ())) for row in asked]
        repository = mirrors / corpus.repo.replace("/", "+") / "repo"
        yield Tree(name, asked[0]["set"], dict(_files(repository, corpus)), questions)


def own(every: int) -> Tree:
    """Return the source of the actors without docstrings, and the docstring of one in ``every`` function."""
    files: dict[str, bytes] = {}
    found: dict[str, list[str]] = {}
    for path in sorted(ACTORS.rglob("*.py")):
        name = path.relative_to(ACTORS).as_posix()
        data = bytearray(path.read_bytes())
        for sentence, first, last in _docstrings(bytes(data)):
            data[first:last] = b"..." + bytes(
                10 if byte == ord("\n") else 32 for byte in data[first + 3 : last]
            )
            found.setdefault(sentence, []).append(name)
        files[name] = bytes(data)
    questions = [Question(sentence, where) for sentence, where in found.items() if len(where) == 1]
    return Tree("greenroom.actors", "own", files, questions[::every])


def _docstrings(source: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the first sentence of each function's docstring, and where the docstring stands."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(source)):
        text = ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None
        sentence = None if text is None else _SENTENCE.match(text)
        if sentence is not None:
            assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef), "it has a docstring"
            at = node.body[0]
            assert at.end_lineno is not None
            assert at.end_col_offset is not None
            first, last = starts[at.lineno - 1] + at.col_offset, starts[at.end_lineno - 1] + at.end_col_offset
            yield sentence[0].strip(), first, last


def _files(repository: Path, corpus: _Corpus) -> Iterator[tuple[str, bytes]]:
    """Yield the source files of a revision."""
    git = ["git", "-C", str(repository)]
    below = [corpus.root] if corpus.root else []
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "-z", corpus.rev, *below], capture_output=True, check=True
    )
    blobs: dict[str, str] = {}
    for row in listed.stdout.decode("utf-8", "replace").split("\0")[:-1]:
        about, _, path = row.partition("\t")
        mode, _, blob = about.split()
        if mode in _REGULAR and language_of(path) is not None:
            blobs[path] = blob
    wanted = "".join(f"{blob}\n" for blob in blobs.values()).encode()
    batch = subprocess.run(
        [*git, "cat-file", "--batch"], input=wanted, capture_output=True, check=True
    ).stdout
    place = 0
    for path in blobs:
        end = batch.index(b"\n", place)
        *_, size = batch[place:end].split()
        if size == b"missing":
            place = end + 1
            continue
        data = bytearray(batch[end + 1 : end + 1 + int(size)])
        place = end + int(size) + 2
        for first, last in corpus.blanked.get(path, ()):
            data[first:last] = _blank(data[first:last])
        if len(data) <= MOST_BYTES and b"\0" not in data:
            yield path, bytes(data)


def _output(command: Sequence[str], given: bytes = b"") -> bytes:
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


def _blank(data: bytearray) -> bytes:
    """Return as many spaces, with the ends of lines where they were."""
    return bytes(byte if byte == ord("\n") else ord(" ") for byte in data)


def read_files(files: Mapping[str, bytes]) -> dict[str, Source]:
    """Return files as they are read by their syntax, by path."""
    return {path: read_source(path, data) for path, data in files.items()}


def origins_of(sources: Mapping[str, Source]) -> GetOrigin:
    """Return where the text of a file comes from, by its path."""

    def find(path: str, _: int) -> OriginOfFile:
        return OriginOfFile(path, sources[path].origin or NO_ORIGIN)

    return find


def source_view(sources: Mapping[str, Source]) -> SourceView:
    """Return the passages of files, ready to be searched."""
    corpus = Corpus()
    count = 0
    for number, (path, source) in enumerate(sources.items(), 1):
        for chunk in source.chunks:
            count += 1
            passage = source_document(
                count, number, path, source.language, chunk.text, chunk.symbols, chunk.scope
            )
            finish(corpus.add(passage, code_rules()))
            finish(corpus.compact())
    return SourceView(corpus)
