"""Read the files of a sentence-transformers export to ONNX: tokenizer, graph, pooling, prompts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from greenroom.actors.search.embedding.errors import EmbedderError, ModelMissingError

Pooling = Literal["mean", "cls", "lasttoken"]

_GRAPHS: Final = ("model.onnx", "onnx/model.onnx")
_TOKENIZER: Final = "tokenizer.json"
_MODULES: Final = "modules.json"
_LONGEST: Final = 512  # tokens, if no file states the limit
_POOLING_KEYS: Final[dict[str, Pooling]] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "lasttoken",
}
_PROMPTS: Final = {"query": ("query",), "document": ("document", "passage", "corpus")}


@dataclass(frozen=True, kw_only=True)
class OnnxExport:
    """An exported model: its files, and its settings for tokens, pooling and prompts."""

    graph: Path
    tokenizer: Path
    pooling: Pooling
    longest: int
    query_prompt: str
    document_prompt: str

    def digest(self) -> str:
        """Return a digest of the files' contents."""
        digest = hashlib.blake2b(digest_size=8)
        for each in (self.graph, *sorted(self.graph.parent.glob(self.graph.name + "_data")), self.tokenizer):
            with each.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        digest.update(repr((self.pooling, self.longest, self.query_prompt, self.document_prompt)).encode())
        return digest.hexdigest()


def read_export(place: Path) -> OnnxExport:
    """Read the export in a folder, or read one of several ONNX files in it."""
    graph = _graph(place)
    folder = graph.parent.parent if graph.parent.name == "onnx" else graph.parent
    if not (folder / _TOKENIZER).is_file():
        raise EmbedderError(
            f"{folder} has no {_TOKENIZER}; an export of a sentence-transformers model to ONNX brings it"
        )
    pooling_folder = _pooling_folder(folder)
    prompts = _object(folder / "config_sentence_transformers.json").get("prompts") or {}
    return OnnxExport(
        graph=graph,
        tokenizer=folder / _TOKENIZER,
        pooling=_pooling(_object(folder / pooling_folder / "config.json"), folder),
        longest=_longest(folder),
        query_prompt=_prompt(prompts, "query"),
        document_prompt=_prompt(prompts, "document"),
    )


def _graph(place: Path) -> Path:
    if place.suffix == ".onnx":
        if place.is_file():
            return place
        raise ModelMissingError(f"the model {place} does not exist")
    if not place.is_dir():
        raise ModelMissingError(f"the folder {place}, where the model is to be, does not exist")
    for each in _GRAPHS:
        if (place / each).is_file():
            return place / each
    found = sorted([*place.glob("*.onnx"), *place.glob("onnx/*.onnx")])
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(str(each.relative_to(place)) for each in found)
        raise EmbedderError(f"{place} has several models ({names}); name one, as onnx:{found[0]}")
    raise EmbedderError(f"{place} has no model.onnx; export the model to ONNX")


def _pooling_folder(folder: Path) -> str:
    """Return the folder of the pooling settings; reject models with parts outside the graph."""
    modules = _read(folder / _MODULES)
    pooling = "1_Pooling"
    for each in modules if isinstance(modules, list) else []:
        kind = str(each.get("type", "")).rpartition(".")[2]
        if kind == "Pooling":
            pooling = str(each.get("path", pooling))
        elif kind not in {"Transformer", "Normalize"}:
            raise EmbedderError(f"{folder / _MODULES} names a part {kind!r}, which is not known here")
    return pooling


def _pooling(config: dict[str, Any], folder: Path) -> Pooling:
    named = config.get("pooling_mode")  # newer files have this key
    chosen = [named] if named else [key for key in config if key.startswith("pooling_mode_") and config[key]]
    if not chosen:
        return "mean"
    for each in chosen:
        known = _POOLING_KEYS.get(each) or next((way for way in _POOLING_KEYS.values() if way == each), None)
        if known is not None and len(chosen) == 1:
            return known
    ways = ", ".join(map(str, chosen))
    raise EmbedderError(f"{folder} says to pool by {ways}; mean, cls and lasttoken are known")


def _longest(folder: Path) -> int:
    most = _object(folder / "sentence_bert_config.json").get("max_seq_length")
    most = most or _object(folder / "config.json").get("max_position_embeddings")
    return min(int(most), _LONGEST) if isinstance(most, int) and most > 0 else _LONGEST


def _prompt(prompts: object, use: str) -> str:
    if not isinstance(prompts, dict):
        return ""
    return next((str(prompts[name]) for name in _PROMPTS[use] if prompts.get(name)), "")


def _object(path: Path) -> dict[str, Any]:
    found = _read(path)
    return found if isinstance(found, dict) else {}


def _read(path: Path) -> object:
    """Return a JSON file's value; None if there is no such file."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise EmbedderError(f"{path} cannot be read: {error}") from error
