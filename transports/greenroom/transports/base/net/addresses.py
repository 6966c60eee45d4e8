"""Addresses and origins as the settings spell them, and which of them mean this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

LAST_PORT: Final = 65535

_LABEL: Final = "[a-z0-9_-]{1,63}"
_AUTHORITY: Final = re.compile(
    rf"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>{_LABEL}(?:\.{_LABEL})*\.?))(?::(?P<port>[0-9]{{1,5}}))?",
    re.ASCII | re.IGNORECASE,
)
_ORIGIN: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>.+)", re.ASCII)
_OF_PAGES: Final = frozenset({"http", "https"})


@dataclass(frozen=True)
class HostPort:
    """An address to listen on; port 0 takes any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether this machine alone reaches it."""
        return is_loopback(self.host)

    @property
    def is_unspecified(self) -> bool:
        """Whether it stands for every address of this machine, and is none that anybody could go to."""
        try:
            return ip_address(self.host).is_unspecified
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


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


class Origin(NamedTuple):
    """What the parts of an origin are; only those of web pages may be of this machine."""

    scheme: str
    host: str

    @property
    def is_loopback(self) -> bool:
        """Whether it is of a page that this machine served."""
        return self.scheme in _OF_PAGES and is_loopback(self.host)


def origin_parts(text: str) -> Origin | None:
    """Return the parts of an origin in lower case; None if it is anything but a scheme, a host and a port."""
    match = _ORIGIN.fullmatch(text)
    host = None if match is None else host_of(match["authority"])
    return None if match is None or host is None else Origin(match["scheme"], host)


def host_of(authority: str) -> str | None:
    """Return the host in lower case of ``HOST`` or ``HOST:PORT``; None if it is anything else.

    Nothing is read leniently: who reads a user's name, a path or a port of 99999 otherwise than the program
    that wrote it may mean another host.
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
