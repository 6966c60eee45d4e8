"""A folder is taken from a `Database` in the midst of its writes: it goes on with who has the folder then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from harness import PATIENCE

from greenroom.actors import Database
from greenroom.runtime import OwnershipLostError, RuntimeClosedError, StoreFailedError

pytestmark = [pytest.mark.slow, pytest.mark.promise("service.database-lost-lock")]

WRITERS = 4
ENOUGH = 40

OTHER = """
import json, os, sys
from greenroom.actors import Agent, Database, ListMemories, Principal

folder, secrets = sys.argv[1:]

async def listed(database):
    found, cursor = {}, None
    while True:
        asked = ListMemories(namespace="user:ann", limit=200, cursor=cursor)
        page = await Agent(database, Principal(agent_id="app", user="ann")).ask(asked)
        found |= {each.key: each.version for each in page.memories}
        cursor = page.next_cursor
        if cursor is None:
            return found

with Database(folder + "-of-another", embedder="none") as database:
    database.remember("all that is imported later is here")
print("ready", flush=True)
if sys.stdin.readline() == "remove\\n":
    os.unlink(folder + "/owner.lock")
with Database(folder, embedder="none", secrets=secrets) as database:
    while True:
        print(json.dumps(database.call(listed, database)), flush=True)
        if not sys.stdin.readline():
            break
"""


class _Writers:
    """Threads that store memories, each under a name of its own."""

    def __init__(self, database: Any) -> None:
        self.answered: list[str] = []
        self.failed: dict[str, Exception] = {}
        self._database = database
        self._wanted = 0
        self._enough = threading.Condition()
        self._stops = False
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def wait_for_more(self) -> None:
        """Wait until many more are answered, each of which was asked for by now or later."""
        with self._enough:
            wanted = len(self.answered) + ENOUGH
            assert self._enough.wait_for(lambda: len(self.answered) >= wanted, PATIENCE)

    def wait_for_failure(self) -> None:
        """Wait until one is not done."""
        with self._enough:
            assert self._enough.wait_for(lambda: self.failed, PATIENCE)

    def stop(self) -> None:
        self._stops = True
        for thread in self._threads:
            thread.join()

    def _write(self, writer: int) -> None:
        number = 0
        while not self._stops:
            key = f"k-{writer}-{number}"
            number += 1
            try:
                self._database.remember(f"text {key}", user="ann", key=key)
            except StoreFailedError as error:
                with self._enough:
                    self.failed[key] = error
                    self._enough.notify_all()
            else:
                with self._enough:
                    self.answered.append(key)
                    self._enough.notify_all()


def take_nothing(_: Path) -> None:
    """Leave it to the other process, which removes the file."""


def close_by_mistake(folder: Path) -> None:
    """Close the descriptors of a file as a program does that takes them for its own."""
    wanted = (folder / "owner.lock").stat()
    for descriptor in range(3, 1_024):
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), wanted):
                os.close(descriptor)


@pytest.mark.parametrize(("take", "word"), [(take_nothing, "remove"), (close_by_mistake, "take it")])
def test_who_lost_the_lock_commits_nothing_more_and_asks_the_new_owner(
    tmp_path: Path, take: Any, word: str
) -> None:
    folder, secrets = tmp_path / "store", tmp_path / "secrets"
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(folder), str(secrets)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdin is not None
    assert other.stdout is not None
    with other, Database(folder, embedder="none", secrets=secrets) as database:
        assert other.stdout.readline() == "ready\n"
        writers = _Writers(database)
        try:
            writers.wait_for_more()
            take(folder)
            print(word, file=other.stdin, flush=True)
            at_takeover = json.loads(other.stdout.readline())
            writers.wait_for_more()
        finally:
            writers.stop()
        print("and now", file=other.stdin, flush=True)
        found = json.loads(other.stdout.readline())
        database.remember("the first one answers", user="ann", key="last")
        other.stdin.close()
        other.wait(PATIENCE)
    assert set(writers.answered) <= set(found)
    assert set(found) & set(writers.failed) <= set(at_takeover)
    assert set(found.values()) == {1}
    assert all(isinstance(error, OwnershipLostError) for error in writers.failed.values())


def test_a_folder_that_was_renamed_and_put_back_is_served_again(tmp_path: Path) -> None:
    folder, away = tmp_path / "store", tmp_path / "away"
    with Database(folder, embedder="none", secrets=tmp_path / "secrets") as database:
        writers = _Writers(database)
        try:
            writers.wait_for_more()
            folder.rename(away)
            writers.wait_for_failure()
            away.rename(folder)
            writers.wait_for_more()
        finally:
            writers.stop()
        stored = [database.call(database.memory.get_memory, "user:ann", key) for key in writers.answered]
    assert all(each is not None and each.version == 1 for each in stored)


@pytest.mark.quick
def test_another_folder_in_its_place_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenroom.actors.app.database.REOPEN_SECONDS", 0.1)
    folder = tmp_path / "store"

    def store_until_refused(database: Any) -> None:
        while True:
            database.remember("this is not stored", user="ann")

    def work() -> None:
        with Database(folder, embedder="none", secrets=tmp_path / "secrets") as database:
            database.remember("this was stored", user="ann")
            folder.rename(tmp_path / "away")
            folder.mkdir()
            with pytest.raises(OwnershipLostError):
                store_until_refused(database)
            with pytest.raises(RuntimeClosedError) as refused:
                store_until_refused(database)
            assert isinstance(refused.value.__cause__, OwnershipLostError | RuntimeError)

    with pytest.raises(OwnershipLostError):
        work()
    assert list(folder.iterdir()) == []
