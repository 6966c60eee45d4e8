"""Blocks of text extracted from a file, and how they become chunks.

This text does not occur in the file byte for byte. Each block has its offsets in the source, or its page, and
the chunk reports these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from greenroom.actors.content.documents.splitting import MAX_CHARACTERS, PROSE, pieces


class Block(NamedTuple):
    """A paragraph, a cell or the like.

    Attributes:
        first: Its start in the source, or its page.
        last: Its end in the source, exclusive, or the same page.
        headings: Its headings; the same tuple in all blocks of a section.
        begins: Whether it begins a section or a page.
    """

    text: str
    first: int
    last: int
    headings: tuple[str, ...] = ()
    begins: bool = False


class Blocks(NamedTuple):
    """All blocks of a document, and its title, which may be empty."""

    title: str
    all: list[Block]


def pack_blocks(blocks: list[Block]) -> Iterator[Block]:
    """Join the blocks of each section into chunk-sized ones; split long blocks."""
    taken: list[Block] = []
    size = 0
    for block in blocks:
        if taken and (
            block.begins
            or block.headings is not taken[-1].headings  # another section may have equal headings
            or size + len(block.text) + 2 > MAX_CHARACTERS
        ):
            yield _together(taken)
            taken, size = [], 0
        if len(block.text) > MAX_CHARACTERS:
            if taken:
                yield _together(taken)
                taken, size = [], 0
            for first, last in pieces(block.text, 0, len(block.text), PROSE):
                yield block._replace(text=block.text[first:last])
            continue
        taken.append(block)
        size += len(block.text) + 2
    if taken:
        yield _together(taken)


def _together(blocks: list[Block]) -> Block:
    first, last = blocks[0], blocks[-1]
    return Block("\n\n".join(block.text for block in blocks), first.first, last.last, first.headings)
