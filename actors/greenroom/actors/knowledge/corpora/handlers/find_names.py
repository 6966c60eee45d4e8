"""Find the files that define and use names, by the table of names alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from greenroom.actors.content.syntax.origins import Origin
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.knowledge.corpora.requests.code_symbols import FactsOfFile, FindNamed, NamedFiles
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.facts import read_numbered
from greenroom.actors.knowledge.corpora.storage.file_names import unpack_names
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.knowledge.corpora.storage.symbol_table import Rows, SymbolTable

MOST_USES: Final = 200
"""All uses of a name are resolved if there are at most so many."""
MOST_FILES: Final = 40
"""Of a name that more files have, at most so many are read for its uses."""
_FEW: Final = 8
"""If no more files define a name, those that import such a file by its name come before others, too."""
_AT_ONCE: Final = 500
"""One message adds so many files to the table; other messages of the actor come between."""
_TABLE: Final = "greenroom.actors.knowledge.corpora.storage.symbol_table"


def find_named(
    repository: CorpusRepository, request: FindNamed, context: Context
) -> Slices[NamedFiles | None]:
    """Return the files of names; None while the table is being filled, so ask again."""
    repository.check(context.principal, request.corpus)
    table = yield from _fill(repository, context)
    if table is None:
        return None
    paths = yield from repository.list_paths(context)
    found: list[_Named] = []
    for name in request.names:
        found.append(_Named(table, name, request))
        yield
    defining = {number for each in found for number in each.defining["file"].tolist()}
    using = {number for each in found for number in each.using["file"].tolist()}
    yield
    for number in (defining | using).difference(paths):
        repository.by_number(context, number)  # says what is damaged
    uses = sum(_count(each.using) for each in found)
    is_whole = uses <= MOST_USES and len(defining | using) <= MOST_FILES
    chosen: list[int] = []
    if not is_whole:
        tiers = [defining & using, using & _find_importing(table, found, defining, paths), using]
        for tier in tiers:
            chosen += nsmallest(MOST_FILES - len(chosen), tier.difference(chosen), key=paths.__getitem__)
            yield
        chosen = _cut(chosen, found)
        defining = set(_choose_definitions(found, paths, request.limit))
        yield
    numbers = defining | (using if is_whole else set(chosen))
    files: list[FactsOfFile] = []
    for number, path, packed in read_numbered(
        repository, [(number, paths[number]) for number in sorted(numbers)], context
    ):
        if packed is not None:
            origin = context.get(records.origin_key(number), Origin) if number in defining else None
            files.append(FactsOfFile(path, packed, origin))
        yield
    return NamedFiles(
        files=files,
        using=[paths[number] for number in chosen],
        is_whole=is_whole,
        definitions=sum(_count(each.wanted) for each in found),
        references=sum(_count(each.named) for each in found),
    )


class _Named:
    """The rows of one name.

    Attributes:
        defining: Its definitions.
        wanted: Its definitions of the requested kind.
        using: Uses and imports of the last part of the name.
        named: Those of the whole name.
        importing: Imports of the name.
    """

    def __init__(self, table: SymbolTable, name: str, request: FindNamed) -> None:
        from greenroom.actors.knowledge.corpora.storage import symbol_table as tables  # noqa: PLC0415 - needs numpy, which is already loaded

        scope, _, last = name.rpartition(".")
        rows: Rows = table.find(last)
        self.using = rows[(rows["role"] == tables.USE) | (rows["role"] == tables.IMPORT)]
        self.importing = rows[rows["role"] == tables.IMPORT]
        self.defining = rows[rows["role"] < tables.USE]
        self.named = self.using
        if scope:
            owner = tables.hash_name(scope.rpartition(".")[2])
            self.defining = self.defining[self.defining["owner"] == owner]
            self.named = self.using[self.using["owner"] == tables.hash_owner(scope)]
        self.wanted = self.defining
        if request.kind is not None:
            self.wanted = self.defining[self.defining["role"] == tables.place_of(request.kind)]


def _count(rows: Rows) -> int:
    return int(rows["count"].sum())


def _fill(repository: CorpusRepository, context: Context) -> Slices[SymbolTable | None]:
    """Return the table; None if there are more files to add."""
    yield from import_in_thread(_TABLE)
    from greenroom.actors.knowledge.corpora.storage.symbol_table import SymbolTable  # noqa: PLC0415 - already loaded

    table = repository.symbols
    if table is None or table.is_worn:
        table = repository.symbols = SymbolTable()
    if table.loaded is None:
        return table
    start = records.facts_key(table.loaded)
    for count, (key, packed) in enumerate(context.scan(bytes, prefix=records.FACTS, start=start)):
        number = int.from_bytes(key[1:])
        if count == _AT_ONCE:
            table.loaded = number
            return None
        table.put(number, unpack_names(packed))
        yield
    table.loaded = None
    return table


def _find_importing(
    table: SymbolTable, found: Iterable[_Named], defining: Iterable[int], paths: Mapping[int, str]
) -> set[int]:
    """Return the files that import the names, or a file that defines one."""
    from greenroom.actors.knowledge.corpora.storage.symbol_table import MODULE  # noqa: PLC0415 - already loaded

    importing = {number for each in found for number in each.importing["file"].tolist()}
    importing |= {
        number for each in found if each.named is not each.using for number in each.named["file"].tolist()
    }
    near = set(defining)
    stems = {paths[number].rpartition("/")[2].partition(".")[0] for number in near if len(near) <= _FEW}
    for stem in stems:
        rows = table.find(stem)
        importing.update(rows["file"][rows["role"] == MODULE].tolist())
    return importing


def _cut(numbers: Sequence[int], found: Iterable[_Named]) -> list[int]:
    """Return the first of some files, with `MOST_USES` uses at least."""
    counts: Counter[int] = Counter()
    for each in found:
        for number in numbers:
            counts[number] += _count(each.using[each.using["file"] == number])
    until = accumulate(counts[number] for number in numbers)
    return [
        number for number, total in zip(numbers, until, strict=True) if total - counts[number] < MOST_USES
    ]


def _choose_definitions(found: Iterable[_Named], paths: Mapping[int, str], limit: int) -> Iterator[int]:
    """Yield the files of the first definitions, as they are shown."""
    room = limit
    for each in found:
        rows = each.wanted
        for depth in sorted(set(rows["depth"].tolist())):
            if room <= 0:
                return
            numbers = set(rows["file"][rows["depth"] == depth].tolist())
            first = nsmallest(room, numbers, key=paths.__getitem__)
            room -= len(first)
            yield from first
