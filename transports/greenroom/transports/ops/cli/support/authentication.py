"""Authentication for `greenroom serve`, from the settings and the store's keys."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from ipaddress import ip_network
from typing import TYPE_CHECKING, Final

import trio

from greenroom.actors import KeyCache, KeyRefusedError, Principal, open_key_cache
from greenroom.actors.core.audit.actor import record_action
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.grants import (
    Credential,
    Grant,
    KeyLimits,
    check_claims,
    credential_of,
    principal_of,
)
from greenroom.actors.core.auth.scopes import EVERYTHING, allows
from greenroom.actors.memories.storage.quota import Quota
from greenroom.runtime import GreenroomError, Refusal, RuntimeClient
from greenroom.transports.auth.authenticator import (
    OPEN_AUTHENTICATOR,
    AuditHook,
    Authenticator,
    KeyAuthenticator,
)
from greenroom.transports.auth.caller import NAMELESS_AGENT, Caller
from greenroom.transports.base.config.settings import API_KEY_VARIABLE, Settings, flag
from greenroom.transports.base.net.addresses import HostPort
from greenroom.transports.base.observability.access import AccessMeter

if TYPE_CHECKING:
    from mcp.server.auth.provider import TokenVerifier

NOBODY: Final = Caller()
_NO_LIMITS: Final = KeyLimits()
_SDK: Final = "mcp.server.auth.provider"
logger = logging.getLogger(__name__)


class AuthenticationError(GreenroomError):
    """The server cannot start with these settings, or its key is not valid."""


class Authentication:
    """Decides who may connect, and as which principal."""

    def __init__(
        self,
        settings: Settings,
        key_cache: KeyCache | None = None,
        tokens: TokenVerifier | None = None,
        shown: Credential | None = None,
        heard: AuditHook | None = None,
        access: AccessMeter | None = None,
    ) -> None:
        self._settings = settings
        self._key_cache = key_cache
        self._quotas: dict[str, Quota] = {}
        self.authenticator: Authenticator = (
            OPEN_AUTHENTICATOR
            if key_cache is None
            else _authenticator(settings, key_cache, tokens, heard, access)
        )
        self.on_stdio = NOBODY if shown is None else Caller(credential=shown)

    @property
    def needs_key(self) -> bool:
        """Whether sockets require a key."""
        return self._key_cache is not None and self._key_cache.required

    def principal(self, client_name: str, caller: Caller) -> Principal:
        """Return the principal of a client.

        The order of precedence is: the grant, the claims at connect, the settings, the client's own name. The
        settings describe this machine's user, so they do not apply to a client with a key.
        """
        settings = self._settings
        if caller.credential is not None:
            return principal_of(
                caller.credential,
                agent=caller.agent or (settings.agent if caller is self.on_stdio else None) or client_name,
                agent_type=caller.agent_type or (settings.agent_type if caller is self.on_stdio else None),
                projects=frozenset(caller.projects or (settings.project if caller is self.on_stdio else ())),
                address=caller.address,
            )
        return Principal(
            agent_id=caller.agent or settings.agent or client_name,
            agent_type=caller.agent_type or settings.agent_type,
            user=settings.user,
            projects=frozenset(caller.projects or settings.project) or None,
            address=caller.address,
        )

    def owner(self) -> Grant:
        """Return the folder owner's grant, from the settings; a browser with a link gets it."""
        settings = self._settings
        return Grant(
            name="console",
            scopes=frozenset({EVERYTHING}),
            agent=settings.agent or "console",
            agent_type=settings.agent_type,
            user=settings.user,
            projects=frozenset(settings.project) or None,
        )

    def quota(self, caller: Caller) -> Quota | None:
        """Return a client's quota; None if the client has no limits."""
        credential = caller.credential
        if credential is None or credential.grant.limits == _NO_LIMITS:
            return None
        quota = self._quotas.get(credential.id)
        if quota is None:
            quota = self._quotas[credential.id] = Quota(credential)
        return quota

    def hold_stdio(self, end: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold the client on standard input and output; call `end` if its key ends."""
        shown = self.on_stdio.credential
        return (
            nullcontext() if self._key_cache is None or shown is None else self._key_cache.hold(shown.id, end)
        )


def check_auth_settings(settings: Settings) -> None:
    """Check that the settings fit together, and that nothing is sent without encryption."""
    for pair in (("tls_cert", "tls_key"), ("oauth_issuer", "oauth_resource")):
        missing = [flag(key) for key in pair if getattr(settings, key) is None]
        if len(missing) == 1:
            raise ValueError(f"{' and '.join(map(flag, pair))} go together; {missing[0]} is missing")
    for address in _beyond(settings):
        if settings.tls_cert is None and not settings.behind_proxy:
            raise ValueError(
                f"other machines reach {address}, so keys and contents need TLS: give --tls-cert and "
                "--tls-key, or say --behind-proxy if a proxy before this server speaks it"
            )


@asynccontextmanager
async def open_authentication(
    settings: Settings,
    runtime: RuntimeClient,
    environment: Mapping[str, str],
    *,
    on_stdio: bool,
    access: AccessMeter,
    by_link: bool = False,
) -> AsyncIterator[Authentication]:
    """Yield the authentication, which follows the store's keys during the block.

    Args:
        settings: The server's settings.
        runtime: The result of `open_greenroom`.
        environment: The environment variables; one may hold the key of a client on standard input and output.
        on_stdio: Whether there is such a client.
        access: Counts the clients of sockets.
        by_link: Whether the server is only for browsers with a link, so that no key is needed.

    Raises:
        AuthenticationError: others could connect without a key, or the key is not valid.
    """
    text = (environment.get(API_KEY_VARIABLE) or "").strip() if on_stdio else ""
    listens = settings.ws is not None or settings.http is not None
    if not listens and not text:
        yield Authentication(settings)
        return
    beyond = is_reachable_by_others(settings)
    has_issuer = settings.oauth_issuer is not None
    required = settings.require_key or beyond or has_issuer
    async with open_key_cache(runtime, required=required) as key_cache, _verifying(settings) as tokens:
        if listens and key_cache.is_empty and not has_issuer and not by_link:
            _check_without_keys(settings, beyond=beyond)
        heard = partial(record_action, runtime)
        shown = None
        if text:
            try:
                shown = _check_key(key_cache, text, settings)
            except AuthenticationError:
                heard("authenticate", outcome="denied", on="stdio")
                raise
            heard("authenticate", key_id=shown.id, on="stdio")
        yield Authentication(settings, key_cache, tokens, shown, heard, access)


def is_reachable_by_others(settings: Settings) -> bool:
    """Return whether programs of other machines can reach the server."""
    return settings.behind_proxy or bool(_beyond(settings))


def _authenticator(
    settings: Settings,
    key_cache: KeyCache,
    tokens: TokenVerifier | None,
    heard: AuditHook | None,
    access: AccessMeter | None,
) -> KeyAuthenticator:
    challenge = ""
    if tokens is not None and settings.oauth_resource is not None:
        from greenroom.transports.auth.jwt import metadata_url  # noqa: PLC0415 - few servers have an issuer

        challenge = f', resource_metadata="{metadata_url(settings.oauth_resource)}"'
    return KeyAuthenticator(
        key_cache,
        rate=settings.rate_limit,
        burst=settings.rate_burst,
        trusted=[ip_network(each) for each in settings.trusted_proxy],
        tokens=tokens,
        challenge=challenge,
        heard=heard,
        max_message_bytes=settings.max_frame,
        access=access,
    )


@asynccontextmanager
async def _verifying(settings: Settings) -> AsyncIterator[TokenVerifier | None]:
    if settings.oauth_issuer is None or settings.oauth_resource is None:
        yield None
        return
    await trio.to_thread.run_sync(import_module, _SDK)  # takes a second; other tasks run meanwhile
    from greenroom.transports.auth.jwt import JwtVerifier  # noqa: PLC0415 - as in `auth.authenticator`

    verifier = JwtVerifier(settings.oauth_issuer, settings.oauth_resource)
    try:
        yield verifier
    finally:
        with trio.CancelScope(shield=True):
            await verifier.aclose()


def _beyond(settings: Settings) -> list[HostPort]:
    return [each for each in (settings.ws, settings.http) if each is not None and not each.is_loopback]


def _check_without_keys(settings: Settings, *, beyond: bool) -> None:
    if beyond:
        where = ", ".join(map(str, _beyond(settings))) or "this server behind its proxy"
        raise AuthenticationError(
            f"other machines reach {where}, and there is no API key yet by which to tell who they are; "
            "`greenroom keys create` makes one"
        )
    if settings.require_key:
        logger.warning("there is no API key yet, so no client can connect; `greenroom keys create` makes one")
    else:
        logger.warning(
            "there is no API key, so every program of this machine may connect and do everything; "
            "from the first `greenroom keys create` on, every program needs one"
        )


def _check_key(key_cache: KeyCache, text: str, settings: Settings) -> Credential:
    try:
        shown = credential_of(key_cache.authenticate(text))
        check_claims(
            shown.grant,
            agent=settings.agent,
            agent_type=settings.agent_type,
            projects=frozenset(settings.project),
        )
    except KeyRefusedError as error:
        raise AuthenticationError(f"{API_KEY_VARIABLE}: {error}") from None
    except Refusal as refusal:
        raise AuthenticationError(f"{API_KEY_VARIABLE}: {refusal.sentence}") from None
    return shown


async def acting_principal(
    runtime: RuntimeClient, settings: Settings, what: str, scope: str, *, agent: str = NAMELESS_AGENT
) -> Principal:
    """Return the principal of a command: from the key in the environment, or the settings."""
    local = replace(settings, ws=None, http=None)
    async with open_authentication(local, runtime, os.environ, on_stdio=True, access=AccessMeter()) as found:
        principal = found.principal(agent, found.on_stdio)
    if not allows(principal.scopes, scope):
        raise auth_errors.scope_missing(what, scope)
    return principal
