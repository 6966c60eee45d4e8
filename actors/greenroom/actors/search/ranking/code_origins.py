"""Files that programs wrote, fetched files and copies: they come behind their source.

What a file holds shows this: its marks (`content.syntax.origins`), and pairs of words that it shares with
other files that were found. The name of a folder alone says nothing: people write files by hand in folders
called ``build`` and ``vendor``. It only decides which one of two similar files is the copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.content.syntax import Origin
from greenroom.actors.search.index.source_code import role_of

Hashes = npt.NDArray[np.uint32]
_MADE_NAME: Final = re.compile(
    r"(?:^|/)(?:assets|backups?|build|built|bundles?|cjs|copy|copies|dist|es|esm|gen|generated|old|out|output"
    r"|public|release|static|target|third[_-]?party|umd|vendor|vendored)/"
    r"|[ ._-](?:backup|bak|bundle|bundled|cjs|copy|esm|generated|iife|min|old|orig|umd)\.[^/]*$",
    re.IGNORECASE,
)
_FETCHED_NAME: Final = re.compile(
    r"(?:^|/)(?:third[_-]?party|3rd[_-]?party|vendor|vendored)(?=/)", re.IGNORECASE
)
_LICENCES: Final = ("COPYING", "LICENCE", "LICENSE", "LICENSE.md", "LICENSE.txt")
_LEAST: Final = 3
"""Fewer hashes say nothing."""
_SHARE: Final = 0.6
"""A file that holds this share of another one has taken it in. What people wrote shares less than half."""
_SEVERAL: Final = 2
_MUCH: Final = 0.4
"""Several different files make up at least this share of a file that was put together from them."""
_LARGER: Final = 1.5
"""It is at least as many times as large as each of them."""
_TOUCHED: Final = 0.1
"""The same for a file that looks like a copy by its name."""


class OriginOfFile(NamedTuple):
    """A found file and its origin.

    Attributes:
        is_generated: Whether the repository's attributes say that a program made it.
        is_vendored: Whether they say that it was fetched.
    """

    path: str
    origin: Origin
    is_generated: bool = False
    is_vendored: bool = False

    @property
    def is_made(self) -> bool:
        """Whether a program wrote the file."""
        return self.is_generated or self.origin.is_made

    @property
    def looks(self) -> int:
        """How much the file looks like something made or copied, to compare two similar files."""
        return 2 * (self.is_made or self.is_vendored) + bool(_MADE_NAME.search(self.path))


def find_fetched(files: Sequence[OriginOfFile], exists: Callable[[str], bool]) -> set[int]:
    """Return the places of files that were fetched from elsewhere.

    In a folder with such a name, it is a file whose folder has a licence of its own, or whose copyright
    belongs to others than that of the files outside.
    """
    folders = [_FETCHED_NAME.search(file.path) for file in files]
    ours = {file.origin.holder for file, found in zip(files, folders, strict=True) if found is None}
    fetched: set[int] = set()
    for place, (file, found) in enumerate(zip(files, folders, strict=True)):
        is_foreign = found is not None and bool(ours) and file.origin.holder not in {0, *ours}
        if file.is_vendored or is_foreign or (found and _has_licence(file.path, found.end(), exists)):
            fetched.add(place)
    return fetched


def _has_licence(path: str, begin: int, exists: Callable[[str], bool]) -> bool:
    """Return whether a folder of a path that ends after ``begin`` has a licence."""
    end = len(path)
    while (end := path.rfind("/", 0, end)) >= begin:
        if any(exists(f"{path[:end]}/{name}") for name in _LICENCES):
            return True
    return False


class Copy(NamedTuple):
    """The places of a copy's sources: files that it holds, and files around it."""

    holds: list[int]
    is_part_of: list[int]


class Copies:
    """Finds the copies among some files; files are named by their places."""

    def __init__(self, files: Sequence[OriginOfFile]) -> None:
        self._files = list(files)
        self._sketches = [_read_sketch(file) for file in files]
        self._held: dict[int, dict[int, frozenset[int]]] = {}
        self._around: dict[int, list[int]] = {}
        for first, second in _find_related(self._sketches, [file.origin.scale for file in files]):
            self._compare(first, second)

    def add(self, file: OriginOfFile, doubtful: Collection[int]) -> None:
        """Compare another file with those that may have been put together from it, too."""
        place = len(self._files)
        self._files.append(file)
        self._sketches.append(_read_sketch(file))
        for other in doubtful:
            self._compare(other, place)

    def find_doubtful(self) -> list[int]:
        """Return files that hold several others, if more of their parts may be elsewhere."""
        found = self.find()
        return [copy for copy in self._held if copy not in found and self._cover(copy)[0] >= _SEVERAL]

    def find_holders(self) -> set[int]:
        """Return the files that hold another one; the rest may be their own."""
        return {copy for copy in self._held if self._parts(copy)}

    def find(self) -> dict[int, Copy]:
        """Return the copies.

        Of two files that are almost the same, or of which one holds the other, the copy is the one that looks
        like it. A file that looks like none is a copy if several different files make up much of it.
        """
        found: dict[int, Copy] = {}
        for copy in {*self._held, *self._around}:
            looks = self._files[copy].looks
            like = [source for source in self._around.get(copy, ()) if self._files[source].looks < looks]
            is_whole = self._is_put_together(copy)
            if is_whole or like:
                found[copy] = Copy(list(self._parts(copy)) if is_whole else [], like)
        return found

    def _compare(self, first: int, second: int) -> None:
        common = np.intersect1d(self._sketches[first], self._sketches[second], assume_unique=True)
        if len(common) < _LEAST:
            return
        scale = max(self._files[first].origin.scale, self._files[second].origin.scale)
        sizes = {place: _divisible(self._sketches[place], scale).sum() for place in (first, second)}
        for copy, source in ((first, second), (second, first)):
            if not _may_be_source(self._files[source], self._files[copy]):
                continue
            if len(common) >= _SHARE * sizes[source]:
                self._held.setdefault(copy, {})[source] = frozenset(common.tolist())
            elif len(common) >= _SHARE * sizes[copy]:
                self._around.setdefault(copy, []).append(source)

    def _parts(self, copy: int) -> dict[int, frozenset[int]]:
        """Return what a file holds, and what they have in common.

        A twin is left out: it may be a copy of the file, or both are copies of a third one.
        """
        looks, size = self._files[copy].looks, len(self._sketches[copy])
        return {
            source: common
            for source, common in self._held.get(copy, {}).items()
            if self._files[source].looks < looks or _LARGER * len(common) <= size
        }

    def _cover(self, copy: int) -> tuple[int, int]:
        """Return how many different parts a file has, and how many hashes of these."""
        covered: set[int] = set()
        several = 0
        for common in sorted(self._parts(copy).values(), key=len, reverse=True):
            several += 2 * len(common - covered) >= len(common)
            covered |= common
        return several, len(covered)

    def _is_put_together(self, copy: int) -> bool:
        several, covered = self._cover(copy)
        looks, size = self._files[copy].looks, len(self._sketches[copy])
        if any(self._files[source].looks < looks for source in self._parts(copy)):
            return looks > 1 or covered >= _TOUCHED * size
        return several >= _SEVERAL and covered >= _MUCH * size


def _read_sketch(file: OriginOfFile) -> Hashes:
    return np.frombuffer(file.origin.sketch, "<u4")


def _divisible(hashes: Hashes, scale: int) -> npt.NDArray[np.bool_]:
    """Return which hashes a sketch of a scale has."""
    rest: Hashes = hashes & np.uint32((1 << scale) - 1)
    return np.equal(rest, 0)


def _find_related(sketches: Sequence[Hashes], scales: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of sketches that may share enough."""
    count = len(sketches)
    hashes = np.concatenate([*sketches, np.empty(0, np.uint32)])
    owners = np.repeat(np.arange(count), [len(each) for each in sketches])
    sizes = np.zeros((max(scales, default=0) + 1, count))
    for scale in {*scales}:
        sizes[scale] = np.bincount(owners, _divisible(hashes, scale), count)
    order = np.argsort(hashes, kind="stable")
    hashes, owners = hashes[order], owners[order]
    times = np.zeros(count * count)
    for step in range(1, count):  # equal hashes stand next to each other, by their owners
        same = np.flatnonzero(hashes[step:] == hashes[:-step])
        if not len(same):
            break
        times += np.bincount(owners[same] * count + owners[same + step], minlength=count * count)
    common = times.reshape(count, count)
    kept = np.array(scales, np.intp)
    size = sizes[np.maximum.outer(kept, kept), np.arange(count)]
    enough = (common >= _LEAST) & (common >= _SHARE * np.minimum(size, size.T))
    firsts, seconds = np.nonzero(enough)
    yield from zip(firsts.tolist(), seconds.tolist(), strict=True)


def _may_be_source(source: OriginOfFile, copy: OriginOfFile) -> bool:
    """Return whether a file may be the source; a test never is."""
    if source.is_made:
        return False
    role = role_of(source.path, "x")
    return role == "source" or role == role_of(copy.path, "x")
