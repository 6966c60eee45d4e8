"""Reading SQLite files of other programs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from greenroom.actors.transfer.normalize import SourceError


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
            connection.row_factory = sqlite3.Row
            yield connection
    except sqlite3.Error as error:
        raise SourceError(f"{path} cannot be read as SQLite: {error}") from None


def rows(connection: sqlite3.Connection, table: str, order: str) -> Iterator[dict[str, Any]]:
    """Yield a table's rows as objects: columns come and go between the versions of a program.

    Texts that were stored as bytes are texts; what is no UTF-8 in them is refused where it is used.
    """
    for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}"):  # noqa: S608  names of ours
        yield {
            name: value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
            for name, value in dict(row).items()
        }
