"""Documents for corpora, as a chunker would make them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from greenroom.actors import Chunk, Document


def document_of(path: str, parts: Sequence[tuple[list[str], str]], *, title: str | None = None) -> Document:
    """Return a document of chunks, each with its headings, of three lines each."""
    named = title or path.rpartition("/")[2]
    chunks = [
        Chunk(text, headings, named, 3 * place + 1, 3 * place + 3, 100 * place, 100 * place + len(text))
        for place, (headings, text) in enumerate(parts)
    ]
    digest = blake2b(repr((named, parts)).encode(), digest_size=16).hexdigest()
    return Document(path, named, "markdown", digest, sum(len(text) for _, text in parts), 0, chunks)
