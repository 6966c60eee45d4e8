"""Files that are made to do harm, and names and places that are: each costs no more than itself."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from types import FrameType, ModuleType
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile

import msgspec
import pytest

from greenroom.actors.content.documents import UnreadableDocumentError, build_document, markdown
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.knowledge.ingest.files.exclusions import SECRET, content_reason, file_reason
from greenroom.actors.knowledge.ingest.files.file_content import read_document
from greenroom.actors.knowledge.ingest.files.walk import UNPRINTABLE, Found, LeftOut, walk

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
BODY = f'<w:document xmlns:w="{WORD}"><w:body><w:p><w:r><w:t>words</w:t></w:r></w:p></w:body></w:document>'

TraceFunction = Callable[[FrameType, str, Any], Any]


def word_file(xml: bytes, compression: int = ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with ZipFile(file, "w", compression) as archive:
        archive.writestr("word/document.xml", xml)
    return file.getvalue()


# -- what a file does to its chunks ---------------------------------------------------------------------


@pytest.mark.promise("documents.hostile")
def test_headings_that_every_small_chunk_would_repeat_are_left_off() -> None:
    above = "".join(f"{'long ' * 38}{level}\n{mark * 200}\n\n" for level, mark in enumerate("!$%&*+,-./:;"))
    below = "own\n===\n\nword\n\n" * 3_000
    chunks = build_document("a.rst", "rst", (above + below).encode()).chunks
    assert len(chunks) > 3_000 - 1
    assert {tuple(chunk.headings) for chunk in chunks[-2_000:]} == {("own",)}
    without_own = "###### \nb\n" * 30_000
    chunks = build_document("a.md", "markdown", f"# {'long ' * 39}\n\n{without_own}".encode()).chunks
    assert not any(chunk.headings for chunk in chunks)


@pytest.mark.promise("documents.hostile")
@pytest.mark.parametrize("block", ["b\n###### \n", "b\n***\n", "b\n```\n```\n"])
def test_a_markdown_text_without_empty_lines_costs_no_more_than_its_length(block: str) -> None:
    little, much = (lines_run(markdown, block * times) for times in (100, 400))
    assert much < 6 * little, "with a look at all that follows for each block it is nearly 16 times"


def lines_run(reader: ModuleType, text: str) -> int:
    """Return how many lines of the module that reads Markdown a text runs, which depends on no clock."""
    count = 0

    def line(_frame: FrameType, event: str, _argument: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, _event: str, _argument: object) -> TraceFunction | None:
        return line if frame.f_code.co_filename == reader.__file__ else None

    outer = sys.gettrace()
    sys.settrace(call)
    try:
        build_document("a.md", "markdown", text.encode())
    finally:
        sys.settrace(outer)
    return count


def test_headings_of_a_document_with_text_are_all_kept() -> None:
    text = "".join(f"## Part {part}\n\n" + f"### {'Chapter ' * 20}\n\nword\n\n" * 10 for part in range(100))
    chunks = build_document("a.md", "markdown", f"# Book\n\n{text}".encode()).chunks
    assert {len(chunk.headings) for chunk in chunks} == {3}


@pytest.mark.promise("documents.hostile")
def test_a_title_with_very_much_space_is_read_at_once() -> None:
    line = "title: a" + " " * 60_000 + "b"
    assert build_document("a.md", "markdown", f"---\n{line}\n---\ntext".encode()).title == "a"


@pytest.mark.parametrize("end", ["</head><body>", "</head>", "<body>", ""])
def test_html_need_not_say_where_its_head_ends(end: str) -> None:
    head = "<!doctype html><html><head><meta charset=utf-8><title>T</title><script>no()</script>"
    document = build_document("a.html", "html", f"{head}{end}<h1>Top</h1><p>shown".encode())
    assert [(chunk.headings, chunk.text) for chunk in document.chunks] == [(["Top"], "shown")]
    assert document.title == "T"


def test_the_title_of_a_picture_is_not_that_of_its_document() -> None:
    page = b"<svg><title>Menu</title></svg><h1>Top</h1><p>shown"
    assert build_document("a.html", "html", page).title == "Top"


@pytest.mark.quick
@pytest.mark.promise("documents.hostile")
@pytest.mark.parametrize(
    "xml",
    [
        *(f'<?xml version="1.0" encoding="{name}"?>{BODY}'.encode() for name in ("none-such", "gb18030")),
        f'<?xml version="1.0"?><!--{" " * 5_000}--><!DOCTYPE x [<!ENTITY a "a">]>{BODY}'.encode(),
        BODY.replace("words", "\ud800").encode(errors="surrogatepass"),
    ],
)
def test_xml_that_no_word_processor_writes_is_told_so(xml: bytes) -> None:
    with pytest.raises(UnreadableDocumentError, match="it is no Word document"):
        build_document("a.docx", "docx", word_file(xml))


@pytest.mark.parametrize("compression", [ZIP_BZIP2, ZIP_LZMA])
def test_a_broken_archive_is_told_so_whatever_compressed_it(compression: int) -> None:
    data = bytearray(word_file(BODY.encode() * 50, compression))
    data[60:80] = b"\xff" * 20
    with pytest.raises(UnreadableDocumentError, match="it is no Word document"):
        build_document("a.docx", "docx", bytes(data))


# -- names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a\u202fb.md", "a\xa0b.md", "\U0001f469\u200d\U0001f4bb.md", "\u3000.md"])
def test_a_name_with_any_space_or_joined_pictures_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    assert [each.path for each in walk(str(tmp_path))] == [str(tmp_path / name)]


@pytest.mark.promise("documents.hostile")
@pytest.mark.parametrize("name", [b"a\xff", b"a\nb", b"a\x1b[2J", "a\u202eb".encode(), "a\u2028b".encode()])
@pytest.mark.parametrize("ending", [b".md", b".pem"])
def test_what_cannot_be_shown_is_left_out_by_a_name_that_can(
    tmp_path: Path, name: bytes, ending: bytes
) -> None:
    folder, file = tmp_path / os.fsdecode(name), tmp_path / os.fsdecode(name + ending)
    folder.mkdir()
    (folder / "x.md").write_text("x")
    file.write_text("x")
    for root in (tmp_path, folder, file):
        found = list(walk(str(root)))
        assert found
        for each in found:
            assert isinstance(each, LeftOut)
            assert each.reason == (SECRET if each.path.endswith(".pem") and root == tmp_path else UNPRINTABLE)
            assert msgspec.json.decode(msgspec.json.encode(each.path)) == each.path
            assert "\ufffd" in each.path


@pytest.mark.promise("documents.hostile")
@pytest.mark.parametrize("rule", ["a/" + "**/a/" * 30 + "b", "*a" * 40 + "b", "**" + "/**" * 30 + "/b"])
def test_rules_that_would_take_for_ever_are_passed_over(tmp_path: Path, rule: str) -> None:
    deep = tmp_path.joinpath(*["a"] * 40)
    deep.mkdir(parents=True)
    for name in ("a" * 200 + ".md", "x.log"):
        (deep / name).write_text("x")
    (tmp_path / ".gitignore").write_text(f"{rule}\n**/*.log\n")
    found = [each.path for each in walk(str(tmp_path)) if isinstance(each, Found)]
    assert found == [str(deep / ("a" * 200 + ".md"))]


@pytest.mark.promise("documents.no-secrets")
@pytest.mark.parametrize(
    "name",
    [
        *(".envrc", ".env-production", ".env_local", ".env~", "prod.tfvars.json", "AuthKey.p8", "home.ovpn"),
        *("credentials.csv", "credentials.yml", "passwords.txt", "secrets.txt", "rootkey.csv", "kubeconfig"),
        *("id_ed25519_sk", "application_default_credentials.json", ".vault-token", ".s3cfg", "shadow"),
    ],
)
def test_more_names_of_secrets(name: str) -> None:
    assert file_reason(name) == SECRET


@pytest.mark.parametrize("name", ["secrets.py", "credentials.md", "password-policy.txt", "shadow.md"])
def test_what_is_written_about_secrets_is_none(name: str) -> None:
    assert file_reason(name) is None


def test_a_key_of_age_is_a_secret() -> None:
    assert content_reason(b"# created: today\nAGE-SECRET-KEY-1QQQ") == SECRET


# -- places ---------------------------------------------------------------------------------------------


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[Path]:
    """A folder within a root that is now a folder, now a link to one outside, over and over."""
    root, outside = tmp_path.resolve() / "root", tmp_path / "outside"
    for each in (root / "folder", outside):
        each.mkdir(parents=True)
        (each / "x.md").write_text(each.name)
    (root / "link").symlink_to(outside)
    ended = Event()

    def swap() -> None:
        folder, link, aside = root / "folder", root / "link", root / "aside"
        while not ended.is_set():
            folder.rename(aside)
            link.rename(folder)
            folder.rename(link)
            aside.rename(folder)

    thread = Thread(target=swap)
    thread.start()
    yield root / "folder"
    ended.set()
    thread.join()


@pytest.mark.promise("documents.within-roots")
def test_a_folder_that_becomes_a_link_while_its_file_is_opened_leads_nowhere(swapped: Path) -> None:
    read = set()
    for _ in range(4_000):
        with suppress(OSError, UnreadableFileError):
            read.add(read_document(str(swapped / "x.md"))[1])
    assert b"outside" not in read


@pytest.mark.promise("documents.within-roots")
def test_a_link_in_the_place_of_a_folder_above_is_told_so(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "outside/deep").mkdir(parents=True)
    (root / "outside/deep/x.md").write_text("outside")
    (root / "link").symlink_to(root / "outside")
    with pytest.raises(UnreadableFileError, match="a folder above it is a symbolic link"):
        read_document(str(root / "link/deep/x.md"))
    with pytest.raises(FileNotFoundError):
        read_document(str(root / "none/x.md"))


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="needs a way to pass folders that are not read")
def test_a_folder_above_need_not_be_readable() -> None:
    with tempfile.TemporaryDirectory() as above:  # not in that of the tests, which other users do not pass
        folder = Path(above).resolve()
        (folder / "x.md").write_text("x")
        folder.chmod(0o111)
        ended = os.waitpid(fork_and_read(folder / "x.md"), 0)[1]
        folder.chmod(0o700)
    assert ended == 0


def fork_and_read(path: Path) -> int:
    """Read a file as somebody who may not read its folder: root reads everything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: the child uses none
        child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            os._exit(0 if read_document(str(path))[1] == b"x" else 2)
        finally:
            os._exit(1)
    return child
