"""A server that is told which embedder to use."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from harness import PROGRAM, clean_environment


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
        "from greenroom.transports.cli.main import main\n"
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
