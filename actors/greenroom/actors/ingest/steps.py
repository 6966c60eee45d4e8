"""Looking at files in threads: the next one that changed, and which paths are below which."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar, TypeVarTuple

import trio

from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.documents import digest_of
from greenroom.actors.ingest.parser_process import Job
from greenroom.actors.knowledge.corpora.storage.readers import is_newer, reader_of
from greenroom.actors.knowledge.ingest.files.file_content import read_document
from greenroom.actors.knowledge.ingest.files.places import is_below
from greenroom.actors.knowledge.ingest.files.walk import UNREADABLE, Found, LeftOut
from greenroom.actors.knowledge.ingest.run_state import Step

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

_LOOKED_AT: Final = 256


class Known(NamedTuple):
    """What a corpus has of a file: a digest of its bytes, and what read them."""

    digest: str
    reader: str


async def in_thread(function: Callable[[*Ts], R], *arguments: *Ts) -> R:
    """Read files in a thread, for which nobody waits who is cancelled: a disk may hang."""
    return await trio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True)


def next_step(files: Iterator[Found | LeftOut], known: Mapping[str, Known], *, is_source: bool) -> Step:
    """Look at files up to the next one that changed; reads them, so it runs in a thread."""
    found: list[str] = []
    outdated: list[str] = []
    left_out: list[LeftOut] = []
    unchanged = 0
    for _ in range(_LOOKED_AT):
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
            if before is None or before.digest != digest_of(read.data):
                return Step(read, found, unchanged, outdated, left_out, is_last=False)
            unchanged += 1
            if is_newer(read.reader, before.reader):
                outdated.append(read.path)
    return Step(None, found, unchanged, outdated, left_out, is_last=False)


def read_job(path: str, *, is_source: bool) -> Job | LeftOut | None:
    """Return a file as it is; None if it is gone meanwhile."""
    try:
        kind, data, modified_at = read_document(path)
    except UnreadableFileError as error:
        return LeftOut(path, str(error))
    except FileNotFoundError:
        return None
    except OSError as error:
        return LeftOut(path, f"{UNREADABLE}: {error.strerror}", is_known=False)
    if is_source and kind == "html":  # its tags and scripts are what is looked for
        kind = "code"
    reader = reader_of(path, kind, is_source=is_source)
    return Job(path, kind, modified_at, data, is_source=is_source, is_file=True, reader=reader)


def below(paths: Iterable[str], folders: Collection[str]) -> set[str]:
    """Return those of some paths that are in one of some folders, in time by their lengths alone."""
    return {path for path in paths if any(folder in folders for folder in _folders_of(path))}


def _folders_of(path: str) -> Iterator[str]:
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)


def outside_of(paths: Iterable[str], folders: Collection[str]) -> list[str]:
    """Return those of some paths that are in none of a few folders."""
    return [path for path in paths if not any(is_below(path, folder) for folder in folders)]


def outermost_of(paths: Iterable[str]) -> list[str]:
    """Return paths without those that are below others."""
    found: list[str] = []
    for path in sorted(set(paths), key=lambda path: f"{path}/"):
        if not found or not is_below(path, found[-1]):
            found.append(path)
    return found
