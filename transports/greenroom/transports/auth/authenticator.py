"""Authentication of callers at sockets: by API key, by token, or freely where no key was ever made.

The rules for hosts and origins are in `origin_check` and come first; this is about who somebody is.

Invariants:

- What is shown and wrong is refused, also where nothing would be needed.
- A caller is told the same whichever part of a key is wrong, for the same work. That a key was revoked or has
  expired is told to who shows the whole of it.
- Whoever is let in because of a key, or because none is needed, leaves when that holds no more
  (`hold_connection`).
- Whatever somebody with a key sends is counted: requests, and besides everything, of which there may be
  `FRAMES_PER_REQUEST` times as much. So a flood of what is no request does not get around the limit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
import trio

from greenroom.actors import KeyCache, KeyRefusedError, Principal
from greenroom.actors.core.auth.grants import OAUTH, Credential, KeyRecord, check_claims, credential_of
from greenroom.actors.core.auth.key_format import PREFIX, read_key, without_keys
from greenroom.actors.core.keys.key_cache import KeyEndedError
from greenroom.actors.core.keys.rate_limits import TokenBucket, TokenBuckets
from greenroom.runtime import GreenroomError, Refusal
from greenroom.transports.auth.caller import Caller, Headers, RateLimit, header_values
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.base.net.addresses import is_loopback
from greenroom.transports.base.net.body_budget import BodyBudget, BodyBudgets
from greenroom.transports.base.net.forwarded import (
    FORWARDED,
    Network,
    address_prefix,
    client_address,
    is_trusted,
)
from greenroom.transports.base.observability.access import AccessMeter

if TYPE_CHECKING:
    from mcp.server.auth.provider import TokenVerifier

RATE: Final = 100
BURST: Final = 20
LINK_RATE: Final = 30
LINK_BURST: Final = 10
"""How many links that open nothing one address may try: of those that log in, and of those to passports."""
FRAMES_PER_REQUEST: Final = 10
"""Frames of any kind allowed per allowed request: notifications, pings, what cannot be parsed."""

AUTHORIZATION: Final = b"authorization"
_SCHEME: Final = "bearer"
HEADER: Final = "Authorization: Bearer gr_..."
"""What a client with a key is to send, as people are told."""
_CHALLENGE: Final = 'Bearer realm="greenroom"'
_NOT_IN_A_DESCRIPTION: Final = re.compile(r"[^ !#-\[\]-~]")
"""What RFC 6750 does not allow in ``error_description``."""


class AuditHook(Protocol):
    """Records in the audit log an action that is no actor's."""

    def __call__(
        self,
        action: str,
        *,
        principal: Principal | None = None,
        outcome: str = "done",
        session: str | None = None,
        address: str | None = None,
        key_id: str | None = None,
        **details: Any,
    ) -> None:
        """Record it, as `audit.actor.tell` does; never fails and never waits."""


class Authenticator(Protocol):
    """Authenticates callers, and bounds what each may send."""

    async def authenticate(self, caller: Caller, headers: Headers) -> Caller:
        """Return the caller with its credential, if it showed one.

        Args:
            caller: Whom it says it is, and its address.
            headers: The headers of its request.

        Raises:
            HttpRefusedError: it is not let in.
        """

    def readmit(self, caller: Caller, headers: Headers) -> Caller:
        """Return a caller who was authenticated before, with the address that this request comes from.

        Args:
            caller: The caller, with its credential, and the address of the connection.
            headers: The headers of its request.

        Raises:
            HttpRefusedError: its key opens nothing any more, or too much came by it.
        """

    def address_of(self, caller: Caller, headers: Headers) -> str | None:
        """Return the address that a request without a key comes from.

        Args:
            caller: The address that the connection comes from.
            headers: The headers of its request.
        """

    def count_wrong(self, address: str | None, action: str) -> None:
        """Count a one-time link that opens nothing; right ones are not counted.

        Args:
            address: Where it came from, as `address_of` returns it.
            action: What the audit log calls the opening; those of each action are counted for themselves.

        Raises:
            HttpRefusedError: too many came from there.
        """

    def is_valid(self, key_id: str | None) -> bool:
        """Return whether what somebody once showed would let them in now; None: they showed nothing."""

    def record_denial(self, caller: Caller, headers: Headers, status: HTTPStatus, action: str) -> None:
        """Audit a denial decided elsewhere (e.g. by the origin check).

        Args:
            caller: As much as is known of the caller.
            headers: The headers of its request.
            status: The status that answers it.
            action: The action that was denied.
        """

    def hold_connection(self, caller: Caller, end: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold a connection while a block runs; call `end` once, with the reason, when its right ends."""

    def rate_limit(self, caller: Caller) -> RateLimit | None:
        """Return the rate limit of a caller; None where there is none."""

    def address_group(self, address: str | None) -> str | None:
        """Return the name under which the connections from an address are counted.

        None where they are not counted: those of this machine, and of proxies, which bring many.
        """

    def body_budget(self, caller: Caller) -> BodyBudget:
        """Return the budget of bytes under way for a caller's requests."""


class OpenAuthenticator:
    """Accepts every caller as whom it says it is: for programs that know who can reach them."""

    def __init__(self) -> None:
        self._bodies = BodyBudgets()

    async def authenticate(self, caller: Caller, headers: Headers) -> Caller:  # noqa: ARG002  (it does not look)
        """Return the caller as it is."""
        return caller

    def readmit(self, caller: Caller, headers: Headers) -> Caller:  # noqa: ARG002  (as above)
        """Return the caller as it is."""
        return caller

    def address_of(self, caller: Caller, headers: Headers) -> str | None:  # noqa: ARG002  (as above)
        """Return the address that the connection comes from."""
        return caller.address

    def count_wrong(self, address: str | None, action: str) -> None:
        """Count nothing: there is no limit."""

    def is_valid(self, key_id: str | None) -> bool:  # noqa: ARG002  (everybody is let in)
        """Return True."""
        return True

    def record_denial(self, caller: Caller, headers: Headers, status: HTTPStatus, action: str) -> None:
        """Record nothing: such a program has no audit log."""

    def hold_connection(self, caller: Caller, end: Callable[[str], None]) -> AbstractContextManager[None]:  # noqa: ARG002  (nobody is sent away)
        """Hold nothing: no right ends."""
        return nullcontext()

    def rate_limit(self, caller: Caller) -> RateLimit | None:
        """Return None: requests are not limited."""

    def address_group(self, address: str | None) -> str | None:
        """Return None: connections are not counted."""

    def body_budget(self, caller: Caller) -> BodyBudget:  # noqa: ARG002  (it does not look)
        """Return a budget that all callers share."""
        return self._bodies.of(None)


OPEN_AUTHENTICATOR: Final = OpenAuthenticator()


class KeyAuthenticator:
    """Authenticates callers by the keys of this server, and by tokens of an issuer.

    Args:
        key_cache: The keys.
        rate: Requests a minute that a key has which has no rate of its own; also of an address that shows
            nothing right.
        burst: Requests at once, likewise.
        trusted: The networks of the proxies whose word counts on where somebody comes from.
        tokens: Checks tokens that are no keys of ours; None where there are none such.
        challenge: What a refusal says besides to clients that look for a token.
        heard: Notes in the audit log who was let in and who was not.
        frame: The longest request, in bytes.
        access: Counts both.
    """

    def __init__(
        self,
        key_cache: KeyCache,
        *,
        rate: float = RATE,
        burst: int = BURST,
        trusted: Sequence[Network] = (),
        tokens: TokenVerifier | None = None,
        challenge: str = "",
        heard: AuditHook | None = None,
        frame: int = 0,
        access: AccessMeter | None = None,
    ) -> None:
        self._heard = heard
        self._access = access or AccessMeter()
        self._bodies = BodyBudgets(frame)
        self._noted = TokenBuckets(1, 1)
        self._reloads = TokenBucket(30, 2)  # so that who makes keys up does not keep the actor busy
        self._key_cache = key_cache
        self._requests = TokenBuckets(rate, burst)
        self._frames = TokenBuckets(rate * FRAMES_PER_REQUEST, burst * FRAMES_PER_REQUEST)
        self._failures = TokenBuckets(rate, burst)
        self._wrong_links: dict[str, TokenBuckets] = {}
        self._trusted = trusted
        self._tokens = tokens
        self._challenge = challenge

    async def authenticate(self, caller: Caller, headers: Headers) -> Caller:
        """Return the caller with the credential of its key or token, if one is needed or shown."""
        address = self._address(caller, headers)
        if address != caller.address:
            caller = msgspec.structs.replace(caller, address=address)
        try:
            admitted = await self._with_credential(caller, headers)
        except HttpRefusedError as refusal:
            self._access.record_refused()
            # Who comes by a right key is not counted here, so others at its address do it no harm.
            wait = self._failures.of(address_prefix(caller.address)).take(trio.current_time())
            if wait > 0:
                # Without the id that was shown, so that whoever makes ids up fills no log.
                self._record("authenticate", caller.address, None, HTTPStatus.TOO_MANY_REQUESTS)
                sentence = "too many requests from your address showed nothing that opens"
                raise too_many_requests(wait, sentence) from None
            self._record("authenticate", caller.address, _shown_id(headers), refusal.status)
            raise
        self._count(admitted)
        return admitted

    def readmit(self, caller: Caller, headers: Headers) -> Caller:
        """Return a caller who was authenticated before, see `Authenticator`."""
        caller = msgspec.structs.replace(caller, address=self._address(caller, headers))
        credential = caller.credential
        if credential is not None and credential.by_key:
            try:
                self._key_cache.find(credential.id)
            except KeyRefusedError as error:
                raise self._invalid(error) from None
        self._count(caller)
        return caller

    def _count(self, admitted: Caller) -> None:
        """Count a request that is let in.

        Raises:
            HttpRefusedError: too much came by its key.
        """
        rate_limit = self.rate_limit(admitted)
        if rate_limit is not None and (wait := rate_limit.frame(trio.current_time())) > 0:
            raise too_many_requests(wait, "too much came by this key")
        holder = None if admitted.credential is None else admitted.credential.holder
        self._access.record_admitted(holder, address_prefix(admitted.address))
        if self._heard is not None and admitted.credential is not None:
            self._note_once_a_minute(admitted.credential, admitted.address)

    def address_of(self, caller: Caller, headers: Headers) -> str | None:
        """Return the address that a request without a key comes from, see `Authenticator`."""
        return self._address(caller, headers)

    def count_wrong(self, address: str | None, action: str) -> None:
        """Count a one-time link that opens nothing, see `Authenticator`."""
        buckets = self._wrong_links.setdefault(action, TokenBuckets(LINK_RATE, LINK_BURST))
        wait = buckets.of(address_prefix(address)).take(trio.current_time())
        if wait > 0:
            self._record(action, address, None, HTTPStatus.TOO_MANY_REQUESTS)
            raise too_many_requests(wait, "too many links from your address opened nothing")

    def is_valid(self, key_id: str | None) -> bool:
        """Return whether a key still opens this server; a token whose time nobody knows any more does."""
        if key_id is None:
            return not self._key_cache.required
        if key_id.startswith(OAUTH):
            return self._tokens is not None
        try:
            self._key_cache.find(key_id)
        except KeyRefusedError:
            return False
        return True

    def record_denial(self, caller: Caller, headers: Headers, status: HTTPStatus, action: str) -> None:
        """Record in the audit log a denial decided elsewhere."""
        key_id = None if caller.credential is None else caller.credential.id
        self._record(action, self._address(caller, headers), key_id, status)

    def _address(self, caller: Caller, headers: Headers) -> str | None:
        if not self._trusted:
            return caller.address
        return client_address(caller.address, header_values(headers, FORWARDED), self._trusted)

    def _record(self, action: str, address: str | None, key_id: str | None, status: HTTPStatus) -> None:
        if self._heard is not None:
            self._heard(action, outcome="denied", address=address, key_id=key_id, status=int(status))

    def _note_once_a_minute(self, credential: Credential, address: str | None) -> None:
        name = f"{credential.id} {address}"
        if self._heard is not None and not self._noted.of(name).take(trio.current_time()):
            self._heard("authenticate", address=address, key_id=credential.id)

    async def _with_credential(self, caller: Caller, headers: Headers) -> Caller:
        shown = _bearer(headers)
        if shown is None:
            if self._key_cache.required:
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
            raise HttpRefusedError(HTTPStatus.FORBIDDEN, refusal.sentence) from None
        return msgspec.structs.replace(caller, credential=credential)

    def hold_connection(self, caller: Caller, end: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold a connection until its key is revoked or expires, or until one is needed that was not."""
        credential = caller.credential
        if credential is None:
            return self._key_cache.hold(None, end)
        return self._key_cache.hold(
            credential.id, end, until=None if credential.by_key else credential.expires
        )

    def rate_limit(self, caller: Caller) -> RateLimit | None:
        """Return the buckets of a caller's key; a caller that needed none is not limited."""
        credential = caller.credential
        if credential is None or not credential.is_limited:
            return None
        holder, limits = credential.holder, credential.grant.limits
        requests = self._requests.of(holder, limits.rate, limits.burst)
        frames = self._frames.of(holder, _tenfold(limits.rate), _tenfold(limits.burst))
        return RateLimit(requests.take, frames.take)

    def address_group(self, address: str | None) -> str | None:
        """Return the name under which the connections from an address are counted, see `Authenticator`."""
        if address is None or is_loopback(address) or is_trusted(address, self._trusted):
            return None
        return address_prefix(address)

    def body_budget(self, caller: Caller) -> BodyBudget:
        """Return the budget of the caller's key, else of its address."""
        credential = caller.credential
        return self._bodies.of(
            self.address_group(caller.address) if credential is None else credential.holder
        )

    async def _credential(self, shown: str) -> Credential:
        if not shown.startswith(f"{PREFIX}_"):
            access = None if self._tokens is None else await self._tokens.verify_token(shown)
            if access is None:
                what = "no key of" if self._tokens is None else "no key of, and no token for,"
                sentence = f"this is {what} this server"
                raise unauthorized(sentence, error="invalid_token", more=self._challenge)
            from greenroom.transports.auth.jwt import credential_of_token  # noqa: PLC0415 - few have an issuer

            try:
                credential = credential_of_token(access, self._key_cache.now())
            except ValueError as error:
                raise unauthorized(str(error), error="invalid_token", more=self._challenge) from None
            if credential.expires <= self._key_cache.now():
                raise unauthorized("the token has expired", error="invalid_token", more=self._challenge)
            return credential
        try:
            return credential_of(await self._key(shown))
        except KeyRefusedError as error:
            raise self._invalid(error) from None

    def _invalid(self, error: KeyRefusedError) -> HttpRefusedError:
        is_whole = isinstance(error, KeyEndedError)
        return unauthorized(str(error), error="invalid_token", more=self._challenge, header=not is_whole)

    async def _key(self, shown: str) -> KeyRecord:
        try:
            return self._key_cache.authenticate(shown)
        except KeyEndedError:
            raise
        except KeyRefusedError:
            # Another process may have made it a moment ago. A wrong secret of a known id takes this way, too:
            # else the time would tell which ids there are.
            if read_key(shown) is None or self._reloads.take(trio.current_time()):
                raise
        with suppress(GreenroomError):
            await self._key_cache.load()
        return self._key_cache.authenticate(shown)


def _tenfold(limit: int | None) -> int | None:
    return None if limit is None else limit * FRAMES_PER_REQUEST


def _shown_id(headers: Headers) -> str | None:
    """Return the id of what looks like a key in a request's head, be it right or wrong."""
    for value in header_values(headers, AUTHORIZATION):
        if (key := read_key(value.rpartition(" ")[2])) is not None:
            return key.key_id
    return None


def too_many_requests(wait: float, sentence: str) -> HttpRefusedError:
    """Return a refusal with 429; the caller may come back in `wait` seconds."""
    after = {"Retry-After": str(math.ceil(wait))}
    return HttpRefusedError(HTTPStatus.TOO_MANY_REQUESTS, sentence, **after)


def unauthorized(
    sentence: str, *, error: str | None = None, more: str = "", header: bool = True
) -> HttpRefusedError:
    """Return a refusal with 401 and its challenge.

    Args:
        sentence: For people.
        error: For programs, as RFC 6750 says; None for who has shown nothing.
        more: Further parameters of the challenge.
        header: Whether it is added which header opens.
    """
    if header:
        sentence = f"{sentence}; send the header {HEADER}"
    challenge = _CHALLENGE + more
    if error is not None:
        described = _NOT_IN_A_DESCRIPTION.sub("'", without_keys(sentence))
        challenge += f', error="{error}", error_description="{described}"'
    return HttpRefusedError(HTTPStatus.UNAUTHORIZED, sentence, **{"WWW-Authenticate": challenge})


def _bearer(headers: Headers) -> str | None:
    """Return the token in a request's head; None without any.

    Raises:
        HttpRefusedError: what stands there is no bearer token, or there are several.
    """
    given = header_values(headers, AUTHORIZATION)
    if not given:
        return None
    if len(given) > 1:
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "the header Authorization stands there more than once")
    scheme, _, token = given[0].partition(" ")
    if scheme.lower() != _SCHEME or not (token := token.strip()):
        raise unauthorized("the header Authorization holds no bearer token", error="invalid_request")
    return token
