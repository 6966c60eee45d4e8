"""Addresses and origins as the settings spell them, and which of them mean this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from greenroom.transports._values import NotAllowedError

LAST_PORT: Final = 65535

_PORT: Final = re.compile("[0-9]{1,5}")


@dataclass(frozen=True)
class HostPort:
    """An address to listen on; port 0 takes any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether this machine alone reaches it."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def host_port(value: object) -> HostPort:
    """Return what ``127.0.0.1:8765``, ``[::1]:8765`` or ``0.0.0.0:8765`` means; for settings.

    Raises:
        NotAllowedError: it is none of these.
    """
    allowed = "HOST:PORT is allowed, such as 127.0.0.1:8765 or [::1]:8765, with a port from 0 to 65535"
    if not isinstance(value, str):
        raise NotAllowedError(allowed)
    host, colon, port = value.strip().rpartition(":")
    bare = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or (":" in bare and bare == host):
        raise NotAllowedError(allowed)
    if _PORT.fullmatch(port) is None or int(port) > LAST_PORT:
        raise NotAllowedError(allowed)
    if not bare:
        raise NotAllowedError(allowed)
    return HostPort(bare, int(port))


def is_loopback(host: str) -> bool:
    """Whether a host, as an address or a name, always means this machine."""
    plain = host.lower().rstrip(".")
    if plain == "localhost" or plain.endswith(".localhost"):  # RFC 6761
        return True
    try:
        address = ip_address(plain)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def origin(value: object) -> str:
    """Return an origin as a browser spells it; for settings.

    Raises:
        NotAllowedError: it is none.
    """
    allowed = "an origin such as https://example.org or http://example.org:8000 is allowed"
    if not isinstance(value, str):
        raise NotAllowedError(allowed)
    plain = value.strip().lower().removesuffix("/")
    if plain == "null":
        return plain
    try:
        parts = urlsplit(plain)
        if not parts.scheme or not parts.hostname or plain != f"{parts.scheme}://{parts.netloc}":
            raise NotAllowedError(allowed)
    except ValueError:
        raise NotAllowedError(allowed) from None
    return plain
