"""The actor of the preferences of a user, or of an agent without a user.

Record ``p``: the document, as JSON, and its version.
"""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.errors import denial, resource_not_found
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.actors.core.resources.resource_uris import preferences_topic, preferences_uri
from greenroom.actors.core.resources.resources import ReadResource, ResourceInfo
from greenroom.actors.core.validation.times import optional_datetime
from greenroom.actors.memories.preferences import requests as schemas
from greenroom.actors.memories.preferences.document import (
    check_document,
    check_size,
    known_preferences,
    merge,
)
from greenroom.runtime import Actor, Address, Context, Refusal, handles

_DOCUMENT: Final = b"p"


class StoredPreferences(msgspec.Struct, frozen=True, array_like=True):
    """The document of a user, its version, and the time of the last change."""

    document: bytes = b"{}"
    version: int = 0
    updated_at: int | None = None


def preferences_address(principal: Principal) -> Address:
    """Return the address of the actor with the preferences of a principal's user."""
    return Address(schemas.KIND, user_namespace(principal))


class PreferencesActor(Actor):
    """The preferences of one owner; its key is the owner's namespace."""

    kind = schemas.KIND

    def activate(self, context: Context) -> None:
        """Read the document."""
        self._stored = context.get(_DOCUMENT, StoredPreferences) or StoredPreferences()

    @handles(schemas.SetPreferences)
    def set(self, request: schemas.SetPreferences, context: Context) -> schemas.PreferencesSet:
        """Apply a merge patch to the document; without a change there is no new version."""
        self._check(context)
        stored = self._stored
        if request.expected_version not in {None, stored.version}:
            raise _conflict(request.expected_version or 0, stored.version)
        patch = bytes(request.preferences)
        check_size(patch)  # merging takes time proportional to its size times its depth
        document = merge(stored.document, patch)
        check_document(document)
        if document != stored.document:
            stored = self._stored = StoredPreferences(document, stored.version + 1, context.now)
            context.put(_DOCUMENT, stored)
            audit_record.record(context, "set_preferences", None, version=stored.version, bytes=len(document))
            self._publish(context)
        return schemas.PreferencesSet(
            preferences=msgspec.Raw(stored.document),
            version=stored.version,
            updated_at=optional_datetime(stored.updated_at),
        )

    @handles(schemas.GetPreferences)
    def get(self, _: schemas.GetPreferences, context: Context) -> schemas.KnownPreferences:
        """Return the known members to another part of the program, on behalf of the user."""
        self._check(context)
        return known_preferences(self._stored.document)

    @handles(ReadResource)
    def read(self, request: ReadResource, context: Context) -> schemas.PreferencesResource:
        """Return the document as a resource."""
        if user_namespace(context.principal) != context.address.key:
            raise denial(resource_not_found(request.uri))
        audit_record.record_resource_read(context, bytes=len(self._stored.document))
        user, stored = policy.preferences_owner(context.principal), self._stored
        updated_at = optional_datetime(stored.updated_at)
        return schemas.PreferencesResource(
            user_id=user,
            preferences=msgspec.Raw(stored.document),
            version=stored.version,
            updated_at=updated_at,
            resource_info=ResourceInfo(
                uri=preferences_uri(user), reader=context.principal.agent_id, last_updated=updated_at
            ),
        )

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> ErasedPart:
        """Erase the preferences of a person."""
        if not (self._stored.version and request.person.has_root(context.address.key)):
            return ErasedPart(counts={})
        if not request.dry_run:
            context.use_reserve()
            context.delete(_DOCUMENT)
            self._stored = StoredPreferences()
            self._publish(context)
        return ErasedPart(counts={"preferences": 1})

    def _check(self, context: Context) -> None:
        """Check that these preferences belong to the sender's user."""
        if user_namespace(context.principal) != context.address.key:
            raise auth_errors.permission_denied("preferences", "preferences: they are another's")

    def _publish(self, context: Context) -> None:
        owner = context.address.key
        context.publish(preferences_topic(owner), policy.label_of_owner(owner))


def _conflict(expected: int, current: int) -> Refusal:
    """Return the refusal for a version that the caller did not expect."""
    return Refusal(
        "VERSION_CONFLICT",
        f"the preferences are at version {current} and you expected version {expected}; read them again and "
        "decide anew",
        expected_version=expected,
        current_version=current,
    )
