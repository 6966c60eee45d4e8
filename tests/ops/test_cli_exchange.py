"""`greenroom import`, `export` and `evaluate`, alone on a folder and beside a server that owns it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness import PROGRAM, clean_environment
from support.commands import serving
from support.exchanges import line, text
from support.forking import forked_program

from greenroom.transports.ops.cli.support import terminal

if TYPE_CHECKING:
    from subprocess import CompletedProcess


def run(home: Path, *arguments: str | Path) -> CompletedProcess[str]:
    command = [
        *forked_program(),
        *map(str, arguments),
        "--data",
        str(home / "store"),
        "--agent",
        "planner",
        "--user",
        "ann",
    ]
    return subprocess.run(command, env=clean_environment(home), capture_output=True, text=True, check=False)


def written(path: Path, *lines: dict[str, Any] | str) -> Path:
    path.write_text(text(*lines))
    return path


@pytest.mark.promise("exchange.commands")
def test_import_and_export_on_a_stopped_store(tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", line("a"), line("b", namespace="project:atlas", tags=["t"]))
    tried = run(tmp_path, "import", source, "--dry-run")
    assert (tried.returncode, tried.stdout, tried.stderr) == (
        0,
        "2 created: that would come of 2 memories for 2 namespaces (jsonl)\n",
        f"greenroom import: there is no store at {tmp_path / 'store'}; this goes by an empty one\n",
    )
    assert not (tmp_path / "store").exists()
    assert (
        run(tmp_path, "import", source).stdout
        == "2 created: that came of 2 memories for 2 namespaces (jsonl)\n"
    )
    repeated = run(tmp_path, "import", source, "--json")
    assert (repeated.returncode, "nothing is new" in repeated.stderr) == (0, True)
    again = json.loads(repeated.stdout)
    assert (again["counts"], again["format"], again["dry_run"]) == ({"skipped": 2}, "jsonl", False)
    target = tmp_path / "out.jsonl"
    done = run(tmp_path, "export", target)
    digest = sha256(target.read_bytes()).hexdigest()
    assert done.stdout == f"2 memories are in {target}: {target.stat().st_size:,} bytes, SHA-256 {digest}\n"
    assert target.stat().st_mode & 0o777 == 0o600
    assert [json.loads(each)["key"] for each in target.read_text().splitlines()] == ["b", "a"]
    part = run(tmp_path, "export", "-", "--namespace", "project:atlas", "--format", "json")
    assert [each["key"] for each in json.loads(part.stdout)] == ["b"]
    assert "1 memory, " in part.stderr
    refused = run(tmp_path, "export", target)
    assert (refused.returncode, "exists already" in refused.stderr) == (73, True)
    left = {each.name for each in tmp_path.iterdir()} - {".config", "Library"}  # where secrets are
    assert left == {"in.jsonl", "out.jsonl", "store"}


@pytest.mark.promise("exchange.commands")
def test_bad_lines_are_named_and_nothing_is_imported(tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", line("a"), line("b", importance=7), "nonsense")
    done = run(tmp_path, "import", source)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"greenroom import: {source}, line 2: importance: it takes a number from 0 to 1 and got 7",
        f"greenroom import: {source}, line 3: this is not JSON: Expecting value at column 1",
        f"greenroom import: nothing was imported, since {source} has such lines",
    ]
    assert json.loads(run(tmp_path, "export", tmp_path / "out", "--json").stdout)["memories"] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["import", "/dev/null"], 1, "/dev/null is neither a file nor a folder"),
        (["import", "nowhere.jsonl"], 73, "nothing was imported: nowhere.jsonl cannot be read: No such file"),
        (["import", "x", "--format", "csv"], 2, "'csv', but auto, jsonl, mem0"),
        (
            ["import", "x", "--on-conflict", "merge"],
            2,
            "'merge', but skip, overwrite or version is allowed",
        ),
        (["import", __file__, "--namespace", "here"], 1, "--namespace: it takes 2 to 8 segments"),
        (["export", "/nowhere/file"], 73, "cannot be written: No such file"),
        (["export", "new", "--namespace", "or here"], 1, "--namespace: it takes 1 to 8 segments"),
        (["evaluate", "nowhere.jsonl"], 73, "nowhere.jsonl cannot be read"),
        (["evaluate", "/dev/null"], 1, "holds no queries"),
        (
            ["evaluate", "x", "--limit", "101"],
            2,
            "'101', but a whole number of memories from 1 to 100 is allowed",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    tmp_path: Path, arguments: list[str], code: int, sentence: str
) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.promise("exchange.commands", "exchange.lines")
def test_what_is_refused_is_printed_for_programs_too(tmp_path: Path) -> None:
    graph = tmp_path / "memory.jsonl"
    graph.write_text('{"type":"entity","name":"A","observations":["tea"]}\n{"type":"ent')
    own = written(tmp_path / "in.jsonl", line("a"), line("b", importance=7))
    for source, read_as, place, reason, more in (
        (graph, "server-memory", "line 2", "this is no JSON: ", ["--strict"]),
        (own, "jsonl", "line 2", "importance: it takes", ["--dry-run"]),
    ):
        done = run(tmp_path, "import", source, "--json", *more)
        said = json.loads(done.stdout)
        (refused,) = said.pop("refused")
        assert (done.returncode, said) == (
            1,
            {
                "lines": 0,
                "counts": {},
                "more": False,
                "format": read_as,
                "dry_run": "--dry-run" in more,
            },
        )
        assert (refused["place"], refused["reason"].startswith(reason)) == (place, True)
    done = run(tmp_path, "import", graph)
    assert done.stdout == "1 created: that came of 1 memory for user:ann (server-memory)\n"


@pytest.mark.quick
@pytest.mark.promise("exchange.commands")
@pytest.mark.parametrize(
    ("name", "text", "read_as"),
    [
        ("mem0.json", '{"results": []}', "mem0"),
        ("mem0.json", '{"results": [], "relations": []}', "mem0"),
        ("mem0.json", '{\n  "memories": [\n  ]\n}', "mem0"),
        ("memory.json", '{"entities": [], "relations": []}', "server-memory"),
        ("memory.json", '{\n "entities": [],\n "relations": []\n}', "server-memory"),
        ("memory.jsonl", '{"type": "_aim", "source": "x"}', "server-memory"),
        ("own.jsonl", "", "jsonl"),
        ("vault/picture.png", "", "markdown"),
    ],
)
def test_an_empty_file_of_each_format_holds_no_memories(
    tmp_path: Path, name: str, text: str, read_as: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    source = path.parent if "/" in name else path
    done = run(tmp_path, "import", source)
    sentence = f"greenroom import: nothing was imported: {source}, read as {read_as}, holds no memories; "
    assert (done.returncode, done.stdout, done.stderr.startswith(sentence)) == (1, "", True), done.stderr


@pytest.mark.promise("exchange.commands")
@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--json"], ["--format", "mem0"]])
def test_an_import_that_makes_nothing_fails_and_says_what_it_was_read_as(
    tmp_path: Path, more: list[str]
) -> None:
    source = tmp_path / "in.json"
    source.write_text("[]")
    done = run(tmp_path, "import", source, *more)
    read_as = "mem0" if "mem0" in more else "jsonl"
    assert done.returncode == 1
    sentence = (
        f"greenroom import: nothing was imported: {source}, read as {read_as}, holds no memories; --format"
    )
    assert sentence in done.stderr
    if "--json" not in more:
        assert done.stdout == ""


@pytest.mark.promise("exchange.commands")
def test_beside_a_server_they_attach_to_it(tmp_path: Path) -> None:
    lines = [line(f"k{n}", f"the {n}th lighthouse", namespace="project:atlas") for n in range(400)]
    source = written(tmp_path / "in.jsonl", *lines)
    with serving(tmp_path) as server:
        assert run(tmp_path, "import", source).stdout.startswith("400 created")
        found = server.call("memory_search", query="lighthouse", namespace="project:atlas", limit=100)
        assert found["total"] == 400
        done = json.loads(run(tmp_path, "export", tmp_path / "out.jsonl", "--json").stdout)
        assert done["memories"] == 400
        queries = written(tmp_path / "q.jsonl", {"query": "the 7th lighthouse", "relevant": ["k7"]})
        figures = json.loads(run(tmp_path, "evaluate", queries, "--json").stdout)
        assert figures["modes"]["semantic"]["all"]["MRR"] == 1.0


@pytest.mark.promise("exchange.commands")
def test_on_a_terminal_they_show_how_far_they_are(tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", *(line(f"k{n}") for n in range(300)))
    ours, theirs = pty.openpty()
    command = [*PROGRAM, "import", str(source), "--data", str(tmp_path / "store")]
    environment = clean_environment(tmp_path, TERM="xterm")
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # how Linux tells that the terminal is closed
                break
            if not piece:
                break
            shown += piece
        assert process.wait() == 0
    os.close(ours)
    for stage in (b"checking", b"staging", b"importing"):
        assert stage in shown


# -- evaluate -----------------------------------------------------------------------------


@pytest.mark.promise("exchange.evaluate")
def test_evaluate_prints_figures_by_mode_and_group(tmp_path: Path) -> None:
    texts = {
        "cat": "the cat sleeps on the sofa",
        "dog": "the dog runs in the park",
        "tea": "Ann drinks green tea",
    }
    run(tmp_path, "import", written(tmp_path / "in.jsonl", *(line(key, said) for key, said in texts.items())))
    queries: list[dict[str, Any]] = [
        {"query": "where does the cat sleep", "relevant": ["cat"], "group": "animals"},
        {"query": "who runs in the park", "relevant": ["dog", "no such key"], "group": "animals"},
        {"query": "green tea", "relevant": ["tea"], "namespace": "user:ann", "filters": {"kind": "semantic"}},
        {"query": "green tea", "relevant": ["tea"], "filters": {"after": "2100-01-01"}},
    ]
    path = written(tmp_path / "q.jsonl", *queries)
    done = run(tmp_path, "evaluate", path, "--limit", "10", "--embedder", "none")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "greenroom evaluate: 'no such key' was never found, and is the key of no memory that you may see",
        "greenroom evaluate: 4 queries, by words alone: the embedder is none",
    ]
    heads, *rows = done.stdout.split("\n\n")[0].splitlines()
    assert heads.split() == ["n", "R@1", "R@5", "R@10", "hit@10", "MRR", "nDCG@10", "p50", "ms", "p95", "ms"]
    assert [row.split()[0] for row in rows] == [
        "semantic",
        "animals",
        "hybrid",
        "animals",
        "exact",
        "animals",
    ]
    assert rows[0].split()[1:7] == ["4", "62.5", "62.5", "62.5", "75.0", "75.0"]
    alone = run(tmp_path, "evaluate", path, "--limit", "10", "--embedder", "none", "--mode", "hybrid")
    assert [row.split()[0] for row in alone.stdout.splitlines()[1:]] == ["hybrid", "animals"]
    assert rows[1].split()[1:4] == ["2", "75.0", "75.0"]
    assert rows[4].split()[1:4] == ["4", "25.0", "25.0"]  # an exact search finds the words as they stand


@pytest.mark.promise("exchange.evaluate")
@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("nonsense", "line 2: this is not JSON"),
        ({"query": "x"}, "line 2: relevant: it is required"),
        ({"query": "x", "relevant": "a"}, "line 2: relevant"),
        ({"query": " ", "relevant": ["a"]}, "line 2: query: it is blank"),
        ({"query": "x", "relevant": ["a"], "filters": {"colour": 1}}, "line 2: filters.colour: unknown"),
    ],
)
def test_a_bad_query_is_named(tmp_path: Path, query: Any, sentence: str) -> None:
    path = written(tmp_path / "q.jsonl", {"query": "x", "relevant": ["a"]}, query)
    done = run(tmp_path, "evaluate", path)
    assert (done.returncode, sentence in done.stderr) == (1, True), done.stderr


@pytest.mark.promise("exchange.evaluate")
def test_evaluate_tells_newer_from_older_nothing_from_something_and_what_a_score_is_worth(
    tmp_path: Path,
) -> None:
    lines = [
        line("quay", "the boat lies at the old quay", created_at="2026-01-05T10:00:00Z"),
        line("pier", "the boat lies at the new pier", created_at="2026-05-05T10:00:00Z"),
    ]
    run(tmp_path, "import", written(tmp_path / "in.jsonl", *lines))
    queries: list[dict[str, Any]] = [
        {"query": "the boat at the new pier", "relevant": ["pier"], "older": ["quay"], "group": "now"},
        {"query": "the boat at the old quay", "relevant": ["pier"], "older": ["quay"], "group": "now"},
        {"query": "xylophone", "relevant": [], "group": "nothing"},
    ]
    path = written(tmp_path / "q.jsonl", *queries)
    arguments = ("evaluate", path, "--embedder", "none", "--mode", "semantic")
    told = json.loads(run(tmp_path, *arguments, "--json").stdout)
    groups = told["modes"]["semantic"]
    assert (groups["now"]["newer"], groups["now"]["R@1"], "empty" in groups["now"]) == (0.5, 0.5, False)
    assert (groups["nothing"]["empty"], "R@1" in groups["nothing"]) == (1.0, False)
    assert (groups["all"]["newer"], groups["all"]["empty"], groups["all"]["n"]) == (0.5, 1.0, 3)
    assert sum(tenth["found"] for tenth in told["reliability"]) == 4
    assert sum(tenth["found"] * (tenth["right"] or 0) for tenth in told["reliability"]) == pytest.approx(2)
    shown = run(tmp_path, *arguments).stdout.splitlines()
    assert shown[0].split()[-6:] == ["newer", "empty", "p50", "ms", "p95", "ms"]
    nothing = next(row.split() for row in shown if row.startswith("  nothing"))
    assert (nothing[1:3], nothing[-3]) == (["1", "-"], "100.0")
    assert shown[-1].split()[:2] == ["expected", "error"]


@pytest.mark.promise("exchange.evaluate")
def test_a_template_has_memories_to_write_queries_for(tmp_path: Path) -> None:
    memories = [line(f"k{n}", f"lighthouse number {n}") for n in range(8)]
    run(tmp_path, "import", written(tmp_path / "in.jsonl", *memories, {"key": "deep", "value": {"depth": 3}}))
    path = tmp_path / "q.jsonl"
    begun = run(tmp_path, "evaluate", path, "--template", "100")
    assert begun.stdout.startswith(f"9 of 9 memories are in {path}"), begun.stderr
    lines = [json.loads(each) for each in path.read_text().splitlines()]
    assert {each["relevant"][0]: each["about"] for each in lines} == {
        **{f"k{n}": f"lighthouse number {n}" for n in range(8)},
        "deep": '{"depth": 3}',
    }
    assert run(tmp_path, "evaluate", path).returncode == 1  # nothing is filled in
    lines[0]["query"] = lines[0]["about"]
    written(path, *lines)
    done = run(tmp_path, "evaluate", path, "--embedder", "none", "--mode", "semantic", "--json")
    assert done.stderr == "greenroom evaluate: 8 lines without a query are left out\n"
    assert json.loads(done.stdout)["modes"]["semantic"]["all"]["R@1"] == 1.0
    again = run(tmp_path, "evaluate", path, "--template", "3")
    assert (again.returncode, "exists already" in again.stderr) == (73, True)
    run(tmp_path, "evaluate", tmp_path / "few.jsonl", "--template", "3")
    few = [json.loads(each)["relevant"][0] for each in (tmp_path / "few.jsonl").read_text().splitlines()]
    assert len(set(few)) == 3


@pytest.mark.parametrize(
    ("done", "total", "seconds", "shown"),
    [
        (0, 200, 0.0, "   staging " + "\u2500" * 40 + " 0/200 -:--"),
        (50, 200, 30.0, "   staging " + "\u2501" * 10 + "\u2500" * 30 + " 50/200 1:30"),
        (200, 200, 9.0, "   staging " + "\u2501" * 40 + " 200/200 0:00"),
        (1_200, 0, 9.0, "   staging 1,200"),
    ],
)
def test_how_far_a_step_is_and_how_long_it_still_takes(
    done: int, total: int, seconds: float, shown: str
) -> None:
    assert terminal.progress_line("staging", done, total, seconds) == shown


def test_where_nobody_watches_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.show_progress() as shows:
        shows("staging", 1, 2)
    assert capsys.readouterr().err == ""
