"""What every resource says of itself."""

from __future__ import annotations

from datetime import datetime

import msgspec


class ResourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a resource says of itself.

    Attributes:
        uri: Its URI.
        reader: The agent that it was put together for; another one may see more or less.
        last_updated: When it changed last, as far as the reader may see; None when it holds nothing.
        supports_subscriptions: Whether changes of it can be subscribed to.
    """

    uri: str
    reader: str
    last_updated: datetime | None
    supports_subscriptions: bool = True
