"""Syntax facts of a workspace's files; each document's facts are stored beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from greenroom.actors.content.documents import digest_of, mask_text
from greenroom.actors.content.documents.document_types import Chunk, Document
from greenroom.actors.content.syntax.origins import Origin
from greenroom.actors.content.syntax.source import Import, Reference, Source, Symbol
from greenroom.actors.core.base.zstd import compress_bytes, decompress_bytes
from greenroom.actors.knowledge.corpora.requests.code_symbols import (
    FactsOfFile,
    FactsRead,
    ReadFacts,
    ReadSymbols,
    SymbolFound,
    SymbolsRead,
)
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.readers import reader_to_count
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.runtime import Context, Slices

MAX_READ: Final = 2 << 20
"""Maximum bytes of packed facts in one reply."""
_LEVEL: Final = 6
_MAX_UNPACKED: Final = 64 << 20


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """The syntax facts of a file; see `Source`."""

    language: str
    symbols: list[Symbol]
    references: list[Reference]
    imports: list[Import]
    summary: str = ""
    notice: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Facts).decode


def pack_facts(source: Source) -> bytes:
    """Compress the syntax facts of a source file."""
    facts = Facts(
        source.language, source.symbols, source.references, source.imports, source.summary, source.notice
    )
    return compress_bytes(_encode(facts), _LEVEL)


def make_document(source: Source, kind: str, data: bytes, modified_at: int) -> Document:
    """Make a document from a source file; the syntax determines the chunks."""
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


def read_symbols(repository: CorpusRepository, request: ReadSymbols, context: Context) -> SymbolsRead | None:
    """Return the indexed symbols of a file; None if the file is not indexed."""
    repository.check(context.principal, request.corpus)
    document = repository.document(context, request.path)
    if document is None:
        return None
    packed = _mask(repository, document, context.get(records.facts_key(document.number), bytes))
    symbols = [] if packed is None else unpack_symbols(packed)
    return SymbolsRead(
        digest=document.digest.hex(),
        symbols=[make_symbol(document.path, each) for each in symbols],
        reader=reader_to_count(document.path, document.reader),
    )


def read_facts(repository: CorpusRepository, request: ReadFacts, context: Context) -> Slices[FactsRead]:
    """Return the syntax facts of as many requested files as fit into one reply."""
    repository.check(context.principal, request.corpus)
    files: list[FactsOfFile] = []
    room = MAX_READ
    text = request.holding.encode()
    for number, path, packed in _iterate(repository, request, context):
        if packed is not None and (not text or text in _unpack(packed)):
            room -= len(packed)
            if room < 0 and files:
                return FactsRead(files=files, following=number)
            origin = context.get(records.origin_key(number), Origin) if text else None
            files.append(FactsOfFile(path, packed, origin))
        yield
    return FactsRead(files=files, following=None)


def _iterate(
    repository: CorpusRepository, request: ReadFacts, context: Context
) -> Iterator[tuple[int, str, bytes | None]]:
    """Yield the number, path and facts of each file; facts are None if not requested."""
    if request.paths:
        found = (repository.document(context, path) for path in request.paths)
        for document in sorted(filter(None, found), key=lambda each: each.number):
            if document.number >= request.start:
                packed = context.get(records.facts_key(document.number), bytes)
                yield document.number, document.path, _mask(repository, document, packed)
        return
    start = records.facts_key(request.start)
    for key, packed in context.scan(bytes, prefix=records.FACTS, start=start):
        number = int.from_bytes(key[1:])
        described = repository.by_number(context, number)
        assert described is not None, "facts are of a document"
        path = described.path
        is_asked = not request.path or path == request.path or path.startswith(f"{request.path}/")
        yield number, path, _mask(repository, described, packed) if is_asked else None


def unpack_sources(files: Iterable[FactsOfFile]) -> dict[str, Source]:
    """Return symbols, references and imports of files, by path; leave out invalid facts."""
    return {
        file.path: Source(
            path=file.path,
            language=facts.language,
            symbols=facts.symbols,
            references=facts.references,
            imports=facts.imports,
            chunks=[],
            summary=facts.summary,
            origin=file.origin,
        )
        for file in files
        if (facts := _decode_or_none(file.packed)) is not None
    }


def unpack_symbols(packed: bytes) -> list[Symbol]:
    """Return the symbols in packed facts; none if these are invalid."""
    facts = _decode_or_none(packed)
    return [] if facts is None else facts.symbols


def make_symbol(path: str, symbol: Symbol) -> SymbolFound:
    """Convert a symbol to the form that replies have."""
    return SymbolFound(
        symbol=symbol.path,
        kind=symbol.kind,
        file_path=path,
        lines=[symbol.first_line, symbol.last_line],
        signature=symbol.signature,
        summary=symbol.summary,
    )


def _mask(repository: CorpusRepository, document: DocumentRecord, packed: bytes | None) -> bytes | None:
    """Return a document's facts; mask them if an older version may have stored secrets."""
    if packed is None or not repository.is_unmasked(document):
        return packed
    facts = _decode_or_none(packed)
    if facts is None:
        return packed
    symbols = [
        msgspec.structs.replace(each, signature=mask_text(each.signature), summary=mask_text(each.summary))
        for each in facts.symbols
    ]
    imports = [msgspec.structs.replace(each, module=mask_text(each.module)) for each in facts.imports]
    hidden = msgspec.structs.replace(
        facts, symbols=symbols, imports=imports, summary=mask_text(facts.summary)
    )
    return compress_bytes(_encode(hidden), _LEVEL)


def _unpack(packed: bytes) -> bytes:
    try:
        return decompress_bytes(packed, _MAX_UNPACKED)
    except ValueError:
        return b""


def _decode_or_none(packed: bytes) -> Facts | None:
    """Decode packed facts; None if invalid, since callers that fill a corpus send them."""
    try:
        return _decode(_unpack(packed))
    except msgspec.MsgspecError:
        return None
