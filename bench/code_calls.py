"""The tools of code on 16,000 files, beside ripgrep and the SDK's echo: symbols, likes, outlines, patterns.

The folder is Python's library and copies of it with other names, see `source_trees`. A figure is processor
time of one call: of the server, and of all processes that it starts, until all are at rest. Ripgrep, where it
is installed, looks for the same text in the same folder.
"""

from __future__ import annotations

import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil  # type: ignore[import-untyped]  # it has no hints

from bench.client import Client, ToolCall, serving
from bench.harness import Figure, Plan, Report, Table, check, percentile
from bench.servers import ECHO
from bench.source_trees import SourceTree, copies, write_tree
from bench.workspace import Indexed, index_all, indexing, processor, served, stats

FILES: Final = 16_000
NAMES: Final = 100
PATTERNS: Final = 5
_ECHOES: Final = 500
_REST_SECONDS: Final = 0.03
_NAME: Final = re.compile(r"\b([A-Za-z_]\w{2,})\(")
"""A name that is defined or called: frequent ones are asked for more often."""
_SEED: Final = 45
_SHORT: Final = 1_000
_BELOW: Final = 40


class Spent(NamedTuple):
    """Milliseconds of one call: of the processor, and by the clock; and what was answered."""

    processor: float
    clock: float
    told: dict[str, Any]


class Row(NamedTuple):
    """A tool, what it is asked, and its rival.

    Attributes:
        judge: Checks an answer, given the number of the call.
        rival: The same question to ripgrep: its arguments; none where it has no such thing.
        most: The aim: milliseconds of processor time, of the call at `percent`.
        times: The aim for those, by ripgrep's.
        is_cut: Whether there are more matches than may be shown; None: it depends.
    """

    title: str
    calls: Sequence[ToolCall]
    judge: Callable[[int, dict[str, Any]], None]
    rival: Sequence[Sequence[str]] = ()
    most: float | None = None
    percent: float = 50
    times: float | None = None
    is_cut: bool | None = None


def run(plan: Plan) -> Report:
    """Index, then ask each tool."""
    with plan.folder() as folder:
        tree = write_tree(folder / "code", islice(copies(), plan.size(FILES, 200)), sys.maxsize)
        with served(folder) as client:
            indexed = index_all(client, folder, tree)
        return measure(plan, folder, tree, indexed)


def measure(plan: Plan, folder: Path, tree: SourceTree, indexed: Indexed | None) -> Report:
    """Ask each tool of a folder that is indexed."""
    lines: list[list[str | int | float | None]] = []
    figures: list[Figure] = []
    with serving(ECHO) as peer:
        echo = _echo(peer, plan.size(_ECHOES, 5))
    with served(folder) as client:
        for _ in indexing(client):
            time.sleep(_REST_SECONDS)
        start = _spend(client, ToolCall("list_corpora", {}))  # until all is read
        for row in _Rows(plan, folder / "code", tree).every():
            spent = [_spend(client, call) for call in row.calls]
            for number, each in enumerate(spent):
                is_right = row.is_cut in {None, each.told.get("partial", False)}
                check(is_right, f"{row.title}: {each.told.get('partial_reason')}")
                row.judge(number, each.told)
            rivals = [_ripgrep(folder / "code", each) for each in row.rival if shutil.which("rg")]
            used, clock = [each.processor for each in spent], [each.clock for each in spent]
            theirs = statistics.median(used for used, _ in rivals) if rivals else None
            half, most = percentile(used, 50), percentile(used, 95)
            lines.append(
                [
                    *(row.title, len(spent), half, most, percentile(clock, 50), percentile(clock, 95)),
                    *(theirs, None if theirs is None else half / theirs, half / echo),
                ]
            )
            value = most if row.percent == 95 else half
            if row.most is not None:
                figures.append(Figure(what=f"{row.title}, ms", value=value, most=row.most))
            if row.times is not None and theirs is not None:
                slower = statistics.median(clock) / statistics.median(wait for _, wait in rivals)
                figures.append(
                    Figure(
                        what=f"{row.title}, by ripgrep's processor time", value=half / theirs, most=row.times
                    )
                )
                figures.append(
                    Figure(what=f"{row.title}, by ripgrep's clock", value=slower, most=row.times / 2)
                )
        hold = stats(folder)["dispatcher"]["longest_slice_ms"]
    figures.append(Figure(what="longest hold of the event loop, ms", value=hold, most=5))
    if indexed is not None:
        figures.append(Figure(what="files/s searchable by words", value=indexed.by_processor, least=180))
    title = f"Tools of code, {tree.files:,} files; read in {start.processor:,.0f} ms; echo {echo:.2g} ms"
    columns = ["call", "calls", "50 % ms", "95 % ms", "clock, 50 %", "95 %", "ripgrep ms", "times", "echoes"]
    return Report(tables=[Table(title=title, columns=columns, rows=lines)], figures=figures)


class _Rows:
    """What each tool is asked, and how it is judged."""

    def __init__(self, plan: Plan, root: Path, tree: SourceTree) -> None:
        chance = random.Random(_SEED)
        self._root = root
        self._tree = tree
        self._texts: dict[str, str] = {}
        self._paths = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
        self._names = [
            chance.choice(_NAME.findall(self._text_of(path)) or ["print"])
            for path in chance.choices(self._paths, k=plan.size(NAMES, 5))
        ]
        self._names += [each.symbol for each in tree.planted[: plan.size(20, 2)]]
        self._some = chance.sample(self._paths, plan.size(30, 3))
        self._folders = [path.rpartition("/")[0] for path in self._some if "/" in path]
        self._planted = chance.sample(tree.planted, plan.size(PATTERNS, 2))

    def every(self) -> list[Row]:
        """Return the rows."""
        planted = self._planted
        return [
            Row(
                "symbol_search",
                [ToolCall("symbol_search", {"symbol": name}) for name in self._names],
                self._judge_uses,
                [["-w", "-e", name] for name in self._names[:PATTERNS]],
                most=30,
                percent=95,
            ),
            Row(
                "similar_files",
                [ToolCall("similar_files", {"path": path}) for path in self._some],
                self._judge_likes,
                most=40,
            ),
            Row(
                "outline of a folder",
                [ToolCall("outline", {"path": folder}) for folder in self._folders],
                self._judge_outline,
                [["-e", r"^\s*(def|class)\b", folder] for folder in self._folders[:PATTERNS]],
                most=20,
            ),
            Row(
                "code_search string *x*",
                [ToolCall("code_search", {"pattern": "string *x*"})] * len(planted),
                self._judge_texts,
                most=100,
                is_cut=True,
            ),
            Row(
                "code_search string, in one file",
                [ToolCall("code_search", {"pattern": f"string *{each.question[-14:]}*"}) for each in planted],
                self._judge_planted,
                [["-F", "-e", each.question[-14:]] for each in planted],
                is_cut=False,
            ),
            Row(
                "code_search regex, in one file",
                [ToolCall("code_search", {"pattern": f"regex ^def {each.symbol}\\b"}) for each in planted],
                self._judge_planted,
                [["-e", f"^def {each.symbol}\\b"] for each in planted],
                times=6,
                is_cut=False,
            ),
        ]

    def _judge_uses(self, number: int, told: dict[str, Any]) -> None:
        name = self._names[number]
        for each in told["references"] if told["matched"] == "name" else ():
            line = self._line_of(each["file_path"], each["line"])
            check(name in line or each["scope"] == "exact", f"{name} is not used in {each}, but {line!r}")
        for planted in self._tree.planted:
            if planted.symbol == name:
                where = [found["file_path"] for found in told["definitions"]]
                check(where == [planted.path], f"{name} is in {planted.path}, and was found in {where}")

    def _judge_likes(self, number: int, told: dict[str, Any]) -> None:
        path = self._some[number]
        found = [each["file_path"] for each in told["results"]]
        check(path not in found, f"{path} is like itself")
        check(found or len(self._text_of(path)) < _SHORT, f"nothing is like {path}")

    def _judge_outline(self, number: int, told: dict[str, Any]) -> None:
        folder = self._folders[number]
        inside = [path for path in self._paths if path.startswith(f"{folder}/")]
        known = [path for path in inside if f"\n{path}" in f"\n{told['outline']}"]
        check(known, f"no file of {folder} is in its outline")

    def _judge_texts(self, _: int, told: dict[str, Any]) -> None:
        for each in told["matches"]:
            check("x" in each["text"] or each["lines"][0] < each["lines"][-1], f"there is no x in {each}")

    def _judge_planted(self, number: int, told: dict[str, Any]) -> None:
        found = [each["file_path"] for each in told["matches"]]
        right = self._planted[number].path
        check(right in found and len(set(found)) <= PATTERNS, f"{right} was found in {found}")
        looked = told["files_searched"]
        check(looked >= 0.95 * self._tree.files, f"{looked} files were looked through")

    def _text_of(self, path: str) -> str:
        if path not in self._texts:
            self._texts[path] = (self._root / path).read_text("utf-8", "replace")
        return self._texts[path]

    def _line_of(self, path: str, line: int) -> str:
        """Return a line and some below it: the names of an import may stand there."""
        return "\n".join(self._text_of(path).split("\n")[line - 1 : line + _BELOW])


def _echo(client: Client, count: int) -> float:
    """Return the milliseconds of the SDK's server for one call."""
    call = ToolCall("echo", {"text": "hello"}, {"text": "hello"})
    client.call(call)
    began = processor(client)
    for _ in range(count):
        client.call(call)
    return 1_000 * (processor(client) - began) / count


def _spend(client: Client, call: ToolCall) -> Spent:
    """Call, and wait until the server and its children are at rest."""
    before, began = _all(client), time.perf_counter()
    told = client.call(call)
    clock = time.perf_counter() - began
    used = _all(client)
    while True:
        time.sleep(_REST_SECONDS)
        now = _all(client)
        if now - used < 0.001:
            return Spent(1_000 * (used - before), 1_000 * clock, told)
        used = now


def _all(client: Client) -> float:
    """Return the processor time of the server and of all its children, ended ones included."""
    server = psutil.Process(client.pid)
    ended = server.cpu_times()
    used = processor(client) + ended.children_user + ended.children_system
    for child in server.children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:  # it ended just now, and was not waited for
            continue
        used += times.user + times.system
    return float(used)


def _ripgrep(root: Path, arguments: Sequence[str]) -> tuple[float, float]:
    """Return the milliseconds that ripgrep takes, of the processor and by the clock."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    folder = [] if (root / arguments[-1]).is_dir() else ["."]
    subprocess.run(["rg", "-n", *arguments, *folder], cwd=root, stdout=subprocess.DEVNULL, check=True)
    clock = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1_000 * used, 1_000 * clock
