"""The child's half of parsing: reads jobs from standard input and writes documents to standard output.

Its memory, its time on the processor and what it may write are limited, so that a hostile file costs one
process at most, which is ended and begun anew by `parsers`. It opens no file itself.
"""

from __future__ import annotations

import os
import resource
import struct
import sys
from contextlib import suppress
from typing import BinaryIO, Final

import msgspec

from greenroom.actors.content.syntax import search as searched
from greenroom.actors.content.text.analyze import text_settings
from greenroom.actors.corpus.preparing import is_large, prepared_at_once
from greenroom.actors.documents import (
    Kind,
    MissingReaderError,
    UnreadableDocumentError,
    document_of,
    unread_parts,
)
from greenroom.actors.knowledge.corpora.requests.corpus_requests import Document, Prepared
from greenroom.actors.knowledge.corpora.storage.facts import packed_facts, source_document
from greenroom.actors.syntax import (
    AS_TEXT,
    Found,
    MissingGrammarError,
    Pattern,
    PatternError,
    language_of,
    read_source,
)
from greenroom.runtime import apply_settings

MAX_MEMORY: Final = 1 << 30
"""The most bytes of memory that a process may take, where the system holds it to that."""
_WORDS: Final = 65_536
"""Words that are not analysed again: of varied text twice as many are found as with a quarter, in 30 MB."""
_CONTAINERS: Final = frozenset({"pdf", "docx"})
LENGTH: Final = struct.Struct("!Q")


class Job(msgspec.Struct, frozen=True, array_like=True):
    """A file to be parsed, or a text that was sent.

    Attributes:
        is_source: Whether source code is read by its syntax, as that of workspaces is.
        is_file: Whether it is a file.
        as_text: Whether it is read as text all the same, since its syntax was too much for a process.
        reader: What reads it here, see `corpus.readers`; of this the process knows nothing.
        pattern: What it is searched for, instead of being parsed.
        most: How many places of that are wanted.
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


class Parsed(msgspec.Struct, frozen=True, array_like=True):
    """What became of it: a document, or a sentence that says why not, beginning with "it".

    Attributes:
        stays: Whether nothing was said of the file itself, since time or memory was short or its process
            ended: so what was there before stays.
        prepared: The document made ready to be stored, unless it is large.
        facts: What its syntax says, packed, where it was read by that.
        found: Where it has what it was searched for; None where that could not be looked for.
        refusal: Why the pattern is none, or needs what is not installed.
        unread: The parts in the file that are not read, though they may say something.
    """

    document: Document | None = None
    failure: str = ""
    stays: bool = False
    prepared: Prepared | None = None
    facts: bytes | None = None
    found: list[Found] | None = None
    refusal: str = ""
    unread: list[str] = []


def parsed(job: Job) -> Parsed:
    """Return what becomes of a file."""
    try:
        document, facts = _read_as_source(job) if job.is_source and not job.as_text else (None, None)
        if document is None:
            document = _read_as_text(job)
        ready = None if is_large(document) else prepared_at_once(document, is_code=job.is_source)
        unread = unread_parts(job.data) if job.kind == "docx" else []
        return Parsed(document, prepared=ready, facts=facts, unread=unread)
    except UnreadableDocumentError as error:
        return Parsed(failure=str(error), stays=isinstance(error, MissingReaderError))
    except MemoryError:
        return Parsed(failure="it takes too much memory to be read", stays=True)
    except RecursionError:
        return Parsed(failure="it is nested too deeply")
    except Exception as error:  # noqa: BLE001  whatever its bytes made a reader stumble over
        return Parsed(failure=f"it cannot be read: {str(error)[:200] or type(error).__name__}")


def looked_through(job: Job, pattern: Pattern) -> Parsed:
    """Return where a file has what it is searched for."""
    try:
        return Parsed(found=searched(pattern, job.path, job.data, job.most))
    except PatternError as error:
        return Parsed(refusal=str(error))
    except MissingGrammarError as error:
        return Parsed(refusal=str(error)) if pattern.what == "regex" else Parsed(failure=str(error))
    except Exception as error:  # noqa: BLE001  as when a file is parsed
        return Parsed(failure=f"it cannot be searched: {str(error)[:200] or type(error).__name__}")


def _read_as_text(job: Job) -> Document:
    """Return a file as a document; in a workspace all text counts, also what a page does not show."""
    try:
        return document_of(job.path, job.kind, job.data, job.modified_at)
    except UnreadableDocumentError:
        if not job.is_source or job.kind in _CONTAINERS:
            raise
        return document_of(job.path, "code", job.data, job.modified_at)


def _read_as_source(job: Job) -> tuple[Document | None, bytes | None]:
    """Return source code as its syntax cuts it, and what that says; None where it says nothing."""
    if language_of(job.path) is None:
        return None, None
    source = read_source(job.path, job.data)
    if not source.chunks:
        return None, None
    facts = None if source.notice.startswith(AS_TEXT) else packed_facts(source)
    return source_document(source, job.kind, job.data, job.modified_at), facts


def main(seconds: str, *languages: str) -> None:
    """Parse until there is nothing more.

    Args:
        seconds: How much time on the processor one file may take.
        languages: Of the documents; see `text.analyze.text_settings`.
    """
    with apply_settings(text_settings(languages, _WORDS)):
        _parse_all(float(seconds))


def _parse_all(seconds: float) -> None:
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray print is no answer
    _limit(resource.RLIMIT_AS, MAX_MEMORY)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    decode, encode = msgspec.msgpack.Decoder(Job).decode, msgspec.msgpack.encode
    while (message := _read(jobs)) is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + seconds) + 1)
        job = decode(message)
        answer = encode(parsed(job) if job.pattern is None else looked_through(job, job.pattern))
        answers.write(LENGTH.pack(len(answer)))
        answers.write(answer)
        answers.flush()


def _limit(what: int, most: int) -> None:
    """Set a limit as far as the system lets us; the other one stays, so that it can be set again."""
    _, hard = resource.getrlimit(what)
    with suppress(ValueError, OSError):
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _read(jobs: BinaryIO) -> bytes | None:
    head = jobs.read(LENGTH.size)
    return jobs.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else None


if __name__ == "__main__":
    main(*sys.argv[1:])
