"""What is opened is what was compressed, now or before; a few bytes become no more than is expected."""

from __future__ import annotations

import tracemalloc
import zlib

import pytest

from greenroom.actors.core.base.zstd import compress_bytes, decompress_bytes

TEXT = b"heron and redshank " * 50
FORMS = {"zstd": compress_bytes(TEXT, 9), "zlib": zlib.compress(TEXT)}
ZEROS = {"zstd": compress_bytes(bytes(64 << 20), 1), "zlib": zlib.compress(bytes(64 << 20))}


@pytest.mark.parametrize("form", FORMS)
def test_what_was_compressed_is_opened_where_no_more_is_expected(form: str) -> None:
    assert decompress_bytes(FORMS[form]) == decompress_bytes(FORMS[form], len(TEXT)) == TEXT


@pytest.mark.parametrize("form", FORMS)
def test_what_is_cut_off_has_more_behind_it_or_is_longer_than_expected_is_refused(form: str) -> None:
    packed = FORMS[form]
    for broken in (b"", packed[:-1], packed + b"x", b"?" + packed, packed[:4] + bytes(8)):
        with pytest.raises(ValueError, match=r"."):
            decompress_bytes(broken)
    with pytest.raises(ValueError, match="another size"):
        decompress_bytes(packed, len(TEXT) - 1)


@pytest.mark.parametrize("form", ZEROS)
def test_a_few_bytes_become_no_more_than_expected(form: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"."):
            decompress_bytes(ZEROS[form], 1_000)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()
