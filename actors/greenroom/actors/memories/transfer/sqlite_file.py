"""Reading SQLite files of other programs."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from greenroom.actors.memories.transfer.normalize import MAX_WHOLE_BYTES, RecordError, Remark, SourceError
from greenroom.actors.memories.transfer.text_files import GUESSED, narrow_text

_NUMBER: Final = "greenroom_number"
_UNREAD: Final = re.compile(r"[\ud800-\udfff]")


def tables_of(path: Path) -> set[str]:
    """Return the names of an SQLite file's tables.

    Raises:
        SourceError: it is none, or is damaged.
    """
    with opened(path) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an SQLite file for reading alone; nothing is written beside it but what SQLite's log needs.

    Raises:
        SourceError: it cannot be read.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:  # whichever thread has its turn reads on
        with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_WHOLE_BYTES)  # also of what SQL makes up
            connection.row_factory = sqlite3.Row
            connection.text_factory = _escaped  # a text that is no UTF-8 would end the whole reading
            yield connection
    except sqlite3.Error as error:
        raise SourceError(f"{path} cannot be read as SQLite: {error}") from None


class Row(NamedTuple):
    """A row with its number in the file, and the columns whose encoding is a guess."""

    number: int
    values: dict[str, Any]
    guessed: list[str]


def rows(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Yield a table's rows in their order: columns come and go between the versions of a program.

    Texts that were stored as bytes are texts; one in no known encoding is refused where it is used.
    """
    found = connection.execute(f"SELECT rowid AS {_NUMBER}, * FROM {table} ORDER BY rowid")  # noqa: S608
    for row in found:
        values: dict[str, Any] = dict(row)
        number = values.pop(_NUMBER)
        guessed = []
        for name, value in values.items():
            text = _escaped(value) if isinstance(value, bytes) else value
            if isinstance(text, str) and _UNREAD.search(text):
                with suppress(RecordError):
                    text, _ = narrow_text(text.encode(errors="surrogateescape"))
                    guessed.append(name)
            values[name] = text
        yield Row(number, values, guessed)


def remarks(place: str, row: Row, passed: int) -> Iterator[Remark]:
    """Yield what is to be known of the encodings of a row's texts."""
    for name in row.guessed:
        yield Remark(place, f"{name}: {GUESSED}", passed)


def _escaped(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
