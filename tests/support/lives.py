"""Lives of one store beside a plain-Python model: each is closed, crashes, or finds the disk full."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import hypothesis.strategies as st
import trio
import trio.testing
from hypothesis.stateful import RuleBasedStateMachine

from greenroom.actors import open_greenroom
from greenroom.runtime import InlineCommitter, Refusal, RuntimeOptions, StorageFullError
from greenroom.testing import CrashError, Fault, FaultyDisk, VirtualClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Sequence

    from greenroom.runtime import RuntimeClient

SECOND = 1_000_000
ENDINGS = st.sampled_from([None, "crash before", "crash after", "full"])
Action = tuple[Any, ...]
"""Its name and its arguments; ("tick", seconds) lets time pass."""


class Model(Protocol):
    """What the store must hold."""

    def copy(self) -> Model:
        """Return one that may change alone."""


class Life(Protocol):
    """One opening of the store."""

    async def act(self, action: Action) -> str:
        """Do it and return what was answered, as `answer_to` puts it."""

    async def look(self) -> Any:
        """Return everything that is there, as those see it who may."""


async def answer_to(asked: Awaitable[Any]) -> str:
    """Return what a request brings: "done" or a text of its own, a refusal's code, or "full"."""
    try:
        return str(await asked or "done")
    except Refusal as refusal:
        return refusal.code
    except StorageFullError:
        return "full"


class Lives(RuleBasedStateMachine):
    """After each life the next must see exactly what was answered.

    Attributes:
        opening: Options of `open_greenroom` besides those that the lives need.
        looks_every: After how many actions everything is looked at, besides at the beginning and the end.
        looking_writes: Whether a look leaves records, so that the fault can strike there too.
        autojump: Trio's clock jumps after so many idle seconds.
    """

    opening: ClassVar[dict[str, Any]] = {}
    looks_every: ClassVar[float] = math.inf
    looking_writes: ClassVar[bool] = False
    autojump: ClassVar[float] = math.inf

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.clock = VirtualClock()
        self._models = [model]  # several after a crash: with and without the action it interrupted

    @property
    def latest(self) -> Any:
        """The model of all that was done, the action that a crash interrupted included."""
        return self._models[-1]

    def teardown(self) -> None:
        self._folder.cleanup()

    # -- what a test says ----------------------------------------------------

    def life(self, runtime: RuntimeClient) -> Life:
        """Return who lives in the store."""
        raise NotImplementedError

    def apply(self, model: Any, action: Action) -> str:
        """Change the model and return what must be answered."""
        raise NotImplementedError

    def expected(self, model: Any, seen: Any) -> Any:
        """Return what a look must see; ``seen`` is what it saw, for what the model leaves open."""
        raise NotImplementedError

    async def pause(self) -> None:
        """Let a little time pass before an action."""
        self.clock.jump(1_000)

    # -- lives ---------------------------------------------------------------

    def lead(self, actions: Sequence[Action], ending: Fault | None, at: int) -> None:
        """Live once; the ending comes at the ``at``-th commit."""
        clock = trio.testing.MockClock(autojump_threshold=self.autojump)
        trio.run(self._live, actions, FaultyDisk(ending, at), clock=clock)

    async def _live(self, actions: Sequence[Action], saboteur: FaultyDisk) -> None:
        self.clock.jump(SECOND)
        try:
            async with open_greenroom(
                Path(self._folder.name) / "store",
                clock=self.clock,
                committer=InlineCommitter(saboteur),
                options=RuntimeOptions(durability="process"),
                **self.opening,
            ) as runtime:
                life = self.life(runtime)
                await self._compare(life)
                for number, action in enumerate(actions, start=1):
                    await self._do(life, action, saboteur)
                    if number % self.looks_every == 0 or number == len(actions):
                        await self._compare(life)
        except* CrashError:
            assert saboteur.struck
        self.clock.jump(round(trio.current_time() * SECOND))  # the next life's time begins at 0

    async def _do(self, life: Life, action: Action, saboteur: FaultyDisk) -> None:
        await self.pause()
        if action[0] == "tick":
            self.clock.jump(action[1] * SECOND)
            return
        before = self._models
        after = [model.copy() for model in before]
        wanted = [self.apply(model, action) for model in after]
        self._models = [*before, *after]
        struck_before = saboteur.struck
        answer = await life.act(action)  # a crash leaves from here, and all of these models stay possible
        if answer == "full":
            assert saboteur.struck > struck_before
            self._models = before
        else:
            assert answer in wanted, action
            self._models = [model for model, text in zip(after, wanted, strict=True) if text == answer]

    async def _compare(self, life: Life) -> None:
        try:
            seen = await life.look()
        except StorageFullError:
            if not self.looking_writes:
                raise
            seen = await life.look()
        possible = [model for model in self._models if self.expected(model, seen) == seen]
        assert possible, list(_differences(seen, self.expected(self._models[-1], seen)))
        self._models = (
            possible  # several where a crash interrupted what nobody sees, as of what expired meanwhile
        )


def _differences(seen: Any, wanted: Any, *place: Any) -> Iterator[tuple[Any, ...]]:
    """Yield where both differ, and what stands there in each."""
    if isinstance(seen, dict) and isinstance(wanted, dict) and seen.keys() == wanted.keys():
        for name in seen:
            yield from _differences(seen[name], wanted[name], *place, name)
    elif seen != wanted:
        yield place, seen, wanted
