"""The text of DOCX files: XML in a zip archive.

Paragraphs and tables are read in order. Each row of a table becomes one line; a long table is headed by the
names of its columns. Notes and comments follow their paragraph; headers and footers come once, at the end.
`unread_parts` names the parts that are not read.
"""

from __future__ import annotations

import io
import lzma
import re
import zlib
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET
from zipfile import BadZipFile, ZipFile

from greenroom.actors.content.documents.kinds import UnreadableDocumentError
from greenroom.actors.content.documents.sections import MAX_CHARACTERS, Block, Blocks, Outline
from greenroom.actors.content.documents.table import column_heading

MAX_XML: Final = 64 << 20
"""All parts of one file together have at most this many bytes, unpacked."""
MOST_UNREAD: Final = 20
_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT: Final = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
_MATH_TEXT: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_COMPATIBLE: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_LEVEL: Final = re.compile(r"heading ([1-9])", re.IGNORECASE)
_PART: Final = re.compile(r"word/(document|styles|footnotes|endnotes|comments|header|footer)\d*\.xml")
_NOTES: Final = {"footnotes": "footnote", "endnotes": "endnote", "comments": "comment"}
_WORDLESS: Final = re.compile(
    r"\[Content_Types\]\.xml|(?:.*/)?_rels/.*|docProps/.*|customXml/.*|.*/"
    r"|word/(?:theme|fonts|glossary|customizations)/?.*"
    r"|word/(?:settings|webSettings|fontTable|numbering|people|stylesWithEffects|comments[A-Z]\w*|vba\w*)\..*"
)
"""Parts that contain no text of the document."""
_MARKS: Final = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
_WORDS: Final = frozenset({f"{_W}t", _MATH_TEXT})
_ROW_MARK: Final = " | "


def read(data: bytes) -> Blocks:
    """Return the text of a DOCX file."""
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            return _Reader(_parts(archive)).read()
    except (
        *(BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, RuntimeError),  # of the archive
        *(ET.ParseError, LookupError, ValueError),  # the last two: of the XML's encoding
    ) as error:
        raise UnreadableDocumentError(f"it is no Word document: {error}") from None


def unread_parts(data: bytes) -> list[str]:
    """Return the folders and files in a DOCX file whose text is not read."""
    with ZipFile(io.BytesIO(data)) as archive:
        names = [
            name for name in archive.namelist() if not _PART.fullmatch(name) and not _WORDLESS.fullmatch(name)
        ]
    return sorted({"/".join(name.split("/")[:2]) for name in names})[:MOST_UNREAD]


def _parts(archive: ZipFile) -> dict[str, list[ET.Element]]:
    """Return the parts that are read, by kind."""
    parts: dict[str, list[ET.Element]] = {}
    left = MAX_XML
    for name in sorted(set(archive.namelist())):
        found = _PART.fullmatch(name)
        if found is None:
            continue
        with archive.open(name) as file:
            data = file.read(left + 1)
        left -= len(data)
        if left < 0:
            raise UnreadableDocumentError(f"it has more than {MAX_XML:,} bytes when it is unpacked")
        parser = ET.XMLParser(target=_WithoutTypes())  # noqa: S314  a document type could define entities
        root = ET.fromstring(data.replace(_STRICT, _W[1:-1].encode()), parser)  # noqa: S314  as above
        for twice in list(root.iter(f"{_COMPATIBLE}AlternateContent")):
            for older in twice.findall(f"{_COMPATIBLE}Choice/../{_COMPATIBLE}Fallback"):
                twice.remove(older)  # this is the alternative for older programs
        parts.setdefault(found[1], []).append(root)
    if "document" not in parts:
        raise UnreadableDocumentError("it is no Word document: it has no part word/document.xml")
    return parts


class _WithoutTypes(ET.TreeBuilder):
    """A builder that refuses document type definitions in every encoding; Word writes none of them."""

    def doctype(self, *_: object) -> None:
        """Refuse a document type definition before it is read."""
        raise UnreadableDocumentError("it is no Word document: its XML defines types")


class _Reader:
    """Collects the blocks of one document."""

    def __init__(self, parts: dict[str, list[ET.Element]]) -> None:
        self._parts = parts
        self._levels = _levels(parts.get("styles", []))
        self._notes = {
            (kind, note.get(f"{_W}id", "")): note
            for name, kind in _NOTES.items()
            for root in parts.get(name, [])
            for note in root.iter(f"{_W}{kind}")
            if note.get(f"{_W}type", "normal") == "normal"  # other types are separators
        }
        self._outline = Outline()
        self._blocks: list[Block] = []

    def read(self) -> Blocks:
        """Return all blocks in order."""
        for root in self._parts["document"]:
            self._add_all(root)
        for kind, number in list(self._notes):  # notes to which nothing refers
            self._add_note(kind, number)
        margins = [
            f"{name.capitalize()}: {text}"
            for name in ("header", "footer")
            for root in self._parts.get(name, [])
            if (text := _on_one_line(root))
        ]
        for text in dict.fromkeys(margins):
            self._add(text)
        return Blocks(self._outline.top, self._blocks)

    def _add(self, text: str, headings: tuple[str, ...] | None = None) -> None:
        self._blocks.append(Block(text, 0, 0, self._outline.headings if headings is None else headings))

    def _add_all(self, root: ET.Element) -> None:
        """Add an element's paragraphs and tables; a paragraph's text boxes come after it."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.tag == f"{_W}tbl" and (rows := _rows(node)):
                self._add_rows(rows)
                self._add_notes(node.iter())
                continue
            if node.tag == f"{_W}p":
                self._add_paragraph(node)
            waiting += reversed(node)

    def _add_paragraph(self, paragraph: ET.Element) -> None:
        text = "".join(_runs(paragraph)).strip()
        style = paragraph.find(f"{_W}pPr/{_W}pStyle")
        level = None if style is None else self._levels.get(style.get(f"{_W}val", ""))
        if level is not None and text:
            self._outline.enter(level, text)
        elif text:
            self._add(text)
        self._add_notes(_own_nodes(paragraph))

    def _add_rows(self, rows: list[list[str]]) -> None:
        """Add a table's rows; in a long table, the first row heads each part."""
        lines = [_ROW_MARK.join(cell.replace("|", r"\|") for cell in cells).strip() for cells in rows]
        if sum(map(len, lines)) + len(lines) <= MAX_CHARACTERS:
            self._add("\n".join(lines))
            return
        headings = (*self._outline.headings, column_heading(rows[0]))
        taken: list[str] = []
        size = 0
        for line in lines:
            if taken and size + len(line) + 1 > MAX_CHARACTERS:
                self._add("\n".join(taken), headings)
                taken, size = [], 0
            taken.append(line)
            size += len(line) + 1
        self._add("\n".join(taken), headings)

    def _add_notes(self, nodes: Iterator[ET.Element]) -> None:
        for node in nodes if self._notes else ():
            kind = str(node.tag).removeprefix(_W).removesuffix("Reference")
            self._add_note(kind, node.get(f"{_W}id", ""))

    def _add_note(self, kind: str, number: str) -> None:
        note = self._notes.pop((kind, number), None)
        text = "" if note is None else _on_one_line(note)
        if text and note is not None:
            author = note.get(f"{_W}author", "")
            self._add(f"{kind.capitalize()}{author and f' by {author}'}: {text}")


def _levels(styles: list[ET.Element]) -> dict[str, int]:
    """Return the levels of heading styles, by their localized ids."""
    levels: dict[str, int] = {}
    for style in (each for root in styles for each in root.iter(f"{_W}style")):
        named = style.find(f"{_W}name")
        name = "" if named is None else named.get(f"{_W}val", "")
        found = _LEVEL.fullmatch(name)
        if found or name.lower() == "title":
            levels[style.get(f"{_W}styleId", "")] = int(found[1]) if found else 0
    return levels


def _rows(table: ET.Element) -> list[list[str]]:
    """Return a table's rows; none if it has a single column, which is only layout."""
    rows = [list(_nearest(row, f"{_W}tc")) for row in _nearest(table, f"{_W}tr")]
    if all(len(cells) < 2 for cells in rows):  # noqa: PLR2004  columns
        return []
    texts = ([_on_one_line(cell) for cell in cells] for cells in rows)
    return [cells for cells in texts if any(cells)]


def _nearest(node: ET.Element, tag: str) -> Iterator[ET.Element]:
    """Yield the outermost elements with a tag inside another element."""
    waiting = list(reversed(node))
    while waiting:
        each = waiting.pop()
        if each.tag == tag:
            yield each
        else:
            waiting += reversed(each)


def _on_one_line(node: ET.Element) -> str:
    """Return the words of all paragraphs in an element, also in text boxes and tables."""
    return " ".join(" ".join("".join(_runs(each)).split()) for each in node.iter(f"{_W}p")).strip()


def _runs(paragraph: ET.Element) -> Iterator[str]:
    """Yield the words of a paragraph, without nested paragraphs such as text boxes."""
    for node in _own_nodes(paragraph):
        if node.tag in _WORDS or node.tag in _MARKS:
            yield _MARKS.get(str(node.tag)) or node.text or ""


def _own_nodes(paragraph: ET.Element) -> Iterator[ET.Element]:
    """Yield the nodes of a paragraph, without nested paragraphs and moved text."""
    waiting = [paragraph]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += (each for each in reversed(node) if each.tag not in {f"{_W}p", f"{_W}moveFrom"})
