"""The program `python -m bench`: run benchmarks, print their tables, write JSON.

`python -m bench load` is another: it makes a load on any MCP server (see its own ``--help``).

The exit code is 1 when an answer was wrong, and 3 when something that it needs is not installed: then it says
what installs it. A figure that is not reached is printed and written down, and fails nothing: times depend on
the machine.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from bench.comparison import OldRun, compared, read_run
from bench.harness import Figure, Plan, Report, WrongAnswerError, as_markdown, as_text, shown
from bench.requirements import explained, is_missing, lacks_weights

NAMES = (
    "ask",
    "durable",
    "writes",
    "search",
    "memory",
    "start",
    "mcp",
    "ws",
    "http",
    "crowd",
    "console",
    "subscriptions",
    "residency",
    "relay",
    "chaos",
    "kills",
    "crash_images",
    "damage",
    "salvage",
    "finding",
    "ingest",
    "heavy",
    "roots",
    "embedding",
    "retrieval",
    "present_state",
    "negation",
    "documents",
    "code",
    "compress",
    "similar",
    "workspace",
    "code_calls",
    "knowledge",
    "index",
    "memory_map",
    "memory_pages",
    "corpus_pages",
    "encryption",
    "admission",
    "doors",
    "audit",
    "passport",
    "tool_choice",
    "handover",
    "entities",
    "workflows",
    "hooks",
    "hook_context",
    "recalled",
    "secrets",
    "extraction",
    "briefing",
    "structure",
)
UNKNOWN: Final = 2
NOT_INSTALLED: Final = 3
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run what the command line names and return the exit code."""
    if sys.argv[1:2] == ["load"]:
        from bench.load.command import main as load  # noqa: PLC0415 - it alone needs the package of histograms

        return load(sys.argv[2:])
    chosen = _parser().parse_args()
    names = tuple(chosen.names or NAMES)
    if unknown := [name for name in names if name not in NAMES]:
        print(f"bench: there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}", file=sys.stderr)
        return UNKNOWN
    if (said := _lacking(names)) is not None:
        print(f"bench: {said}", file=sys.stderr)
        return NOT_INSTALLED
    if (said := lacks_weights(frozenset(names))) is not None:
        print(f"bench: {said}", file=sys.stderr)
    old: OldRun | None = chosen.compare
    reports: dict[str, Report] = {}
    wrong, lacks = "", False
    with tempfile.TemporaryDirectory(prefix="greenroom-bench-", dir=chosen.work) as work:
        plan = Plan(
            smoke=chosen.smoke,
            data=chosen.data,
            peers=chosen.peers,
            mirrors=chosen.mirrors,
            work=Path(work),
            seconds=chosen.seconds,
            kills=chosen.kills,
            memories=chosen.memories,
            files=chosen.files,
            sectors=chosen.sectors,
        )
        for name in names:
            try:
                report: Report = importlib.import_module(f"bench.{name}").run(plan)
            except WrongAnswerError as error:
                wrong = f"{name}: WRONG ANSWER: {error}"
                print(wrong, file=sys.stderr)
                break
            except ModuleNotFoundError as error:  # it imports some things only when it comes to them
                if not is_missing(error):
                    raise
                print(f"bench: {explained({name: error})}", file=sys.stderr)
                lacks = True
                continue
            reports[name] = report
            _print(name, report, markdown=chosen.markdown, figures=not chosen.smoke)
            if old is not None:
                _print_tables(compared(old, name, report), markdown=chosen.markdown)
    _write(chosen.json or _default_file(smoke=chosen.smoke), reports, smoke=chosen.smoke, wrong=wrong)
    return 1 if wrong else NOT_INSTALLED if lacks else 0


def _lacking(names: Iterable[str]) -> str | None:
    """Return what some benchmarks need that is not installed; None where they can run."""
    missing: dict[str, ModuleNotFoundError] = {}
    for name in names:
        try:
            importlib.import_module(f"bench.{name}")
        except ModuleNotFoundError as error:
            if not is_missing(error):
                raise
            missing[name] = error
    return explained(missing) if missing else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, allow_abbrev=False)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; else all")
    parser.add_argument("--smoke", action="store_true", help="a short run that checks answers, not times")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the results")
    parser.add_argument("--data", type=Path, metavar="DIR", help="conversations to load and search as well")
    parser.add_argument(
        "--peers", type=Path, metavar="DIR", help="servers that `python -m bench.peers` put there"
    )
    parser.add_argument("--mirrors", type=Path, metavar="DIR", help="bare repositories, for `code`")
    parser.add_argument(
        "--work",
        type=_folder,
        metavar="DIR",
        help="where to make the stores, so which disk; made when missing",
    )
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="of `crowd` (%(default)g)")
    parser.add_argument(
        "--kills", type=int, default=100, metavar="N", help="of `chaos` and `kills` (%(default)d)"
    )
    parser.add_argument("--memories", type=int, default=30_000, metavar="N", help="of `writes` (%(default)d)")
    parser.add_argument("--files", type=int, default=3_000, metavar="N", help="of `writes` (%(default)d)")
    parser.add_argument("--sectors", action="store_true", help="`writes` counts the sectors of a quiet disk")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument(
        "--compare", type=_old_run, metavar="OLD.json", help="print also the ratios to an older run's results"
    )
    return parser


def _folder(path: str) -> Path:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path} is no folder and none is made: {error.strerror}") from error
    return Path(path)


def _old_run(path: str) -> OldRun:
    try:
        return read_run(Path(path))
    except (OSError, msgspec.DecodeError) as error:
        raise argparse.ArgumentTypeError(f"{path} holds no results of a run: {error}") from error


def _print(name: str, report: Report, *, markdown: bool, figures: bool) -> None:
    print(f"\n## {name}\n" if markdown else f"\n== {name} ==\n")
    _print_tables(report, markdown=markdown)
    for figure in report.figures if figures else ():
        print(f"{'- ' if markdown else ''}{_sentence(figure)}")
    sys.stdout.flush()


def _print_tables(report: Report, *, markdown: bool) -> None:
    for table in report.tables:
        print((as_markdown if markdown else as_text)(table), end="\n\n")


def _sentence(figure: Figure) -> str:
    bounds = [f"at least {shown(figure.least)}"] if figure.least is not None else []
    bounds += [f"at most {shown(figure.most)}"] if figure.most is not None else []
    verdict = "met" if figure.met else "NOT MET"
    return f"{verdict}: {figure.what}: {shown(figure.value)} ({', '.join(bounds)})"


def _default_file(*, smoke: bool) -> Path:
    when = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return RESULTS / f"{when}{'-smoke' if smoke else ''}.json"


def _write(path: Path, reports: dict[str, Report], *, smoke: bool, wrong: str) -> None:
    """Write the results. The machine is named by what matters for the numbers only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "measured": datetime.now(UTC),
        "machine": {
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            "system": platform.system(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
        },
        "smoke": smoke,
        "wrong_answer": wrong or None,
        "benchmarks": {
            name: {
                "tables": report.tables,
                "figures": [{**msgspec.to_builtins(figure), "met": figure.met} for figure in report.figures],
            }
            for name, report in reports.items()
        },
    }
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    print(f"\nwritten to {path}")
