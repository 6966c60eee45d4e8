"""QR codes as PNG."""

from __future__ import annotations

import io
from typing import Final

SCALE: Final = 4
"""Pixels of a module; a whole passport has up to 177 of them on a side."""


def png(text: str) -> bytes:
    """Return the QR code of a text of capital letters, digits and ``$%*+-./:``."""
    import segno  # noqa: PLC0415  (only who wants a QR code needs it)

    written = io.BytesIO()
    segno.make(text, error="l", mode="alphanumeric", micro=False).save(written, kind="png", scale=SCALE)
    return written.getvalue()
