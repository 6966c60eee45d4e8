"""OAuth 2.1 access tokens: this server is the resource server of a configured issuer.

`JwtVerifier` is a `TokenVerifier` of the SDK. It checks JSON Web Tokens against the keys that the issuer
publishes. Another verifier can replace it, for example one that asks the issuer about every token.

Invariants:

- A valid token was signed by the issuer with a published key and an asymmetric algorithm, names this server
        (``aud``), and has not expired. A token that lacks one of these is refused.
- The issuer's keys are fetched when a key is missing, at most every `REFETCH_SECONDS` for any number of
        tokens, and never from a URL that a token names.
- Keys are cached for `KEYS_SECONDS`. When the issuer is unreachable, older keys are refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2
import jwt
import msgspec
import trio

from greenroom.actors.core.auth.grants import OAUTH, Credential, Grant
from greenroom.actors.core.auth.scopes import unknown_scopes
from greenroom.actors.core.validation.times import SECOND
from greenroom.transports.auth.caller import AGENT_ID_LENGTH, fit_agent_id
from greenroom.transports.base.net.addresses import is_loopback

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""The asymmetric algorithms. With ``HS256`` the issuer's public key would suffice to forge a token."""

KEYS_SECONDS: Final = 3_600.0
REFRESH_SECONDS: Final = 600.0
"""The age from which keys are fetched again, while the old keys are still valid."""
REFETCH_SECONDS: Final = 30.0
LEEWAY_SECONDS: Final = 30.0
TOKEN_BYTES: Final = 16_384
ANSWER_BYTES: Final = 1 << 20
_HEADERS: Final = {"Accept": "application/json", "Accept-Encoding": "identity"}
_TIMES: Final = httpx2.Timeout(5.0)
_LONGEST_SUBJECT: Final = 128
_LIFE_WITHOUT_END: Final = 300
"""The lifetime in seconds of a token if its verifier does not report an expiry."""

_TIMES_OF_TOKENS: Final = ("exp", "nbf", "iat")
_NAMES_IN_TOKENS: Final = ("client_id", "azp", "greenroom_agent", "greenroom_agent_type")

_NO_TOKEN: Final = (jwt.PyJWTError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)

logger = logging.getLogger(__name__)


class IssuerError(Exception):
    """The issuer is unreachable, or its documents are invalid."""


class JwtVerifier:
    """Verifies tokens of one issuer; see `TokenVerifier` of the SDK.

    Args:
        issuer: Its identifier, a URL.
        resource: The audience of tokens for this server, a URL.
        client: Sends requests to the issuer; a parameter for tests.
        now: Returns the time by which keys age, in seconds.
    """

    def __init__(
        self,
        issuer: str,
        resource: str,
        *,
        client: httpx2.AsyncClient | None = None,
        now: Callable[[], float] = trio.current_time,
    ) -> None:
        self._now = now
        self._issuer = issuer
        self._resource = resource
        self._client = client if client is not None else httpx2.AsyncClient(timeout=_TIMES)
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched = self._tried = -inf
        self._fetching = trio.Lock()

    async def aclose(self) -> None:
        """Close the connections to the issuer."""
        await self._client.aclose()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access that a token grants; None if it is invalid."""
        if len(token) > TOKEN_BYTES:
            return None
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS or header.get("typ", "JWT").lower() not in {
                "jwt",
                "at+jwt",
            }:
                return None
            key = await self._key(header.get("kid"))
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._resource,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            _check_types(claims)
            msgspec.json.encode(claims)  # fails on half a surrogate pair, which no name has
        except _NO_TOKEN as error:
            logger.debug("a token was refused: %s", type(error).__name__)
            return None
        return self._access(token, claims)

    def _access(self, token: str, claims: dict[str, Any]) -> AccessToken:
        from mcp.server.auth.provider import AccessToken  # noqa: PLC0415  (the SDK is imported by now)

        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or ""),
            scopes=_scopes_in(claims),
            expires_at=int(claims["exp"]),
            resource=self._resource,
            subject=str(claims["sub"]),
            claims=claims,
        )

    async def _key(self, key_id: object) -> jwt.PyJWK | None:
        name = key_id if isinstance(key_id, str) else None
        now = self._now()
        if name not in self._keys or now - self._fetched > REFRESH_SECONDS:
            await self._fetch()
        if self._now() - self._fetched > KEYS_SECONDS:
            return None
        if name is None and len(self._keys) == 1:  # an issuer with one key need not name it
            return next(iter(self._keys.values()))
        return self._keys.get(name)

    async def _fetch(self) -> None:
        async with self._fetching:
            now = self._now()
            if now - self._tried < REFETCH_SECONDS:
                return
            self._tried = now
            try:
                document = await self._document()
                keys = await self._json(_checked_url(document.get("jwks_uri")))
                self._keys = _keys_in(keys)
            except (IssuerError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
                logger.warning("the keys of the issuer %s cannot be read: %s", self._issuer, error)
                return
            self._fetched = now

    async def _document(self) -> dict[str, Any]:
        """Return the issuer's metadata (RFC 8414, or OpenID's form of it)."""
        parts = urlsplit(self._issuer)
        base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        places = (
            f"{base}/.well-known/oauth-authorization-server{path}",
            f"{base}{path}/.well-known/openid-configuration",
        )
        for place in places:
            try:
                document = await self._json(place)
            except IssuerError:
                continue
            if document.get("issuer") != self._issuer:
                raise IssuerError(f"{place} belongs to another issuer")
            return document
        raise IssuerError(f"neither {places[0]} nor {places[1]} describes the issuer")

    async def _json(self, url: str) -> dict[str, Any]:
        async with self._client.stream("GET", url, headers=_HEADERS) as response:
            if not response.is_success:
                raise IssuerError(f"{url} answers {response.status_code}")
            content = await _read(response)
        if len(content) > ANSWER_BYTES:
            raise IssuerError(f"{url} answers with more than {ANSWER_BYTES:,} bytes")
        try:
            return msgspec.json.decode(content, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise IssuerError(f"{url} does not answer with a JSON object") from None


def credential_of_token(access: AccessToken, now: int) -> Credential:
    """Return the credential of a token.

    The subject is the user. The claim ``greenroom_projects`` has the projects; without it there are none. The
    agent is ``greenroom_agent``, or else it is derived from client and subject: an agent's private data must
    not be open to every user of the same program.

    Args:
        access: The verifier's result. Without a subject, the client is the subject.
        now: The wall clock in microseconds since 1970 UTC.

    Raises:
        ValueError: The token names no user.
    """
    claims: Mapping[str, Any] = access.claims or {}
    strange = unknown_scopes(access.scopes)
    subject = access.client_id if access.subject is None else access.subject
    if not _names_user(subject):
        raise ValueError("the token names no user")
    agent = claims.get("greenroom_agent") or _agent_of(access.client_id, [claims.get("iss"), subject])
    agent_type = claims.get("greenroom_agent_type")
    projects = claims.get("greenroom_projects")
    grant = Grant(
        name=f"token of {subject[:_LONGEST_SUBJECT]}",
        scopes=frozenset(access.scopes).difference(strange),
        agent=fit_agent_id(str(agent)) if agent else None,
        agent_type=fit_agent_id(str(agent_type)) if agent_type else None,
        user=_user_of(subject),
        projects=frozenset(_texts_in(projects)),
    )
    holder = [claims.get("iss"), subject, access.client_id]
    ends = now + _LIFE_WITHOUT_END * SECOND if access.expires_at is None else access.expires_at * SECOND
    # A session opened with one token must not be used with a token of fewer rights.
    return Credential(
        id=f"{OAUTH}{_tag([*holder, grant])}",
        grant=grant,
        by_key=False,
        expires=ends,
        holder=f"{OAUTH}{_tag(holder)}",
    )


def _user_of(subject: str) -> str | None:
    """Return the user for a subject, shortened with a hash if too long."""
    if len(subject) <= _LONGEST_SUBJECT:
        return subject or None
    tag = _tag(subject)
    return f"{subject[: _LONGEST_SUBJECT - len(tag) - 1]}.{tag}"


def _tag(what: Any) -> str:
    """Return a hash of a value, in 16 hexadecimal digits."""
    return blake2b(msgspec.json.encode(what, order="deterministic"), digest_size=8).hexdigest()


def _agent_of(client_id: str, subject: list[Any]) -> str:
    tag = _tag(subject)
    return f"{fit_agent_id(client_id)[: AGENT_ID_LENGTH - len(tag) - 1]}.{tag}"


def protected_resource(resource: str, issuer: str, scopes: Sequence[str]) -> dict[str, Any]:
    """Return the metadata of this server as a protected resource (RFC 9728)."""
    return {
        "resource": resource,
        "authorization_servers": [issuer],
        "scopes_supported": list(scopes),
        "bearer_methods_supported": ["header"],
        "resource_name": "Greenroom",
    }


def metadata_paths(resource: str) -> tuple[str, str]:
    """Return the paths of the metadata document, the path for this resource first."""
    root = "/.well-known/oauth-protected-resource"
    return root + urlsplit(resource).path.rstrip("/"), root


def metadata_url(resource: str) -> str:
    """Return the URL of the metadata of this protected resource."""
    parts = urlsplit(resource)
    return f"{parts.scheme}://{parts.netloc}{metadata_paths(resource)[0]}"


def _checked_url(url: object) -> str:
    if isinstance(url, str):
        parts = urlsplit(url)
        if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            return url
    raise IssuerError(f"the URL of its keys is {str(url)[:100]!r}, and must be https")


async def _read(response: httpx2.Response) -> bytes:
    """Read an issuer's response; stop slightly above the limit."""
    content = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > ANSWER_BYTES:
                # No `break`: the library's generators end in order when reading fails.
                await response.aclose()
    except httpx2.TransportError:
        if len(content) <= ANSWER_BYTES:
            raise
    return bytes(content)


def _keys_in(document: Mapping[str, Any]) -> dict[str | None, jwt.PyJWK]:
    listed = document.get("keys")
    found: dict[str | None, jwt.PyJWK] = {}
    for each in listed if isinstance(listed, list) else ():
        if not isinstance(each, dict) or each.get("use", "sig") != "sig" or each.get("kty") == "oct":
            continue
        try:
            key = jwt.PyJWK.from_dict(each)
        except jwt.PyJWTError:
            continue  # of an unknown kind
        found[key.key_id] = key
    if not found:
        raise IssuerError("it has no key of a supported kind")
    return found


def _scopes_in(claims: Mapping[str, Any]) -> list[str]:
    listed = claims.get("scope", claims.get("scp"))
    if isinstance(listed, str):
        return listed.split()
    return _texts_in(listed)


def _texts_in(listed: object) -> list[str]:
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def _check_types(claims: Mapping[str, Any]) -> None:
    """Check the types of claims about holder and times; the library does not check them."""
    for name in _TIMES_OF_TOKENS:
        time = claims.get(name, 0)
        if type(time) not in {int, float} or not isfinite(time):
            raise ValueError(f"{name} is no number")
    if not all(isinstance(claims.get(name), str | None) for name in _NAMES_IN_TOKENS):
        raise ValueError("a name is no text")
    if not _names_user(claims["sub"]):
        raise ValueError("sub names no user")


def _names_user(subject: object) -> bool:
    """Return whether a subject has a visible character."""
    return isinstance(subject, str) and any(each.isprintable() and not each.isspace() for each in subject)
