"""The terms of a document, made by the process that parsed it, checked here.

Numbers in bytes are as this machine has them in memory.
"""

from __future__ import annotations

import msgspec


class Terms(msgspec.Struct, frozen=True, array_like=True):
    """The terms of one field of several rows, and where they occur.

    Attributes:
        ends: Where the postings of each end (uint32).
        postings: The row, shifted by 16 bits, and how often the term occurs there (uint64); in order of rows.
    """

    terms: list[str]
    ends: bytes
    postings: bytes


class Run(msgspec.Struct, frozen=True, array_like=True):
    """The terms of several rows, counted from 0."""

    rules: str
    flags: bytes
    fields: dict[str, Terms]
