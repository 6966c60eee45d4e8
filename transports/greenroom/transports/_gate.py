"""Who is let in over a socket: with an API key, with a token, or freely where no key was ever made.

The rules for hosts and origins are in `_admission` and come first; this is about who somebody is.

Invariants:

- What is shown and wrong is refused, also where nothing would be needed.
- A caller is told the same whichever part of a key is wrong.
- Whoever is let in because of a key, or because none is needed, leaves when that holds no more (`place`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from greenroom.actors import KeyRefusedError
from greenroom.actors.keys._record import check_claims, credential_of
from greenroom.actors.keys._text import PREFIX
from greenroom.runtime import Refusal
from greenroom.transports._admission import Caller, Headers, RefusedError, values_of

if TYPE_CHECKING:
    from greenroom.actors import KeyRing
    from greenroom.actors.keys._record import Credential

AUTHORIZATION: Final = b"authorization"
_SCHEME: Final = "bearer"
_CHALLENGE: Final = 'Bearer realm="greenroom"'


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

    def place(self, caller: Caller, end: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold a place for somebody while a block runs; `end` is called once, with why, when it is lost."""


class OpenGate:
    """Lets everybody in, as whom they say they are: for programs that know who can reach them."""

    async def admit(self, caller: Caller, headers: Headers) -> Caller:  # noqa: ARG002  (it does not look)
        """Return who comes."""
        return caller

    def place(self, caller: Caller, end: Callable[[str], None]) -> AbstractContextManager[None]:  # noqa: ARG002  (nobody is sent away)
        """Hold a place."""
        return nullcontext()


OPEN_GATE: Final = OpenGate()


class KeyGate:
    """Lets in whoever has a key of this server.

    Args:
        ring: The keys.
    """

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    async def admit(self, caller: Caller, headers: Headers) -> Caller:
        """Return who comes, with the key that they showed, if one is needed or shown."""
        shown = _bearer(headers)
        if shown is None:
            if self._ring.required:
                raise unauthorized("a key is needed; send it in the header Authorization: Bearer")
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
        return self._ring.place(None if credential is None else credential.id, end)

    async def _credential(self, shown: str) -> Credential:
        if not shown.startswith(f"{PREFIX}_"):
            raise unauthorized("this is no key of this server", error="invalid_token")
        try:
            return credential_of(self._ring.authenticate(shown))
        except KeyRefusedError as error:
            raise unauthorized(str(error), error="invalid_token") from None


def unauthorized(sentence: str, *, error: str | None = None, more: str = "") -> RefusedError:
    """Return the refusal of somebody who has not shown what opens.

    Args:
        sentence: For people.
        error: For programs, as RFC 6750 says; None for who has shown nothing.
        more: Further parameters of the challenge.
    """
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
        raise unauthorized("the header Authorization must be Bearer and a key", error="invalid_request")
    return token
