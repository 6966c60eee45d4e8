"""Passages of source code as documents of the index; without numpy.

``text`` is the passage. ``tags`` are the symbols that it defines, each with a scope, and the passage's scope.
``author`` is the path of the file, ``key`` the file's stem, and ``kind`` the file's role.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal

from greenroom.actors.search.index.document import Document

Role = Literal["source", "test", "aside", "text"]
"""The role of a file: source, tests, examples and tools beside it, or text."""

_TEST: Final = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|testing|testdata|fixtures?|mocks?|__mocks__)/"
    r"|(?:^|/)(?:test_[^/]*|conftest|[^/]*_test|[^/]*[._-](?:tests?|spec|mock)|[^/]*Tests?|Test[A-Z][^/]*)\.[^/]*$"
    r"|\.test-d\.ts$"
)
_ASIDE: Final = re.compile(
    r"(?:^|/)(?:examples?|samples?|demos?|docs?|docs_src|www|website|benchmarks?|benches|bench|tutorials?"
    r"|scripts?|tools|fuzz|fuzzing|extras?|playground)/"
)
_NAMELESS: Final = frozenset({"__init__", "__main__", "index", "mod", "lib", "main"})
"""Stems of files that stand for their folder."""


@lru_cache(maxsize=1_024)
def role_of(path: str, language: str) -> Role:
    """Return the role of a file, from its path and its language, if any."""
    if _TEST.search(path):
        return "test"
    if _ASIDE.search(path):
        return "aside"
    return "source" if language else "text"


@lru_cache(maxsize=1_024)
def stem_of(path: str) -> str:
    """Return the stem of a file, or of its folder if the name is generic."""
    folder, _, name = path.rpartition("/")
    stem = name.lstrip(".").partition(".")[0]
    if stem in _NAMELESS and folder:
        stem = folder.rpartition("/")[2]
    return stem.replace("-", "_")


def source_document(
    id: int,
    number: int,
    path: str,
    language: str,
    passage: str,
    symbols: Sequence[str],
    scope: str,
) -> Document:
    """Return the document of a passage."""
    return Document(
        id=id,
        partition="",
        namespace="",
        text=passage,
        key=stem_of(path),
        author=path,
        tags=(*dict.fromkeys(symbols), *([f"{scope}."] if scope else [])),
        kind=role_of(path, language),
        number=number,
    )
