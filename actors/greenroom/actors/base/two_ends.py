"""Texts that are too long, cut in the middle."""

from __future__ import annotations


def two_ends(text: str, most: int, gap: str = "\u2026") -> str:
    """Return a text, or of one that is too long its two ends.

    Args:
        text: The text.
        most: The most characters.
        gap: What stands between the ends.
    """
    half = (most - len(gap)) // 2
    if len(text) <= most:
        return text
    return f"{text[:half]}{gap}{text[-half:]}" if half > 0 else text[:most]
