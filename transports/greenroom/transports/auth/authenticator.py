"""Authenticate callers at sockets: by API key, by token, or openly without keys.

The rules for hosts and origins are in `origin_check` and apply first.

Invariants:

- A wrong credential is refused, even if no credential is needed.
- The answer, and the work for it, are the same for every wrong part of a key. Only the holder of a whole key
        learns that it was revoked or has expired.
- A connection ends when its key ends, or when a key becomes necessary (`hold_connection`).
- All traffic of a key is counted: requests, and messages of any kind, of which `FRAMES_PER_REQUEST` are
        allowed for each allowed request. So a flood of other messages does not evade the limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
import trio

from greenroom.actors import KeyCache, KeyRefusedError, Principal
from greenroom.actors.core.auth.grants import OAUTH, Credential, KeyRecord, check_claims, credential_of
from greenroom.actors.core.auth.key_format import PREFIX, mask_keys, parse_key
from greenroom.actors.core.keys.key_cache import KeyEndedError
from greenroom.actors.core.keys.rate_limits import TokenBucket, TokenBuckets
from greenroom.runtime import GreenroomError, Refusal
from greenroom.transports.auth.caller import Caller, Headers, RateLimit, header_values
from greenroom.transports.base.defaults import RATE_BURST, RATE_LIMIT
from greenroom.transports.base.errors import HttpRefusedError, retry_later
from greenroom.transports.base.net.addresses import (
    FORWARDED,
    Network,
    address_prefix,
    client_address,
    is_loopback,
    is_trusted,
)
from greenroom.transports.base.net.bodies import BodyBudget, BodyBudgets
from greenroom.transports.base.observability.access import AccessMeter

if TYPE_CHECKING:
    from mcp.server.auth.provider import TokenVerifier

LINK_RATE: Final = 30
LINK_BURST: Final = 10
"""The number of invalid links that one address may try: log-in links, and links to passports."""
FRAMES_PER_REQUEST: Final = 10
"""So many messages of any kind are allowed per request: notifications, pings, unparsable messages."""

AUTHORIZATION: Final = b"authorization"
_SCHEME: Final = "bearer"
HEADER: Final = "Authorization: Bearer gr_..."
"""The header that a client with a key must send, as messages spell it."""
_CHALLENGE: Final = 'Bearer realm="greenroom"'
_NOT_IN_A_DESCRIPTION: Final = re.compile(r"[^ !#-\[\]-~]")
"""The characters that RFC 6750 forbids in ``error_description``."""


class AuditHook(Protocol):
    """Records an action outside an actor in the audit log."""

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
        """Record the action, as `audit.actor.tell` does; never fails and never waits."""


class OpenAuthenticator:
    """Trusts the identity that the caller claims: for programs that control who can reach them.

    It has the methods of `KeyAuthenticator`, without keys, limits and an audit log.
    """

    def __init__(self) -> None:
        self._bodies = BodyBudgets()

    async def authenticate(self, caller: Caller, _headers: Headers) -> Caller:
        """Return the caller unchanged."""
        return caller

    def readmit(self, caller: Caller, _headers: Headers) -> Caller:
        """Return the caller unchanged."""
        return caller

    def address_of(self, caller: Caller, _headers: Headers) -> str | None:
        """Return the address of the connection."""
        return caller.address

    def count_wrong(self, _address: str | None, _action: str) -> None:
        """Count nothing: there is no limit."""

    def is_valid(self, _key_id: str | None) -> bool:
        """Return True."""
        return True

    def record_denial(self, _caller: Caller, _headers: Headers, _status: HTTPStatus, _action: str) -> None:
        """Record nothing: there is no audit log."""

    def hold_connection(self, _caller: Caller, _end: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold nothing: rights do not end."""
        return nullcontext()

    def rate_limit(self, _caller: Caller) -> RateLimit | None:
        """Return None: requests are not limited."""

    def address_group(self, _address: str | None) -> str | None:
        """Return None: connections are not counted."""

    def body_budget(self, _caller: Caller) -> BodyBudget:
        """Return a budget that all callers share."""
        return self._bodies.of(None)


class KeyAuthenticator:
    """Authenticates callers by this server's keys, and by tokens of an issuer.

    Args:
        key_cache: The keys of this server.
        rate: Requests a minute for a key without a rate of its own, and for an address without a valid
            credential.
        burst: Requests at once for such a key or address.
        trusted: The networks of the proxies that may state the client's address.
        tokens: Checks tokens that are not our keys; None if there is no issuer.
        challenge: Extra parameters of a refusal, for clients that look for a token.
        heard: Records accepted and refused callers in the audit log.
        max_message_bytes: The longest request, in bytes.
        access: Counts accepted and refused callers.
    """

    def __init__(
        self,
        key_cache: KeyCache,
        *,
        rate: float = RATE_LIMIT,
        burst: int = RATE_BURST,
        trusted: Sequence[Network] = (),
        tokens: TokenVerifier | None = None,
        challenge: str = "",
        heard: AuditHook | None = None,
        max_message_bytes: int = 0,
        access: AccessMeter | None = None,
    ) -> None:
        self._heard = heard
        self._access = access or AccessMeter()
        self._bodies = BodyBudgets(max_message_bytes)
        self._noted = TokenBuckets(1, 1)
        self._reloads = TokenBucket(30, 2)  # so that invented keys cannot keep the actor busy
        self._key_cache = key_cache
        self._requests = TokenBuckets(rate, burst)
        self._frames = TokenBuckets(rate * FRAMES_PER_REQUEST, burst * FRAMES_PER_REQUEST)
        self._failures = TokenBuckets(rate, burst)
        self._wrong_links: dict[str, TokenBuckets] = {}
        self._trusted = trusted
        self._tokens = tokens
        self._challenge = challenge

    async def authenticate(self, caller: Caller, headers: Headers) -> Caller:
        """Return the caller with its credential, if it needed or sent one.

        The caller has the identity that it claims, and the address of the connection.

        Raises:
            HttpRefusedError: The caller is refused.
        """
        address = self.address_of(caller, headers)
        if address != caller.address:
            caller = msgspec.structs.replace(caller, address=address)
        try:
            admitted = await self._with_credential(caller, headers)
        except HttpRefusedError as refusal:
            self._access.record_refused()
            # Holders of a valid key are not counted here, so others at their address cannot lock them out.
            wait = self._failures.of(address_prefix(caller.address)).take(trio.current_time())
            if wait > 0:
                # The record omits the id that was sent, so that invented ids cannot fill the log.
                self._record("authenticate", caller.address, None, HTTPStatus.TOO_MANY_REQUESTS)
                sentence = "too many requests from your address had no valid credential"
                raise retry_later(sentence, wait) from None
            self._record("authenticate", caller.address, _shown_id(headers), refusal.status)
            raise
        self._count(admitted)
        return admitted

    def readmit(self, caller: Caller, headers: Headers) -> Caller:
        """Return an authenticated caller with the address of this request.

        Raises:
            HttpRefusedError: Its key is no longer valid, or its rate limit is exceeded.
        """
        caller = msgspec.structs.replace(caller, address=self.address_of(caller, headers))
        credential = caller.credential
        if credential is not None and credential.by_key:
            try:
                self._key_cache.find(credential.id)
            except KeyRefusedError as error:
                raise self._invalid(error) from None
        self._count(caller)
        return caller

    def _count(self, admitted: Caller) -> None:
        rate_limit = self.rate_limit(admitted)
        if rate_limit is not None and (wait := rate_limit.frame(trio.current_time())) > 0:
            raise retry_later("too many requests by this key", wait)
        holder = None if admitted.credential is None else admitted.credential.holder
        self._access.record_admitted(holder, address_prefix(admitted.address))
        if self._heard is not None and admitted.credential is not None:
            self._note_once_a_minute(admitted.credential, admitted.address)

    def address_of(self, caller: Caller, headers: Headers) -> str | None:
        """Return the address of a request, behind trusted proxies."""
        if not self._trusted:
            return caller.address
        return client_address(caller.address, header_values(headers, FORWARDED), self._trusted)

    def count_wrong(self, address: str | None, action: str) -> None:
        """Count an invalid one-time link from an address, separately for each action.

        Raises:
            HttpRefusedError: Too many came from this address.
        """
        buckets = self._wrong_links.setdefault(action, TokenBuckets(LINK_RATE, LINK_BURST))
        wait = buckets.of(address_prefix(address)).take(trio.current_time())
        if wait > 0:
            self._record(action, address, None, HTTPStatus.TOO_MANY_REQUESTS)
            raise retry_later("too many invalid links from your address", wait)

    def is_valid(self, key_id: str | None) -> bool:
        """Return whether an earlier credential is still accepted; None means no credential.

        A token of unknown expiry is accepted.
        """
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
        """Audit a denial that was decided elsewhere, for example by the origin check."""
        key_id = None if caller.credential is None else caller.credential.id
        self._record(action, self.address_of(caller, headers), key_id, status)

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
                sentence = "a key is needed; `greenroom keys create` makes one on the server"
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
        """Hold a connection while a block runs; call `end` once, if its right ends.

        That is when its key ends, or when a key becomes necessary.
        """
        credential = caller.credential
        if credential is None:
            return self._key_cache.hold(None, end)
        return self._key_cache.hold(
            credential.id, end, until=None if credential.by_key else credential.expires
        )

    def rate_limit(self, caller: Caller) -> RateLimit | None:
        """Return the buckets of a caller's key; a caller without a key is not limited."""
        credential = caller.credential
        if credential is None or not credential.is_limited:
            return None
        holder, limits = credential.holder, credential.grant.limits
        requests = self._requests.of(holder, limits.rate, limits.burst)
        frames = self._frames.of(holder, _tenfold(limits.rate), _tenfold(limits.burst))
        return RateLimit(requests.take, frames.take)

    def address_group(self, address: str | None) -> str | None:
        """Return the group in which the connections of an address are counted.

        None for uncounted connections: from this machine, and from proxies, which carry many clients.
        """
        if address is None or is_loopback(address) or is_trusted(address, self._trusted):
            return None
        return address_prefix(address)

    def body_budget(self, caller: Caller) -> BodyBudget:
        """Return the budget for bytes in flight: the key's, or else the address's."""
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
            # Another process may have made the key a moment ago. A wrong secret of a known id takes this
            # path as well, or else the response time would reveal which ids exist.
            if parse_key(shown) is None or self._reloads.take(trio.current_time()):
                raise
        with suppress(GreenroomError):
            await self._key_cache.load()
        return self._key_cache.authenticate(shown)


Authenticator = OpenAuthenticator | KeyAuthenticator
"""Authenticates callers, and limits what each may send."""
OPEN_AUTHENTICATOR: Final = OpenAuthenticator()


def _tenfold(limit: int | None) -> int | None:
    return None if limit is None else limit * FRAMES_PER_REQUEST


def _shown_id(headers: Headers) -> str | None:
    """Return the id of a key-like text in a request's headers, valid or not."""
    for value in header_values(headers, AUTHORIZATION):
        if (key := parse_key(value.rpartition(" ")[2])) is not None:
            return key.key_id
    return None


def unauthorized(
    sentence: str, *, error: str | None = None, more: str = "", header: bool = True
) -> HttpRefusedError:
    """Return a refusal with status 401 and its challenge.

    Args:
        sentence: The message for people.
        error: The error code of RFC 6750; None if no credential was sent.
        more: Further parameters of the challenge.
        header: Whether to name the needed header in the message.
    """
    if header:
        sentence = f"{sentence}; send the header {HEADER}"
    challenge = _CHALLENGE + more
    if error is not None:
        described = _NOT_IN_A_DESCRIPTION.sub("'", mask_keys(sentence))
        challenge += f', error="{error}", error_description="{described}"'
    return HttpRefusedError(HTTPStatus.UNAUTHORIZED, sentence, **{"WWW-Authenticate": challenge})


def _bearer(headers: Headers) -> str | None:
    """Return the bearer token of a request; None if there is none.

    Raises:
        HttpRefusedError: The header is not a bearer token, or there are several headers.
    """
    given = header_values(headers, AUTHORIZATION)
    if not given:
        return None
    if len(given) > 1:
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "the header Authorization occurs more than once")
    scheme, _, token = given[0].partition(" ")
    if scheme.lower() != _SCHEME or not (token := token.strip()):
        raise unauthorized("the header Authorization holds no bearer token", error="invalid_request")
    return token
