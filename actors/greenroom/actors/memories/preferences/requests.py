"""Preferences of a user: the request that changes them, its reply, and the known members."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.memory_types import ExpectedVersion
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.resources.resources import Resource, ResourceInfo
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.runtime import Message

KIND = "preferences"
MAX_BYTES = 65_536
"""The whole document has at most this many bytes, as JSON in UTF-8."""
MAX_MEMBERS = 200
"""The document has at most this many members at its top level."""
MAX_NAME = 128
"""The name of a member, at any level, has at most this many characters."""

_Word = Annotated[str, Meta(min_length=1, max_length=64)]
_Part = Annotated[float, Meta(ge=0, le=1)]
_Most = Annotated[int, Meta(ge=1, le=100)]


class SearchDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults for arguments that a search of memories leaves out."""

    min_relevance: _Part | UnsetType = UNSET
    max_results: _Most | UnsetType = UNSET


class AutoFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """Features that may act for a user without a request."""

    workflow_learning: bool | UnsetType = UNSET
    context_compression: bool | UnsetType = UNSET


class KnownPreferences(msgspec.Struct, frozen=True, kw_only=True):
    """The members of preferences with a known meaning; others are stored unchanged."""

    theme: _Word | UnsetType = UNSET
    default_compression: str | float | bool | UnsetType = UNSET
    search_defaults: SearchDefaults = msgspec.field(default_factory=SearchDefaults)
    auto_features: AutoFeatures = msgspec.field(default_factory=AutoFeatures)


MergePatch = Annotated[
    msgspec.Raw,
    Meta(
        description="JSON merge patch: members to set, null removes one",
        extra_json_schema={"type": ["object", "string"], "properties": {"theme": {"type": "string"}}},
        extra=types.OBJECT,
    ),
]


class PreferencesSet(Reply, frozen=True, kw_only=True):
    """Answers `SetPreferences` with the whole document."""

    preferences: msgspec.Raw
    version: int
    updated_at: datetime | None


class PreferencesResource(Resource, frozen=True, kw_only=True):
    """A user's preferences as a resource.

    Attributes:
        user_id: The owner: a user, or an agent without a user.
        version: How often it was changed; 0 for never.
    """

    user_id: str
    preferences: msgspec.Raw
    version: int
    updated_at: datetime | None
    resource_info: ResourceInfo


@operation(
    "set_preferences",
    scope="memory:write",
    route="preferences",
    tool=ToolText(
        title="Set preferences",
        description="Change how your user wants every tool to behave, such as theme, "
        "search_defaults or auto_features, by a JSON merge patch; {} only shows what "
        "is set.",
        overwrites=True,
        repeatable=True,
        weight=1,
    ),
)
class SetPreferences(Message[PreferencesSet], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Change the preferences of the caller's user by a JSON merge patch (RFC 7396)."""

    preferences: MergePatch
    expected_version: ExpectedVersion | None = None
    idempotency_key: types.IdempotencyKey | None = None


class GetPreferences(Message[KnownPreferences], frozen=True, kw_only=True):
    """Return the known preferences of the sender's user; not a tool."""
