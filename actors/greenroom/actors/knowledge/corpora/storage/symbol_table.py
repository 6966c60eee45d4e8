"""A table in memory: which files of a workspace define, use and import a name.

Names are hashes of this process, so two names may rarely have the same rows. The facts of the files that are
found tell.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from greenroom.actors.content.syntax.source import Kind
from greenroom.actors.content.text.words import symbol_name
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.knowledge.corpora.storage.file_names import FileNames

USE: Final = len(get_args(Kind))
IMPORT: Final = USE + 1
MODULE: Final = USE + 2
"""The values of `Rows.roles` after those of definitions, which are the places of their kinds in `Kind`."""
_KINDS: Final = {kind: place for place, kind in enumerate(get_args(Kind))}
_MASK: Final = 0x7FFF_FFFF
"""Half of Python's hash; with the tables of hashes a file takes a tenth of a millisecond."""
_MOST: Final = 0xFFFF
_PACKED: Final = 64
"""Rows of so many files are sorted together, which takes a millisecond or two."""
_MOST_DEAD: Final = 1_000
_MOST_HASHES: Final = 20_000
_DEEPEST: Final = 255
_ROW: Final = np.dtype(
    [("owner", np.uint32), ("file", np.uint32), ("count", np.uint16), ("role", np.uint8), ("depth", np.uint8)]
)
_SEPARATOR: Final = re.compile(r"[./:\\]+")

Rows = NDArray[np.void]
"""Rows of a name in files: its role there, and how often it has this role.

``file`` is a document's number; ``role`` is the kind of a definition, or one of `USE`, `IMPORT`, `MODULE`.
``owner`` is the hash of the name before it: of a definition's scope, a use's qualifier, a module. ``depth``
is the number of scopes around a definition.
"""


class _Part(NamedTuple):
    """Sorted rows of some files; ``file`` is a slot: a file as it was put."""

    names: NDArray[np.uint32]
    rows: Rows


class SymbolTable:
    """The table.

    Attributes:
        loaded: Documents with smaller numbers are in the table; None if all are.
    """

    def __init__(self) -> None:
        self.loaded: int | None = 0
        self._parts: list[_Part] = []
        self._names: list[int] = []
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._packed = 0
        self._numbers = array("I")
        self._is_dead = bytearray()
        self._slots: dict[int, int] = {}

    @property
    def is_worn(self) -> bool:
        """Whether most of the rows are of files that changed since."""
        return len(self._numbers) > 2 * len(self._slots) + _MOST_DEAD

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return 16 * sum(len(part.names) for part in self._parts) + 250 * len(self._numbers)

    def put(self, number: int, names: FileNames | None) -> None:
        """Replace the rows of a file; None if it has no facts."""
        old = self._slots.pop(number, None)
        if old is not None:
            self._is_dead[old] = 1
        if names is None:
            return
        slot = self._slots[number] = len(self._numbers)
        self._numbers.append(number)
        self._is_dead.append(0)
        self._add(slot, names)
        if slot + 1 - self._packed >= _PACKED:
            self._pack()

    def _add(self, slot: int, names: FileNames) -> None:
        """Add the rows of a file, for each way in which a use is written."""
        exact, owners, rows = _exact, _owners, self._rows
        for each in names.symbols:
            path = f"{each.scope}.{each.name}" if each.scope else each.name
            before, _, name = path.rpartition(".")
            owner = exact[before.rpartition(".")[2]] if before else 0
            self._names.append(exact[name])
            rows.append((owner, slot, 1, _KINDS[each.kind], min(path.count("."), _DEEPEST)))
        uses = Counter([(each.name, each.qualifier) for each in names.references])
        self._names += [exact[name] for name, _ in uses]
        rows += [
            (owners[qualifier], slot, min(_MOST, count), USE, 0) for (_, qualifier), count in uses.items()
        ]
        brought = Counter([(each.name, each.module) for each in names.imports if each.name])
        self._names += [exact[name] for name, _ in brought]
        rows += [
            (owners[module], slot, min(count, _MOST), IMPORT, 0) for (_, module), count in brought.items()
        ]
        modules = {_SEPARATOR.split(each.module)[-1] for each in names.imports}
        self._names += [exact[module] for module in modules]
        rows += [(0, slot, 1, MODULE, 0)] * len(modules)

    def find(self, name: str) -> Rows:
        """Return the rows of a name."""
        if self._names:
            self._pack()
        wanted = hash_name(name)
        ends = np.array([wanted, wanted + 1], np.uint32)
        found = [np.zeros(0, _ROW)]
        for part in self._parts:
            first, last = part.names.searchsorted(ends).tolist()
            if first < last:
                found.append(part.rows[first:last])
        rows: Rows = np.concatenate(found)
        rows = rows[np.frombuffer(self._is_dead, np.uint8)[rows["file"]] == 0]
        rows["file"] = np.frombuffer(self._numbers, np.uint32)[rows["file"]]
        return rows

    def _pack(self) -> None:
        """Sort the newest rows, and join them with a small part."""
        names, rows = np.array(self._names, np.uint32), np.array(self._rows, _ROW)
        if self._parts and len(self._parts[-1].names) < len(names):
            small = self._parts.pop()
            names, rows = np.concatenate([small.names, names]), np.concatenate([small.rows, rows])
        order = names.argsort(kind="stable")
        self._parts.append(_Part(names[order], rows[order]))
        self._names.clear()
        self._rows.clear()
        self._packed = len(self._numbers)


class _Hashes(dict[str, int]):
    """Hashes of texts; the next text makes the table anew if it is full."""

    def __init__(self, compute: Callable[[str], int]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, text: str) -> int:
        if len(self) >= _MOST_HASHES:
            self.clear()
        value = self[text] = self._compute(text)
        return value


def hash_name(name: str) -> int:
    """Return the hash of a name in the table."""
    return hash(compose(name)) & _MASK


def hash_owner(name: str) -> int:
    """Return the hash of a qualifier or module, of which only the last part counts."""
    return hash_name(symbol_name(_SEPARATOR.split(name)[-1])) if name else 0


_exact: Final = _Hashes(hash_name)
_owners: Final = _Hashes(hash_owner)


def place_of(kind: Kind) -> int:
    """Return the role of definitions of a kind."""
    return _KINDS[kind]
