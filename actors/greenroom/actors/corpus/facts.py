"""What the syntax of a workspace's files says: kept beside each document, and searched for symbols."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Final

import msgspec

from greenroom.actors.corpus import records
from greenroom.actors.corpus.repository import CorpusRepository
from greenroom.actors.documents import digest_of
from greenroom.actors.schemas.code import (
    FactsOfFile,
    FactsRead,
    FindSymbols,
    FoundSymbols,
    ReadFacts,
    ReadSymbols,
    SymbolFound,
    SymbolsRead,
    SymbolUsed,
)
from greenroom.actors.schemas.corpus import Chunk, Document
from greenroom.actors.syntax.source import Import, Reference, Source, Symbol
from greenroom.runtime import Context, Slices

MAX_READ: Final = 2 << 20
"""Packed facts that one answer has."""
_LEVEL: Final = 6
_MAX_UNPACKED: Final = 64 << 20
_USED: Final = {"call", "inherits", "type", "import"}


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
    return zlib.compress(_encode(facts), _LEVEL)


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
    """Answer the symbols of a file as it was indexed; None where it was not read by its syntax."""
    repository.check(context.principal, request.corpus)
    document = repository.document(context, request.path)
    packed = None if document is None else context.get(records.facts_key(document.number), bytes)
    facts = None if packed is None else _read(_unpacked(packed))
    if document is None or facts is None:
        return None
    return SymbolsRead(
        digest=document.digest.hex(),
        symbols=[_found(document.path, each) for each in facts.symbols],
    )


def read_facts(repository: CorpusRepository, request: ReadFacts, context: Context) -> Slices[FactsRead]:
    """Answer what the syntax of a file, or of the files of a folder, says: as much as there is room for."""
    repository.check(context.principal, request.corpus)
    files: list[FactsOfFile] = []
    room = MAX_READ
    start = records.facts_key(request.start)
    for key, packed in context.scan(bytes, prefix=records.FACTS, start=start):
        number = int.from_bytes(key[1:])
        document = repository.by_number(context, number)
        assert document is not None, "facts are of a document"
        if not request.path or document.path == request.path or document.path.startswith(f"{request.path}/"):
            room -= len(packed)
            if room < 0 and files:
                return FactsRead(files=files, following=number)
            files.append(FactsOfFile(document.path, packed))
        if context.should_yield():
            yield
    return FactsRead(files=files, following=None)


def source_of(file: FactsOfFile) -> Source | None:
    """Return a file with its symbols, references and imports; None where its facts are none."""
    facts = _read(_unpacked(file.packed))
    if facts is None:
        return None
    return Source(
        file.path, facts.language, facts.symbols, facts.references, facts.imports, [], facts.summary
    )


def find(repository: CorpusRepository, request: FindSymbols, context: Context) -> Slices[FoundSymbols]:
    """Answer where symbols are defined, and where their names are used."""
    repository.check(context.principal, request.corpus)
    wanted = pattern_of(request.symbol)
    literal = max(re.split(r"[*.]", request.symbol), key=len).encode()
    definitions: list[SymbolFound] = []
    uses: list[SymbolUsed] = []
    for key, packed in context.scan(bytes, prefix=records.FACTS):
        raw = _unpacked(packed)
        facts = _read(raw) if literal in raw else None
        if facts is not None:
            document = repository.by_number(context, int.from_bytes(key[1:]))
            assert document is not None, "facts are of a document"
            definitions += (
                _found(document.path, each)
                for each in facts.symbols
                if (request.kind is None or each.kind == request.kind)
                and (wanted.fullmatch(each.name) or wanted.fullmatch(each.path))
            )
            uses += _uses(document.path, facts, wanted)
        if context.should_yield():
            yield
    definitions.sort(key=lambda each: (each.symbol.count("."), each.file_path, each.lines))
    uses.sort(key=lambda each: (each.file_path, each.line))
    return FoundSymbols(
        definitions=definitions[: request.limit],
        references=uses[: request.limit],
        total_definitions=len(definitions),
        total_references=len(uses),
    )


def pattern_of(symbol: str) -> re.Pattern[str]:
    """Return the pattern of a name, or of a path such as ``Class.method``, in which * is anything."""
    return re.compile("".join(".*" if part == "*" else re.escape(part) for part in re.split(r"(\*)", symbol)))


def _uses(path: str, facts: Facts, wanted: re.Pattern[str]) -> Iterator[SymbolUsed]:
    for each in facts.references:
        qualified = f"{each.qualifier}.{each.name}" if each.qualifier else each.name
        if each.role in _USED and (wanted.fullmatch(each.name) or wanted.fullmatch(qualified)):
            yield SymbolUsed(file_path=path, line=each.line, role=each.role, within=each.symbol)


def _found(path: str, symbol: Symbol) -> SymbolFound:
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
    opened = zlib.decompressobj()
    try:
        raw = opened.decompress(packed, _MAX_UNPACKED)
    except zlib.error:
        return b""
    return raw if opened.eof else b""


def _read(raw: bytes) -> Facts | None:
    """Return facts; None where they are none: they come from whoever fills the corpus."""
    try:
        return _decode(raw)
    except msgspec.MsgspecError:
        return None
