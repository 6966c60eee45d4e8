"""Folders of Markdown become memories."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import clean_environment
from support.exchanges import left_out, memories, read, taken
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
        (b"---\na: &a [*a]\n---\nx", "refers to itself"),
        (b"---\na: *b\n---\nx", "front matter is no YAML: .*undefined alias"),
        (b"---\n" + BOMB + b"---\nx", "its aliases stand for too much"),
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
