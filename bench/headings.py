"""Questions by rule: headings of documentation, each with the file that has its section.

`python -m bench.headings DIR NAME=FOLDER...` copies the pages of each folder to ``DIR/NAME`` and writes
their questions to ``DIR/queries.K.jsonl``, for `python -m bench documents --data DIR`. A heading is asked for
when it stands below another one, has two words at least, is there once in all the pages of its project and
heads some text. So many of these are taken as are wanted, chosen by a digest: every run takes the same.
"""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

from greenroom.actors import Document
from greenroom.actors.content.documents import UnreadableDocumentError, build_document, kind_of

LONGEST = 500
"""Characters that a search takes."""
LEAST_TEXT = 200
"""Characters below a heading that is asked for."""
SUFFIXES = frozenset({".md", ".mdx", ".rst", ".txt"})
_WORD = re.compile(r"[^\W\d_]{2,}")


class Question(NamedTuple):
    """A heading, and the file with its section."""

    query: str
    file: str


def documents_of(folder: Path) -> list[Document]:
    """Return the pages below a folder as documents."""
    return [document for _, document in _pages(folder)]


def _pages(folder: Path) -> Iterator[tuple[Path, Document]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        data, name = path.read_bytes(), path.relative_to(folder).as_posix()
        try:
            yield path, build_document(name, kind_of(name, data[:4_096]) or "text", data)
        except UnreadableDocumentError:
            continue


def questions(documents: Sequence[Document]) -> list[Question]:
    """Return all headings that can be asked for, in the documents' order."""
    places: dict[str, set[tuple[str, ...]]] = {}
    lengths: dict[str, int] = {}
    for document in documents:
        for chunk in document.chunks:
            if chunk.headings:
                heading = chunk.headings[-1]
                places.setdefault(heading, set()).add((document.path, *chunk.headings))
                lengths[heading] = lengths.get(heading, 0) + len(chunk.text)
    return [
        Question(heading[:LONGEST], path)
        for heading, ((path, *above), *others) in (
            (heading, list(found)) for heading, found in places.items()
        )
        if not others
        and len(above) > 1
        and len(_WORD.findall(heading)) > 1
        and lengths[heading] >= LEAST_TEXT
    ]


def some(asked: Sequence[Question], count: int) -> list[Question]:
    """Return so many of the questions, always the same."""
    return sorted(asked, key=lambda each: blake2b("\0".join(each).encode()).digest())[:count]


def build(out: Path, name: str, folder: Path, count: int) -> list[bytes]:
    """Copy the pages of a project, and return its questions as lines."""
    documents = []
    for path, document in _pages(folder):
        to = out / name / document.path
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)
        documents.append(document)
    chosen = some(questions(documents), count)
    return [msgspec.json.encode({"corpus": name, **each._asdict()}) for each in chosen]


def main() -> None:
    """Build what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m bench.headings", description=__doc__)
    parser.add_argument("out", type=Path, metavar="DIR", help="where to write to; not below the repository")
    parser.add_argument("projects", nargs="+", metavar="NAME=FOLDER", help="a project and its pages")
    parser.add_argument("--count", type=int, default=50, metavar="N", help="of each (%(default)d)")
    chosen = parser.parse_args()
    lines: list[bytes] = []
    for project in chosen.projects:
        name, _, folder = project.partition("=")
        found = build(chosen.out, name, Path(folder), chosen.count)
        print(f"{name}: {len(found)} questions")
        lines += found
    (chosen.out / "queries.K.jsonl").write_bytes(b"\n".join(lines) + b"\n")


if __name__ == "__main__":
    main()
