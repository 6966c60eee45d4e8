"""What meaning costs: the time to load an embedder, its memory, texts a second, the time of a query.

Each is loaded in a process of its own, which has loaded all that a server has. MiniLM is measured where
the package with its weights is installed (see `bench.minilm`), and in a store that has other vectors before.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import msgspec

from bench import minilm
from bench.embedders import Embedded
from bench.harness import Figure, Plan, Report, Table, medians, take_turns
from greenroom.actors.search.embedding.models.minilm_install import install_unpacked, installing

ROOT = Path(__file__).parents[1]


def run(plan: Plan) -> Report:
    """Measure the embedders that are at hand."""
    with plan.folder() as folder:
        contenders = {"static": partial(_measured, "static", plan.size(20_000, 300))}
        if (source := minilm.installed()) is not None:
            with installing(folder) as unfinished:
                install_unpacked(source.parent.parent, unfinished, folder)
            for engine in ("numpy", *(["onnxruntime"] if find_spec("onnxruntime") else [])):
                contenders[f"MiniLM, {engine}"] = partial(_measured, engine, plan.size(3_000, 20), folder)
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
        "changed s",
        "search ms",
        "meanwhile ms",
    ]
    static = found["static"]
    return Report(
        tables=[Table(title="embedders, RssAnon beside a server's own", columns=columns, rows=rows)],
        figures=[
            Figure(what="static: texts /s", value=static["rate"], least=5_000),
            Figure(what="static: load ms", value=static["load_ms"], most=300),
            Figure(what="static: MB after the texts", value=static["worked_mb"], most=40),
            *(each for name in found if name != "static" for each in _sentences(name, found[name])),
        ],
    )


def _sentences(name: str, figures: dict[str, float]) -> list[Figure]:
    return [
        Figure(what=f"{name}: 3,000 memories get its vectors, s", value=figures["change_s"], most=30),
        Figure(what=f"{name}: query ms", value=figures["query_ms"], most=6),
        Figure(what=f"{name}: MB after the texts", value=figures["worked_mb"], most=250),
    ]


def _measured(embedder: str, count: int, models: Path | None = None) -> Embedded:
    command = [sys.executable, "-m", "bench.embedders", embedder, str(count)]
    if models is not None:
        command.append(str(models))
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    return msgspec.json.decode(printed, type=Embedded)
