"""Create, list, rotate and revoke API keys: the requests of tools and the command line.

The process that runs the request makes the key and returns it once. Only the key's digest goes to the keys'
actor, so the key is in no message, no stored reply and no log.
"""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import scopes as auth_scopes
from greenroom.actors.core.auth.grants import (
    LIFETIME_DAYS,
    OVERLAP_SECONDS,
    Grant,
    KeyLimits,
    KeyRecord,
    KeyStatus,
)
from greenroom.actors.core.auth.key_format import KEY_ID, PURPOSE, ParsedKey, digest_of, mask_keys, new_key
from greenroom.actors.core.auth.tool_profiles import TOOL_PROFILES, SchemaForm, ToolProfileName
from greenroom.actors.core.client import Client
from greenroom.actors.core.keys.actor import KEYS_ADDRESS, KeepKey, ReadKeys, ReplaceKey, RevokeKey
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.replies import ListReply, Reply
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import DAY, SECOND, optional_datetime, to_datetime
from greenroom.runtime import Procedure

KeyName = Annotated[str, Meta(min_length=1, max_length=100, description="what people call it")]
KeyId = Annotated[
    str,
    Meta(
        pattern=f"^{KEY_ID}(?!\\n)$",
        description="the 12 characters behind gr_",
        extra={"takes": "the 12 characters behind gr_"},
    ),
]
AgentName = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}(?!\n)$", extra={"takes": "1 to 100 of A-Z a-z 0-9 _ . -"})
]
Named = Annotated[str, Meta(min_length=1, max_length=128)]
Projects = Annotated[list[Named], Meta(max_length=200)]
Days = Annotated[int, Meta(ge=1, le=3_650, description="when it ends by itself")]
Scopes = Annotated[
    list[str], Meta(min_length=1, max_length=50, description="such as sessions:read, memory:*, *:read, admin")
]
Profiles = Annotated[list[ToolProfileName], Meta(max_length=len(TOOL_PROFILES))]
Count = Annotated[int, Meta(ge=1, le=1 << 53)]

_OF_ALL_PROJECTS = (auth_scopes.ADMIN, auth_scopes.AUDIT)
"""Scopes that cover all projects: keys for any project, and the audit log."""


class ApiKeyView(msgspec.Struct, frozen=True, kw_only=True):
    """The public view of an API key.

    Attributes:
        agent: The agent that it is bound to; null: the client chooses.
        user: The user that its holder works for.
        projects: The projects that it opens; null: all.
        limits: Its own limits; the server's settings apply to others.
        tools: The tool profiles that are listed; empty: the server's.
        schemas: The form of the listed schemas; null: the server's.
        last_used_at: Its last use, to the minute, for open connections to the hour; null: never.
        replaces: The key that it replaces in rotation.
        replaced_by: The key that replaces it.
    """

    key_id: str
    name: str
    status: KeyStatus
    scopes: list[str]
    agent: str | None
    agent_type: str | None
    user: str | None
    projects: list[str] | None
    limits: dict[str, int]
    tools: list[str]
    schemas: SchemaForm | None
    created_at: datetime
    created_by: str | None
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    replaces: str | None
    replaced_by: str | None


class ApiKeyMade(Reply, frozen=True, kw_only=True):
    """Answers `CreateApiKey` and `RotateApiKey`. ``api_key`` is returned this once and not stored."""

    api_key: str
    key: ApiKeyView


class ApiKeyList(ListReply, frozen=True, kw_only=True):
    """Answers `ListApiKeys`, oldest first."""

    lists: ClassVar[tuple[str, ...]] = ("keys",)

    keys: list[ApiKeyView]


class ApiKeyRevoked(Reply, frozen=True, kw_only=True):
    """Answers `RevokeApiKey`."""

    key: ApiKeyView


@operation(
    "create_api_key",
    scope="admin",
    writes=True,
    tool=ToolText(
        title="Create API key",
        description="Make a key for an agent, a person or a program, with as few scopes as it "
        "needs. api_key is shown this once.",
    ),
)
class CreateApiKey(Procedure[ApiKeyMade], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Make an API key."""

    runs = "here"
    name: KeyName
    scopes: Scopes
    agent: Annotated[AgentName, Meta(description="null = as its holder says")] | None = None
    agent_type: Annotated[AgentName, Meta(description="such as reviewer")] | None = None
    user: Annotated[Named, Meta(description="null = yours")] | None = None
    projects: Annotated[Projects, Meta(description="null = every one")] | None = None
    expires_in_days: Days = LIFETIME_DAYS
    rate_limit: Annotated[Count, Meta(description="requests a minute")] | None = None
    burst: Annotated[Count, Meta(description="requests at once")] | None = None
    max_stored_bytes: Annotated[Count, Meta(description="that its holder may store")] | None = None
    max_sessions: Annotated[Count, Meta(description="that its holder may make")] | None = None
    max_namespaces: Annotated[Count, Meta(description="that its holder may begin")] | None = None
    max_subscriptions: Annotated[Count, Meta(description="open at once")] | None = None
    tools: Annotated[Profiles, Meta(description="tools listed; null = as the server says")] | None = None
    schemas: Annotated[SchemaForm, Meta(description="their form; null = as the server says")] | None = None

    async def run(self, client: Client) -> ApiKeyMade:
        """Make the key."""
        if strange := auth_scopes.unknown_scopes(self.scopes):
            known = ", ".join((*auth_scopes.SCOPES, *auth_scopes.WILDCARDS))
            named = mask_keys(", ".join(strange))[:200]
            raise auth_errors.invalid("scopes", f"scopes: there is no {named}; {known}")
        if self.projects is not None and any(
            auth_scopes.allows(self.scopes, each) for each in _OF_ALL_PROJECTS
        ):
            raise auth_errors.invalid(
                "projects",
                f"projects: {auth_scopes.EVERYTHING!r}, {auth_scopes.ADMIN!r} and {auth_scopes.AUDIT!r} are "
                "about every project; leave the projects out, or give other scopes, such as sessions:* and "
                "memory:*",
            )
        grant = Grant(
            name=self.name,
            scopes=frozenset(self.scopes),
            agent=self.agent,
            agent_type=self.agent_type,
            user=self.user or client.principal.user,
            projects=None if self.projects is None else frozenset(self.projects),
            limits=KeyLimits(
                rate=self.rate_limit,
                burst=self.burst,
                stored_bytes=self.max_stored_bytes,
                sessions=self.max_sessions,
                namespaces=self.max_namespaces,
                subscriptions=self.max_subscriptions,
            ),
            tools=tuple(dict.fromkeys(self.tools or ())),
            schemas=self.schemas,
        )
        key = new_key(secrets.choice)
        message = KeepKey(
            key_id=key.key_id,
            digest=digest_of(key, client.runtime.derive(PURPOSE)),
            grant=grant,
            lifetime=self.expires_in_days * DAY,
        )
        return _made_reply(key, await client.ask(KEYS_ADDRESS, message))


@operation(
    "list_api_keys",
    scope="admin",
    tool=ToolText(
        title="List API keys",
        description="See which keys there are, whose, what for, until when, and when each was used last.",
        weight=1,
    ),
)
class ListApiKeys(Procedure[ApiKeyList], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the API keys."""

    runs = "here"

    include_ended: Annotated[bool, Meta(description="those that ended, too")] = True

    async def run(self, client: Client) -> ApiKeyList:
        """Return the keys, oldest first."""
        read = await client.ask(KEYS_ADDRESS, ReadKeys())
        views = [view_of(record, read.now) for record in read.keys]
        return ApiKeyList(keys=[view for view in views if self.include_ended or view.status == "active"])


@operation(
    "rotate_api_key",
    scope="admin",
    writes=True,
    tool=ToolText(
        title="Rotate API key",
        description="Make a new key for the same holder; the old one goes on for overlap_seconds.",
        overwrites=True,
    ),
)
class RotateApiKey(Procedure[ApiKeyMade], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Make a key that replaces another one, which stays valid for an overlap."""

    runs = "here"
    key_id: KeyId
    overlap_seconds: Annotated[
        int, Meta(ge=0, le=30 * 86_400, description="how long the old key goes on")
    ] = OVERLAP_SECONDS
    expires_in_days: Annotated[Days, Meta(description="null = as long as the old one had")] | None = None

    async def run(self, client: Client) -> ApiKeyMade:
        """Make the key."""
        key = new_key(secrets.choice)
        message = ReplaceKey(
            key_id=key.key_id,
            digest=digest_of(key, client.runtime.derive(PURPOSE)),
            replaces=self.key_id,
            overlap=self.overlap_seconds * SECOND,
            lifetime=None if self.expires_in_days is None else self.expires_in_days * DAY,
        )
        return _made_reply(key, await client.ask(KEYS_ADDRESS, message))


@operation(
    "revoke_api_key",
    scope="admin",
    writes=True,
    tool=ToolText(
        title="Revoke API key",
        description="End a key for good, now, and every connection and subscription that came by it.",
        overwrites=True,
        repeatable=True,
    ),
)
class RevokeApiKey(Procedure[ApiKeyRevoked], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Revoke an API key at once, and close everything that it opened."""

    runs = "here"
    key_id: KeyId

    async def run(self, client: Client) -> ApiKeyRevoked:
        """Revoke the key."""
        record = await client.ask(KEYS_ADDRESS, RevokeKey(key_id=self.key_id))
        return ApiKeyRevoked(key=view_of(record, record.revoked or record.created))


def view_of(record: KeyRecord, now: int) -> ApiKeyView:
    """Return the public view of a key."""
    grant = record.grant
    return ApiKeyView(
        key_id=record.key_id,
        name=grant.name,
        status=record.status(now),
        scopes=sorted(grant.scopes),
        agent=grant.agent,
        agent_type=grant.agent_type,
        user=grant.user,
        projects=None if grant.projects is None else sorted(grant.projects),
        limits={key: value for key, value in msgspec.structs.asdict(grant.limits).items() if value},
        tools=list(grant.tools),
        schemas=grant.schemas,
        created_at=to_datetime(record.created),
        created_by=record.created_by,
        expires_at=to_datetime(record.expires),
        last_used_at=optional_datetime(record.last_used),
        revoked_at=optional_datetime(record.revoked),
        replaces=record.replaces,
        replaced_by=record.replaced_by,
    )


def _made_reply(key: ParsedKey, record: KeyRecord) -> ApiKeyMade:
    return ApiKeyMade(api_key=key.whole, key=view_of(record, record.created))
