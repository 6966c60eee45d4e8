"""The cells of Jupyter notebooks: texts and code, without outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from greenroom.actors.content.documents import markdown
from greenroom.actors.content.documents.decode import SourceText
from greenroom.actors.content.documents.kinds import UnreadableDocumentError
from greenroom.actors.content.documents.sections import Block, Blocks, Outline, bodies

_SPACE: Final = re.compile(r"[ \t\r\n]*")


def read(text: SourceText) -> Blocks:
    """Return the blocks of a notebook, each with the offsets of its cell."""
    outline = Outline()
    blocks: list[Block] = []
    try:
        for cell, first, last in _cells(text.text):
            source = cell.get("source")
            lines = source if isinstance(source, list) else [source]
            words = "".join(line for line in lines if isinstance(line, str))  # skip values of other types
            if cell.get("cell_type") == "markdown":
                blocks += _text_blocks(words, first, last, outline)
            elif words.strip():
                blocks.append(Block(words.strip(), first, last, outline.headings))
    except (ValueError, RecursionError) as error:
        raise UnreadableDocumentError(f"it is no notebook: {str(error)[:200]}") from None
    return Blocks(outline.top, blocks)


def _text_blocks(words: str, first: int, last: int, outline: Outline) -> Iterator[Block]:
    text = SourceText(words.encode(errors="replace"))
    sections = markdown.read(text, outline).all
    for begin, end, headings in bodies(text.text, sections):
        if body := text.text[begin:end].strip():
            yield Block(body, first, last, headings)


def _cells(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Yield the cells and their offsets in the text."""
    decode = json.JSONDecoder().raw_decode
    place = _expect(text, 0, "{")
    while text[place : place + 1] != "}":
        name, place = decode(text, place)
        place = _expect(text, place, ":")
        if name == "cells":
            break
        _, place = decode(text, place)
        place = _behind(text, place, ",")
    else:
        raise ValueError("it has no cells")
    place = _expect(text, place, "[")
    while text[place : place + 1] != "]":
        cell, behind = decode(text, place)
        if isinstance(cell, dict):
            yield cell, place, behind
        place = _behind(text, behind, ",")


def _expect(text: str, place: int, mark: str) -> int:
    place = _past_space(text, place)
    if text[place : place + 1] != mark:
        raise ValueError(f"{mark!r} is missing at character {place:,}")
    return _past_space(text, place + 1)


def _behind(text: str, place: int, mark: str) -> int:
    """Return the place after a value, and after ``mark`` if it follows."""
    place = _past_space(text, place)
    return _past_space(text, place + 1) if text[place : place + 1] == mark else place


def _past_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()
