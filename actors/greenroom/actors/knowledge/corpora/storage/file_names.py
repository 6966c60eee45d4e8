"""The names in a file's packed facts, without all else that the facts have."""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.actors.content.syntax.source import Kind
from greenroom.actors.core.base.zstd import decompress_bytes

_MAX_UNPACKED: Final = 64 << 20


class NamedSymbol(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A definition; see `Symbol`."""

    name: str
    kind: Kind
    scope: str


class NamedUse(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A use of a name; see `Reference`."""

    name: str
    role: msgspec.Raw
    line: msgspec.Raw
    symbol: msgspec.Raw
    qualifier: str = ""


class NamedImport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An imported name; see `Import`."""

    module: str
    name: str


class FileNames(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The names in a file's facts; see `Facts`."""

    language: str
    symbols: list[NamedSymbol]
    references: list[NamedUse]
    imports: list[NamedImport]


_decode: Final = msgspec.msgpack.Decoder(FileNames).decode


def unpack_names(packed: bytes) -> FileNames | None:
    """Return the names in packed facts; None if these are invalid."""
    try:
        return _decode(unpack_bytes(packed))
    except msgspec.MsgspecError:
        return None


def unpack_bytes(packed: bytes) -> bytes:
    """Decompress packed facts; invalid facts are empty."""
    try:
        return decompress_bytes(packed, _MAX_UNPACKED)
    except ValueError:
        return b""
