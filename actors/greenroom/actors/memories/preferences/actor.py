"""The actor of the preferences of a user, or of an agent without a user.

Record ``p``: the document, as JSON, and its version.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.errors import denial, invalid, resource_not_found, too_large
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.actors.core.resources.resource_uris import preferences_topic, preferences_uri
from greenroom.actors.core.resources.resources import ReadResource, ResourceInfo
from greenroom.actors.core.validation.parse import parse_part
from greenroom.actors.core.validation.times import optional_datetime
from greenroom.actors.memories.preferences import requests as schemas
from greenroom.actors.memories.preferences.requests import MAX_BYTES, MAX_MEMBERS, MAX_NAME, KnownPreferences
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
        check_size(patch)  # merging takes time proportional to the patch's size times depth
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


_FIELD: Final = "preferences"
_LONGEST_WORD: Final = 64
_NULL: Final = b"null"
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def merge(document: bytes, patch: bytes) -> bytes:
    """Apply a merge patch to a JSON document; other values keep their bytes.

    The patch is strictly valid JSON, which limits the depth of the recursion. A number in it may be too large
    or too precise for a float.
    """
    if not patch.startswith(b"{"):
        return patch
    members = _split(document) if document.startswith(b"{") else {}
    for name, value in _split(patch).items():
        given = bytes(value)
        if given == _NULL:
            members.pop(name, None)
        else:
            before = bytes(members.get(name, msgspec.Raw(_NULL)))
            members[name] = msgspec.Raw(merge(before, given))
    return msgspec.json.encode(members)


def check_size(document: bytes) -> None:
    """Refuse a document, or a patch of one, that is too large."""
    if len(document) > MAX_BYTES:
        raise too_large(_FIELD, len(document), MAX_BYTES)


def check_document(document: bytes) -> None:
    """Check a whole document, which is strictly valid JSON, before it is stored."""
    check_size(document)
    members = msgspec.json.decode(document)
    if len(members) > MAX_MEMBERS:
        raise invalid(
            _FIELD,
            f"{_FIELD}: there are {len(members):,} members and the limit is {MAX_MEMBERS:,}; null removes",
            limit=MAX_MEMBERS,
            size=len(members),
        )
    _check_names(members)
    _check_compression(known_preferences(document).default_compression)


def known_preferences(document: bytes) -> KnownPreferences:
    """Return the members of a document that have a known meaning, or refuse invalid ones."""
    return parse_part(KnownPreferences, document, _FIELD)


def _check_names(document: dict[str, Any]) -> None:
    """Refuse a name that is too long."""
    waiting: list[Any] = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for name in value:
                if len(name) > MAX_NAME:
                    raise invalid(
                        _FIELD,
                        f"{_FIELD}: the name {name[:40]!r}… has {len(name):,} characters and the limit is "
                        f"{MAX_NAME}",
                        limit=MAX_NAME,
                        size=len(name),
                        unit="characters",
                    )
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _check_compression(value: object) -> None:
    if isinstance(value, str):
        fits = 1 <= len(value) <= _LONGEST_WORD
    elif isinstance(value, int | float):
        fits = 0 <= value <= 1
    else:
        return
    if not fits:
        field = f"{_FIELD}.default_compression"
        raise invalid(
            field,
            f"{field}: it takes a ratio from 0 to 1, a word of up to {_LONGEST_WORD} characters, or true or "
            "false",
        )
