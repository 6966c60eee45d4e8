"""Who is let in over a socket: with an API key, with a token, or freely where no key was ever made.

The rules for hosts and origins are in `origin_check` and come first; this is about who somebody is.

Invariants:

- What is shown and wrong is refused, also where nothing would be needed.
- A caller is told the same whichever part of a key is wrong.
- Whoever is let in because of a key, or because none is needed, leaves when that holds no more (`place`).
- Whatever somebody with a key sends is counted: requests, and besides everything, of which there may be
  `FRAMES` times as much. So a flood of what is no request does not get around the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
import trio

from greenroom.actors import KeyRefusedError
from greenroom.actors.auth.grants import check_claims, credential_of
from greenroom.actors.auth.key_format import PREFIX, read_key
from greenroom.actors.keys.limits import Bucket, Buckets
from greenroom.runtime import GreenroomError, Refusal
from greenroom.transports.auth.origin_check import Caller, Headers, RefusedError, values_of
from greenroom.transports.mcp.client import Toll
from greenroom.transports.net.addresses import is_loopback
from greenroom.transports.net.body_budget import Bodies, Body
from greenroom.transports.net.forwarded import FORWARDED, Network, client_address, is_trusted, neighbourhood

if TYPE_CHECKING:
    from mcp.server.auth.provider import TokenVerifier

    from greenroom.actors import KeyRing
    from greenroom.actors.auth.grants import Credential

RATE: Final = 100
BURST: Final = 20
FRAMES: Final = 10
"""What of any kind may come for each request that may: notifications, pings, what cannot be read."""

AUTHORIZATION: Final = b"authorization"
_SCHEME: Final = "bearer"
HEADER: Final = "Authorization: Bearer gr_..."
"""What a client with a key is to send, as people are told."""
_CHALLENGE: Final = 'Bearer realm="greenroom"'


class Heard(Protocol):
    """Takes note of a deed that is no actor's."""

    def __call__(
        self,
        action: str,
        *,
        outcome: str = "done",
        address: str | None = None,
        key_id: str | None = None,
        **details: Any,
    ) -> None:
        """Note it; it never fails and waits for nothing."""


class Gate(Protocol):
    """Decides who comes in."""

    async def admit(self, caller: Caller, headers: Headers) -> Caller:
        """Return who comes, with what they showed.

        Args:
            caller: Whom they say they are, and where they come from.
            headers: The headers of their request.

        Raises:
            RefusedError: they are not let in.
        """

    def turn_away(self, caller: Caller, headers: Headers, status: HTTPStatus, action: str) -> None:
        """Take note of a denial that was not this gate's.

        Args:
            caller: As far as it is known who comes.
            headers: The headers of their request.
            status: What they are told.
            action: What they were about to do.
        """

    def place(self, caller: Caller, end: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold a place for somebody while a block runs; `end` is called once, with why, when it is lost."""

    def toll(self, caller: Caller) -> Toll | None:
        """Return what somebody's requests are counted by; None where they are not."""

    def neighbours(self, address: str | None) -> str | None:
        """Return what the connections from an address are counted under.

        None where they are not counted: those of this machine, and of proxies, which bring many.
        """

    def body(self, caller: Caller) -> Body:
        """Return what the bytes of somebody's requests are counted by."""


class OpenGate:
    """Lets everybody in, as whom they say they are: for programs that know who can reach them."""

    def __init__(self) -> None:
        self._bodies = Bodies()

    async def admit(self, caller: Caller, headers: Headers) -> Caller:  # noqa: ARG002  (it does not look)
        """Return who comes."""
        return caller

    def turn_away(self, caller: Caller, headers: Headers, status: HTTPStatus, action: str) -> None:
        """Take note of nothing: such a program has no audit log."""

    def place(self, caller: Caller, end: Callable[[str], None]) -> AbstractContextManager[None]:  # noqa: ARG002  (nobody is sent away)
        """Hold a place."""
        return nullcontext()

    def toll(self, caller: Caller) -> Toll | None:
        """Count nobody's requests."""

    def neighbours(self, address: str | None) -> str | None:
        """Count nobody's connections."""

    def body(self, caller: Caller) -> Body:  # noqa: ARG002  (it does not look)
        """Count the bytes of all together."""
        return self._bodies.of(None)


OPEN_GATE: Final = OpenGate()


class KeyGate:
    """Lets in whoever has a key of this server.

    Args:
        ring: The keys.
        rate: Requests a minute that a key has which has no rate of its own; also of an address that shows
            nothing right.
        burst: Requests at once, likewise.
        trusted: The networks of the proxies whose word counts on where somebody comes from.
        tokens: Checks tokens that are no keys of ours; None where there are none such.
        challenge: What a refusal says besides to clients that look for a token.
        heard: Notes in the audit log who was let in and who was not.
        frame: The longest request, in bytes.
    """

    def __init__(
        self,
        ring: KeyRing,
        *,
        rate: float = RATE,
        burst: int = BURST,
        trusted: Sequence[Network] = (),
        tokens: TokenVerifier | None = None,
        challenge: str = "",
        heard: Heard | None = None,
        frame: int = 0,
    ) -> None:
        self._heard = heard
        self._bodies = Bodies(frame)
        self._noted = Buckets(1, 1)
        self._reloads = Bucket(30, 2)  # so that who makes keys up does not keep the keeper busy
        self._ring = ring
        self._requests = Buckets(rate, burst)
        self._frames = Buckets(rate * FRAMES, burst * FRAMES)
        self._failures = Buckets(rate, burst)
        self._trusted = trusted
        self._tokens = tokens
        self._challenge = challenge

    async def admit(self, caller: Caller, headers: Headers) -> Caller:
        """Return who comes, with the key that they showed, if one is needed or shown."""
        address = self._address(caller, headers)
        if address != caller.address:
            caller = msgspec.structs.replace(caller, address=address)
        try:
            admitted = await self._admitted(caller, headers)
        except RefusedError as refusal:
            # Who comes by a right key is not counted here, so others at its address do it no harm.
            wait = self._failures.of(neighbourhood(caller.address)).take(trio.current_time())
            if wait > 0:
                # Without the id that was shown, so that whoever makes ids up fills no log.
                self._deny("authenticate", caller.address, None, HTTPStatus.TOO_MANY_REQUESTS)
                sentence = "too many requests from your address showed nothing that opens"
                raise too_many(wait, sentence) from None
            self._deny("authenticate", caller.address, _shown_id(headers), refusal.status)
            raise
        toll = self.toll(admitted)
        if toll is not None and (wait := toll.frame(trio.current_time())) > 0:
            raise too_many(wait, "too much came by this key")
        if self._heard is not None and admitted.credential is not None:
            self._note_once_a_minute(admitted.credential, admitted.address)
        return admitted

    def turn_away(self, caller: Caller, headers: Headers, status: HTTPStatus, action: str) -> None:
        """Note a denial that was not this gate's in the audit log."""
        key_id = None if caller.credential is None else caller.credential.id
        self._deny(action, self._address(caller, headers), key_id, status)

    def _address(self, caller: Caller, headers: Headers) -> str | None:
        if not self._trusted:
            return caller.address
        return client_address(caller.address, values_of(headers, FORWARDED), self._trusted)

    def _deny(self, action: str, address: str | None, key_id: str | None, status: HTTPStatus) -> None:
        if self._heard is not None:
            self._heard(action, outcome="denied", address=address, key_id=key_id, status=int(status))

    def _note_once_a_minute(self, credential: Credential, address: str | None) -> None:
        name = f"{credential.id} {address}"
        if self._heard is not None and not self._noted.of(name).take(trio.current_time()):
            self._heard("authenticate", address=address, key_id=credential.id)

    async def _admitted(self, caller: Caller, headers: Headers) -> Caller:
        shown = _bearer(headers)
        if shown is None:
            if self._ring.required:
                sentence = "a key is needed, which `greenroom keys create` makes on the server"
                raise unauthorized(sentence, more=self._challenge)
            return caller
        credential = await self._credential(shown)
        try:
            check_claims(
                credential.grant,
                agent=caller.agent,
                agent_type=caller.agent_type,
                projects=frozenset(caller.projects),
            )
        except Refusal as refusal:
            raise RefusedError(HTTPStatus.FORBIDDEN, refusal.sentence) from None
        return msgspec.structs.replace(caller, credential=credential)

    def place(self, caller: Caller, end: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold a place until the key is revoked or expires, or one is needed that was not."""
        credential = caller.credential
        if credential is None:
            return self._ring.place(None, end)
        return self._ring.place(credential.id, end, until=None if credential.by_key else credential.expires)

    def toll(self, caller: Caller) -> Toll | None:
        """Return the buckets of whoever came by a key; who needed none is not counted."""
        credential = caller.credential
        if credential is None:
            return None
        holder, limits = credential.holder, credential.grant.limits
        requests = self._requests.of(holder, limits.rate, limits.burst)
        frames = self._frames.of(holder, _tenfold(limits.rate), _tenfold(limits.burst))
        return Toll(requests.take, frames.take)

    def neighbours(self, address: str | None) -> str | None:
        """Return what the connections from an address are counted under, see `Gate`."""
        if address is None or is_loopback(address) or is_trusted(address, self._trusted):
            return None
        return neighbourhood(address)

    def body(self, caller: Caller) -> Body:
        """Count by the key, else by where somebody comes from."""
        credential = caller.credential
        return self._bodies.of(self.neighbours(caller.address) if credential is None else credential.holder)

    async def _credential(self, shown: str) -> Credential:
        if not shown.startswith(f"{PREFIX}_"):
            access = None if self._tokens is None else await self._tokens.verify_token(shown)
            if access is None:
                what = "no key of" if self._tokens is None else "no key of, and no token for,"
                sentence = f"this is {what} this server"
                raise unauthorized(sentence, error="invalid_token", more=self._challenge)
            from greenroom.transports.auth.jwt import credential_of_token  # noqa: PLC0415 - few have an issuer

            credential = credential_of_token(access, self._ring.now())
            if credential.expires <= self._ring.now():
                raise unauthorized("the token has expired", error="invalid_token", more=self._challenge)
            return credential
        if self._ring.may_be_new(shown) and not self._reloads.take(trio.current_time()):
            with suppress(GreenroomError):  # it may have been made a moment ago, by another process
                await self._ring.load()
        try:
            return credential_of(self._ring.authenticate(shown))
        except KeyRefusedError as error:
            raise unauthorized(str(error), error="invalid_token", more=self._challenge) from None


def _tenfold(limit: int | None) -> int | None:
    return None if limit is None else limit * FRAMES


def _shown_id(headers: Headers) -> str | None:
    """Return the id of what looks like a key in a request's head, be it right or wrong."""
    for value in values_of(headers, AUTHORIZATION):
        if (key := read_key(value.rpartition(" ")[2])) is not None:
            return key.key_id
    return None


def too_many(wait: float, sentence: str) -> RefusedError:
    """Return the refusal of somebody who is to come back in so many seconds."""
    after = {"Retry-After": str(math.ceil(wait))}
    return RefusedError(HTTPStatus.TOO_MANY_REQUESTS, sentence, **after)


def unauthorized(sentence: str, *, error: str | None = None, more: str = "") -> RefusedError:
    """Return the refusal of somebody who has not shown what opens.

    Args:
        sentence: For people; it is added which header opens.
        error: For programs, as RFC 6750 says; None for who has shown nothing.
        more: Further parameters of the challenge.
    """
    sentence = f"{sentence}; send the header {HEADER}"
    challenge = _CHALLENGE + more + ("" if error is None else f', error="{error}"')
    return RefusedError(HTTPStatus.UNAUTHORIZED, sentence, **{"WWW-Authenticate": challenge})


def _bearer(headers: Headers) -> str | None:
    """Return the token in a request's head; None without any.

    Raises:
        RefusedError: what stands there is no bearer token, or there are several.
    """
    given = values_of(headers, AUTHORIZATION)
    if not given:
        return None
    if len(given) > 1:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the header Authorization stands there more than once")
    scheme, _, token = given[0].partition(" ")
    if scheme.lower() != _SCHEME or not (token := token.strip()):
        raise unauthorized("the header Authorization holds no bearer token", error="invalid_request")
    return token
