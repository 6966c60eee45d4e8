"""What the syntax of a workspace's files says, kept beside each document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from greenroom.actors.content.syntax.source import Import, Reference, Source, Symbol
from greenroom.actors.core.base.zstd import compressed, decompressed
from greenroom.actors.documents import digest_of
from greenroom.actors.knowledge.corpora.requests.corpus_requests import Chunk, Document
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.readers import counted_reader
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.schemas.code import (
    FactsOfFile,
    FactsRead,
    ReadFacts,
    ReadSymbols,
    SymbolFound,
    SymbolsRead,
)
from greenroom.runtime import Context, Slices

MAX_READ: Final = 2 << 20
"""Packed facts that one answer has."""
_LEVEL: Final = 6
_MAX_UNPACKED: Final = 64 << 20


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """What the syntax of a file says; see `Source`."""

    language: str
    symbols: list[Symbol]
    references: list[Reference]
    imports: list[Import]
    summary: str = ""
    notice: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Facts).decode


def packed_facts(source: Source) -> bytes:
    """Return what a source file's syntax says, compressed."""
    facts = Facts(
        source.language, source.symbols, source.references, source.imports, source.summary, source.notice
    )
    return compressed(_encode(facts), _LEVEL)


def source_document(source: Source, kind: str, data: bytes, modified_at: int) -> Document:
    """Return a source file as a document whose chunks are those of its syntax."""
    title = source.path.rpartition("/")[2]
    chunks = [
        Chunk(
            text=each.text,
            headings=[each.scope, *each.symbols],
            title=title,
            first_line=each.first_line,
            last_line=each.last_line,
            first_byte=each.first_byte,
            last_byte=each.last_byte,
        )
        for each in source.chunks
    ]
    return Document(source.path, title, kind, digest_of(data), len(data), modified_at, chunks)


def read(repository: CorpusRepository, request: ReadSymbols, context: Context) -> SymbolsRead | None:
    """Answer the symbols of a file as it was indexed; None where it is not."""
    repository.check(context.principal, request.corpus)
    document = repository.document(context, request.path)
    if document is None:
        return None
    packed = context.get(records.facts_key(document.number), bytes)
    facts = None if packed is None else _read(_unpacked(packed))
    return SymbolsRead(
        digest=document.digest.hex(),
        symbols=[] if facts is None else [found_symbol(document.path, each) for each in facts.symbols],
        reader=counted_reader(document.path, document.reader),
    )


def read_facts(repository: CorpusRepository, request: ReadFacts, context: Context) -> Slices[FactsRead]:
    """Answer what the syntax of some files says: as much as there is room for."""
    repository.check(context.principal, request.corpus)
    files: list[FactsOfFile] = []
    room = MAX_READ
    text = request.holding.encode()
    for number, path, packed in _facts(repository, request, context):
        if packed is not None and (not text or text in _unpacked(packed)):
            room -= len(packed)
            if room < 0 and files:
                return FactsRead(files=files, following=number)
            files.append(FactsOfFile(path, packed))
        if context.should_yield():
            yield
    return FactsRead(files=files, following=None)


def _facts(
    repository: CorpusRepository, request: ReadFacts, context: Context
) -> Iterator[tuple[int, str, bytes | None]]:
    """Yield the number, the path and the facts of files that are asked for, None for others' facts."""
    if request.paths:
        found = (repository.document(context, path) for path in request.paths)
        for document in sorted(filter(None, found), key=lambda each: each.number):
            if document.number >= request.start:
                yield document.number, document.path, context.get(records.facts_key(document.number), bytes)
        return
    start = records.facts_key(request.start)
    for key, packed in context.scan(bytes, prefix=records.FACTS, start=start):
        number = int.from_bytes(key[1:])
        described = repository.by_number(context, number)
        assert described is not None, "facts are of a document"
        path = described.path
        is_asked = not request.path or path == request.path or path.startswith(f"{request.path}/")
        yield number, path, packed if is_asked else None


def source_of(file: FactsOfFile) -> Source | None:
    """Return a file with its symbols, references and imports; None where its facts are none."""
    facts = _read(_unpacked(file.packed))
    if facts is None:
        return None
    return Source(
        file.path, facts.language, facts.symbols, facts.references, facts.imports, [], facts.summary
    )


def symbols_in(packed: bytes) -> list[Symbol]:
    """Return the symbols of a file by its packed facts; none where these are none."""
    facts = _read(_unpacked(packed))
    return [] if facts is None else facts.symbols


def found_symbol(path: str, symbol: Symbol) -> SymbolFound:
    """Return a symbol of a file as it is told."""
    return SymbolFound(
        symbol=symbol.path,
        kind=symbol.kind,
        file_path=path,
        lines=[symbol.first_line, symbol.last_line],
        signature=symbol.signature,
        summary=symbol.summary,
    )


def _unpacked(packed: bytes) -> bytes:
    """Return the bytes of facts; none where they are no such thing, or too many."""
    try:
        return decompressed(packed, _MAX_UNPACKED)
    except ValueError:
        return b""


def _read(raw: bytes) -> Facts | None:
    """Return facts; None where they are none: they come from whoever fills the corpus."""
    try:
        return _decode(raw)
    except msgspec.MsgspecError:
        return None
