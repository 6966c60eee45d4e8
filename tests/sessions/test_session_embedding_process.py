"""Vectors of messages and the programs around them: a server that is killed, and `greenroom verify`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import trio
from harness import principal, secrets_of, server_process
from support.commands import run_on_store
from support.embedding import WAITS, Settled

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    GetEmbedding,
    SearchContext,
    SearchResults,
    open_greenroom,
)
from greenroom.runtime import ACTORS, SharedRuntime, Store

SUBJECTS = """
import threading
from pathlib import Path

HERE = Path(__file__).parent
SUBJECTS = (("refunded", "money"), ("office", "closed"), ("painted", "sunrise"), ("replicas", "deployed"))


class Subjects:
    def embed(self, texts):
        if texts != ["probe"] and not (HERE / "go_on").exists():
            (HERE / "arrived").open("w").close()
            threading.Event().wait()
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return [0.1 + sum(word in text for word in subject) for subject in SUBJECTS]
"""
CHOICE = "python:own_subjects:Subjects"
NOTES = [
    "You are refunded within two weeks.",
    "The office is closed on Mondays.",
    "Anna painted a sunrise.",
    "Three replicas are deployed.",
]
SEARCH = SearchContext(session_id="s", query="How do I get my money?", fuzzy_threshold=0)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an embedder that stops at the first text, and says so, until it may go on."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "own_subjects.py").write_text(SUBJECTS)
    os.mkfifo(folder / "arrived")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(
        sys.modules, "own_subjects", raising=False
    )  # that of another test looks into its folder
    return folder


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[SharedRuntime]:
    async with open_greenroom(
        home / "store", embedder=CHOICE, queries=WAITS, secrets=secrets_of(home)
    ) as runtime:
        yield runtime


async def searched(runtime: SharedRuntime) -> SearchResults:
    return await Agent(runtime, principal("anna")).ask(SEARCH)


def kept(home: Path) -> int:
    """Return how many vectors of messages a closed store has."""
    with closing(Store(home / "store")) as store:
        return sum(len(key) > len(b"session\0s\0uv") for key in store.keys(ACTORS, b"session\0s\0uv"))


@pytest.mark.promise("sessions.meaning", "embedding.resumes")
async def test_messages_get_their_vectors_after_a_kill(tmp_path: Path, own: Path) -> None:
    who = ("--agent", "anna", "--user", "user", "--embedder", CHOICE)
    async with server_process(tmp_path, *who) as server:
        await server.client.initialize()
        await server.client.call("create_session", session_id="s", purpose="a shop")
        for note in NOTES:
            await server.client.call("add_message", session_id="s", content=note)
        assert (await server.client.call("search_context", session_id="s", query=SEARCH.query))["partial"]
        await trio.to_thread.run_sync((own / "arrived").read_text)
        server.process.kill()
        await server.process.wait()
    assert kept(tmp_path) == 0
    (own / "go_on").touch()
    async with opened(tmp_path) as runtime:
        assert (await searched(runtime)).partial
        await runtime.query(Settled())
        found = await searched(runtime)
        assert found.results[0].message.content == NOTES[0]
        assert not found.partial
        assert (await runtime.query(GetEmbedding())).embedded == len(NOTES)
    assert kept(tmp_path) == len(NOTES)


@pytest.mark.promise("sessions.meaning")
def test_vectors_of_messages_are_verified_and_left_alone(tmp_path: Path, own: Path) -> None:
    (own / "go_on").touch()

    async def fill() -> None:
        async with opened(tmp_path) as runtime:
            anna = Agent(runtime, principal("anna"))
            await anna.ask(CreateSession(session_id="s", purpose="a shop"))
            for note in NOTES:
                await anna.ask(AddMessage(session_id="s", content=note))
            await searched(runtime)
            await runtime.query(Settled())

    async def find() -> None:
        async with opened(tmp_path) as runtime:
            await runtime.query(Settled())
            found = await searched(runtime)
            assert found.results[0].message.content == NOTES[0]
            assert not found.partial
            assert (await runtime.query(GetEmbedding())).embedded == 0

    trio.run(fill)
    for more in ((), ("--rebuild",)):
        done = run_on_store(tmp_path, "verify", "--json", *more)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["index"]["problems"] == []
    assert kept(tmp_path) == len(NOTES)
    trio.run(find)
