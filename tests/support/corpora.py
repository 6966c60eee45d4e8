"""Documents for corpora, as a chunker would make them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from greenroom.actors import Chunk, Document
from greenroom.actors.knowledge.corpora.requests.catalogue import AllCorpora
from greenroom.actors.knowledge.corpora.requests.corpus_requests import chunk_id
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


def pdf_file(*pages: str) -> bytes:
    """Return a PDF file with these words on its pages."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", ""]
    kids = []
    for page in pages:
        stream = f"BT /F1 12 Tf 72 720 Td ({page}) Tj ET" if page else ""
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {len(objects) + 2} 0 R"
            "/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>"
        )
        objects.append(f"<</Length {len(stream)}>>stream\n{stream}\nendstream")
    objects[1] = f"<</Type/Pages/Count {len(pages)}/Kids[{' '.join(kids)}]>>"
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj{each}endobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    tail = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return (
        data + f"{tail}trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(data)}\n%%EOF".encode()
    )
