"""Bytes compressed by zstd, and opened again; what older versions compressed by zlib is opened as well."""

from __future__ import annotations

import sys
import zlib
from types import ModuleType
from typing import Final

_ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""How a frame of zstd begins, and no stream of zlib."""
_WINDOW: Final = 23
"""How far back a frame may refer, as a power of two: so much memory is taken whatever it says, 8 MB."""


def zstd() -> ModuleType:
    """Return the library, which not every process needs."""
    if sys.version_info >= (3, 14):
        from compression import zstd as found  # noqa: PLC0415
    else:
        from backports import zstd as found  # noqa: PLC0415
    return found


def compressed(data: bytes, level: int) -> bytes:
    """Return bytes compressed by zstd at a level."""
    packed: bytes = zstd().compress(data, level)
    return packed


def decompressed(packed: bytes, most: int = sys.maxsize - 1) -> bytes:
    """Return what was compressed.

    Args:
        packed: One frame of zstd, or one stream of zlib, and nothing else.
        most: How many bytes are expected at most; no more are made.

    Raises:
        ValueError: it is damaged, or holds more.
    """
    try:
        if packed.startswith(_ZSTD):
            library = zstd()
            opened = library.ZstdDecompressor(
                options={library.DecompressionParameter.window_log_max: _WINDOW}
            )
        else:
            opened = zlib.decompressobj()
        plain: bytes = opened.decompress(packed, most + 1)
    except (zlib.error, zstd().ZstdError) as error:
        raise ValueError(str(error)) from None
    if len(plain) > most or not opened.eof or opened.unused_data:
        raise ValueError("what is compressed has another size, or its end is missing")
    return plain
