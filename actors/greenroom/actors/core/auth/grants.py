"""API key records, grants, and the principals derived from them: values and pure functions."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, Literal

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.principal import MAX_NAME, Principal
from greenroom.actors.core.auth.tool_profiles import SchemaForm

LIFETIME_DAYS: Final = 90
OVERLAP_SECONDS: Final = 86_400
OAUTH: Final = "oauth:"
"""The prefix of a token's credential id."""
_TAG_BYTES: Final = 8

KeyStatus = Literal["active", "expired", "revoked", "unusable"]


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The limits of one key; None means the server's setting, or no limit.

    ``rate`` is requests a minute, ``burst`` is requests at once. ``namespaces`` are roots besides the roots
    of the key's agent and user.
    """

    rate: int | None = None
    burst: int | None = None
    stored_bytes: int | None = None
    sessions: int | None = None
    namespaces: int | None = None
    subscriptions: int | None = None


class KeyUsage(msgspec.Struct, frozen=True, array_like=True):
    """The quota that the holder of a key has used."""

    stored_bytes: int = 0
    sessions: int = 0
    namespaces: int = 0


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The identity and rights that a key grants.

    Attributes:
        agent: The agent id that the key is bound to; None: the client chooses.
        user: The user that the key's holder works for.
        projects: The projects that the key opens; None: all.
        tools: The tool profiles that are listed; empty: the server's.
        schemas: The form of the listed schemas; None: the server's.
    """

    name: str
    scopes: frozenset[str]
    agent: str | None = None
    agent_type: str | None = None
    user: str | None = None
    projects: frozenset[str] | None = None
    limits: KeyLimits = KeyLimits()
    tools: tuple[str, ...] = ()
    schemas: SchemaForm | None = None


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored key; times in microseconds since 1970.

    Attributes:
        origin: The first key of the rotations; the usage counts there. None: this key itself.
        secret: The mark of the store's secret that the digest depends on; empty: the first secret's.
        is_usable: Whether that is the store's secret now; never stored, see `KeysActor.read`.
    """

    key_id: str
    digest: bytes
    grant: Grant
    created: int
    created_by: str | None
    expires: int
    last_used: int | None = None
    revoked: int | None = None
    replaces: str | None = None
    replaced_by: str | None = None
    origin: str | None = None
    secret: str = ""
    is_usable: bool = True

    def __repr__(self) -> str:
        return f"<key {self.key_id} of {self.grant.name!r}>"

    def status(self, now: int) -> KeyStatus:
        """Return its status at a time."""
        if self.revoked is not None:
            return "revoked"
        if now >= self.expires:
            return "expired"
        return "active" if self.is_usable else "unusable"


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated credential: a key, a token, or none.

    Attributes:
        id: The credential's name in the audit log and in limits: a key's id, or ``oauth:`` and a subject.
        by_key: Whether it is an API key of this server.
        holder: The holder; usage is counted for it across rotations and tokens: the first key of the
            rotations, or an issuer's subject and client.
        is_limited: Whether a rate limit applies.
        seen_by: The agent that impersonates the agent of the grant; None without impersonation.
    """

    id: str
    grant: Grant
    by_key: bool
    expires: int
    holder: str
    is_limited: bool = True
    seen_by: str | None = None


def credential_of(key: KeyRecord) -> Credential:
    """Return the credential of an authenticated key."""
    return Credential(
        id=key.key_id,
        grant=key.grant,
        by_key=True,
        expires=key.expires,
        holder=key.origin or key.key_id,
    )


def check_claims(
    grant: Grant, *, agent: str | None, agent_type: str | None, projects: frozenset[str]
) -> None:
    """Check the identity that a client claims against its grant."""
    for what, bound, claimed in (("agent", grant.agent, agent), ("agent type", grant.agent_type, agent_type)):
        if bound is not None and claimed is not None and claimed != bound:
            sentence = f"your key is bound to the {what} {bound!r}; leave the {what} out"
            raise auth_errors.permission_denied(what.replace(" ", "_"), sentence)
    if grant.projects is not None and not projects <= grant.projects:
        strange = ", ".join(sorted(projects - grant.projects))
        raise auth_errors.permission_denied("project", f"your key is none of the project {strange}")


def principal_of(
    credential: Credential,
    *,
    agent: str,
    agent_type: str | None,
    projects: frozenset[str],
    address: str | None,
) -> Principal:
    """Return the principal of a client that passed `check_claims`.

    Bindings of the grant override the claims. If no projects are claimed, all projects of the grant count.
    """
    grant = credential.grant
    return Principal(
        agent_id=grant.agent or own_agent(credential, agent),
        agent_type=grant.agent_type or agent_type,
        user=grant.user,
        projects=projects or grant.projects,
        scopes=grant.scopes,
        key_id=credential.id,
        address=address,
        seen_by=credential.seen_by,
    )


def own_agent(credential: Credential, agent: str) -> str:
    """Return the id of an unbound agent, with its user's digits at the end.

    Only the id separates an agent's data from other agents', so no client may choose the id of another user's
    agent. If there is no user, the key replaces the user, through all rotations of the key.
    """
    user = credential.grant.user
    tag = _tag("key", credential.holder) if user is None else user_tag(user)
    return f"{agent[: MAX_NAME - len(tag) - 1]}.{tag}"


def user_tag(user: str) -> str:
    """Return the digits that end the ids of a user's agents; see `own_agent`."""
    return _tag("user", user)


def _tag(what: str, name: str) -> str:
    return blake2b(msgspec.json.encode((what, name)), digest_size=_TAG_BYTES).hexdigest()
