"""Two stores in one process: each goes by what it was opened with, whatever happens beside it."""

from __future__ import annotations

import ast
import datetime as dt
import itertools
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from harness import PATIENCE

from greenroom.actors import (
    AddMessage,
    Agent,
    CompressText,
    CreateSession,
    Finding,
    GetEmbedding,
    HookEvent,
    ListMemories,
    MemorySearch,
    Principal,
    StoreMemory,
    TakeHookEvent,
    Turn,
    open_greenroom,
)
from greenroom.actors.knowledge.ingest.run import open_ingestion
from greenroom.runtime import (
    Actor,
    Address,
    Context,
    IndexReader,
    Message,
    Procedure,
    ProcedureContext,
    Refusal,
    RuntimeOptions,
    current_settings,
    handles,
    open_runtime,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenroom.runtime import RuntimeClient

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
_NUMBERS = itertools.count(1)


class Fixed:
    """A clock of one moment."""

    def __init__(self, year: int) -> None:
        self._now = int(dt.datetime(year, 5, 1, tzinfo=dt.UTC).timestamp() * 1_000_000)

    def now(self) -> int:
        """Return that moment."""
        return self._now

    def perf(self) -> float:
        """Return the time on trio's clock."""
        return trio.current_time()


class AskActor(Message[tuple[str, ...]], frozen=True):
    """In which languages does an actor read?"""


class AskQuery(Procedure[tuple[str, ...]], frozen=True):
    """In which languages does a query read?"""

    runs = "snapshot"

    def run(self, _: IndexReader) -> tuple[str, ...]:
        """Return them."""
        return languages()


class AskProcedure(Procedure[tuple[str, ...]], frozen=True):
    """In which languages does a procedure read, before and after others had their turns?"""

    async def run(self, _: ProcedureContext) -> tuple[str, ...]:
        """Return them."""
        before = languages()
        await trio.lowlevel.checkpoint()
        assert await trio.to_thread.run_sync(languages) == before
        return languages() if languages() == before else ()


class Reader(Actor):
    """Says in which languages it reads."""

    kind = "reader"

    @handles(AskActor)
    def ask(self, _: AskActor, __: Context) -> tuple[str, ...]:
        """Return them."""
        return languages()


def languages() -> tuple[str, ...]:
    settings: Any = current_settings()
    return ("nobody's",) if settings is None else settings.rules.languages


class Kind:
    """One way to open a store, with every setting another than the other way has.

    Args:
        language: Its language.
        words: A form of a word, and another one that is found by the first in that language alone.
        limit: Most characters of a message.
        year: Where its clock stands.
        embedder: What makes vectors.
    """

    def __init__(self, language: str, words: tuple[str, str], limit: int, year: int, embedder: str) -> None:
        self.language, self.words, self.limit, self.year = language, words, limit, year
        self.embedder = embedder
        self.key = bytes([year % 256]) * 32

    async def find(self, _: Sequence[Turn], /) -> list[Finding]:
        """Find in turns what tells this kind from the other."""
        assert languages() == (self.language,)
        return [Finding(rule="decision", kind="semantic", text=f"Found in {self.language}", tags=[], turn=0)]

    def opened(self, folder: Path) -> Any:
        """Open a store of this kind."""
        return open_greenroom(
            folder / self.language,
            languages=(self.language,),
            extractor=self.find,
            content_limit=self.limit,
            clock=Fixed(self.year),
            embedder=self.embedder,
            encryption_key=self.key,
            conversation_tiers=(self.limit, 0, 0),
            audit_days=self.limit,
            options=RuntimeOptions(durability="process", min_free=self.limit),
            secrets=folder / f"secrets-{self.language}",
            actors=[Reader],
            queries=[AskQuery, AskProcedure],
        )

    async def check(self, runtime: RuntimeClient) -> None:
        """Work with a store; whatever it was opened with holds."""
        mine, number = (self.language,), next(_NUMBERS)
        assert await runtime.ask(Address("reader", "one"), AskActor()) == mine
        assert await runtime.query(AskQuery()) == await runtime.query(AskProcedure()) == mine
        agent = Agent(runtime, Principal(agent_id="x", user=f"user{number}"))
        stored, searched = self.words
        await agent.ask(StoreMemory(content=f"{stored} am Markt"))
        found = (await agent.ask(MemorySearch(query=searched))).memories
        assert [each.content for each in found] == [f"{stored} am Markt"]
        (memory,) = (await agent.ask(ListMemories())).memories
        assert memory.created_at.year == self.year
        await runtime.query(TakeHookEvent(event=self.event(number)), principal=agent.principal)
        contents = {each.content for each in (await agent.ask(ListMemories())).memories}
        assert contents == {f"{stored} am Markt", f"Found in {self.language}"}
        session = f"s{number}"
        await agent.ask(CreateSession(session_id=session, purpose="p"))
        await agent.ask(AddMessage(session_id=session, content="x" * self.limit))
        with pytest.raises(Refusal, match=f"{self.limit}"):
            await agent.ask(AddMessage(session_id=session, content="x" * (self.limit + 1)))
        embedding = await runtime.query(GetEmbedding())
        assert embedding.state == ("off" if self.embedder == "none" else "ready")

    def event(self, number: int) -> HookEvent:
        """Return something that a hook has to tell."""
        return msgspec.convert(
            {
                "id": f"{number:032x}",
                "name": "pre-compact",
                "client": "claude-code",
                "session": f"h{number}",
                "project": "shop-0a1b2c3d",
                "folder": "/shop",
                "at": dt.datetime(self.year, 5, 1, tzinfo=dt.UTC),
                "turns": [Turn(role="user", text="Remember it")],
            },
            HookEvent,
        )


GERMAN = Kind("german", ("Wohnungen", "Wohnung"), 61, 2031, "none")
SPANISH = Kind("spanish", ("habitaciones", "habitación"), 83, 2044, "static")


@pytest.mark.promise("service.own-settings")
async def test_a_store_that_is_opened_after_another_was_closed_has_its_own_settings(tmp_path: Path) -> None:
    for kind in (GERMAN, SPANISH, GERMAN):
        async with kind.opened(tmp_path) as runtime:
            await kind.check(runtime)
    assert current_settings() is None


@pytest.mark.quick
@pytest.mark.promise("service.own-settings")
@pytest.mark.parametrize(("outer", "inner"), [(GERMAN, SPANISH), (SPANISH, GERMAN)])
async def test_a_store_goes_on_as_it_was_opened_while_another_is_and_after(
    outer: Kind, inner: Kind, tmp_path: Path
) -> None:
    async with outer.opened(tmp_path) as first:
        async with inner.opened(tmp_path) as second:
            for _ in range(2):
                await inner.check(second)
                await outer.check(first)
            assert current_settings() is None
        await outer.check(first)


@pytest.mark.promise("service.own-settings")
async def test_the_one_that_was_opened_first_may_be_closed_first(tmp_path: Path) -> None:
    second_works, first_is_closed = trio.Event(), trio.Event()

    async def first() -> None:
        async with GERMAN.opened(tmp_path) as runtime, trio.open_nursery() as both:
            nursery.start_soon(second)
            await second_works.wait()
            for _ in range(3):
                both.start_soon(GERMAN.check, runtime)
        first_is_closed.set()

    async def second() -> None:
        async with SPANISH.opened(tmp_path) as runtime, trio.open_nursery() as both:
            second_works.set()
            for _ in range(3):
                both.start_soon(SPANISH.check, runtime)
            await first_is_closed.wait()
            await SPANISH.check(runtime)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)


@pytest.mark.promise("service.own-settings")
def test_two_threads_have_a_store_each(tmp_path: Path) -> None:
    step = threading.Barrier(2, timeout=PATIENCE)
    failures: list[BaseException] = []

    async def work(kind: Kind, rounds: int) -> None:
        async with kind.opened(tmp_path) as runtime:
            for _ in range(2):
                await trio.to_thread.run_sync(step.wait)
                await kind.check(runtime)
        await trio.to_thread.run_sync(step.wait)
        async with kind.opened(tmp_path) as runtime:
            for _ in range(rounds):
                await kind.check(runtime)

    def run(kind: Kind, rounds: int) -> None:
        try:
            trio.run(work, kind, rounds)
        except BaseException as error:  # noqa: BLE001  the test raises it
            failures.append(error)
            step.abort()

    threads = [threading.Thread(target=run, args=each) for each in ((GERMAN, 1), (SPANISH, 3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


@pytest.mark.promise("service.own-settings")
async def test_documents_are_read_in_the_languages_of_their_store(tmp_path: Path) -> None:
    ann = Principal(agent_id="x", user="ann")
    async with GERMAN.opened(tmp_path) as first, SPANISH.opened(tmp_path) as second:
        for runtime, kind in ((first, GERMAN), (second, SPANISH)):
            async with open_ingestion(runtime, ann, "docs") as ingestion:
                assert ingestion.parsers.languages == (kind.language,)


MIXED = (
    "ventanas abiertas en la cocina. perro corre por habitaciones. Regen fällt auf Dächer. "
    "billige Wohnungen suchen viele. perro corre por habitaciones. lluvia cae sobre tejados. "
    "perro corre por habitaciones. perros duermen en cocinas."
)
"""A text of which other sentences say most when its words are German."""


@pytest.mark.promise("service.own-settings")
async def test_what_an_agent_has_done_beside_the_actors_goes_by_the_settings_of_its_store(
    tmp_path: Path,
) -> None:
    async with GERMAN.opened(tmp_path) as first, SPANISH.opened(tmp_path) as second:
        short = [
            (
                await Agent(runtime, Principal(agent_id="x")).ask(CompressText(text=MIXED, target_ratio=0.4))
            ).text
            for runtime in (first, second)
        ]
    assert short[0].startswith("Regen")
    assert short[1].startswith("ventanas")


FAULTY = """
import os, signal, sys, trio
from greenroom.runtime import open_runtime

async def keep(path, opened, close):
    async with open_runtime(path, actors=[]):
        opened.set()
        await close.wait()

async def main():
    opened, close = trio.Event(), trio.Event()
    async with trio.open_nursery() as second:
        async with trio.open_nursery() as first:
            first.start_soon(keep, sys.argv[1], opened, close)
            await opened.wait()
            await second.start(stay)
            close.set()
        os.kill(os.getpid(), signal.SIGSEGV)

async def stay(task_status):
    async with open_runtime(sys.argv[2], actors=[]):
        task_status.started()
        await trio.sleep_forever()

trio.run(main)
"""


@pytest.mark.quick
@pytest.mark.promise("store.fault")
async def test_a_fault_is_noted_for_a_store_that_is_open_when_the_first_one_was_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    command = [sys.executable, "-c", FAULTY, str(tmp_path / "first"), str(tmp_path / "second")]
    done = await trio.run_process(command, check=False)
    assert done.returncode == -signal.SIGSEGV
    for name in ("first", "second"):
        async with open_runtime(tmp_path / name, actors=[]):
            assert ("died of a fault" in caplog.text) is (name == "second")


MAY_CHANGE = {"FolderLock.notes_faults"}
"""Attributes of classes that change: which store has `faulthandler`, of which Python has one a process."""


@pytest.mark.promise("service.own-settings")
def test_no_module_and_no_class_keeps_what_changes_while_the_program_runs() -> None:
    changed: set[str] = set()
    for portion in ("runtime", "actors"):
        for path in (ROOT / portion).rglob("*.py"):
            tree = ast.parse(path.read_text())
            classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Global):
                    changed.update(f"{path.name}: {name}" for name in node.names)
                targets = node.targets if isinstance(node, ast.Assign) else []
                changed.update(
                    f"{target.value.id}.{target.attr}"
                    for target in targets
                    if isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id in classes
                )
    assert changed == MAY_CHANGE
