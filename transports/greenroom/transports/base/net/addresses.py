"""Addresses and origins: spelling in settings, loopback, and clients behind proxies.

A proxy names its client in the header ``Forwarded`` (RFC 7239). Any client can send that header, so only what
a trusted proxy added counts: the list is read from its end, and the first address that is not a trusted
proxy's is the client's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, NamedTuple

LAST_PORT: Final = 65535

_LABEL: Final = "[a-z0-9_-]{1,63}"
_AUTHORITY: Final = re.compile(
    rf"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>{_LABEL}(?:\.{_LABEL})*\.?))(?::(?P<port>[0-9]{{1,5}}))?",
    re.ASCII | re.IGNORECASE,
)
_ORIGIN: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>.+)", re.ASCII)
_OF_PAGES: Final = frozenset({"http", "https"})

FORWARDED: Final = b"forwarded"
Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

_MOST_FORWARDED: Final = 2_048
_ELEMENT: Final = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*")+')
_FOR: Final = re.compile(r'(?:^|;)\s*for\s*=\s*(?:"([^"\\]*)"|([^";,\s]+))', re.IGNORECASE)
_NODE: Final = re.compile(r"(?:\[([^\]]+)\]|([^:]+))(?::\w+)?")


@dataclass(frozen=True)
class HostPort:
    """An address to listen on; port 0 means any free port."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def is_unspecified(self) -> bool:
        """Whether it stands for all addresses of this machine; clients cannot connect to it."""
        try:
            return ip_address(self.host).is_unspecified
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Return whether a host, as an address or a name, always means this machine."""
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


class Origin(NamedTuple):
    """The parts of an origin; only origins of web pages may be loopback."""

    scheme: str
    host: str

    @property
    def is_loopback(self) -> bool:
        """Whether it is the origin of a page of this machine."""
        return self.scheme in _OF_PAGES and is_loopback(self.host)


def origin_parts(text: str) -> Origin | None:
    """Split an origin into lower-case parts; None if it has further parts."""
    match = _ORIGIN.fullmatch(text)
    host = None if match is None else host_of(match["authority"])
    return None if match is None or host is None else Origin(match["scheme"], host)


def host_of(authority: str) -> str | None:
    """Return the host of ``HOST`` or ``HOST:PORT`` in lower case; None for anything else.

    Parsing is strict. If the text also has a user name, a path or a port of 99999, a lenient parser may find
    another host than the program that wrote it.
    """
    match = _AUTHORITY.fullmatch(authority)
    if match is None or int(match["port"] or 0) > LAST_PORT:
        return None
    if match["v6"] is None:
        return match["name"].lower()
    try:
        return str(IPv6Address(match["v6"]))
    except ValueError:
        return None


def client_address(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Network]) -> str | None:
    """Return the address of a client."""
    if not trusted or not forwarded or not is_trusted(peer, trusted):
        return peer
    hops = _ELEMENT.findall(", ".join(forwarded)[-_MOST_FORWARDED:])
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
    """Return the prefix under which an address is counted: for IPv6, its /64."""
    read = _read(address)
    if isinstance(read, IPv6Address):
        return str(IPv6Address(int(read) >> 64 << 64))
    return str(read or address or "")


def _parse_hop(hop: str) -> str | None:
    match = _FOR.search(hop)
    node = None if match is None else _NODE.fullmatch(match[1] if match[1] is not None else match[2])
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
    """Return whether a trusted proxy has this address."""
    address = _read(peer)
    return address is not None and any(address in each for each in trusted)
