"""API key records and grants, and the principals that follow from them: values and pure functions."""

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
"""What the id of a credential begins with that is a token."""
_TAG_BYTES: Final = 8

KeyStatus = Literal["active", "expired", "revoked"]


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The limits of one key; None: the server's setting applies, or no limit where there is none.

    Attributes:
        rate: Requests a minute.
        burst: Requests at once.
        stored_bytes: Bytes that it may have sent to be kept: the values of its requests that write.
        sessions: Sessions that it may have created.
        namespaces: Roots of namespaces that it may have begun, besides those of its agent and its user.
        subscriptions: Resources that its connections may hear of.
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
        name: For people.
        scopes: What it lets them do.
        agent: The agent id that it is bound to; None: as its holder names itself.
        agent_type: The agent type that it is bound to.
        user: The user whom its holder works for.
        projects: The projects whose member it is; None: every one.
        limits: What it may take.
        tools: The tool profiles that its holder is listed; empty: the server's.
        schemas: The form of schemas that its holder is listed; None: the server's.
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
    """One key as it is kept; times in microseconds since 1970.

    Attributes:
        key_id: What it is named by.
        digest: What is kept of the key itself.
        grant: Who has it, and what for.
        created: When it was made.
        created_by: The agent that made it.
        expires: When it ends.
        last_used: When it was used last, to a minute.
        revoked: When it was revoked.
        replaces: The key that it was made for in rotation.
        replaced_by: The key that was made for it.
        origin: The first key of its rotations, under which is counted what its holder has; None: itself.
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

    def __repr__(self) -> str:
        return f"<key {self.key_id} of {self.grant.name!r}>"

    def status(self, now: int) -> KeyStatus:
        """Return whether it opens anything."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if now >= self.expires else "active"


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated credential: a key, a token, or none.

    Attributes:
        id: What is told of it, in the audit log and to limits: a key's id, or ``oauth:`` and a subject.
        grant: Who they are, and what they may do.
        by_key: Whether it is an API key of this server.
        expires: When it ends, in microseconds since 1970.
        holder: What stands for whoever has it, whatever they showed before or show next: the first key of its
            rotations, or an issuer's subject and client. What they may take is counted under it.
        is_limited: Whether it is limited how often it may ask.
        seen_by: The agent that shows it and looks on as the agent of the grant; None where it is that one.
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
    """Check the identity that a client claims against its grant.

    Raises:
        Refusal: ``PERMISSION_DENIED``: they claim more than that.
    """
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
    """Return the principal of a client whose claims have passed `check_claims`.

    Args:
        credential: What they showed.
        agent: How they name themselves, which counts where the grant is bound to no agent: as `own_agent`.
        agent_type: Their agent type, which counts likewise.
        projects: Those of the grant's projects that they come for; empty for all of them.
        address: Where they come from.
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
    """Return the id of an agent that a grant is not bound to: with digits that are its user's alone.

    What an agent keeps for itself is told apart by its id alone, so that nobody may choose that of
    another user's agent. Where nobody knows the user, the key stands for one, through all its rotations.
    """
    user = credential.grant.user
    tag = _tag("key", credential.holder) if user is None else user_tag(user)
    return f"{agent[: MAX_NAME - len(tag) - 1]}.{tag}"


def user_tag(user: str) -> str:
    """Return the digits that end the ids of a user's agents, as `own_agent` makes them."""
    return _tag("user", user)


def _tag(what: str, name: str) -> str:
    return blake2b(msgspec.json.encode((what, name)), digest_size=_TAG_BYTES).hexdigest()
