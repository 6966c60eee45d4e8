"""Read SQLite files of other programs."""

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
    """Return the names of an SQLite file's tables."""
    with open_sqlite(path) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@contextmanager
def open_sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an SQLite file read-only; beside it only SQLite's own log files may appear.

    Raises:
        SourceError: It cannot be read.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:  # different threads read from it, one after the other
        with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_WHOLE_BYTES)  # also for computed values
            connection.row_factory = sqlite3.Row
            connection.text_factory = _escape  # by default, a text that is not UTF-8 would end the reading
            yield connection
    except sqlite3.Error as error:
        raise SourceError(f"{path} cannot be read as SQLite: {error}") from None


class Row(NamedTuple):
    """A row with its number in the file, and the columns with a guessed encoding."""

    number: int
    values: dict[str, Any]
    guessed: list[str]


def rows(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Yield a table's rows in order; columns differ between versions of a program.

    Bytes are read as texts. A text in no known encoding is refused where it is used.
    """
    found = connection.execute(f"SELECT rowid AS {_NUMBER}, * FROM {table} ORDER BY rowid")  # noqa: S608
    for row in found:
        values: dict[str, Any] = dict(row)
        number = values.pop(_NUMBER)
        guessed = []
        for name, value in values.items():
            text = _escape(value) if isinstance(value, bytes) else value
            if isinstance(text, str) and _UNREAD.search(text):
                with suppress(RecordError):
                    text, _ = narrow_text(text.encode(errors="surrogateescape"))
                    guessed.append(name)
            values[name] = text
        yield Row(number, values, guessed)


def remarks(place: str, row: Row, passed: int) -> Iterator[Remark]:
    """Yield warnings about guessed encodings of a row's texts."""
    for name in row.guessed:
        yield Remark(place, f"{name}: {GUESSED}", passed)


def _escape(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
