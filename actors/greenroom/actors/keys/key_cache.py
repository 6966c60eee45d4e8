"""The keys as one process knows them: whom a key lets in, and who is told when it does not any more.

A ring is filled by a query and again after each change that the bus tells of, so the keeper is not asked
when a key is used, and a revocation reaches every process as fast as any other change.

Invariants:

- Nobody is let in by a key that has expired by the clock, whatever the ring has heard.
- Whoever holds a place because of a key is told once, when the ring first sees that the key opens nothing.
- Once there is any key in the store, also one that ended, everybody needs one: the last key that ends
  must not open the door.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from greenroom.actors.auth.key_format import PURPOSE, fits, new_key, read_key
from greenroom.actors.base.times import SECOND
from greenroom.actors.keys.actor import CHANGED, KEEPER
from greenroom.actors.schemas.keys import NoteKeyUses, ReadKeys
from greenroom.runtime import GreenroomError, RuntimeClosedError, SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from greenroom.actors.auth.grants import KeyRecord
    from greenroom.runtime import Clock, Doors

logger = logging.getLogger(__name__)

USES_SECONDS: Final = 60.0
"""How often uses are written down, and how long the ring goes without a look at the clock."""

OPEN_SECONDS: Final = 3_600.0
"""How often it is written down that something is still open because of a key, which is a use, too."""

RETRY_SECONDS: Final = 0.5
_NOTHING: Final = bytes(32)


class KeyRefusedError(Exception):
    """A key opens nothing. Its sentence says why, but never which part of a key is wrong."""


class KeyRing:
    """The keys of a store, in one process. `open_key_ring` makes it.

    Args:
        doors: Where the keeper is asked.
        required: Whether a key is needed also when there is none in the store.
        clock: Tells when keys expire.
    """

    def __init__(self, doors: Doors, *, required: bool, clock: Clock) -> None:
        self._doors = doors
        self._always = required
        self._clock = clock
        self._keys: dict[str, KeyRecord] = {}
        self._pepper = b""
        self._uses: dict[str, int] = {}
        self._places: set[Place] = set()
        self._nobody = new_key()

    def __repr__(self) -> str:
        return f"<KeyRing of {len(self._keys)} keys>"

    def now(self) -> int:
        """Return the time by the clock that keys expire by."""
        return self._clock.now()

    @property
    def is_empty(self) -> bool:
        """Whether there never was a key."""
        return not self._keys

    @property
    def required(self) -> bool:
        """Whether everybody needs a key."""
        return self._always or bool(self._keys)

    def authenticate(self, text: str) -> KeyRecord:
        """Return the key that somebody shows.

        Raises:
            KeyRefusedError: it opens nothing.
        """
        shown = read_key(text)
        known = None if shown is None else self._keys.get(shown.key_id)
        # What is not there takes as long as what is wrong.
        right = fits(shown or self._nobody, self._pepper, _NOTHING if known is None else known.digest)
        if known is None or not right:
            raise KeyRefusedError("this is no key of this server")
        self._check(known)
        self._uses[known.key_id] = self._clock.now()
        return known

    def may_be_new(self, text: str) -> bool:
        """Return whether what somebody shows looks like a key that this ring has not heard of."""
        shown = read_key(text)
        return shown is not None and shown.key_id not in self._keys

    def find(self, key_id: str) -> KeyRecord:
        """Return a key that opened a connection before.

        Raises:
            KeyRefusedError: it opens nothing any more.
        """
        known = self._keys.get(key_id)
        if known is None:
            raise KeyRefusedError("this is no key of this server")
        self._check(known)
        return known

    @contextmanager
    def place(
        self, key_id: str | None, end: Callable[[str], None], *, until: int | None = None
    ) -> Iterator[None]:
        """Hold a place because of a key while the block runs, or because none is needed (None).

        Args:
            key_id: The key.
            end: Called once, with a sentence, when that holds no more; it must not wait.
            until: Given, it is no key of ours that holds the place, and it ends within a minute of this
                time (microseconds since 1970).
        """
        held = Place(end, key_id, until)
        self._places.add(held)
        try:
            self._look_at(held)
            yield
        finally:
            self._places.discard(held)

    def _check(self, key: KeyRecord) -> None:
        status = key.status(self._clock.now())
        if status != "active":
            raise KeyRefusedError(f"the key {key.key_id} is {status}")

    def _look_at(self, place: Place) -> None:
        """Take a place away that nothing holds any more."""
        if place.until is not None:
            if self._clock.now() >= place.until:
                place.leave("the token has expired")
        elif place.key_id is None:
            if self.required:
                place.leave("a key is needed from now on")
        else:
            try:
                self.find(place.key_id)
            except KeyRefusedError as error:
                place.leave(str(error))

    # -- keeping up ------------------------------------------------------------------------------

    async def load(self) -> None:
        """Read the keys, and tell those whose key opens nothing any more; raises as `Doors.ask`."""
        read = await self._doors.ask(KEEPER, ReadKeys())
        self._pepper = self._doors.derive(PURPOSE)
        self._keys = {record.key_id: record for record in read.keys}
        self._sweep()

    def _sweep(self) -> None:
        for place in list(self._places):
            self._look_at(place)

    async def run(self) -> None:
        """Keep up with changes, the clock and uses, until the runtime is closed."""
        with self._doors.subscriber(0) as subscriber:
            subscriber.add(CHANGED)
            fresh = False  # what changed before the subscription was heard by nobody
            while True:
                try:
                    if not fresh:
                        await self.load()
                        fresh = True
                    with trio.move_on_after(self._pause()):
                        await subscriber.next()
                        fresh = False
                    self._sweep()
                    self._note_uses()
                except RuntimeClosedError:
                    return
                except GreenroomError as error:  # the owner is away; another one comes
                    logger.warning("the API keys could not be read: %s", error)
                    await trio.sleep(RETRY_SECONDS)

    def _pause(self) -> float:
        """Return the seconds until a key expires, or until uses are written down."""
        now = self._clock.now()
        due = [record.expires - now for record in self._keys.values() if record.expires > now]
        return min([USES_SECONDS, *(left / SECOND for left in due)])

    def _note_uses(self) -> None:
        """Have uses written down that are not, once a minute for each key at most."""
        now = self._clock.now()
        for place in self._places:
            key = self._keys.get(place.key_id or "")
            if key is not None and now - (key.last_used or 0) >= OPEN_SECONDS * SECOND:
                self._uses.setdefault(key.key_id, now)
        due = {
            key_id: used
            for key_id, used in self._uses.items()
            if (key := self._keys.get(key_id)) is None or used - (key.last_used or 0) >= USES_SECONDS * SECOND
        }
        if due:
            self._doors.tell(KEEPER, NoteKeyUses(uses=due))
            for key_id, used in due.items():
                del self._uses[key_id]
                if key_id in self._keys:
                    self._keys[key_id] = msgspec.structs.replace(self._keys[key_id], last_used=used)


class Place:
    """What somebody has because of a key."""

    __slots__ = ("_end", "key_id", "until")

    def __init__(self, end: Callable[[str], None], key_id: str | None, until: int | None) -> None:
        self._end: Callable[[str], None] | None = end
        self.key_id = key_id
        self.until = until

    def leave(self, sentence: str) -> None:
        """Take it away; a second time does nothing."""
        end, self._end = self._end, None
        if end is not None:
            end(sentence)


@asynccontextmanager
async def open_key_ring(
    doors: Doors, *, required: bool = False, clock: Clock | None = None
) -> AsyncIterator[KeyRing]:
    """Return the keys of a store, kept up while the block runs; raises as `Doors.ask`.

    Args:
        doors: What `open_greenroom` opened.
        required: Whether a key is needed also when there is none in the store.
        clock: The runtime's.
    """
    ring = KeyRing(doors, required=required, clock=clock if clock is not None else SystemClock())
    await ring.load()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ring.run)
        yield ring
        nursery.cancel_scope.cancel()
