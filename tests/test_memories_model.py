"""Memories of all tools against a plain-Python model, with crashes and failed commits at any commit."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from msgspec import UNSET
from support.clocks import VirtualClock
from support.memory_model import NAMESPACES, PEOPLE, ROOTS, SECOND, Memories, exported, shown
from support.sabotage import Crash, Saboteur

from greenroom.actors import Agent, DeleteMemory, SetMemory, open_greenroom
from greenroom.actors._namespaces import memory_address
from greenroom.actors.requests import _memories as requests
from greenroom.actors.requests._exchange import ExportPage
from greenroom.actors.requests._memory_replies import MemoryFilters, MemoryView
from greenroom.runtime import Doors, InlineCommitter, Message, Refusal, RuntimeOptions, StorageFullError

people = st.sampled_from(sorted(PEOPLE))
writers = st.sampled_from(["alice", "alice", "alice", "bob", "eve"])
namespaces = st.sampled_from(["team:x"] * 9 + ["user:alice"] * 6 + ["agent:a", *NAMESPACES])
keys = st.sampled_from(["k", "k", "l"])
texts = st.sampled_from(["common one", "common two", "common long one"])
lifetimes = st.sampled_from([None, None, 1, 100])
expected_versions = st.sampled_from([None, None, None, 0, 1, 2])
scopes = st.sampled_from([None, None, "private", "shared", "public"])
ACTIONS = st.one_of(
    *[
        st.tuples(
            st.just("store"), writers, namespaces, keys, texts, scopes, lifetimes, expected_versions,
            st.sampled_from([None, "k", "l"]),
        )
    ] * 3,
    st.tuples(st.just("update"), writers, namespaces, keys, texts, expected_versions),
    st.tuples(st.just("forget"), writers, namespaces, keys, st.booleans()),
    st.tuples(st.just("rate"), people, namespaces, keys, st.sampled_from([-1.0, 0.5, 1.0])),
    st.tuples(st.just("keep"), keys, texts, lifetimes),
    st.tuples(st.just("delete"), keys),
    st.tuples(st.just("tick"), st.sampled_from([1, 99, 101])),
)  # fmt: skip
SETTLED = 0.25
"""Seconds in which timers that are due have been handled, also when their first commit failed."""
SEED: list[tuple[Any, ...]] = [
    ("store", "alice", "team:x", "k", "common one", None, None, None, None),
    ("store", "bob", "team:x", "l", "common two", "public", None, 0, "k"),
    ("store", "alice", "user:alice", "k", "common long one", None, None, None, None),
    ("update", "alice", "user:alice", "k", "common two", 1),
]
"""What the first life begins with, so that there is something to change and to hide."""
ENDINGS = st.sampled_from(["close", "crash before", "crash after", "full"])


class Life:
    """One opening of the store: asks as people do, and looks at everything they can see."""

    def __init__(self, runtime: Doors, clock: VirtualClock) -> None:
        self._runtime = runtime
        self._clock = clock
        self._alice = Agent(runtime, PEOPLE["alice"])

    async def act(self, action: tuple[Any, ...]) -> str:
        name, *arguments = action
        do: Callable[..., Awaitable[Any]] = getattr(self, f"_{name}")
        try:
            return str(await do(*arguments) or "done")
        except Refusal as refusal:
            return refusal.code
        except StorageFullError:
            return "full"

    async def ask(self, who: str, namespace: str, message: Message[Any]) -> Any:
        return await self._runtime.ask(memory_address(namespace), message, principal=PEOPLE[who])

    async def _id_of(self, who: str, namespace: str, key: str) -> str:
        try:
            read = await self.ask(who, namespace, requests.ReadMemory(namespace=namespace, key=key))
        except Refusal:
            return "00000000-0000-8000-8000-000000000000"
        return str(read.memory.memory_id)

    async def _store(
        self,
        who: str,
        namespace: str,
        key: str,
        text: str,
        scope: str | None,
        lifetime: int | None,
        expected: int | None,
        target: str | None,
    ) -> None:
        metadata: dict[str, str] = {} if scope is None else {"scope": scope}
        if lifetime is not None:
            ends = self._clock.now() + lifetime * SECOND
            metadata["expiry"] = (
                dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=ends)
            ).isoformat()
        request = requests.StoreMemory(
            content=full(text),
            key=key,
            namespace=namespace,
            metadata=msgspec.Raw(msgspec.json.encode(metadata)),
            expected_version=expected,
            supersedes=None if target is None else await self._id_of(who, namespace, target),
        )
        await self.ask(who, namespace, request)

    async def _update(self, who: str, namespace: str, key: str, text: str, expected: int | None) -> None:
        request = requests.UpdateMemory(
            namespace=namespace, key=key, content=full(text), expected_version=expected
        )
        await self.ask(who, namespace, request)

    async def _forget(self, who: str, namespace: str, key: str, purge: bool) -> None:  # noqa: FBT001
        request = requests.ForgetMemory(namespace=namespace, key=key, purge=purge, confirm=True)
        await self.ask(who, namespace, request)

    async def _rate(self, who: str, namespace: str, key: str, rating: float) -> None:
        await self.ask(who, namespace, requests.RateMemory(namespace=namespace, key=key, rating=rating))

    async def _keep(self, key: str, text: str, lifetime: int | None) -> None:
        raw = msgspec.Raw(msgspec.json.encode(full(text)))
        await self._alice.ask(SetMemory(key=key, value=raw, expires_in=lifetime))

    async def _delete(self, key: str) -> str:
        return "existed" if (await self._alice.ask(DeleteMemory(key=key))).existed else "missing"

    async def look(self) -> dict[tuple[str, str], Any]:
        """Return what each of the people sees below each root."""
        return {(who, root): await self._look(who, root) for who in PEOPLE for root in ROOTS}

    async def _look(self, who: str, root: str) -> dict[str, Any]:
        listed = await self._listed(who, root, superseded=True)
        found = await self.ask(who, root, requests.FindMemories(text="common", limit=50))
        exact = await self.ask(who, root, requests.FindMemories(text="common", mode="exact", limit=50))
        statistics = await self.ask(who, root, requests.MemoryStats(namespace=root))
        return {
            "listed": [seen(view, listed) for view in listed],
            "unhidden": sorted(view.memory_id for view in await self._listed(who, root)),
            "found": ids_of(found),
            "exact": ids_of(exact),
            "visible": sorted(view.memory_id for view in listed if view.superseded_by is None),
            "counted": statistics.memories,
            "superseded": statistics.superseded,
            "exported": await self._exported(who, root),
            "versions": {
                (namespace, key): await self._versions(who, namespace, key)
                for namespace in NAMESPACES
                if namespace.startswith(root)
                for key in ("k", "l")
            },
        }

    async def _listed(self, who: str, root: str, *, superseded: bool = False) -> list[MemoryView]:
        listed: list[MemoryView] = []
        cursor = None
        while True:
            filters = MemoryFilters(superseded=superseded)
            request = requests.ListMemories(namespace=root, filters=filters, limit=2, cursor=cursor)
            page = await self.ask(who, root, request)
            listed += page.memories
            cursor = page.next_cursor
            if cursor is None:
                return listed

    async def _exported(self, who: str, root: str) -> list[tuple[str, str, str | None]]:
        lines = (await self.ask(who, root, ExportPage(namespace=root))).lines
        every = [msgspec.json.decode(line) for line in lines]
        found: list[tuple[str, str, str | None]] = [
            (line["namespace"], bare(line["key"]), bare(line["supersedes"]) if "supersedes" in line else None)
            for line in every
        ]
        return sorted(found, key=str)

    async def _versions(self, who: str, namespace: str, key: str) -> list[Any]:
        """Return the versions under a key, and the texts of those that can be read."""
        try:
            history = await self.ask(who, namespace, requests.ListVersions(namespace=namespace, key=key))
        except Refusal:
            return []
        result: list[Any] = []
        for version in history.versions:
            text = None
            if version.deleted_at is None:
                request = requests.ReadMemory(memory_id=version.memory_id, version=version.version)
                text = text_of((await self.ask(who, namespace, request)).memory)
            result.append((version.version, version.deleted_at is not None, text))
        return result


def bare(key: str) -> str:
    """Return a key without the owner's name that an export gives those that several have."""
    return key.partition("~")[0]


def ids_of(found: Any) -> list[str]:
    assert found.total == len(found.hits)
    return sorted(hit.memory.memory_id for hit in found.hits)


def full(text: str) -> str:
    """Return the text that an action stands for; long ones are compressed."""
    return text * 1_000 if "long" in text else text


def text_of(view: MemoryView) -> str:
    text = view.content if view.value is UNSET else msgspec.json.decode(view.value)
    short = str(text)[: len("common long one")]
    assert text == full(short)
    return short


def seen(view: MemoryView, listed: list[MemoryView]) -> dict[str, Any]:
    places = {one.memory_id: place for place, one in enumerate(listed)}
    return {
        "namespace": view.namespace,
        "key": view.key,
        "text": text_of(view),
        "version": view.version,
        "scope": view.scope,
        "hidden": view.superseded_by is not None,
        "supersedes": None if view.supersedes is None else places[view.supersedes],
        "ratings": view.ratings,
        "rating": view.rating,
    }


def expected_of(model: Memories, now: int, look: dict[tuple[str, str], Any]) -> dict[Any, Any]:
    """Return what `Life.look` must return; only ids are taken from what it did."""
    result: dict[Any, Any] = {}
    for who in PEOPLE:
        for root in ROOTS:
            visible = model.visible(now, who, root)
            ids = look[who, root]["visible"]
            versions: dict[Any, Any] = {}
            for namespace in NAMESPACES:
                if namespace.startswith(root):
                    for key in ("k", "l"):
                        versions[namespace, key] = [
                            (number, memory.deleted, None if memory.deleted else text)
                            for memory in model.history(now, who, namespace, key)
                            for number, text in memory.readable(now).items()
                        ]
            result[who, root] = {
                "listed": [shown(memory, visible) for memory in visible],
                "found": ids,
                "exact": ids,
                "visible": ids,
                "unhidden": ids,
                "counted": len(visible),
                "superseded": len(visible) - len(ids),
                "exported": sorted((exported(memory, visible) for memory in visible), key=str),
                "versions": versions,
            }
    return result


class Machine(RuleBasedStateMachine):
    """Lives of one store, one after the other; after each, the next must see exactly what was answered."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._clock = VirtualClock()
        self._models = [Memories()]  # two after a crash: with and without the action it interrupted

    def teardown(self) -> None:
        self._folder.cleanup()

    @rule(actions=st.lists(ACTIONS, min_size=4, max_size=16), ending=ENDINGS, at=st.integers(1, 16))
    def live(self, actions: list[tuple[Any, ...]], ending: str, at: int) -> None:
        if not self._models[-1].writes:
            actions = [*SEED, *actions]
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(self._live, actions, Saboteur(ending, at), clock=clock)

    async def _live(self, actions: list[tuple[Any, ...]], saboteur: Saboteur) -> None:
        self._clock.jump(1_000_000)
        try:
            async with open_greenroom(
                Path(self._folder.name) / "store",
                clock=self._clock,
                committer=InlineCommitter(saboteur),
                options=RuntimeOptions(durability="process"),
                embedder="none",
            ) as runtime:
                life = Life(runtime, self._clock)
                await self._compare(life)
                for number, action in enumerate(actions, start=1):
                    await self._do(life, action, saboteur)
                    if number % 8 == 0 or number == len(actions):
                        await self._compare(life)
        except* Crash:
            assert saboteur.struck
        self._clock.jump(round(trio.current_time() * SECOND))  # the next life's time begins at 0

    async def _do(self, life: Life, action: tuple[Any, ...], saboteur: Saboteur) -> None:
        await trio.sleep(SETTLED)
        name, *arguments = action
        if name == "tick":
            self._clock.jump(arguments[0] * SECOND)
            return
        model = self._models[0]
        changed = model.copy()
        wanted = getattr(changed, name)(self._clock.now(), *arguments)
        self._models = [model, changed]
        struck_before = saboteur.struck
        answer = await life.act(action)  # a crash leaves from here, and both models stay possible
        if answer == "full":
            assert saboteur.struck > struck_before
            self._models = [model]
        else:
            assert answer == wanted, action
            self._models = [changed]

    async def _compare(self, life: Life) -> None:
        try:
            look = await life.look()
        except StorageFullError:  # that memories were used is written down, so the fault can strike here too
            look = await life.look()
        now = self._clock.now()
        possible = [model for model in self._models if expected_of(model, now, look) == look]
        if not possible:
            wanted = expected_of(self._models[-1], now, look)
            differ = [
                (place, name, seen_there[name], wanted[place][name])
                for place, seen_there in look.items()
                for name in seen_there
                if seen_there[name] != wanted[place][name]
            ]
            assert not differ, differ
        self._models = possible[:1]


@pytest.mark.promise(
    "memory.life", "memory.namespaces", "memory.scopes-of-sight", "memory.found", "memory.ratings",
    "memory.expiry", "memory.overwrite", "runtime.all-or-nothing", "store.kill",
)  # fmt: skip
def test_memories_agree_with_the_model() -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=25,
            stateful_step_count=5,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
