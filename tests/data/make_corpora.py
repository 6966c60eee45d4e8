"""Make a golden store of several corpora, as it was before ids of chunks named their corpus.

Run it with the program of that time, whose tests lend theirs, and pack what it leaves:

    git worktree add ../old 6b3b6280
    export PYTHONPATH=../old/runtime:../old/actors:../old/transports:../old/tests
    python tests/data/make_corpora.py made
    tar --exclude='*-lock' --exclude='*.sock' -C made -cJf tests/data/corpora-format-1.tar.xz .
"""

from __future__ import annotations

import sys
from pathlib import Path

import trio
from support.corpora import document_of

from greenroom.actors import Principal, PutDocument, ask_corpus, open_greenroom

ANN = Principal(agent_id="a", user="ann")
BEN = Principal(agent_id="b", user="ben")
SEVERAL = Path(__file__).parent / "corpora-format-1.tar.xz"
CORPORA = {"user:ann:docs": ANN, "all:manual": ANN, "user:ben:plans": BEN}


async def main(home: Path) -> None:
    """Fill the corpora, and change a chunk of each."""
    async with open_greenroom(home / "store", secrets=home / "secrets", embedder="none") as runtime:
        for corpus, owner in CORPORA.items():
            for text in ("avocet", "bittern"):
                parts: list[tuple[list[str], str]] = [
                    ([], f"heron of {corpus}"),
                    ([], f"{text} of {corpus}"),
                ]
                put = PutDocument(corpus=corpus, document=document_of("birds.md", parts))
                await ask_corpus(runtime, owner, put, make=True)


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
