"""A sentence-transformers model, exported to ONNX and run by onnxruntime on the CPU.

It makes a vector of each text and a vector of each token. Both are compared with a query: the vectors of
tokens find details that the single vector of a sentence blurs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import tokenizers

from greenroom.actors.search.embedding import quantization
from greenroom.actors.search.embedding.embedder import LocalEmbedder, embedded_part, words_of, words_of_tokens
from greenroom.actors.search.embedding.errors import EmbedderError
from greenroom.actors.search.embedding.models.onnx_export import OnnxExport, Pooling
from greenroom.actors.search.embedding.models.onnx_runtime import onnxruntime
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

_TOKEN_OUTPUTS: Final = ("last_hidden_state", "token_embeddings")
_SENTENCE_OUTPUT: Final = "sentence_embedding"
_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})
_FATAL: Final = 4
_BY_TOKENS: Final = 3  # axes of an output with a vector for each token


class _Run(NamedTuple):
    """The vectors of a text and its tokens; the tokens' places in prompt and text."""

    sentence: quantization.Floats
    tokens: quantization.Floats
    offsets: list[tuple[int, int]]


class OnnxEmbedder(LocalEmbedder):
    """A model in a folder; see `LocalEmbedder`. Between steps it calls ``check``, which may raise."""

    batch = 16
    group = 1

    def __init__(self, export: OnnxExport, check: Callable[[], object]) -> None:
        self._export = export
        self._tokenizer = _tokenizer(export)
        check()
        self._session = _session(export)
        check()
        self._inputs = {each.name for each in self._session.get_inputs()}
        if unknown := self._inputs - _INPUTS:
            raise EmbedderError(f"the model {export.graph} wants {', '.join(sorted(unknown))}, unknown here")
        outputs = {each.name: len(each.shape) for each in self._session.get_outputs()}
        self._tokens_output = _first(outputs, _TOKEN_OUTPUTS, _BY_TOKENS)
        self._sentence_output = _SENTENCE_OUTPUT if _SENTENCE_OUTPUT in outputs else None
        if self._tokens_output is None and self._sentence_output is None:
            raise EmbedderError(
                f"the model {export.graph} gives {', '.join(outputs)}, and neither {_TOKEN_OUTPUTS[0]} nor "
                f"{_SENTENCE_OUTPUT}"
            )
        self.has_tokens = self._tokens_output is not None
        self.dimensions = len(self._run(["probe"])[0].sentence)
        check()
        self.space = f"onnx:{export.digest()}:{self.dimensions}"

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of stored texts."""
        prompt = self._export.document_prompt
        some = [prompt + embedded_part(text) for text in texts]
        return [
            quantization.quantize(run.sentence, run.tokens if self.has_tokens else None)
            for run in self._run(some)
        ]

    def query(self, text: str) -> QueryVectors:
        """Return the vectors of a query, and of each token with its word."""
        text = embedded_part(text)
        prompt = self._export.query_prompt
        (run,) = self._run([prompt + text])
        found = quantization.normalize(run.tokens)
        words, chosen = words_of_tokens(words_of(text), run.offsets, len(prompt))
        return QueryVectors(
            space=self.space,
            words=words,
            rows=found[chosen].tobytes() if chosen else b"",
            sentence=quantization.normalize(run.sentence).tobytes(),
        )

    def _run(self, texts: list[str]) -> list[_Run]:
        """Run the model on each text separately.

        A batch would not be faster on a CPU, because padding is calculated, too, and it would take more
        memory. Besides, int8 activations are scaled for a whole batch, so a text's vector would depend on the
        other texts.
        """
        return [self._one(encoding) for encoding in self._tokenizer.encode_batch(texts)]

    def _one(self, encoding: Any) -> _Run:
        size = len(encoding.ids)
        if not size:
            return _Run(np.zeros(self.dimensions, np.float32), np.zeros((0, self.dimensions), np.float32), [])
        feeds = {
            "input_ids": np.array([encoding.ids], np.int64),
            "attention_mask": np.ones((1, size), np.int64),
            "token_type_ids": np.array([encoding.type_ids], np.int64),
            "position_ids": np.arange(size, dtype=np.int64)[np.newaxis],
        }
        wanted = [name for name in (self._tokens_output, self._sentence_output) if name is not None]
        try:
            results = self._session.run(wanted, {name: feeds[name] for name in self._inputs})
        except Exception as error:  # the library's own classes have no common base
            raise EmbedderError(f"the model {self._export.graph} failed: {error}") from error
        made = {name: np.asarray(found[0], np.float32) for name, found in zip(wanted, results, strict=True)}
        if self._tokens_output is None:
            (sentence,) = made.values()
            return _Run(sentence, np.zeros((0, len(sentence)), np.float32), [])
        hidden = made[self._tokens_output]
        if self._sentence_output is None:
            sentence = _pooled(hidden, self._export.pooling)
        else:
            sentence = made[self._sentence_output]
        plain = [index for index, special in enumerate(encoding.special_tokens_mask) if not special]
        return _Run(sentence, hidden[plain], [encoding.offsets[index] for index in plain])


def _tokenizer(export: OnnxExport) -> tokenizers.Tokenizer:
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(export.tokenizer))
    except Exception as error:  # the library raises plain Exception
        raise EmbedderError(f"{export.tokenizer} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(export.longest)
    return tokenizer


def _session(export: OnnxExport) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    # Leave cores for the event loop and the writer, and do not spin while waiting.
    options.intra_op_num_threads = max(1, (os.cpu_count() or 1) // 2)
    options.enable_mem_pattern = False  # it would keep memory for each length of a text
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = _FATAL  # it writes errors to standard error, and raises them as well
    try:
        return onnxruntime.InferenceSession(str(export.graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's own classes have no common base
        raise EmbedderError(f"the model {export.graph} cannot be loaded: {error}") from error


def _first(outputs: dict[str, int], names: tuple[str, ...], axes: int) -> str | None:
    """Return the output that has one of the names, or else this number of axes."""
    named = [name for name in names if name in outputs]
    return next(iter([*named, *(name for name, found in outputs.items() if found == axes)]), None)


def _pooled(hidden: quantization.Floats, pooling: Pooling) -> quantization.Floats:
    if not len(hidden):
        return np.zeros(hidden.shape[1], np.float32)
    pooled: quantization.Floats
    match pooling:
        case "mean":
            pooled = hidden.mean(axis=0, dtype=np.float32)
        case "cls":
            pooled = hidden[0]
        case "lasttoken":
            pooled = hidden[-1]
    return pooled
