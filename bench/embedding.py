"""What meaning costs: the time to load an embedder, its memory, texts a second, the time of a query.

Each is loaded in a process of its own, which has loaded all that a server has. MiniLM is measured where
its weights are installed (see `bench.minilm`).
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec

from bench import minilm
from bench.embedders import Embedded
from bench.harness import Figure, Plan, Report, Table, medians, take_turns

ROOT = Path(__file__).parents[1]


def run(plan: Plan) -> Report:
    """Measure the embedders that are at hand."""
    with plan.folder() as folder:
        counts = {"static": plan.size(20_000, 300)}
        names = {"static": "static"}
        source = minilm.installed()
        if source is not None and find_spec("onnxruntime") is not None:
            minilm.export(source, folder / "minilm")
            counts["MiniLM, int8"] = plan.size(500, 5)
            names["MiniLM, int8"] = f"onnx:{folder / 'minilm'}"
        contenders = {name: lambda name=name: _measured(names[name], counts[name]) for name in names}
        results = take_turns(contenders, plan.size(3, 1))
    rows: list[list[str | float | None]] = []
    found: dict[str, dict[str, float]] = {}
    for name, rounds in results.items():
        fields = {
            field: [value for each in rounds if (value := getattr(each, field)) is not None]
            for field in Embedded.__struct_fields__
        }
        found[name] = medians({field: values for field, values in fields.items() if values})
        rows.append([name, *(found[name].get(field) for field in Embedded.__struct_fields__)])
    columns = [
        "embedder",
        "load ms",
        "loaded MB",
        "after the texts MB",
        "texts /s",
        "one text µs",
        "query ms",
    ]
    static = found["static"]
    return Report(
        tables=[Table(title="embedders, RssAnon beside a server's own", columns=columns, rows=rows)],
        figures=[
            Figure(what="static: texts /s", value=static["rate"], least=2_000),
            Figure(what="static: load ms", value=static["load_ms"], most=1_000),
            Figure(what="static: MB after the texts", value=static["worked_mb"], most=60),
        ],
    )


def _measured(embedder: str, count: int) -> Embedded:
    command = [sys.executable, "-m", "bench.embedders", embedder, str(count)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    return msgspec.json.decode(printed, type=Embedded)
