"""Memories that `greenroom import` brought into a folder, and the server that is asked for them."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec

from bench.client import ToolCall
from bench.harness import check
from bench.servers import environment

if TYPE_CHECKING:
    from pathlib import Path

    from bench.client import Client

LOADING_SECONDS = 60.0


def import_memories(source: Path, data: Path, *flags: str) -> None:
    """Import a file; at the end all have vectors, unless the flags say that there is no embedder."""
    command = [
        sys.executable,
        "-m",
        "greenroom.transports.cli",
        "import",
        str(source),
        "--data",
        str(data),
    ]
    done = subprocess.run([*command, "--json", *flags], env=environment(), capture_output=True, check=False)
    check(done.returncode == 0, f"the import ended with {done.returncode}: {done.stderr[-500:]!r}")
    check(msgspec.json.decode(done.stdout)["embedded"] is not False, "memories have no vectors")


def search(client: Client, query: str, namespace: str, **more: Any) -> dict[str, Any]:
    """Return what a search is answered, hybrid unless told."""
    arguments = {"query": query, "namespace": namespace, "mode": "hybrid", **more}
    told: dict[str, Any] = client.call(ToolCall("memory_search", arguments))
    return told


def settle(client: Client, namespace: str) -> None:
    """Search until the embedder's model is there, which loads beside the first searches."""
    until = time.perf_counter() + LOADING_SECONDS
    while search(client, "anything", namespace, limit=1, include_debug=True)["debug"]["model"] == "words":
        check(time.perf_counter() < until, f"no search used a model within {LOADING_SECONDS} s")
