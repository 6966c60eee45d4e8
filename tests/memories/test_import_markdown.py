"""Folders of Markdown become memories."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness import clean_environment
from support.exchanges import ImportRefusedError, left_out, memories, read, taken
from support.forking import forked_program

if TYPE_CHECKING:
    from support.agents import Enter


def vault(folder: Path) -> None:
    (folder / "projects").mkdir(parents=True)
    (folder / ".obsidian").mkdir()
    (folder / ".obsidian" / "hidden.md").write_text("# not a note")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "projects" / "Atlas.md").write_text(
        "---\ntags: [maps, atlas]\ncreated: 2025-03-01\nauthor: Ann\nimportance: 0.75\nstatus: open\n---\n"
        "What Atlas is.\n\n# Goals\n\nShip it.\n\n## Later\n\n```sh\n# no heading\n```\n\n"
        "# Empty\n\n# Goals\nTwice.\n"
    )
    (folder / "plain.md").write_text("\ufeff# Title\n\nOne thought.\n")
    (folder / "windows.MD").write_bytes(b"first\r\n\r\n---\r\nsecond\r\n")


@pytest.mark.promise("exchange.formats")
async def test_markdown(enter: Enter, tmp_path: Path) -> None:
    vault(tmp_path / "vault")
    os.utime(tmp_path / "vault" / "plain.md", (1_700_000_000, 1_700_000_000))
    async with enter(embedder="none") as home:
        done = await taken(home, tmp_path / "vault")
        found = await memories(home)
        assert (await taken(home, tmp_path / "vault")).counts == {"skipped": 6}
    assert done.counts == {"created": 6}
    assert found.keys() == {
        "projects.Atlas",
        "projects.Atlas.Goals",
        "projects.Atlas.Later",
        "projects.Atlas.Goals~2",
        "plain",
        "windows",
    }
    assert found["projects.Atlas"]["content"] == "What Atlas is."
    later = found["projects.Atlas.Later"]
    assert later["content"] == "## Later\n\n```sh\n# no heading\n```"
    assert (later["tags"], later["created_by"], later["importance"]) == (["maps", "atlas"], "Ann", 0.75)
    assert (later["conversation_id"], later["position"]) == ("projects/Atlas.md", 2)
    assert later["created_at"] == "2025-03-01T00:00:00Z"
    assert later["metadata"] == {"path": "projects/Atlas.md", "status": "open", "heading": "Goals > Later"}
    assert found["plain"]["content"] == "# Title\n\nOne thought."
    assert found["plain"]["created_at"] == "2023-11-14T22:13:20Z"
    assert found["windows"]["content"] == "first\r\n\r\n---\r\nsecond"


@pytest.mark.promise("exchange.formats")
def test_links_out_of_a_folder_are_not_followed_and_are_told(tmp_path: Path) -> None:
    inside, outside = tmp_path / "vault", tmp_path / "secrets"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.md").write_text("not yours")
    (outside / "password").write_text("not yours")
    (inside / "note.md").write_text("mine")
    (inside / "deep" / "again.md").symlink_to(inside / "note.md")
    (inside / "host.md").symlink_to(outside / "password")
    (inside / "deep" / "up.md").symlink_to("../../secrets/secret.md")
    (inside / "via.md").symlink_to(inside / "deep" / "up.md")
    (inside / "folder").symlink_to(outside)
    (inside / "nowhere.md").symlink_to(tmp_path / "nothing")
    (tmp_path / "alias").symlink_to(inside)
    links = ["deep/up.md", "folder", "host.md", "via.md"]
    for vault in (inside, tmp_path / "alias"):
        assert [line["content"] for line in read(vault)] == ["mine", "mine"]
        assert left_out(vault) == [(name, f"it is a link out of {vault}") for name in links]
    command = [
        *forked_program(),
        "import",
        str(inside),
        "--data",
        str(tmp_path / "data"),
        "--embedder",
        "none",
    ]
    done = subprocess.run(
        [*command, "--json"], env=clean_environment(tmp_path), capture_output=True, check=False, text=True
    )
    said = json.loads(done.stdout)
    assert (done.returncode, said["counts"], said["left_out_count"]) == (3, {"created": 2}, 4)
    assert [each["place"] for each in said["left_out"]] == links
    assert all(f"{name}: left out: it is a link out of" in done.stderr for name in links)


def test_one_markdown_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_text("---\nkey: my note\nkind: procedural\nexpires: 2040-01-01T00:00:00+01:00\n---\ndo this")
    (made,) = read(path)
    assert (made["key"], made["kind"], made["content"]) == ("my note", "procedural", "do this")
    assert made["expires_at"].startswith("2040-01-01T00:00:00")


BOMB = b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"a%d: &a%d [%b]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"caf\x81", "it is not UTF-8: .* at byte 3"),
        (b"\xff\xfec\xd8d\0", "it is not UTF-16: .* at byte 2"),
        (b"---\ntags: [a\n---\nx", "front matter is no YAML"),
        (b"---\ntags: !!int ''\n---\nx", "front matter is no YAML"),
        (b"---\ntags: !!bool perhaps\n---\nx", "front matter is no YAML"),
        (b"---\ntags: !!timestamp now\n---\nx", "front matter is no YAML"),
        (b"---\ntitle: a\n\tx: b: c\n---\nx", r"no YAML, line 3: found character '\\t'"),
        (
            b"---\ntitle: a\nx: y\n  z: b\n---\nx",
            "line 4: mapping values .*; put a value with a colon in",
        ),
        (
            b"---\nx: \x01\n---\nx",
            "no YAML: unacceptable character #x0001: special char",
        ),
        (b"", "it has no text"),
        (b"\n \n", "it has no text"),
        (b"---\ntitle: x\n---\n", "it has no text"),
        (b"# Heading only\n\n## Below\n", "it has no text"),
        (b"---\ntags: []\n---\n\n# {{title}}\n", "it has no text"),
        (b"# A\n\ntext \0\1", "it is binary"),
        ("# A\n\ntext".encode("utf-16-le"), "it is binary.*UTF-16 with its mark"),
        (b"---\na: &a [*a]\n---\nx", "refers to itself"),
        (b"---\na: *b\n---\nx", "front matter is no YAML, line 2: found undefined alias"),
        (b"---\n" + BOMB + b"---\nx", "its aliases stand for too much"),
        (
            b"---\na: &x '{{" + b"y" * 30_000 + b"}}'\nk: [" + b"*x, " * 8_000 + b"]\n---\nx",
            "its aliases stand for too much",
        ),
        (b"---\nk: " + b"{%" * 30_000 + b"\n---\nx", "front matter is no YAML"),
        (
            b"---\na: &a " + b"[" * 40 + b"]" * 40 + b"\nb: " + b"[" * 40 + b"*a" + b"]" * 40 + b"\n---\nx",
            "too deep",
        ),
        (b"---\n" + b"k: v\n" * 20_000 + b"---\nx", "100,000 characters and 65,536 are the most"),
        (b"---\nk: " + b"9" * 5_000 + b"\n---\nx", "an integer of 5,000 digits.*put it in quotes"),
        (b"---\nk: -0x" + b"9" * 5_000 + b"\n---\nx", "an integer of 5,003 digits"),
        (b'---\nk: !!int "' + b"9" * 5_000 + b'"\n---\nx', "an integer of 5,000 digits"),
        (b"---\nk: " + b"[" * 800 + b"]" * 800 + b"\n---\nx", "nested too deeply"),
        (b"---\nk: " + b"[" * 30_000 + b"\n---\nx", "nested too deeply"),
    ],
)
def test_what_is_wrong_with_a_markdown_file_is_told(tmp_path: Path, text: bytes, sentence: str) -> None:
    path = tmp_path / "note.md"
    path.write_bytes(text)
    assert read(path) == []
    ((place, reason),) = left_out(path)
    assert place == "note.md"
    assert re.search(sentence, reason, re.DOTALL)
    assert "\n" not in reason
    assert "column" not in reason


@pytest.mark.promise("exchange.formats")
@pytest.mark.parametrize(
    ("front", "kept", "line"),
    [
        ("title: Meeting: the second", {"title": "Meeting: the second"}, 2),
        ("a: 1\nb:\n  - who: Ann's: x  # aside", {"a": 1, "b": [{"who": "Ann's: x"}]}, 4),
        ("title: {{title}}: {{part}}\r", {"title": "{{title}}: {{part}}"}, 2),
    ],
)
async def test_a_plain_value_with_a_colon_is_text_and_that_is_said(
    enter: Enter, tmp_path: Path, front: str, kept: dict[str, Any], line: int
) -> None:
    path = tmp_path / "note.md"
    path.write_bytes(f"---\n{front}\n---\ntext".encode())
    async with enter(embedder="none") as home:
        with pytest.raises(ImportRefusedError, match=f"note.md, line {line}: a value with a colon"):
            await taken(home, path, is_strict=True)
        done = await taken(home, path)
        (found,) = (await memories(home)).values()
    assert found["metadata"] == {"path": "note.md", **kept}
    assert [(each.place, done.left_out) for each in done.remarks] == [(f"note.md, line {line}", [])]


@pytest.mark.promise("exchange.lines")
async def test_notes_without_text_are_left_out_beside_others(enter: Enter, tmp_path: Path) -> None:
    (tmp_path / "daily.md").write_text("# {{title}}\n")
    (tmp_path / "empty.md").touch()
    (tmp_path / "note.md").write_text("# Goals\n\n## First\n\nShip it.\n\n# Later\n")
    async with enter(embedder="none") as home:
        done = await taken(home, tmp_path)
        assert list(await memories(home)) == ["note"]
    assert [(each.place, each.sentence) for each in done.left_out] == [
        ("daily.md", "it has no text"),
        ("empty.md", "it has no text"),
    ]
