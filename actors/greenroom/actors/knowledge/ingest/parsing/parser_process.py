"""The child side of parsing: read jobs from standard input, write documents to standard output.

Limits on memory, processor time and output apply, so a hostile file costs at most one process; `parsers`
then starts another. The process itself opens none of the files.
"""

from __future__ import annotations

import os
import resource
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec.structs import replace

from greenroom.actors.content.documents import (
    MASKING,
    Kind,
    Marks,
    Masked,
    MissingReaderError,
    UnreadableDocumentError,
    build_document,
    digest_of,
    find_marks,
    mask_bytes,
    mask_text,
    unread_parts,
)
from greenroom.actors.content.documents.document_types import Document
from greenroom.actors.content.documents.kinds import CONTAINERS
from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.content.syntax import (
    AS_TEXT,
    Found,
    MissingGrammarError,
    Origin,
    Pattern,
    PatternError,
    as_utf8,
    language_of,
    read_source,
    search_bytes,
)
from greenroom.actors.content.text.analyze import text_settings
from greenroom.actors.knowledge.corpora.requests.corpus_requests import Prepared
from greenroom.actors.knowledge.corpora.storage.facts import make_document, pack_facts
from greenroom.actors.knowledge.corpora.storage.preparation import prepare_at_once
from greenroom.runtime import apply_settings

MAX_MEMORY: Final = 1 << 30
"""Maximum bytes of memory of a process, if the system enforces this limit."""
_WORDS: Final = 65_536
"""Words in the analysis cache (30 MB): on varied text, a quarter of them gives half as many hits."""
_MOST_KEPT: Final = 192 << 20
"""If a process has more memory than this after a file, it ends, so that the memory is freed."""
_LARGEST: Final = 16 << 20
LENGTH: Final = struct.Struct("!Q")


class Job(msgspec.Struct, frozen=True, array_like=True):
    """A file to parse or search, or a text that was sent.

    Attributes:
        as_text: Whether to read the file as text, since its syntax was too much for a process.
        reader: The file's reader, see `storage.readers`; the process does not use it.
    """

    path: str
    kind: Kind
    modified_at: int
    data: bytes
    is_source: bool = False
    is_file: bool = False
    as_text: bool = False
    pattern: Pattern | None = None
    most: int = 0
    reader: str = ""
    is_masked: bool = False


class Parsed(msgspec.Struct, frozen=True, array_like=True):
    """The result: a document, or a sentence beginning with "it" on why there is none.

    Attributes:
        stays: Whether an older document stays. This is so if time or memory ran short or the process ended,
        since such a failure says nothing about the file.
        found: Matches of the pattern; None if the file could not be searched.
        refusal: Why the pattern is invalid, or which missing package it needs.
        unread: Unread parts of the file that may have content.
    """

    document: Document | None = None
    failure: str = ""
    stays: bool = False
    prepared: Prepared | None = None
    facts: bytes | None = None
    origin: Origin | None = None
    found: list[Found] | None = None
    refusal: str = ""
    unread: list[str] = []
    is_last: bool = False
    marks: Marks | None = None


def seconds_for(job: Job, seconds: float) -> float:
    """Return the processor time that a file may take, in seconds.

    ``seconds`` is the time for a small text file. Even slow machines parse half a megabyte a second. So a
    small hostile file is soon recognised, and a large file has the time that it needs.
    """
    megabytes = min(len(job.data), _LARGEST) >> 20
    return seconds / 4 + 10 * megabytes if job.is_source and not job.as_text else seconds + 4 * megabytes


def parse_job(job: Job) -> Parsed:
    """Parse a file."""
    try:
        if job.is_masked:
            return Parsed(marks=find_marks(job.data))
        document, facts, origin = (
            _read_as_source(job) if job.is_source and not job.as_text else (None, None, None)
        )
        if document is None:
            document = _read_as_text(job) if job.is_source else _document(job, job.kind, job.data)
        ready = prepare_at_once(document, is_code=job.is_source)
        unread = unread_parts(job.data) if job.kind == "docx" else []
        return Parsed(document, prepared=ready, facts=facts, origin=origin, unread=unread)
    except UnreadableDocumentError as error:
        return Parsed(failure=str(error), stays=isinstance(error, MissingReaderError))
    except MemoryError:
        return Parsed(failure="it takes too much memory to be read", stays=True)
    except RecursionError:
        return Parsed(failure="it is nested too deeply")
    except Exception as error:  # noqa: BLE001  a reader may raise any exception for some bytes
        return Parsed(failure=f"it cannot be read: {str(error)[:200] or type(error).__name__}")


def search_job(job: Job, pattern: Pattern) -> Parsed:
    """Search a file for a pattern."""
    try:
        return Parsed(found=search_bytes(pattern, job.path, job.data, job.most))
    except PatternError as error:
        return Parsed(refusal=str(error))
    except MissingGrammarError as error:
        return Parsed(refusal=str(error)) if pattern.what == "regex" else Parsed(failure=str(error))
    except Exception as error:  # noqa: BLE001  as in parsing
        return Parsed(failure=f"it cannot be searched: {str(error)[:200] or type(error).__name__}")


def _document(job: Job, kind: Kind, data: bytes) -> Document:
    return build_document(job.path, kind, data, job.modified_at)


def _read_as_text(job: Job) -> Document:
    """Read a workspace's file as a document with all its text, even invisible text."""
    if job.kind in CONTAINERS:
        return _mask_document(build_document(job.path, job.kind, job.data, job.modified_at, mask_text))
    hidden = mask_bytes(job.data)
    if job.kind == "notebook":  # masked bytes may be invalid JSON
        with suppress(UnreadableDocumentError):
            document = build_document(job.path, job.kind, job.data, job.modified_at, mask_text)
            return _mask_document(document, hidden.lines)
    try:
        document = _document(job, job.kind, hidden.data)
    except UnreadableDocumentError:
        document = _document(job, "code", hidden.data)
    return _restore_places(document, job.data, hidden)


def _mask_document(document: Document, lines: Sequence[int] = ()) -> Document:
    """Mask a document's texts; add ``lines`` of the file to the masked lines."""
    chunks = [
        replace(
            each,
            text=mask_text(each.text),
            title=mask_text(each.title),
            headings=list(map(mask_text, each.headings)),
        )
        for each in document.chunks
    ]
    made = {each.first_line for each in chunks if each.first_line and LEFT_OUT_BEGINS in each.text}
    hidden = sorted(made.union(lines))
    title = mask_text(document.title)
    return replace(document, title=title, chunks=chunks, masking=MASKING, masked=hidden)


def _restore_places(document: Document, data: bytes, hidden: Masked) -> Document:
    """For a document from masked bytes, set the digest and positions of the original file."""
    chunks = document.chunks
    is_plain = as_utf8(data) == data
    if hidden.marks:
        chunks = [
            replace(
                each,
                first_byte=hidden.in_file(each.first_byte),
                last_byte=hidden.in_file(each.last_byte),
            )
            for each in chunks
        ]
    return replace(
        document,
        digest=digest_of(data),
        bytes=len(data),
        chunks=chunks,
        masking=MASKING,
        masked=hidden.lines,
        marks=hidden.as_marks().places if is_plain else [],
    )


def _read_as_source(job: Job) -> tuple[Document | None, bytes | None, Origin | None]:
    """Parse source code to a document, facts and origin; None if it is not parsed."""
    if language_of(job.path) is None:
        return None, None, None
    hidden = mask_bytes(as_utf8(job.data))
    source = read_source(job.path, hidden.data)
    if not source.chunks:
        return None, None, None
    if hidden.marks:
        symbols = [
            replace(
                each,
                first_byte=hidden.in_file(each.first_byte),
                last_byte=hidden.in_file(each.last_byte),
                name_byte=hidden.in_file(each.name_byte),
            )
            for each in source.symbols
        ]
        source = replace(source, symbols=symbols)
    facts = None if source.notice.startswith(AS_TEXT) else pack_facts(source)
    document = make_document(source, job.kind, job.data, job.modified_at)
    return _restore_places(document, job.data, hidden), facts, source.origin


def main(seconds: str, *languages: str) -> None:
    """Process jobs until the input ends; ``seconds`` is the processor time of a small file."""
    with apply_settings(text_settings(languages, _WORDS)):
        _parse_all(float(seconds))


def _parse_all(seconds: float) -> None:
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keeps stray prints out of the replies
    _limit(resource.RLIMIT_AS, MAX_MEMORY)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    decode, encode = msgspec.msgpack.Decoder(Job).decode, msgspec.msgpack.encode
    while (message := _read(jobs)) is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        job = decode(message)
        most = used.ru_utime + used.ru_stime + seconds_for(job, seconds)
        _limit(resource.RLIMIT_CPU, int(most) + 1)
        done = parse_job(job) if job.pattern is None else search_job(job, job.pattern)
        is_last = _resident() > _MOST_KEPT
        answer = encode(msgspec.structs.replace(done, is_last=is_last))
        answers.write(LENGTH.pack(len(answer)))
        answers.write(answer)
        answers.flush()
        if is_last:
            return


def _resident() -> int:
    """Return this process's memory in bytes; if the system reports only the peak, return that."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: in bytes
    return int(pages) * resource.getpagesize()


def _limit(what: int, most: int) -> None:
    """Set a soft limit if the system allows; a later call can change it."""
    _, hard = resource.getrlimit(what)
    with suppress(ValueError, OSError):
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _read(jobs: BinaryIO) -> bytes | None:
    head = jobs.read(LENGTH.size)
    return jobs.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else None


if __name__ == "__main__":
    main(*sys.argv[1:])
