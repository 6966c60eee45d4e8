"""Baselines: the sources that an agent would have read without an operation.

A source counts as read whole once a day for each caller, in all operations together, because the caller then
has it. A further answer from that source is a loss, and counts as a loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Takes = Literal["first", "all", "memories", "session", "answer"]
"""Which sources of an operation count: the first, all, memories, a session's messages, or the answer."""


class Baseline(NamedTuple):
    """A baseline: which of the operation's sources count, and a description."""

    takes: Takes
    would_have_read: str


NONE: Final = "none"

BASELINES: Final[Mapping[str, Baseline]] = {
    "whole_file": Baseline("all", "each file whole, once a day, and again what it repeats"),
    "best_file": Baseline("first", "the first of the files that were found whole, once a day"),
    "found_files": Baseline("all", "every file that was found whole, once a day"),
    "best_document": Baseline("first", "the first of the documents that were found whole, once a day"),
    "found_documents": Baseline("all", "every document that was found whole, once a day"),
    "whole_documents": Baseline("all", "the documents of the passages whole, once a day"),
    "every_memory": Baseline("memories", "every memory of the caller's user, once a day"),
    "whole_session": Baseline("session", "every message of the session that the caller may see, once a day"),
    "whole_text": Baseline("all", "the text whole, wherever it is sent to"),
    NONE: Baseline("answer", "the answer itself: nothing counts as saved"),
}
"""Every baseline by name."""

OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "read_file": ("whole_file", NONE),
    "outline": ("whole_file", NONE),
    "search_code_semantic": ("best_file", "found_files", NONE),
    "semantic_search": ("best_document", "found_documents", NONE),
    "get_full_content": ("whole_documents", NONE),
    "memory_search": ("every_memory", NONE),
    "retrieve_memory": ("every_memory", NONE),
    "recall_context": ("every_memory", NONE),
    "search_context": ("whole_session", NONE),
    "get_session_context": ("whole_session", NONE),
    "compress_text": ("whole_text", NONE),
}
"""The operations with counted savings, each with its possible baselines, the usual one first."""

CACHES: Final[Mapping[tuple[str, str], str]] = {
    ("client", "read_file"): "the files that this client has read and that did not change",
    ("memory", "search_code_semantic"): "answers of an index that nothing was put into since",
    ("memory", "semantic_search"): "answers of a corpus that nothing was put into since",
}
"""Every cache, by level and operation."""


USUAL_PRICE: Final = 3.0
"""The default price of a million tokens: about the price of mid-range models in 2025."""


def read_baseline(text: str) -> tuple[str, str]:
    """Parse an operation and its baseline from a text such as ``outline=none``.

    Raises:
        ValueError: The operation, or this baseline of it, does not exist.
    """
    operation, _, baseline = text.partition("=")
    if baseline not in OPERATIONS.get(operation, ()):
        raise ValueError(text)
    return operation, baseline


def usual() -> dict[str, str]:
    """Return the usual baseline of each operation."""
    return {operation: choices[0] for operation, choices in OPERATIONS.items()}
