"""Addresses and origins as the settings spell them, and which of them are loopback."""

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
    """An address to listen on; port 0 means any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def is_unspecified(self) -> bool:
        """Whether it stands for every address of this machine, which no client can connect to."""
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
        """Whether a page of this machine has it."""
        return self.scheme in _OF_PAGES and is_loopback(self.host)


def origin_parts(text: str) -> Origin | None:
    """Split an origin into lower-case parts; None if it has others."""
    match = _ORIGIN.fullmatch(text)
    host = None if match is None else host_of(match["authority"])
    return None if match is None or host is None else Origin(match["scheme"], host)


def host_of(authority: str) -> str | None:
    """Return the host of ``HOST`` or ``HOST:PORT`` in lower case; None for anything else.

    Parsing is strict: a lenient parser may find another host than the program that wrote a user name, a
    path or a port of 99999 into it.
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
