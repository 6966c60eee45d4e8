"""A model small enough to be made by each test: a BERT with random weights, exported as a real one is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bench import minilm

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


def _weights() -> dict[str, Any]:
    random = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(SPECIAL) + len(WORDS), HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "embeddings.position_embeddings.weight": (32, HIDDEN),
        **_norm("embeddings.LayerNorm"),
    }
    for layer in range(2):
        name = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= _dense(f"{name}.attention.{part}", HIDDEN, HIDDEN)
        shapes |= _norm(f"{name}.attention.output.LayerNorm") | _norm(f"{name}.output.LayerNorm")
        shapes |= _dense(f"{name}.intermediate.dense", 32, HIDDEN) | _dense(
            f"{name}.output.dense", HIDDEN, 32
        )
    return {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def _dense(name: str, out: int, into: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def _norm(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (HIDDEN,), f"{name}.bias": (HIDDEN,)}


def _write_tensors(path: Path, weights: dict[str, Any]) -> None:
    header, start = {}, 0
    for name, value in weights.items():
        offsets = [start, start + value.nbytes]
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": offsets}
        start += value.nbytes
    head = json.dumps(header).encode()
    numbers = b"".join(each.tobytes() for each in weights.values())
    path.write_bytes(len(head).to_bytes(8, "little") + head + numbers)
