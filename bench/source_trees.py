"""Folders of source code to be indexed: this repository's own, Python's library, and copies of that.

More than the library has is made of copies of it in which each seldom name is another one: so the vocabulary
grows with the source, and a name is in few files, as in real code.
"""

from __future__ import annotations

import random
import re
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, product
from pathlib import Path
from typing import Final, NamedTuple

from bench.corpus import SYLLABLES
from greenroom.actors.knowledge.ingest.files.exclusions import code_reason, content_reason

ROOT: Final = Path(__file__).parent.parent
LIBRARY: Final = Path(sysconfig.get_path("stdlib"))
PLANTED_EVERY: Final = 8
"""Of so many files one has a planted function, unless it is a test: these are seldom meant."""
_MOST_BYTES: Final = 400_000
_SELDOM: Final = 3
"""A name in so many files, at most, is another one in each copy."""
_NAME: Final = re.compile(r"\b[A-Za-z_]\w{5,}\b")
_FOLDERS: Final = ("actors", "bench", "runtime", "tests", "transports")
_HEAD: Final = 8_192
_PLANTED: Final = 144
_SEED: Final = 19


class Planted(NamedTuple):
    """A function that was put into a file.

    Attributes:
        symbol: Its name.
        question: What is asked to find its file.
        path: The file's, below the folder.
    """

    symbol: str
    question: str
    path: str


class SourceTree(NamedTuple):
    """What was written: how many files and bytes, and which functions are planted in them."""

    files: int
    size: int
    planted: Sequence[Planted]


Files = Iterable[tuple[str, str]]
"""Paths and what the files say."""


def own_source() -> Files:
    """Return this repository's Python files."""
    for folder in _FOLDERS:  # what else lies there, such as hypothesis's examples, comes and goes
        for path in _below(ROOT / folder):
            text = path.read_text()
            if _is_indexed(text):
                yield path.relative_to(ROOT).as_posix(), text


def library() -> Files:
    """Return files of Python's library in an order of chance, but what programs made or installed."""
    paths = sorted(_below(LIBRARY))
    random.Random(_SEED).shuffle(paths)
    for path in paths:
        text = path.read_text("utf-8", "replace")
        if "site-packages" not in path.parts and _is_indexed(text):
            yield path.relative_to(LIBRARY).as_posix(), text


def copies() -> Files:
    """Return the library, then copies of it with other names, without end."""
    files = list(library())
    seen = Counter(name for _, text in files for name in set(_NAME.findall(text)))
    common = frozenset(name for name, times in seen.items() if times > _SELDOM)
    yield from files
    for number in count(1):
        renamed = _renamed(common, number)
        yield from ((f"copy_{number}/{path}", _NAME.sub(renamed, text)) for path, text in files)


def write_tree(folder: Path, files: Files, size: int) -> SourceTree:
    """Write files until they have so many bytes, with functions planted in some of them."""
    words = random.Random(_SEED).sample(
        ["".join(parts) for parts in product(SYLLABLES, repeat=3)], 2 * _PLANTED
    )
    planted: list[Planted] = []
    written = number = 0
    for number, (path, text) in enumerate(files, 1):
        said = text
        if number % PLANTED_EVERY == 0 and len(planted) < _PLANTED and "test" not in path:
            who, thing = words[2 * len(planted) :][:2]
            symbol = f"hide_{thing}_{who}"
            summary = f"Return where the {who} hides its {thing}."
            said += f'\n\ndef {symbol}(value):\n    """{summary}"""\n    return {symbol}, value\n'
            planted.append(Planted(symbol, f"function that returns where the {who} hides its {thing}", path))
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        written += (folder / path).write_bytes(said.encode())
        if written >= size:
            break
    return SourceTree(number, written, planted)


def _is_indexed(text: str) -> bool:
    """Return whether nothing in a file keeps it out of an index."""
    head = text.encode()[:_HEAD]
    return bool(text) and "\0" not in text and (content_reason(head) or code_reason("", head)) is None


def _below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*.py") if path.stat().st_size <= _MOST_BYTES)


def _renamed(common: frozenset[str], number: int) -> Callable[[re.Match[str]], str]:
    def renamed(found: re.Match[str]) -> str:
        return found[0] if found[0] in common else f"{found[0]}{number}q"

    return renamed
