"""Count authentications and exports, for alerts, without names of persons and addresses.

The audit log records the callers.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from greenroom.actors.core.validation.coercion import coerced_arguments
from greenroom.runtime.base.statistics import counter

KEYS: Final = 10_000
"""The number of keys whose addresses are remembered; the least recently added key is forgotten first."""
ADDRESSES: Final = 16
"""The number of addresses that are remembered for each key."""


class AccessStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of authentications and exports since the start of the server."""

    admitted: Annotated[
        int, counter("authentications", "Requests over HTTP and new connections that were let in.")
    ]
    refused: Annotated[
        int,
        counter(
            "authentications_refused",
            "Requests over HTTP and new connections that were refused, for a wrong credential.",
        ),
    ]
    new_addresses: Annotated[
        int,
        counter(
            "key_addresses_new",
            "Times that a key or token came from another address than any before; its first is none.",
        ),
    ]
    exports: Annotated[
        int, counter("exports", "Exports of memories and sessions by the server's tools and links.")
    ]
    exported_bytes: Annotated[int, counter("exported_bytes", "Size of these exports.")]
    coerced_arguments: Annotated[
        int,
        counter(
            "coerced_arguments",
            "Arguments accepted as JSON in a text, as a whole float, or as null for an absent value.",
        ),
    ]


class AccessMeter:
    """Count authentications and exports.

    The addresses of a key are remembered in memory only, for a bounded number of keys and addresses.
    """

    __slots__ = ("_addresses", "_admitted", "_exported_bytes", "_exports", "_new_addresses", "_refused")

    def __init__(self) -> None:
        self._addresses: dict[str, dict[str, None]] = {}
        self._admitted = self._refused = self._new_addresses = 0
        self._exports = self._exported_bytes = 0

    def record_admitted(self, holder: str | None, address: str) -> None:
        """Count an authenticated request or connection."""
        self._admitted += 1
        if holder is None:
            return
        known = self._addresses.pop(holder, None)
        if known is None:
            known = {}
        elif address not in known:
            self._new_addresses += 1
        known.pop(address, None)
        known[address] = None
        self._addresses[holder] = known
        for kept, most in ((known, ADDRESSES), (self._addresses, KEYS)):
            if len(kept) > most:
                del kept[next(iter(kept))]

    def record_refused(self) -> None:
        """Count a refused request or connection."""
        self._refused += 1

    def record_export(self, size: int) -> None:
        """Count an export, with its size in bytes."""
        self._exports += 1
        self._exported_bytes += size

    def statistics(self) -> AccessStatistics:
        """Return the counts so far."""
        return AccessStatistics(
            admitted=self._admitted,
            refused=self._refused,
            new_addresses=self._new_addresses,
            exports=self._exports,
            exported_bytes=self._exported_bytes,
            coerced_arguments=coerced_arguments.total(),
        )
