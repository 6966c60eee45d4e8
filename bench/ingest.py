"""`greenroom ingest`: folders of Markdown, again with nothing changed, and changes while it watches.

The documents are copies of this repository's own pages. Some have a sentence planted in them, which a search
over stdio must find. A change counts from the end of the write until the command says that the corpus has
it. Processor time is that of all its processes.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.client import ToolCall, serving
from bench.corpus import PLANTED
from bench.harness import Figure, Plan, Report, Table, check, percentile
from bench.servers import environment, greenroom

DOCS = Path(__file__).parent.parent / "docs"
CHANGES = 30
FLAGS = ("--embedder", "none", "--user", "bench")


def run(plan: Plan) -> Report:
    """Fill, fill again, watch, and report."""
    with plan.folder() as folder:
        docs, data = (folder / "docs").resolve(), folder / "data"
        count, size = _write(docs, copies=plan.size(30, 1))
        seconds, processor, done = _ingest(docs, data)
        check(done["added"] == count, f"{done['added']} of {count} documents were put in")
        again, again_processor, done = _ingest(docs, data)
        check(done["unchanged"] == count, f"{done['unchanged']} of {count} documents were the same")
        waits = _watch(docs, data, plan.size(CHANGES, 3))
        _search(docs, data)
    table = Table(
        title=f"greenroom ingest, {count:,} pages of Markdown, {size / 1e6:.1f} MB",
        columns=["run", "s", "MB/s", "processor s"],
        rows=[
            ["all new", seconds, size / 1e6 / seconds, processor],
            ["nothing changed", again, size / 1e6 / again, again_processor],
        ],
    )
    watched = Table(
        title="--watch: from a save until the corpus has it",
        columns=["changes", "50 % ms", "95 % ms"],
        rows=[[len(waits), statistics.median(waits), percentile(waits, 95)]],
    )
    return Report(
        tables=[table, watched],
        figures=[
            Figure(what="Markdown put in, MB/s", value=size / 1e6 / seconds, least=2),
            Figure(what="a changed file put in, 95 % ms", value=percentile(waits, 95), most=100),
        ],
    )


def _write(docs: Path, copies: int) -> tuple[int, int]:
    """Write the documents; return how many there are, and their bytes."""
    pages = [page.read_text() for page in sorted(DOCS.rglob("*.md"))]
    pages += [f"# Planted\n\n{planted.sentence}\n" for planted in PLANTED]
    for copy in range(copies):
        (docs / str(copy)).mkdir(parents=True)
        for number, page in enumerate(pages):
            (docs / str(copy) / f"{number}.md").write_text(page)
    size = sum(file.stat().st_size for file in docs.rglob("*.md"))
    return copies * len(pages), size


def _command(docs: Path, data: Path, *more: str) -> list[str]:
    program = [sys.executable, "-m", "greenroom.transports.cli", "ingest", str(docs), "--data", str(data)]
    return [*program, "--json", *FLAGS, *more]


def _ingest(docs: Path, data: Path) -> tuple[float, float, dict[str, Any]]:
    before, start = _processor(), time.perf_counter()
    done = subprocess.run(_command(docs, data), env=environment(), capture_output=True, check=False)
    seconds = time.perf_counter() - start
    check(done.returncode == 0, f"the command ended with {done.returncode}: {done.stderr[-500:]!r}")
    return seconds, _processor() - before, json.loads(done.stdout)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch(docs: Path, data: Path, changes: int) -> list[float]:
    """Change a file again and again; return after how many milliseconds the corpus had each change."""
    waits = []
    with subprocess.Popen(
        _command(docs, data, "--watch"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for number in range(changes):
            with (docs / "0/0.md").open("a") as page:
                page.write(f"\nchange {number}\n")
            saved = time.perf_counter()
            done = json.loads(process.stdout.readline())
            waits.append((time.perf_counter() - saved) * 1e3)
            check(done["changed"] == 1, f"a change was told as {done}")
        process.terminate()
    return waits


def _search(docs: Path, data: Path) -> None:
    """Check that what was planted is found."""
    with serving(greenroom(data, *FLAGS)) as client:
        for planted in PLANTED:
            told: Any = client.call(ToolCall("semantic_search", {"query": planted.sentence, "top_k": 1}))
            found = Path(told["results"][0]["source_file"])
            check(planted.sentence in found.read_text(), f"{planted.sentence!r} was looked for in {found}")
            check(found.is_relative_to(docs), f"{found} was found and is none of the documents")
