"""Reading a resource by its URI; each room declares the contents of its kinds."""

from __future__ import annotations

from datetime import datetime

import msgspec

from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.runtime import Message, Variants


class Resource(Variants, frozen=True, kw_only=True):
    """The contents of a resource; each kind has a type of its own."""


class ResourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of a resource; another reader may see more or less."""

    uri: str
    reader: str
    last_updated: datetime | None
    supports_subscriptions: bool = True


class ReadResource(Message[Resource], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read a resource by its URI."""

    uri: str
