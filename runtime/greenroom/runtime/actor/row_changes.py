"""Which actors wrote rows of an index lately, for those who keep what the rows say in memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from greenroom.runtime.lmdb.keys import index_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable

    from greenroom.runtime.base.address import Address

REMEMBERED: Final = 65_536
"""Actors by index; whoever has not looked for as many changes reads everything again."""


class RowChanges:
    """The actors whose rows changed, by index, in the order of their last change.

    Only of indexes that somebody has asked for: until then nothing is noted and writing costs nothing.
    """

    def __init__(self) -> None:
        self._number = 0
        self._changed: dict[bytes, OrderedDict[Address, int]] = {}
        self._forgotten: dict[bytes, int] = {}

    def note(self, address: Address, rows: Iterable[bytes]) -> None:
        """Take note that rows with these keys were committed, before anybody hears of it."""
        for prefix, changed in self._changed.items():
            if any(row.startswith(prefix) for row in rows):
                self._number += 1
                changed[address] = self._number
                changed.move_to_end(address)
                if len(changed) > REMEMBERED:
                    self._forgotten[prefix] = changed.popitem(last=False)[1]

    def since(self, index: str, number: int | None) -> tuple[int, list[Address] | None]:
        """Return the number of the last change, and who changed after ``number``; None: it is not known."""
        prefix = index_prefix(index)
        changed = self._changed.get(prefix)
        if changed is None:
            changed = self._changed[prefix] = OrderedDict()
            return self._number, None
        if number is None or number < self._forgotten.get(prefix, 0):
            return self._number, None
        found: list[Address] = []
        for address, last in reversed(changed.items()):
            if last <= number:
                break
            found.append(address)
        return self._number, found
