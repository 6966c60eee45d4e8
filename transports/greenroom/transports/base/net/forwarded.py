"""Find the client's address behind proxies: the header ``Forwarded`` (RFC 7239), without I/O.

Any client can send that header, so only what a trusted proxy added counts: the list is read from its end,
and the first address that is no trusted proxy is the client's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

FORWARDED: Final = b"forwarded"
Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

_LONGEST: Final = 2_048
_ELEMENT: Final = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*")+')
_FOR: Final = re.compile(r'(?:^|;)\s*for\s*=\s*(?:"([^"\\]*)"|([^";,\s]+))', re.IGNORECASE)
_PORT: Final = re.compile(r"(?:\[([^\]]+)\]|([^:]+))(?::\w+)?")


def client_address(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Network]) -> str | None:
    """Return the address of a client."""
    if not trusted or not forwarded or not is_trusted(peer, trusted):
        return peer
    hops = _ELEMENT.findall(", ".join(forwarded)[-_LONGEST:])
    nearest = peer
    for hop in reversed(hops):
        address = _parse_hop(hop)
        if address is None:  # obfuscated or malformed: the hops before it are not trustworthy
            return nearest
        nearest = address
        if not is_trusted(address, trusted):
            return address
    return nearest


@lru_cache(maxsize=1_024)
def address_prefix(address: str | None) -> str:
    """Return the prefix that an address counts under: for IPv6 its /64."""
    read = _read(address)
    if isinstance(read, IPv6Address):
        return str(IPv6Address(int(read) >> 64 << 64))
    return str(read or address or "")


def _parse_hop(hop: str) -> str | None:
    match = _FOR.search(hop)
    node = None if match is None else _PORT.fullmatch(match[1] if match[1] is not None else match[2])
    address = None if node is None else _read(node[1] or node[2])
    return None if address is None else str(address)


@lru_cache(maxsize=1_024)
def _read(text: str | None) -> Address | None:
    try:
        address = ip_address(text or "")
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def is_trusted(peer: str | None, trusted: Sequence[Network]) -> bool:
    """Return whether an address is that of a trusted proxy."""
    address = _read(peer)
    return address is not None and any(address in each for each in trusted)
