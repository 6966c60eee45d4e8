"""Make the golden corpus: documents as they were stored before zstd compressed them.

Run it with the program of that time, whose tests lend theirs, and pack what it leaves:

    git worktree add ../old 78142b9e && python3 -m venv old && old/bin/pip install -e ../old
    PYTHONPATH=../old/tests old/bin/python tests/data/make_corpus.py made
    tar --exclude='*-lock' --exclude='*.sock' -C made -cJf tests/data/corpus-zlib.tar.xz .
"""

from __future__ import annotations

import sys
from pathlib import Path

import trio
from support.corpora import document_of

from greenroom.actors import Document, Principal, PutDocument, ask_corpus, open_greenroom
from greenroom.actors.knowledge.corpora.storage.preparation import prepare_at_once

DOCUMENTS = 80
"""More than twice as many as are merged at once: so segments are stored packed and others as they came."""
ANN = Principal(agent_id="a", user="ann")


def document(number: int) -> Document:
    """Return one of the documents; each has a word that no other has."""
    parts = [
        (["Birds", f"Part {part}"], f"heron{number} and redshank, été, part {part}. " * 3)
        for part in range(5)
    ]
    return document_of(f"birds/{number}.md", parts)


async def main(home: Path) -> None:
    """Fill a corpus."""
    async with open_greenroom(home / "store", secrets=home / "secrets", embedder="none") as runtime:
        for number in range(DOCUMENTS):
            made = document(number)
            put = PutDocument(corpus="docs", document=made, prepared=prepare_at_once(made))
            await ask_corpus(runtime, ANN, put, make=True)
        await trio.sleep(3)  # until what is to be merged is merged


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
