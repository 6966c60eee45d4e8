"""Ingesting while things go wrong: a process that is killed, files that grow, files that take too much."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import trio
import trio.testing
from harness import PROGRAM, clean_environment
from support.commands import run_on_store

from greenroom.actors import Principal, open_greenroom
from greenroom.actors.content.documents import digest_of
from greenroom.actors.knowledge.corpora.requests.corpus_requests import MAX_PUTS, ListDocuments
from greenroom.actors.knowledge.corpora.requests.ingestion import DocumentsIngested
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job
from greenroom.actors.knowledge.ingest.parsing.parsers import MOST_AT_ONCE, open_parsers
from greenroom.actors.knowledge.ingest.run import Progress, open_ingestion

pytestmark = pytest.mark.usefixtures("real_parsers")

ANN = Principal(agent_id="planner", user="ann")
FILES = 200
WHO = ["--user", "ann", "--embedder", "none", "--json"]

# Ends itself without a word when so many files were put in.
KILLED_AFTER = """
import os, signal, sys
from greenroom.actors.knowledge.ingest.run_state import Report
from greenroom.transports.ops.cli.main import main

left, stored = [int(sys.argv[1])], Report.count_stored

def die(self, *args):
    stored(self, *args)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)

Report.count_stored = die
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.quick
@pytest.mark.promise("documents.resumed")
def test_an_ingest_that_is_killed_goes_on_with_what_is_left(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(FILES):
        (docs / f"{number}.md").write_text(f"# Number {number}\n\ntext\n")
    command = ["ingest", str(docs), "--data", str(tmp_path / "store"), *WHO]
    for after in (1, 5, 11):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED_AFTER, str(after), *command],
            env=clean_environment(tmp_path),
            capture_output=True,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
    ended = subprocess.run(
        [*PROGRAM, *command], env=clean_environment(tmp_path), capture_output=True, check=True
    )
    done = json.loads(ended.stdout)
    # The rest of each batch, and the next one, may be there, too, when it was killed.
    assert FILES - 17 - 3 * 2 * MAX_PUTS <= done["added"] < FILES
    assert (done["added"] + done["unchanged"], done["complete"]) == (FILES, True)


# Runs the program where no file can have more bytes than this, as on a disk that is full.
ON_A_SMALL_DISK = """
import resource, sys
from greenroom.transports.ops.cli.main import main

resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.promise("documents.resumed")
def test_on_a_full_disk_an_ingest_says_so_and_what_it_put_in_is_whole(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(40):
        words = " ".join(sha256(b"%d %d" % (number, word)).hexdigest() for word in range(1_500))
        (docs / f"{number}.md").write_text(f"# Number {number}\n\n{words}\n")
    command = ["ingest", str(docs), "--data", str(tmp_path / "store"), *WHO]
    full = subprocess.run(
        [sys.executable, "-c", ON_A_SMALL_DISK, *command],
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    # Of a write that the disk cut short LMDB only says that it failed.
    assert (full.returncode, full.stdout) in {(73, ""), (74, "")}
    assert full.stderr.startswith("greenroom ingest: the store ")
    assert ("room" if full.returncode == 73 else "Check the disk") in full.stderr
    assert full.stderr.count("\n") == 1
    assert run_on_store(tmp_path, "verify").returncode == 0
    done = json.loads(run_on_store(tmp_path, *command[:2], *WHO).stdout)
    assert 0 < done["unchanged"] < 40
    assert (done["added"] + done["unchanged"], done["changed"], done["complete"]) == (40, 0, True)


@pytest.mark.promise("documents.only-what-changed")
def test_two_processes_that_ingest_the_same_folder_put_each_file_in_once(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(FILES):
        (docs / f"{number}.md").write_text(f"# Number {number}\n\ntext\n")
    command = [*PROGRAM, "ingest", str(docs), "--data", str(tmp_path / "store"), *WHO]
    both = [
        subprocess.Popen(command, env=clean_environment(tmp_path), stdout=subprocess.PIPE) for _ in range(2)
    ]
    told = [json.loads(process.communicate()[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(done["added"] for done in told) == FILES
    assert [done["added"] + done["unchanged"] for done in told] == [FILES, FILES]
    verify = [*PROGRAM, "verify", "--data", str(tmp_path / "store")]
    subprocess.run(verify, env=clean_environment(tmp_path), check=True, capture_output=True)


@pytest.mark.promise("documents.what-was-read")
async def test_a_file_that_grows_while_it_is_read_is_what_was_read_of_it(tmp_path: Path) -> None:
    file, stop = tmp_path / "docs/log.txt", Event()
    file.parent.mkdir()
    file.write_text("begun\n")

    def write() -> None:
        with file.open("a") as log:
            while not stop.is_set():
                log.write("one line more, and another one\n" * 100)
                log.flush()

    async with (
        open_greenroom(tmp_path / "data", secrets=tmp_path / "secrets", embedder="none") as runtime,
        open_ingestion(runtime, ANN, "docs") as ingestion,
    ):
        writer = Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                done = await ingestion.files([str(file.parent)])
                assert done.added + done.changed + done.unchanged + sum(done.left_out.values()) == 1
        finally:
            stop.set()
            await trio.to_thread.run_sync(writer.join)
        with file.open("a") as log:
            log.truncate(1_000)
        done = await ingestion.files([str(file.parent)])
        assert done.added + done.changed == 1  # added, where it had grown beyond the limit
        page = await ingestion.ask(ListDocuments(corpus="user:ann:docs"))
        assert [each.digest for each in page.documents] == [digest_of(file.read_bytes())]


@pytest.mark.quick
@pytest.mark.promise("documents.what-was-read", "code.kept")
async def test_files_that_vanish_or_become_something_else_while_others_are_read_are_left_out(
    tmp_path: Path,
) -> None:
    code = (tmp_path / "code").resolve()
    for folder in ("gone", "file", "link"):
        (code / folder).mkdir(parents=True)
        (code / folder / "a.py").write_text("def longer_than_others():\n    return 1\n")
    for name in ("first", "stays", "vanishes", "folder", "pipe", "private"):
        (code / f"{name}.py").write_text(f"{name} = 1\n")
    (code / "first.py").write_text("x=1\n")  # the smallest is read first
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.py").write_text("private = 1\n")

    def change(_done: int, total: int) -> None:
        """Change all but two files, once they are counted."""
        if not total or not (code / "vanishes.py").exists():
            return
        for name in ("vanishes", "folder", "pipe", "private"):
            (code / f"{name}.py").unlink()
        (code / "folder.py").mkdir()
        os.mkfifo(code / "pipe.py")
        (code / "private.py").symlink_to(tmp_path / "outside/a.py")
        for folder in ("gone", "file", "link"):
            shutil.rmtree(code / folder)
        (code / "file").write_text("a file\n")
        (code / "link").symlink_to(tmp_path / "outside")

    async with open_greenroom(tmp_path / "data", secrets=tmp_path / "secrets", embedder="none") as runtime:

        async def run(progress: Progress | None = None) -> tuple[DocumentsIngested, set[str]]:
            async with open_ingestion(
                runtime, ANN, "user:ann:code-1", root=str(code), progress=progress
            ) as ingestion:
                done = await ingestion.files([str(code)])
                page = await ingestion.ask(ListDocuments(corpus="user:ann:code-1"))
                return done, {each.path for each in page.documents}

        assert len((await run())[1]) == 9
        (code / "first.py").write_text("x=2\n")
        done, there = await run(change)
        assert (done.changed, done.removed, done.complete) == (1, 6, True)
        assert there == {"first.py", "stays.py", "private.py"}  # as it was, until it is looked at again
        assert set(done.left_out) == {
            "it is not a regular file",
            "a folder above it is a symbolic link",
            "it cannot be read: Too many levels of symbolic links",
        }
        done, there = await run()
        assert (done.added, done.removed, there) == (1, 1, {"first.py", "stays.py", "file"})


def bomb() -> bytes:
    """Return a small Word document of very many paragraphs."""
    file = io.BytesIO()
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    with ZipFile(file, "w", ZIP_DEFLATED) as archive, archive.open("word/document.xml", "w") as part:
        part.write(f'<a xmlns="{word}">'.encode())
        part.write(b"<p/>" * (15 << 20))
        part.write(b"</a>")
    return file.getvalue()


@pytest.mark.slow
@pytest.mark.promise("documents.hostile")
@pytest.mark.skipif(sys.platform != "linux", reason="macOS holds no process to its memory")
async def test_a_file_that_takes_too_much_memory_costs_itself_alone() -> None:
    small = bomb()
    assert len(small) < 1 << 20
    async with open_parsers(seconds=300) as parsers:
        failed = await parsers.parse(Job("a.docx", "docx", 0, small))
        fine = await parsers.parse(Job("a.md", "markdown", 0, b"text"))
    assert failed.document is None
    assert failed.failure in {
        "it takes too much memory to be read",
        "it ended the process that read it",
    }
    assert fine.document is not None


@pytest.mark.slow
@pytest.mark.promise("documents.hostile")
@pytest.mark.skipif(sys.platform != "linux", reason="macOS holds no process to its memory")
async def test_source_code_that_ends_the_process_that_reads_its_syntax_is_read_as_text() -> None:
    async with open_parsers(seconds=300) as parsers:
        hostile = await parsers.parse(Job("a.cc", "code", 0, b"A<" * (1 << 20), is_source=True))
        fine = await parsers.parse(Job("b.cc", "code", 0, b"int f() { return 1; }", is_source=True))
    assert hostile.document is not None
    assert sum(len(chunk.text) for chunk in hostile.document.chunks) == 2 << 20
    assert (hostile.facts, hostile.failure) == (None, "it ended the process that read it")
    assert fine.facts is not None


@pytest.mark.promise("documents.hostile")
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("markdown", b">" * 200_000),
        ("markdown", b"- " * 100_000 + b"x"),
        ("markdown", b"#" * 300_000),
        ("markdown", b"[" * 100_000),
        ("markdown", b"---\n" + b"title: [" * 50_000),
        ("html", b"<div>" * 200_000 + b"x"),
        ("html", b"&" * 300_000),
        ("html", b"<![a" * 100_000 + b"><![if IE]>x<![endif]>"),
        ("html", b"<!x [" * 100_000 + b">x"),
        ("rst", b"=\n" * 200_000),
        ("csv", b'"' * 300_001),
        ("csv", b"," * 300_000),
        ("text", b" " * 3_000_000 + b"x"),
        ("text", b"x" * 3_000_000),
        ("code", b"\n\n" * 1_000_000 + b"x"),
        ("notebook", b'{"cells": [' + b'{"source": []},' * 100_000 + b"]}"),
    ],
)
async def test_odd_files_end_in_time(kind: str, data: bytes) -> None:
    async with open_parsers(seconds=60) as parsers:
        parsed = await parsers.parse(Job("odd", kind, 0, data))  # type: ignore[arg-type]  # one of the kinds
        assert "longer than" not in parsed.failure
        assert "ended" not in parsed.failure


@pytest.mark.quick
@pytest.mark.promise("documents.few-processes")
async def test_however_many_ingest_at_once_few_have_processes() -> None:
    end, having = trio.Event(), []

    async def ingest(number: int) -> None:
        async with open_parsers() as parsers:
            having.append(number)
            assert (await parsers.parse(Job("a.md", "markdown", 0, b"text"))).document is not None
            await end.wait()

    async with trio.open_nursery() as nursery:
        for number in range(9):
            nursery.start_soon(ingest, number)
        await trio.testing.wait_all_tasks_blocked()
        assert len(having) == MOST_AT_ONCE
        end.set()
    assert sorted(having) == list(range(9))
