"""Folders that are made to hold up whoever reads them: a kind of trouble each, and one with all of them."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_MOST_TEXT = 16 << 20


def words(size: int, seed: int = 0) -> bytes:
    """Return a text of so many bytes in which hardly a word comes twice."""
    chance = random.Random(seed)  # noqa: S311  no secret
    return b"\n\n".join(
        b" ".join(b"%x" % chance.getrandbits(40) for _ in range(60)) for _ in range(1 + size // 650)
    )[:size]


def word_bomb(paragraph: bytes, count: int) -> bytes:
    """Return a small Word document that is large when it is unpacked."""
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive, archive.open("word/document.xml", "w") as part:
        part.write(f'<document xmlns="{_WORD}"><body>'.encode())
        part.write(paragraph * count)
        part.write(b"</body></document>")
    return file.getvalue()


def large_texts(folder: Path) -> None:
    """Write large texts, all words new, and one of the most bytes that is a single line."""
    (folder / "words.txt").write_bytes(words(6 << 20))
    (folder / "table.csv").write_bytes(words(6 << 20, 1).replace(b" ", b","))
    (folder / "line.txt").write_bytes(b"x" * _MOST_TEXT)


def odd_files(folder: Path) -> None:
    """Put in what is no plain file, or seems to be longer than it is."""
    os.mkfifo(folder / "pipe.md")
    (folder / "loop").symlink_to(folder)
    with (folder / "sparse.md").open("wb") as file:
        file.truncate(1 << 40)
    with (folder / "hole.txt").open("wb") as file:
        file.write(b"text\n")
        file.truncate(_MOST_TEXT)


def bombs(folder: Path) -> None:
    """Write containers that unpack to much."""
    (folder / "paragraphs.docx").write_bytes(word_bomb(b"<p/>", 15 << 20))
    (folder / "text.docx").write_bytes(word_bomb(b"<p><r><t>" + b"word " * 200 + b"</t></r></p>", 20_000))


def deep(folder: Path) -> None:
    """Make folders in folders."""
    at = folder
    for number in range(300):
        at /= "d"
        at.mkdir()
        if number % 10 == 0:
            (at / "a.md").write_text(f"# Depth {number}\n")
