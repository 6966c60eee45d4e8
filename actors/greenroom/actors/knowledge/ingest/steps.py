"""Steps of a run in threads: find the next changed file; compare paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import takewhile
from threading import Event
from typing import Final, NamedTuple, TypeVar, TypeVarTuple

import trio

from greenroom.actors.content.documents import MASKING, digest_of
from greenroom.actors.content.documents.kinds import kind_by_name
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.knowledge.corpora.storage.readers import get_reader, is_newer
from greenroom.actors.knowledge.ingest.files.file_content import read_document
from greenroom.actors.knowledge.ingest.files.places import is_below
from greenroom.actors.knowledge.ingest.files.walk import UNREADABLE, Found, LeftOut
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job
from greenroom.actors.knowledge.ingest.run_state import Step

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

_LOOKED_AT: Final = 256
_READ: Final = 64 << 20
"""A step reads about this many files or bytes at most, so that it is short."""


class Known(NamedTuple):
    """The data that a corpus has about a file: digest, reader and version of masking."""

    digest: str
    reader: str
    masking: int = 0


async def iterate_in_thread(
    function: Callable[[Iterator[Found | LeftOut]], R], found: Iterable[Found | LeftOut]
) -> R:
    """Run a function over found files in a thread; cancellation ends the iteration, too."""
    is_over = Event()
    try:
        return await in_thread(function, takewhile(lambda _: not is_over.is_set(), found))
    finally:
        is_over.set()


def count_files(found: Iterable[Found | LeftOut]) -> int:
    """Count the found files."""
    return sum(isinstance(each, Found) for each in found)


async def in_thread(function: Callable[[*Ts], R], *arguments: *Ts) -> R:
    """Run a function in a thread; cancellation abandons the thread, since a disk may hang."""
    return await trio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True)


def next_step(files: Iterator[Found | LeftOut], known: Mapping[str, Known], *, is_source: bool) -> Step:
    """Read files up to the next changed file; run this in a thread."""
    found: list[str] = []
    outdated: list[str] = []
    left_out: list[LeftOut] = []
    unchanged = read_bytes = 0
    for _ in range(_LOOKED_AT):
        if read_bytes > _READ:
            break
        each = next(files, None)
        if each is None:
            return Step(None, found, unchanged, outdated, left_out, is_last=True)
        read = each if isinstance(each, LeftOut) else read_job(each.path, is_source=is_source)
        if isinstance(read, LeftOut):
            left_out.append(read)
            continue
        if read is not None:
            found.append(read.path)
            before = known.get(read.path)
            is_open = is_source and before is not None and before.masking < MASKING
            if before is None or is_open or before.digest != digest_of(read.data):
                return Step(read, found, unchanged, outdated, left_out, is_last=False)
            unchanged += 1
            read_bytes += len(read.data)
            if is_newer(read.reader, before.reader):
                outdated.append(read.path)
    return Step(None, found, unchanged, outdated, left_out, is_last=False)


def read_job(path: str, *, is_source: bool) -> Job | LeftOut | None:
    """Read a file; None if it is gone."""
    try:
        kind, data, modified_at = read_document(path)
    except UnreadableFileError as error:
        return LeftOut(path, str(error))
    except FileNotFoundError:
        return None
    except OSError as error:
        return LeftOut(path, f"{UNREADABLE}: {error.strerror}", is_known=False)
    if is_source and kind == "html":  # so that searches find tags and scripts
        kind = "code"
    reader = get_reader(path, kind, is_source=is_source)
    return Job(path, kind, modified_at, data, is_source=is_source, is_file=True, reader=reader)


def find_below(paths: Iterable[str], folders: Collection[str]) -> set[str]:
    """Return the paths in the folders; the number of folders hardly affects the time."""
    return {path for path in paths if any(folder in folders for folder in _folders_of(path))}


def _folders_of(path: str) -> Iterator[str]:
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)


def find_outside(paths: Iterable[str], folders: Collection[str]) -> list[str]:
    """Return the paths that are in none of the folders, which should be few."""
    return [path for path in paths if not any(is_below(path, folder) for folder in folders)]


def find_outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that are not below another path."""
    found: list[str] = []
    for path in sorted(set(paths), key=lambda path: f"{path}/"):
        if not found or not is_below(path, found[-1]):
            found.append(path)
    return found


_DATA: Final = (".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".properties")
_PROSE: Final = frozenset({"markdown", "rst"})


def arrange(found: Iterable[Found | LeftOut], most: int) -> tuple[list[Found | LeftOut], int]:
    """Sort into left-out entries, code, documents and other files; small files first in each.

    If there are more than ``most`` files, it returns one more than ``most``, and the number of all files. It
    reads the sizes of the files, so run it in a thread.
    """
    files: list[Found | LeftOut] = []
    total = 0
    for each in found:
        total += isinstance(each, Found)
        if isinstance(each, LeftOut) or total <= most + 1:
            files.append(each)
    return sorted(files, key=_reading_order), total


def _reading_order(each: Found | LeftOut) -> tuple[int, int]:
    if isinstance(each, LeftOut):
        return 0, 0
    try:
        size = os.stat(each.path, follow_symlinks=False).st_size  # noqa: PTH116  (a million of them)
    except OSError:
        size = 0
    return rank_file(each.path), size


def rank_file(path: str) -> int:
    """Return a file's priority by its name: code 1, documents 2, others 3."""
    kind = kind_by_name(path)
    if kind == "code" and not path.lower().endswith(_DATA):
        return 1
    return 2 if kind in _PROSE else 3
