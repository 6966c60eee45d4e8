"""Blocks of text that was made of a file, and how they become chunks.

The text of these kinds of files is no part of the file, byte for byte: it is told between which offsets of
the source each block stands, or on which page, and that is what its chunk says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from greenroom.actors.content.documents.splitting import MAX_CHARACTERS, PROSE, pieces


class Block(NamedTuple):
    """A paragraph, a cell or the like.

    Attributes:
        text: Its words.
        first: The offset of its beginning in the source, or its page.
        last: The offset behind it, or the same page.
        headings: What it is headed by; the same tuple in all blocks of a section.
        begins: Whether it begins a section: a heading, or a page.
    """

    text: str
    first: int
    last: int
    headings: tuple[str, ...] = ()
    begins: bool = False


class Blocks(NamedTuple):
    """All blocks of a document, and what it is called; empty where it does not say."""

    title: str
    all: list[Block]


def packed(blocks: list[Block]) -> Iterator[Block]:
    """Yield the blocks of each section together, as many as a chunk has room for; a long one in pieces."""
    taken: list[Block] = []
    size = 0
    for block in blocks:
        if taken and (
            block.begins
            or block.headings is not taken[-1].headings  # another section may have equal ones
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
