"""Semble, a search of code that others made, in an environment of its own.

`python -m bench.peers DIR` installs it. It would download its vectors. Here it has those that Greenroom comes
with, so both have the same; all else is as it is by default. It runs without a network.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from bench.harness import check
from greenroom.actors.search.embedding.models.safetensors import read_tensors
from greenroom.actors.search.embedding.models.static import FOLDER, VOCABULARY, WEIGHTS

SEMBLE: Final = "semble"
PIN: Final = "0.7.0"
CHUNKS: Final = 50
"""Passages that are asked for, so that there are ten files among them mostly."""

Timed = Callable[[str], tuple[Sequence[str], float]]
"""Returns files, best first, and the milliseconds of processor time that it took."""

_MODEL = """
import sys
from pathlib import Path
import numpy as np
from model2vec import StaticModel
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
words = Path(sys.argv[1]).read_text("utf-8").removesuffix("\\n").split("\\n")
vocabulary = {word: number for number, word in enumerate(words)}
tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
tokenizer.normalizer = normalizers.BertNormalizer()
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
StaticModel(np.load(sys.argv[2]), tokenizer).save_pretrained(sys.argv[3])
"""
_SERVE = """
import json, sys, time
from semble import SembleIndex
index = SembleIndex.from_path(sys.argv[1], model_path=sys.argv[2])
for line in sys.stdin:
    began = time.process_time()
    found = index.search(json.loads(line), top_k=int(sys.argv[3]))
    taken = 1_000 * (time.process_time() - began)
    print(json.dumps([[each.chunk.file_path for each in found], taken]), flush=True)
"""


def install(folder: Path) -> None:
    """Install it from its registry, and give it its vectors."""
    home = folder / SEMBLE
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--only-binary=:all:"]
    subprocess.run([*pip, f"{SEMBLE}=={PIN}"], check=True)
    found = read_tensors(FOLDER / WEIGHTS)
    vectors = home / "vectors.npy"
    np.save(vectors, found["rows"].astype(np.float32) * found["scales"].astype(np.float32)[:, np.newaxis])
    arguments = [str(FOLDER / VOCABULARY), str(vectors), str(home / "model")]
    subprocess.run([str(home / "bin" / "python"), "-c", _MODEL, *arguments], check=True)


@contextmanager
def semble(peers: Path, files: Mapping[str, bytes], folder: Path) -> Iterator[Timed]:
    """Serve files from a process of its own.

    Args:
        peers: Where it is installed.
        files: What is searched.
        folder: Where they are put.
    """
    home = peers / SEMBLE
    tree = folder / "tree"
    for path, data in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(data)
    command = [str(home / "bin" / "python"), "-c", _SERVE, str(tree), str(home / "model"), str(CHUNKS)]
    environment = {"SEMBLE_CACHE_LOCATION": str(folder / "cache"), "HF_HUB_OFFLINE": "1", "HOME": str(folder)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def find(text: str) -> tuple[Sequence[str], float]:
            asked.write(msgspec.json.encode(text) + b"\n")
            asked.flush()
            line = answers.readline()
            check(line, f"{SEMBLE} ended when it was asked {text!r}")
            return msgspec.json.decode(line, type=tuple[list[str], float])

        yield find
        asked.close()
