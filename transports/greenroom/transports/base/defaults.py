"""Defaults that settings, servers and clients share."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE_BYTES: Final = 8 << 20
"""The longest message of the protocol, in bytes."""
MAX_IN_FLIGHT: Final = 1024
"""The most requests of one client in flight."""
MAX_CONNECTIONS: Final = 4096
"""The most connections of each transport, and the most HTTP sessions."""
PING_SECONDS: Final = 20.0
"""Seconds of silence before a WebSocket ping; after as many more, the connection ends."""
REQUEST_SECONDS: Final = 30.0
"""The time limit of a request, in seconds."""
SESSION_IDLE_SECONDS: Final = 1800.0
"""Seconds after which an idle HTTP session ends."""
RATE_LIMIT: Final = 100
"""Requests a minute for a key without its own rate, and for an address without a valid key."""
RATE_BURST: Final = 20
"""How many of these requests may come at once."""
RETRY_SECONDS: Final = 5
"""The ``Retry-After`` of a refusal for lack of room, in seconds."""
