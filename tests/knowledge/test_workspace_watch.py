"""What changes in a workspace is never missed in silence: links, floods, swaps, kills, limits."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from harness import PROGRAM, server_process
from support.namespaces import FEW_WATCHES, are_there
from support.workspaces import WITHOUT_VECTORS, folder_of_code, paths, search, watched

from greenroom.testing import McpClient

FLAGS = WITHOUT_VECTORS
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of each change at once")


def watches_of(pid: int) -> int:
    """Return how many folders the system watches for a process."""
    return sum(
        each.read_text().count("inotify wd:")
        for each in Path(f"/proc/{pid}/fdinfo").iterdir()
        if each.exists()
    )


def most_queued() -> int:
    """Return how many changes the system keeps for who does not take them."""
    return int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


async def found_or_behind(client: McpClient, word: str, path: str) -> None:
    """Ask until a file is found; no answer before that may say that the index is as the folder is."""
    while paths(found := await search(client, word)) != {path}:
        assert found["freshness"]["state"] != "watching", found


@only_linux
@pytest.mark.promise("code.roots", "code.kept")
async def test_what_links_lead_to_and_what_nobody_reads_is_not_watched(tmp_path: Path) -> None:
    code = folder_of_code(tmp_path)
    for folder in ("src/deep", ".git/objects", "node_modules/a", "../outside/a/b"):
        (code / folder).mkdir(parents=True)
    (code / "out").symlink_to(code.parent / "outside")
    (code / "src/loop").symlink_to(code)
    (code / "src/usr").symlink_to("/usr")
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code)) as server:
        await server.client.initialize()
        await watched(server.client)
        assert watches_of(server.process.pid) == 3  # code, src, deep
        (code / "src/new/newer").mkdir(parents=True)
        (code / "src/new/newer/late.py").write_text("def kelp(): ...\n")
        await found_or_behind(server.client, "kelp", "src/new/newer/late.py")
        assert watches_of(server.process.pid) == 5
        (code / "src/new").rename(code / "src/deep/moved")
        await found_or_behind(server.client, "kelp", "src/deep/moved/newer/late.py")
        (code / "src/deep/moved/newer/late.py").write_text("def reef(): ...\n")
        await found_or_behind(server.client, "reef", "src/deep/moved/newer/late.py")
        (code / "src/deep/moved").rename(tmp_path / "away")
        await watched(server.client)
        assert watches_of(server.process.pid) == 3


@only_linux
@pytest.mark.promise("code.freshness")
async def test_from_the_moment_of_a_change_no_answer_says_that_the_index_is_right(tmp_path: Path) -> None:
    code = folder_of_code(tmp_path)
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code)) as server:
        await server.client.initialize()
        await watched(server.client)
        for word in ("kelp", "reef", "tide", "gull"):
            (code / "new.tmp").write_text(f"def {word}(): ...\n")
            (code / "new.tmp").rename(code / "new.py")
            await found_or_behind(server.client, word, "new.py")
        (code / "new.py").unlink()
        while paths(found := await search(server.client, "gull")):
            assert found["freshness"]["state"] != "watching"


@only_linux
@pytest.mark.promise("code.freshness")
async def test_when_the_system_loses_changes_everything_is_looked_at_again(tmp_path: Path) -> None:
    code = folder_of_code(tmp_path)
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code)) as server:
        await server.client.initialize()
        await watched(server.client)
        os.kill(server.process.pid, signal.SIGSTOP)
        for _ in range(most_queued() // 2 + 1):
            for number in (0, 1):
                os.utime(code / f"part_{number}.py")
        (code / "src").mkdir()
        (code / "src/lost.py").write_text("def kelp(): ...\n")
        os.kill(server.process.pid, signal.SIGCONT)
        await found_or_behind(server.client, "kelp", "src/lost.py")
        (code / "src/lost.py").write_text("def reef(): ...\n")
        await found_or_behind(server.client, "reef", "src/lost.py")


@pytest.mark.promise("code.kept", "code.freshness")
async def test_many_changes_at_once_are_all_taken_in(tmp_path: Path) -> None:
    code = folder_of_code(tmp_path)
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code)) as server:
        await server.client.initialize()
        await watched(server.client)
        (code / "branch").mkdir()
        for number in range(1_200):
            (code / f"branch/{number}.txt").write_text(f"heron{number}")
        found = await watched(server.client)
        assert (found["freshness"]["indexed"], found["freshness"]["of"]) == (1_205, 1_205)
        shutil.rmtree(code / "branch")
        found = await watched(server.client)
        assert found["freshness"]["indexed"] == 5


@pytest.mark.promise("code.freshness")
async def test_another_folder_in_the_place_of_the_root_is_indexed_and_watched(tmp_path: Path) -> None:
    code = folder_of_code(tmp_path)
    other = folder_of_code(tmp_path / "other", files=0)
    (other / "new.py").write_text("def kelp(): ...\n")
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code)) as server:
        await server.client.initialize()
        await watched(server.client)
        code.rename(tmp_path / "old")
        other.rename(code)
        await found_or_behind(server.client, "kelp", "new.py")
        (code / "newer.py").write_text("def reef(): ...\n")
        await found_or_behind(server.client, "reef", "newer.py")
        assert (await watched(server.client))["freshness"]["indexed"] == 2


@pytest.mark.promise("code.freshness", "code.one-keeper")
@pytest.mark.parametrize("is_killed", [True, False])
async def test_what_changed_while_no_server_ran_is_not_passed_over(tmp_path: Path, is_killed: bool) -> None:  # noqa: FBT001
    code = folder_of_code(tmp_path)
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code)) as server:
        await server.client.initialize()
        await watched(server.client)
        if is_killed:
            server.process.kill()
        else:
            await server.client.end_input()
        await server.process.wait()
    (code / "late.py").write_text("def kelp(): ...\n")
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code), "--no-index") as server:
        await server.client.initialize()
        said = (await search(server.client, "kelp"))["freshness"]
        assert (said["state"], said["indexed"]) == ("off", 5)
        assert said["as_of"]
    async with server_process(tmp_path, *FLAGS, "--workspace", str(code)) as server:
        await server.client.initialize()
        await found_or_behind(server.client, "kelp", "late.py")


@only_linux
@pytest.mark.promise("code.freshness")
@pytest.mark.skipif(
    not are_there(FEW_WATCHES),
    reason="no namespaces here: what no room for watches means is NOT checked",
)
async def test_a_folder_that_the_system_does_not_watch_any_more_is_not_said_to_be_watched(
    tmp_path: Path,
) -> None:
    code = folder_of_code(tmp_path)
    (code / "src").mkdir()
    serve = [*PROGRAM, "serve", "--data", str(tmp_path / "store"), *FLAGS, "--workspace", str(code)]
    async with server_process(tmp_path, program=[*FEW_WATCHES, *serve]) as server:
        await server.client.initialize()
        await watched(server.client)
        (code / "new").mkdir()
        (code / "new/late.py").write_text("def kelp(): ...\n")
        await found_or_behind(server.client, "kelp", "new/late.py")
        while (said := (await search(server.client))["freshness"])["state"] != "unwatched":
            assert said["state"] == "indexing"
        assert said["as_of"]
        assert "max_user_watches" in server.errors()
