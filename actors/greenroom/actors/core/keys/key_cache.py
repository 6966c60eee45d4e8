"""The API keys cached in one process: authentication, and closing connections of ended keys.

The cache is loaded when it is opened and after each change that the bus publishes. So using a key needs no
actor, and a revocation reaches every process as fast as any other change.

Invariants:

- A key that has expired by the clock authenticates no client, whatever the cache contains.
- Each connection that depends on a key is ended once, when the cache first sees that the key is invalid.
- Once the store has any key, even an ended one, every client needs a key, because the end of the last key
  must not open the server.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

import msgspec
import trio

from greenroom.actors.core.auth.grants import KeyRecord
from greenroom.actors.core.auth.key_format import PURPOSE, matches_digest, new_key, parse_key
from greenroom.actors.core.keys.actor import CHANGED, KEYS_ADDRESS, NoteKeyUses, ReadKeys
from greenroom.actors.core.validation.times import SECOND, to_datetime
from greenroom.runtime import Clock, GreenroomError, RuntimeClient, RuntimeClosedError, SystemClock

logger = logging.getLogger(__name__)

USES_SECONDS: Final = 60.0
"""The seconds between writes of last uses, and the most seconds between looks at the clock."""

OPEN_SECONDS: Final = 3_600.0
"""If an open connection uses a key, the use is written once in this many seconds."""

RETRY_SECONDS: Final = 0.5
_NOTHING: Final = bytes(32)
_NOT_VALID: Final = "the key is not valid on this server"


class KeyRefusedError(Exception):
    """A key is not valid. The sentence does not reveal which part is wrong."""


class KeyEndedError(KeyRefusedError):
    """A key with the right secret has ended; the sentence says when."""


class KeyCache:
    """The keys of a store, cached in one process; made by `open_key_cache`."""

    def __init__(self, runtime: RuntimeClient, *, required: bool, clock: Clock) -> None:
        self._runtime = runtime
        self._always = required
        self._clock = clock
        self._keys: dict[str, KeyRecord] = {}
        self._pepper = b""
        self._uses: dict[str, int] = {}
        self._holds: set[Hold] = set()
        self._dummy = new_key(secrets.choice)

    def __repr__(self) -> str:
        return f"<KeyCache of {len(self._keys)} keys>"

    def now(self) -> int:
        """Return the time of the clock that decides whether keys have expired."""
        return self._clock.now()

    @property
    def is_empty(self) -> bool:
        """Whether the store never had a key."""
        return not self._keys

    @property
    def required(self) -> bool:
        """Whether every client needs a key."""
        return self._always or bool(self._keys)

    def authenticate(self, text: str) -> KeyRecord:
        """Return the record of a valid key that a client presents."""
        presented = parse_key(text)
        known = None if presented is None else self._keys.get(presented.key_id)
        # To check an unknown key takes as long as to check a wrong one.
        right = matches_digest(
            presented or self._dummy, self._pepper, _NOTHING if known is None else known.digest
        )
        if known is None or not right:
            raise KeyRefusedError(_NOT_VALID)
        self._check(known)
        self._uses[known.key_id] = self._clock.now()
        return known

    def find(self, key_id: str) -> KeyRecord:
        """Return the key of an open connection."""
        known = self._keys.get(key_id)
        if known is None:
            raise KeyRefusedError(_NOT_VALID)
        self._check(known)
        return known

    @contextmanager
    def hold(
        self, key_id: str | None, end: Callable[[str], None], *, until: int | None = None
    ) -> Iterator[None]:
        """End a connection when its key ends; without a key, when keys become required.

        A connection with a token has no key, and ends within a minute of ``until`` (microseconds since 1970).
        ``end`` is called once, with the reason as a sentence; it must not wait.
        """
        hold = Hold(end, key_id, until)
        self._holds.add(hold)
        try:
            self._check_hold(hold)
            yield
        finally:
            self._holds.discard(hold)

    def _check(self, key: KeyRecord) -> None:
        now = self._clock.now()
        if key.status(now) == "active":
            return
        how, at = ("expired", key.expires) if key.revoked is None else ("was revoked", key.revoked)
        ended = f"the key {key.key_id} {how} at {to_datetime(at):%Y-%m-%dT%H:%M:%SZ}"
        following = self._keys.get(key.replaced_by or "")
        if following is not None and following.status(now) == "active":
            raise KeyEndedError(f"{ended}; the key {following.key_id} replaces it")
        raise KeyEndedError(f"{ended}; ask for a new one")

    def _check_hold(self, hold: Hold) -> None:
        """End a connection whose key or token is no longer valid."""
        if hold.until is not None:
            if self._clock.now() >= hold.until:
                hold.end("the token has expired")
        elif hold.key_id is None:
            if self.required:
                hold.end("a key is needed from now on")
        else:
            try:
                self.find(hold.key_id)
            except KeyRefusedError as error:
                hold.end(str(error))

    # -- keeping up ------------------------------------------------------------------------------

    async def load(self) -> None:
        """Load the keys; end connections whose key is invalid; raise the errors of `RuntimeClient.ask`."""
        read = await self._runtime.ask(KEYS_ADDRESS, ReadKeys())
        self._pepper = self._runtime.derive(PURPOSE)
        self._keys = {record.key_id: record for record in read.keys}
        self._check_holds()

    def _check_holds(self) -> None:
        for hold in list(self._holds):
            self._check_hold(hold)

    async def run(self) -> None:
        """Process changes, expiry and uses until the runtime is closed."""
        with self._runtime.subscriber(0) as subscriber:
            subscriber.add(CHANGED)
            fresh = False  # changes from before the subscription were missed
            while True:
                try:
                    if not fresh:
                        await self.load()
                        fresh = True
                    with trio.move_on_after(self._pause()):
                        await subscriber.next()
                        fresh = False
                    self._check_holds()
                    self.write_uses(apart=USES_SECONDS)
                except RuntimeClosedError:
                    return
                except GreenroomError as error:  # the owner ended; a takeover follows
                    logger.warning("the API keys could not be read: %s", error)
                    await trio.sleep(RETRY_SECONDS)

    def _pause(self) -> float:
        """Return the seconds until a key expires, or until uses are due to be written."""
        now = self._clock.now()
        due = [record.expires - now for record in self._keys.values() if record.expires > now]
        return min([USES_SECONDS, *(left / SECOND for left in due)])

    def write_uses(self, *, apart: float = 0.0) -> None:
        """Store each use that is ``apart`` seconds later than the stored use; never wait."""
        now = self._clock.now()
        for hold in self._holds:
            key = self._keys.get(hold.key_id or "")
            if key is not None and now - (key.last_used or 0) >= OPEN_SECONDS * SECOND:
                self._uses.setdefault(key.key_id, now)
        due = {
            key_id: used
            for key_id, used in self._uses.items()
            if (key := self._keys.get(key_id)) is None or used - (key.last_used or 0) >= apart * SECOND
        }
        if due:
            self._runtime.tell(KEYS_ADDRESS, NoteKeyUses(uses=due))
            for key_id, used in due.items():
                del self._uses[key_id]
                if key_id in self._keys:
                    self._keys[key_id] = msgspec.structs.replace(self._keys[key_id], last_used=used)


class Hold:
    """A connection that depends on a key or a token."""

    __slots__ = ("_end", "key_id", "until")

    def __init__(self, end: Callable[[str], None], key_id: str | None, until: int | None) -> None:
        self._end: Callable[[str], None] | None = end
        self.key_id = key_id
        self.until = until

    def end(self, sentence: str) -> None:
        """End the connection; a second call does nothing."""
        end, self._end = self._end, None
        if end is not None:
            end(sentence)


@asynccontextmanager
async def open_key_cache(
    runtime: RuntimeClient, *, required: bool = False, clock: Clock | None = None
) -> AsyncIterator[KeyCache]:
    """Open a store's key cache while the block runs; raise the errors of `RuntimeClient.ask`.

    With ``required`` every client needs a key even if the store has none.
    """
    cache = KeyCache(runtime, required=required, clock=clock if clock is not None else SystemClock())
    await cache.load()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cache.run)
        yield cache
        nursery.cancel_scope.cancel()
        with suppress(GreenroomError):  # the owner has ended
            cache.write_uses()
