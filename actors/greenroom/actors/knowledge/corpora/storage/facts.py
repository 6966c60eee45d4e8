"""Syntax facts of a workspace's files; each document's facts are stored beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from greenroom.actors.content.documents import digest_of, mask_text
from greenroom.actors.content.documents.document_types import Chunk, Document
from greenroom.actors.content.syntax.origins import Origin
from greenroom.actors.content.syntax.source import Import, Reference, Source, Symbol
from greenroom.actors.core.base.zstd import compress_bytes
from greenroom.actors.knowledge.corpora.requests.code_symbols import (
    FactsOfFile,
    FactsRead,
    ReadFacts,
    ReadSymbols,
    SymbolFound,
    SymbolsRead,
)
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.file_names import unpack_bytes
from greenroom.actors.knowledge.corpora.storage.readers import reader_to_count
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.runtime import Context, Slices

MAX_READ: Final = 2 << 20
"""Maximum bytes of packed facts in one reply."""
_LEVEL: Final = 6


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """The syntax facts of a file; see `Source`."""

    language: str
    symbols: list[Symbol]
    references: list[Reference]
    imports: list[Import]
    summary: str = ""
    notice: str = ""


class _Defined(msgspec.Struct, frozen=True, array_like=True):
    """The beginning of `Facts`; references, which are most of it, are passed over."""

    language: str
    symbols: list[Symbol]
    references: msgspec.Raw
    imports: list[Import]
    summary: str = ""


class _Imported(msgspec.Struct, frozen=True, array_like=True):
    """The language and the imports of `Facts`."""

    language: str
    symbols: msgspec.Raw
    references: msgspec.Raw
    imports: list[Import]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Facts).decode
_decode_defined = msgspec.msgpack.Decoder(_Defined).decode
_decode_imported = msgspec.msgpack.Decoder(_Imported).decode


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
    paths = yield from repository.list_paths(context)
    named = yield from _find_named(repository, request, paths, context)
    found = (
        _scan(repository, request, paths, context)
        if named is None
        else read_numbered(repository, named, context)
    )
    for number, path, packed in found:
        if packed is not None and (not text or text in unpack_bytes(packed)):
            room -= len(packed)
            if room < 0 and files:
                return FactsRead(files=files, following=number)
            origin = context.get(records.origin_key(number), Origin) if text else None
            files.append(FactsOfFile(path, packed, origin))
        yield
    return FactsRead(files=files, following=None)


def _find_named(
    repository: CorpusRepository, request: ReadFacts, paths: Mapping[int, str], context: Context
) -> Slices[list[tuple[int, str]] | None]:
    """Return the numbers and paths of requested files; None for all files."""
    if not (request.path or request.paths):
        return None
    found: list[tuple[int, str]] = []
    for path in request.paths or [request.path]:
        number = repository.find_number(context, path)
        if number is not None:
            found.append((number, path))
        yield
    if request.path and not found:  # it is a folder
        below = f"{request.path}/"
        found = [each for each in paths.items() if each[1].startswith(below)]
    return sorted(each for each in found if each[0] >= request.start)


def read_numbered(
    repository: CorpusRepository, named: Iterable[tuple[int, str]], context: Context
) -> Iterator[tuple[int, str, bytes | None]]:
    """Yield the number, path and facts of documents."""
    for number, path in named:
        packed = context.get(records.facts_key(number), bytes)
        document = repository.document(context, path) if number in repository.unmasked else None
        yield number, path, packed if document is None else _mask(repository, document, packed)


def _scan(
    repository: CorpusRepository, request: ReadFacts, paths: Mapping[int, str], context: Context
) -> Iterator[tuple[int, str, bytes | None]]:
    start = records.facts_key(request.start)
    for key, packed in context.scan(bytes, prefix=records.FACTS, start=start):
        number = int.from_bytes(key[1:])
        path = paths.get(number)
        if path is not None and number not in repository.unmasked:
            yield number, path, packed
            continue
        described = repository.by_number(context, number)  # says what is damaged
        assert described is not None, "facts are of a document"
        yield number, described.path, _mask(repository, described, packed)


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


def unpack_defined(files: Iterable[FactsOfFile]) -> dict[str, Source]:
    """Return files as `unpack_sources`, but without their references, in half of the time."""
    found: dict[str, Source] = {}
    for file in files:
        try:
            facts = _decode_defined(unpack_bytes(file.packed))
        except msgspec.MsgspecError:
            continue
        found[file.path] = Source(
            file.path, facts.language, facts.symbols, [], facts.imports, [], facts.summary, origin=file.origin
        )
    return found


def unpack_imports(files: Iterable[FactsOfFile]) -> dict[str, Source]:
    """Return files as `unpack_sources`, with their imports alone."""
    found: dict[str, Source] = {}
    for file in files:
        try:
            facts = _decode_imported(unpack_bytes(file.packed))
        except msgspec.MsgspecError:
            continue
        found[file.path] = Source(file.path, facts.language, [], [], facts.imports, [])
    return found


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


def _decode_or_none(packed: bytes) -> Facts | None:
    """Decode packed facts; None if invalid, since callers that fill a corpus send them."""
    try:
        return _decode(unpack_bytes(packed))
    except msgspec.MsgspecError:
        return None
