"""A server that is told which embedder to use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from harness import PROGRAM, clean_environment, server_process


@pytest.mark.parametrize(
    ("flags", "code", "sentence"),
    [
        (
            ["--embedder", "onnx:/nowhere"],
            73,
            "the folder /nowhere, where the model is to be, does not exist",
        ),
        (["--embedder", "http://127.0.0.1:9/v1"], 2, "needs the name of its model: --embedder-model NAME"),
        (["--embedder", "word2vec"], 2, "static, none, onnx:DIR, http:URL or python:MODULE:CLASS is allowed"),
    ],
)
def test_an_embedder_that_cannot_be_is_told_at_the_start(
    tmp_path: Path, flags: list[str], code: int, sentence: str
) -> None:
    done = subprocess.run(
        [*PROGRAM, "serve", "--data", str(tmp_path / "store"), *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=clean_environment(tmp_path),
        check=False,
    )
    assert done.returncode == code
    assert sentence in done.stderr
    assert not (tmp_path / "store").exists()


@pytest.mark.promise("embedding.lazy")
def test_a_server_loads_nothing_for_it_at_its_start(tmp_path: Path) -> None:
    heavy = ["numpy", "tokenizers", "onnxruntime", "httpx2"]
    program = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr))\n"
        "from greenroom.transports.ops.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [PROGRAM[0], "-c", program, "serve", "--data", str(tmp_path / "store")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=clean_environment(tmp_path),
        check=True,
    )
    assert done.stderr.strip().splitlines()[-1] == "[]"


HANGING = """
import threading
from pathlib import Path


def hang():
    Path(__file__).with_name("arrived").open("w").close()
    threading.Event().wait()


class Making:
    def __init__(self):
        hang()

    def embed(self, texts):
        return [[1.0] for _ in texts]


class Embedding:
    def embed(self, texts):
        if texts != ["probe"]:
            hang()
        return [[1.0] for _ in texts]


class Searching:
    def embed(self, texts):
        return [[1.0] for _ in texts]

    def embed_query(self, text):
        hang()
"""


@pytest.mark.promise("embedding.python")
@pytest.mark.parametrize("name", ["Making", "Embedding", "Searching"])
async def test_a_server_ends_though_a_class_hangs(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes = tmp_path / "classes"
    classes.mkdir()
    (classes / "own_hanging.py").write_text(HANGING)
    os.mkfifo(classes / "arrived")
    monkeypatch.setenv("PYTHONPATH", str(classes), prepend=os.pathsep)
    async with server_process(tmp_path, "--embedder", f"python:own_hanging:{name}") as server:
        await server.client.initialize()
        await server.client.call("store_memory", content="The pump is new.")
        if name == "Searching":
            await server.client.call("memory_search", query="pump")
        await trio.to_thread.run_sync((classes / "arrived").read_text)
        assert server.process.stdin is not None
        await server.process.stdin.aclose()
        assert await server.process.wait() == 0
    assert "Traceback" not in server.errors()


@pytest.mark.quick
@pytest.mark.promise("embedding.tells-nobody")
@pytest.mark.parametrize("module", ["onnx", "minilm_onnx"])
def test_the_library_that_runs_models_notes_down_nothing_of_it(tmp_path: Path, module: str) -> None:
    """Onnxruntime does so when it is imported, in the user's cache, before it sends it anywhere."""
    environment = {**clean_environment(tmp_path), "HOME": str(tmp_path)}
    environment.pop("XDG_CACHE_HOME", None)
    imports = f"import greenroom.actors.search.embedding.models.{module}"
    subprocess.run([sys.executable, "-c", imports], env=environment, check=True)
    assert list(tmp_path.rglob("*onnxruntime*")) == []
