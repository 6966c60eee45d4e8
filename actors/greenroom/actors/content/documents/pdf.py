"""The text of PDF files, page by page; pages that are pictures have no text."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import Any, Final

from greenroom.actors.content.documents.kinds import MissingReaderError, UnreadableDocumentError
from greenroom.actors.content.documents.sections import Block, Blocks, strip_markup
from greenroom.actors.core.base.optional_packages import Part

PDF: Final = Part("reading PDF files", ("pypdf",))


def read(data: bytes) -> Blocks:
    """Return the pages of a PDF file as blocks with page numbers."""
    try:
        from pypdf import PdfReader  # noqa: PLC0415  slow to import
    except ImportError:
        raise MissingReaderError(PDF.lack) from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # irregular files need no log entry
    try:
        found = _read(PdfReader, data)
    except UnreadableDocumentError:
        raise
    except Exception as error:  # noqa: BLE001  hostile bytes may raise anything
        sentence = f"it cannot be read as PDF: {str(error)[:200] or repr(error)}"
        raise UnreadableDocumentError(sentence) from None
    if not found.all:
        raise UnreadableDocumentError("it has no text: its pages may be pictures")
    return found


def _read(make: Callable[[io.BytesIO], Any], data: bytes) -> Blocks:
    reader = make(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise UnreadableDocumentError("it is encrypted")
    blocks = [
        Block(text, number, number, begins=True)
        for number, page in enumerate(reader.pages, start=1)
        if (text := page.extract_text().strip())
    ]
    about = reader.metadata
    return Blocks("" if about is None or about.title is None else strip_markup(str(about.title)), blocks)
