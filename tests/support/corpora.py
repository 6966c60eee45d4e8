"""Documents for corpora, as a chunker would make them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from greenroom.actors import Chunk, Document
from greenroom.actors.corpus.catalogue import AllCorpora
from greenroom.actors.schemas.corpus import chunk_id
from greenroom.runtime import RuntimeClient


def document_of(path: str, parts: Sequence[tuple[list[str], str]], *, title: str | None = None) -> Document:
    """Return a document of chunks, each with its headings, of three lines each."""
    named = title or path.rpartition("/")[2]
    chunks = [
        Chunk(text, headings, named, 3 * place + 1, 3 * place + 3, 100 * place, 100 * place + len(text))
        for place, (headings, text) in enumerate(parts)
    ]
    digest = blake2b(repr((named, parts)).encode(), digest_size=16).hexdigest()
    return Document(path, named, "markdown", digest, sum(len(text) for _, text in parts), 0, chunks)


async def ids_in(runtime: RuntimeClient, corpus: str, *numbers: int) -> list[int]:
    """Return the ids of the chunks with these numbers in a corpus; its name may be in full or not."""
    [prefix] = {
        row.id_prefix for row in await runtime.query(AllCorpora()) if corpus in {row.full_name, row.name}
    }
    return [chunk_id(prefix, number) for number in numbers]
