"""What to do about a file that could not be taken in, by the reason that was given for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_REMEDIES: Final[Sequence[tuple[str, str]]] = (
    (
        "reading PDF files takes",
        "install it where files are read; the file is then taken in by itself, or by ingesting it again",
    ),
    ("its pages may be pictures", "have a program for recognising text write a PDF that has text"),
    ("it has no text", "nothing, if there is none to be found in it"),
    ("it is encrypted", "save it without a password"),
    ("it is no text", "bring along its text: archives are not opened, pictures and programs are not read"),
    ("bytes and the limit is", "cut it into several"),
    ("when it is unpacked", "cut it into several"),
    ("entries", "name the folders in it that have documents"),
    ("folders deep", "name a folder further down as well"),
    ("its name cannot be shown", "rename it: its name has control characters, or is too long"),
    ("Permission denied", "let the user read it as whom `greenroom ingest`, or the server, runs"),
    ("memory", "take it in again where more memory is free; else cut it into several"),
    ("it took longer", "cut it into several, or save it in a simpler format"),
    ("it could not be read in", "`greenroom ingest` has no such limit; else cut it into several"),
    ("it ended the process", "save it anew, or in another format: it makes its reader fail"),
    ("it is nested too deeply", "save it in a simpler format"),
    ("it cannot be read as PDF", "open it and save it anew: it may be damaged"),
    ("it is no Word document", "open it and save it anew: it may be damaged, or something else by this name"),
    ("it is no notebook", "open it and save it anew: it may be damaged, or something else by this name"),
    ("it is refused", "change what the reason names, and take it in again"),
    ("it cannot be read", "look whether the disk is sound and the file is whole; take it in again"),
)
"""Parts of reasons and what helps, those first that say more."""
_ELSE: Final = "change what the reason names, and take it in again"


def remedy_of(reason: str) -> str:
    """Return what to do about a file that could not be taken in for a reason."""
    return next((remedy for part, remedy in _REMEDIES if part in reason), _ELSE)
