"""The index says what the documents say, whatever happened to both, crashes included."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from support.committers import crash_at, full
from support.effort import by_night
from support.indexing import (
    DIMENSIONS,
    SMALL,
    Change,
    Check,
    Drop,
    DropSpace,
    Embed,
    Indexed,
    Load,
    Look,
    Partition,
    Put,
    Rebuild,
    ShelvedDocument,
    expected,
)
from support.virtual_time import run_in_virtual_time

from greenroom.actors.search.embedding.vector_messages import Vectors
from greenroom.runtime import Address, InlineCommitter, RuntimeOptions, StorageFullError, open_runtime
from greenroom.testing import CrashError, VirtualClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenroom.runtime import Message, Runtime, Store, WriteBatch

pytestmark = pytest.mark.slow

R = TypeVar("R")
HERE = Address("indexed", "here")
WORDS = st.sampled_from(
    [*"abcdefgh", "fox", "foxes", "snake_case", "2024-05-08", "東京都", "why?", "\U0001f600"]
)
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)
DRAFTS = st.fixed_dictionaries(
    {
        "partition": st.builds(Partition, owner=st.sampled_from(["u", "v"])),
        "namespace": st.sampled_from(["user:u", "user:u:x"]),
        "text": TEXTS,
        "key": st.sampled_from(["", "k1", "getUserName"]),
        "author": st.sampled_from(["", "Ann", "Bob Lee"]),
        "tags": st.lists(st.sampled_from(["red", "deep blue", "x\ny"]), max_size=2).map(tuple),
        "kind": st.sampled_from(["semantic", "episodic"]),
        "conversation": st.sampled_from([None, "one", "two"]),
        "position": st.none() | st.integers(-3, 3),
        "number": st.integers(1, 3),
        "created_at": st.integers(0, 9),
        "updated_at": st.integers(0, 9),
        "expires_at": st.none() | st.integers(0, 9),
        "importance": st.sampled_from([0.0, 0.5, 1.0]),
        "supersedes": st.none() | st.integers(1, 3),
    }
)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "importance": st.sampled_from([0.25, 0.75]),
        "uses": st.integers(0, 3),
        "last_used": st.integers(1, 9),
        "rating": st.sampled_from([-1.0, 0.5]),
        "expires_at": st.none() | st.integers(0, 9),
        "supersedes": st.integers(0, 3),
    },
)
SPACES = st.sampled_from(["static", "onnx"])
VECTORS = st.builds(
    Vectors,
    scale=st.sampled_from([0.5, 0.25]),
    values=st.binary(min_size=DIMENSIONS, max_size=DIMENSIONS),
    tokens=st.none() | st.binary(min_size=2 * DIMENSIONS, max_size=2 * DIMENSIONS),
    token_scale=st.just(0.5),
)
PLACES = st.integers(0, 30)
STEPS = {
    "put": st.lists(DRAFTS, min_size=1, max_size=9),
    "drop": st.lists(PLACES, max_size=9),
    "change": st.tuples(PLACES, CHANGES),
    "embed": st.tuples(SPACES, st.lists(st.tuples(PLACES, VECTORS), max_size=4)),
    "drop_space": SPACES,
    "load": st.none(),
    "wait": st.sampled_from([1, 2, 3, 5, 8, 12, 1_000]),
    "rebuild": st.none(),
}
OFTEN = [*STEPS, *["put", "drop", "change", "wait"] * 4, *["embed"] * 2]
LIVES = st.lists(
    st.sampled_from(OFTEN).flatmap(lambda kind: st.tuples(st.just(kind), STEPS[kind])),
    min_size=10,
    max_size=40,
)


class Model(msgspec.Struct):
    """The documents in order of insertion, and their vectors."""

    documents: dict[int, ShelvedDocument] = msgspec.field(default_factory=dict)
    vectors: dict[str, dict[int, Vectors]] = msgspec.field(default_factory=dict)
    last: int = 0

    def copy(self) -> Model:
        vectors = {space: dict(given) for space, given in self.vectors.items()}
        return Model(dict(self.documents), vectors, self.last)

    def picture(self) -> dict[str, Any]:
        return expected(self.documents.values(), self.vectors)

    def put(self, drafts: Sequence[dict[str, Any]]) -> Put:
        documents = [ShelvedDocument(id=self.last + place, **draft) for place, draft in enumerate(drafts, 1)]
        self.last += len(drafts)
        self.documents.update((document.id, document) for document in documents)
        return Put(documents)

    def drop(self, places: Sequence[int]) -> Drop:
        dropped = list(dict.fromkeys(self.ids_at(places)))
        for number in dropped:
            del self.documents[number]
            for given in self.vectors.values():
                given.pop(number, None)
        return Drop([*dropped, 999_999])

    def change(self, what: tuple[int, dict[str, Any]]) -> Change | None:
        place, values = what
        for number in self.ids_at([place]):
            self.documents[number] = msgspec.structs.replace(self.documents[number], **values)
            return Change(number, values)
        return None

    def embed(self, what: tuple[str, Sequence[tuple[int, Vectors]]]) -> Embed:
        space, given = what
        ids = list(self.documents)
        vectors = {ids[place]: vector for place, vector in given if place < len(ids)}
        known = self.vectors.setdefault(space, {})
        for number, vector in vectors.items():
            kept = known.get(number)
            if vector.tokens is None and kept is not None:  # tokens that are there stay
                known[number] = msgspec.structs.replace(vector, tokens=kept.tokens)
            else:
                known[number] = vector
        return Embed(space, list(vectors.items()))

    def drop_space(self, space: str) -> DropSpace:
        self.vectors.pop(space, None)
        return DropSpace(space)

    def load(self, _: None) -> Load:
        return Load()

    def rebuild(self, _: None) -> Rebuild:
        return Rebuild()

    def ids_at(self, places: Sequence[int]) -> list[int]:
        ids = list(self.documents)
        return [ids[place] for place in places if place < len(ids)]


class Indexes(RuleBasedStateMachine):
    """Lives of an actor, and what its index must say."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.model = Model()
        self.possible: Model | None = None

    def teardown(self) -> None:
        self.directory.cleanup()

    @rule(steps=LIVES, look=st.booleans())
    def live(self, *, steps: Sequence[tuple[str, Any]], look: bool) -> None:
        self._simulate(InlineCommitter(), steps, look=look)

    @rule(steps=LIVES, commit=st.integers(1, 40), after=st.booleans())
    def crash(self, *, steps: Sequence[tuple[str, Any]], commit: int, after: bool) -> None:
        try:
            self._simulate(crash_at(commit, after=after), steps, look=False)
        except* CrashError:
            pass
        self._simulate(InlineCommitter(), [], look=True)

    @rule(steps=LIVES, commits=st.sets(st.integers(1, 40), max_size=3))
    def run_out_of_room(self, *, steps: Sequence[tuple[str, Any]], commits: set[int]) -> None:
        count = 0

        def fault(store: Store, works: Sequence[WriteBatch]) -> None:
            nonlocal count
            count += 1
            if count in commits:
                for work in works:
                    work.error = full()
            store.commit(works)

        self._simulate(InlineCommitter(fault), steps, look=True)

    def _simulate(self, committer: InlineCommitter, steps: Sequence[tuple[str, Any]], *, look: bool) -> None:
        async def life() -> None:
            async with open_runtime(
                Path(self.directory.name) / "data",
                actors=[Indexed],
                options=RuntimeOptions(durability="process"),
                clock=VirtualClock(),
                committer=committer,
            ) as runtime:
                if self.possible is not None:
                    await self._decide(runtime)
                for kind, what in steps:
                    if kind == "wait":  # so that upkeep gets so far and no further
                        for _ in range(what):
                            await trio.lowlevel.checkpoint()
                        continue
                    following = self.model.copy()
                    message = getattr(following, kind)(what)
                    if message is not None:
                        self.possible = following
                        with suppress(StorageFullError):
                            await runtime.ask(HERE, message)
                            self.model = following
                        self.possible = None
                for pause in (0, 60) if look else ():
                    await trio.sleep(pause)
                    assert await _when_there_is_room(runtime, Look()) == self.model.picture()
                    assert await _when_there_is_room(runtime, Check()) == []

        run_in_virtual_time(life)

    async def _decide(self, runtime: Runtime) -> None:
        """Find out whether the step took effect that was under way at the crash: whole, or not at all."""
        found = await runtime.ask(HERE, Look())
        assert self.possible is not None
        if found == self.possible.picture():
            self.model = self.possible
        else:
            assert found == self.model.picture()
            self.model.last = self.possible.last
        self.possible = None


async def _when_there_is_room(runtime: Runtime, message: Message[R]) -> R:
    """Return the reply to a question, which is not given on the way to a state that could not be kept."""
    while True:
        with suppress(StorageFullError):
            return await runtime.ask(HERE, message)


@pytest.mark.promise("index.equals-data")
@pytest.mark.parametrize("sizes", ["small", "real"])
def test_index_equals_the_documents_after_any_life(sizes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if sizes == "small":
        for name, value in SMALL.items():
            monkeypatch.setattr(f"greenroom.actors.search.index.{name}", value)
    run_state_machine_as_test(
        Indexes,
        settings=settings(
            max_examples=by_night(300, by_day=12 if sizes == "small" else 2),
            stateful_step_count=4,
            suppress_health_check=list(HealthCheck),
        ),
    )
