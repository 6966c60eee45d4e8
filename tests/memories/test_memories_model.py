"""Memories of all tools against a plain-Python model, with crashes and failed commits at any commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import hypothesis.strategies as st
import msgspec
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, settings
from hypothesis.stateful import rule, run_state_machine_as_test
from msgspec import UNSET
from support.effort import by_night
from support.lives import ENDINGS, SECOND, Action, Lives, answer_to
from support.memory_model import NAMESPACES, PEOPLE, ROOTS, Memories, exported, shown

from greenroom.actors import Agent, DeleteMemory, MemoryFilters, MemoryView, SetMemory
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.requests import requests
from greenroom.actors.memories.requests.transfer import ExportPage
from greenroom.runtime import Message, Refusal, RuntimeClient
from greenroom.testing import Fault, VirtualClock

pytestmark = pytest.mark.slow

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
SEED: list[Action] = [
    ("store", "alice", "team:x", "k", "common one", None, None, None, None),
    ("store", "bob", "team:x", "l", "common two", "public", None, 0, "k"),
    ("store", "alice", "user:alice", "k", "common long one", None, None, None, None),
    ("update", "alice", "user:alice", "k", "common two", 1),
]
"""What the first life begins with, so that there is something to change and to hide."""


class Life:
    """One opening of the store: asks as people do, and looks at everything they can see."""

    def __init__(self, runtime: RuntimeClient, clock: VirtualClock) -> None:
        self._runtime = runtime
        self._clock = clock
        self._alice = Agent(runtime, PEOPLE["alice"])

    async def act(self, action: Action) -> str:
        name, *arguments = action
        do: Callable[..., Awaitable[Any]] = getattr(self, f"_{name}")
        return await answer_to(do(*arguments))

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


class Machine(Lives):
    """Memories, by what they are remembered, recalled and exported with."""

    opening: ClassVar[dict[str, Any]] = {"embedder": "none"}
    looks_every = 8
    looking_writes = True  # that memories were used is written down
    autojump = 0

    def __init__(self) -> None:
        super().__init__(Memories())

    @rule(actions=st.lists(ACTIONS, min_size=4, max_size=16), ending=ENDINGS, at=st.integers(1, 16))
    def live(self, actions: list[Action], ending: Fault | None, at: int) -> None:
        is_new = not self.latest.writes
        self.lead([*SEED, *actions] if is_new else actions, ending, at)

    def life(self, runtime: RuntimeClient) -> Life:
        return Life(runtime, self.clock)

    def apply(self, model: Any, action: Action) -> str:
        name, *arguments = action
        answer: str = getattr(model, name)(self.clock.now(), *arguments)
        return answer

    def expected(self, model: Any, seen: Any) -> Any:
        return expected_of(model, self.clock.now(), seen)

    async def pause(self) -> None:
        await trio.sleep(SETTLED)


@pytest.mark.promise(
    "memory.life", "memory.namespaces", "memory.scopes-of-sight", "memory.found", "memory.ratings",
    "memory.expiry", "memory.overwrite", "runtime.all-or-nothing", "store.kill",
)  # fmt: skip
def test_memories_agree_with_the_model() -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=by_night(300, by_day=12),
            stateful_step_count=5,
            suppress_health_check=list(HealthCheck),
        ),
    )
