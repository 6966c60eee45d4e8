"""The paragraphs of DOCX files: XML in a zip archive, of which nothing but text and headings is read."""

from __future__ import annotations

import io
import lzma
import re
import zlib
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET
from zipfile import BadZipFile, ZipFile

from greenroom.actors.documents.blocks import Block, Blocks
from greenroom.actors.documents.errors import UnreadableDocumentError
from greenroom.actors.documents.sections import Outline

MAX_XML: Final = 64 << 20
"""The most that is unpacked of one part."""
_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_COMPATIBLE: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_LEVEL: Final = re.compile(r"heading ([1-9])", re.IGNORECASE)


def read(data: bytes) -> Blocks:
    """Return the paragraphs of a DOCX file.

    Raises:
        UnreadableDocumentError: it is none, or too large when it is unpacked.
    """
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            levels = _levels(_part(archive, "word/styles.xml"))
            body = _part(archive, "word/document.xml")
            return _blocks(body, levels)
    except (
        *(BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, RuntimeError),  # of the archive
        *(ET.ParseError, LookupError, ValueError),  # of the XML: the last two of its encoding
    ) as error:
        raise UnreadableDocumentError(f"it is no Word document: {error}") from None


def _part(archive: ZipFile, name: str) -> bytes:
    if name == "word/styles.xml" and name not in archive.namelist():
        return b""
    with archive.open(name) as file:
        data = file.read(MAX_XML + 1)
    if len(data) > MAX_XML:
        raise UnreadableDocumentError(f"it has more than {MAX_XML:,} bytes when it is unpacked")
    if b"<!DOCTYPE" in data:  # no Word document has one, and entities are defined there
        raise UnreadableDocumentError("it is no Word document: its XML defines types")
    return data


def _levels(styles: bytes) -> dict[str, int]:
    """Return the levels of those styles that are headings, by their ids, which are in any language."""
    levels: dict[str, int] = {}
    for style in ET.fromstring(styles).iter(f"{_W}style") if styles else ():  # noqa: S314  (see `_part`)
        named = style.find(f"{_W}name")
        name = "" if named is None else named.get(f"{_W}val", "")
        found = _LEVEL.fullmatch(name)
        if found or name.lower() == "title":
            levels[style.get(f"{_W}styleId", "")] = int(found[1]) if found else 0
    return levels


def _blocks(body: bytes, levels: dict[str, int]) -> Blocks:
    outline = Outline()
    blocks: list[Block] = []
    root = ET.fromstring(body)  # noqa: S314  (see `_part`)
    for twice in list(root.iter(f"{_COMPATIBLE}AlternateContent")):
        for older in twice.findall(f"{_COMPATIBLE}Choice/../{_COMPATIBLE}Fallback"):
            twice.remove(older)  # what older programs show in the place of the choice
    for paragraph in root.iter(f"{_W}p"):
        text = "".join(_runs(paragraph)).strip()
        style = paragraph.find(f"{_W}pPr/{_W}pStyle")
        level = None if style is None else levels.get(style.get(f"{_W}val", ""))
        if level is not None and text:
            outline.enter(level, text)
        elif text:
            blocks.append(Block(text, 0, 0, outline.headings))
    return Blocks(outline.top, blocks)


def _runs(paragraph: ET.Element) -> Iterator[str]:
    """Yield the words of a paragraph, without those of paragraphs in it, as in a text box."""
    marks = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n"}
    waiting = [paragraph]
    while waiting:
        node = waiting.pop()
        if node.tag == f"{_W}t" or node.tag in marks:
            yield marks.get(node.tag) or node.text or ""
        waiting += (each for each in reversed(node) if each.tag != paragraph.tag)
