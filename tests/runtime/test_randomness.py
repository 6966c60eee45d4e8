"""Random numbers that come in blocks are as random as those that come one by one."""

from __future__ import annotations

import pytest

from greenroom.runtime.base.clock import BLOCK_BYTES, BlockRandom

pytestmark = pytest.mark.promise("sessions.message-ids")


def test_bytes_come_in_any_number_and_never_again() -> None:
    chance = BlockRandom()
    counts = [8] * 2_000 + [BLOCK_BYTES - 1, 3, BLOCK_BYTES, BLOCK_BYTES + 1, 1 << 20]
    pieces = [chance.randbytes(count) for count in counts]
    assert [len(piece) for piece in pieces] == counts
    assert len(set(pieces)) == len(pieces)
    assert (chance.randbytes(0), chance.getrandbits(0)) == (b"", 0)


def test_numbers_fill_their_bits() -> None:
    chance = BlockRandom()
    for bits in (1, 6, 8, 53, 200):
        numbers = [chance.getrandbits(bits) for _ in range(2_000)]
        assert min(numbers) >= 0
        assert max(numbers).bit_length() == bits
        assert {bit for bit in range(bits) for number in numbers if number >> bit & 1} == set(range(bits))
    tenths = {int(chance.random() * 10) for _ in range(2_000)}
    assert tenths == set(range(10))
    assert sorted(chance.sample(range(10), 10)) == list(range(10))
    with pytest.raises(ValueError, match="not negative"):
        chance.getrandbits(-1)
