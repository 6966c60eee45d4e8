"""Compression by zstd; also decompresses the zlib streams of older versions."""

from __future__ import annotations

import sys
import zlib
from types import ModuleType
from typing import Final

_ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""The first bytes of a zstd frame; no zlib stream has them."""
_WINDOW: Final = 23
"""Log2 of the window size: the window takes at most 8 MB in decompression, whatever the frame requests."""


def load_zstd() -> ModuleType:
    """Import the library, which not every process needs."""
    if sys.version_info >= (3, 14):
        from compression import zstd as found  # noqa: PLC0415
    else:
        from backports import zstd as found  # noqa: PLC0415
    return found


def compress_bytes(data: bytes, level: int) -> bytes:
    """Compress bytes by zstd at a level."""
    packed: bytes = load_zstd().compress(data, level)
    return packed


def decompress_bytes(packed: bytes, most: int = sys.maxsize - 1) -> bytes:
    """Decompress one frame of zstd or stream of zlib, and nothing else.

    Raises:
        ValueError: the data are damaged, or unpack to more than ``most`` bytes.
    """
    try:
        if packed.startswith(_ZSTD):
            library = load_zstd()
            opened = library.ZstdDecompressor(
                options={library.DecompressionParameter.window_log_max: _WINDOW}
            )
        else:
            opened = zlib.decompressobj()
        plain: bytes = opened.decompress(packed, most + 1)
    except (zlib.error, load_zstd().ZstdError) as error:
        raise ValueError(str(error)) from None
    if len(plain) > most or not opened.eof or opened.unused_data:
        raise ValueError("what is compressed has another size, or its end is missing")
    return plain
