"""Files that are of no known program, too large, too deep or odd are refused, or taken as they are."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exchanges import ANN, left_out, read

from greenroom.actors.memories.requests.import_lines import decode_line
from greenroom.actors.memories.transfer.normalize import (
    RecordError,
    SourceError,
    SourceLine,
    key_of,
    source_line,
    tags_of,
    time_of,
)
from greenroom.actors.memories.transfer.sources import open_source

_HUGE = b"9" * 5_000
_DEEP = b"[" * 30_000 + b"]" * 30_000


@pytest.mark.promise("exchange.formats")
@pytest.mark.parametrize(
    ("format", "content", "sentence"),
    [
        ("mem0", b'{"x": 1}', "holds no list of memories"),
        ("mem0", b"nonsense", "line 1: from here on this is no JSON"),
        ("mem0", b"\x81", "it is not UTF-8"),
        ("mcp-memory-service", b"nonsense", "cannot be read as SQLite"),
        ("shared-context-server", b"SQLite format 3\0" + b"x" * 5_000, "cannot be read as SQLite"),
        ("mem0", _DEEP, "this is no JSON: it is nested too deeply"),
        ("mem0", b'[{"id": "1", "memory": ' + _DEEP + b"}]", "this is no JSON: it is nested too deeply"),
        ("mem0", b'[{"memory": "x", "n": ' + _HUGE + b"}]", "an integer of 5,000 digits.*put it in quotes"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, format: str, content: bytes, sentence: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=sentence):
        read(path, format)


@pytest.mark.promise("exchange.formats")
@pytest.mark.parametrize(("format", "content"), [("mem0", b"[]"), ("server-memory", b""), ("mem0", b"\n")])
def test_a_file_without_records_has_no_memories(tmp_path: Path, format: str, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert (read(path, format), left_out(path, format)) == ([], [])


@pytest.mark.promise("exchange.formats")
@pytest.mark.parametrize(
    ("metadata", "kept"), [("[" * 30_000 + "]" * 30_000, True), ("[" * 150 + "]" * 150, False)]
)
def test_what_a_database_says_in_deep_json_breaks_nothing(
    tmp_path: Path, metadata: str, *, kept: bool
) -> None:
    path = tmp_path / "sqlite_vec.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE memories (content_hash TEXT, content TEXT, metadata TEXT)")
        connection.execute("INSERT INTO memories VALUES ('h', 'Tea', ?)", (metadata,))
    (memory,) = read(path)
    assert (memory["metadata"] == {"metadata": metadata}) is kept


def test_what_is_nested_too_deeply_to_be_written_is_refused() -> None:
    value: list[Any] = []
    for _ in range(10_000):
        value = [value]
    with pytest.raises(RecordError, match="it is nested too deeply"):
        source_line("memory 1", 0, value=value)


def test_a_database_with_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chat_history.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE agent_memory (id INTEGER, agent_id TEXT, key TEXT, value TEXT)")
        connection.execute("CREATE TABLE messages (id INTEGER)")
    with pytest.raises(SourceError, match="its agent_memory have no created_at, expires_at, metadata"):
        read(path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    for chosen in ("auto", "jsonl"):
        with pytest.raises(SourceError, match="is neither a file nor a folder"):
            open_source(path, chosen, ANN)


@pytest.mark.promise("exchange.bounded")
@pytest.mark.parametrize(
    ("name", "chosen", "begin", "sentence"),
    [
        ("a.json", "auto", b"[", "a JSON array is read in one piece, .* 67,108,864 bytes; .* jq -c "),
        ("a.json", "auto", b"\xef\xbb\xbf[\n", "a JSON array is read in one piece"),
        ("a.jsonl", "auto", b"", "line 1 has more than 67,108,864 bytes"),
        ("a.json", "mem0", b"[", "a.json is read in one piece, .* 67,108,864 bytes; split it"),
    ],
)
@pytest.mark.slow
def test_no_file_is_read_whole_that_is_too_large_for_it(
    tmp_path: Path, name: str, chosen: str, begin: bytes, sentence: str
) -> None:
    path = tmp_path / name
    path.write_bytes(begin)
    os.truncate(path, 1 << 34)  # takes no room on the disk
    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match=sentence):
            read(path, chosen)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.promise("exchange.bounded")
@pytest.mark.parametrize(
    ("name", "chosen", "begin", "place"),
    [
        ("a.jsonl", "server-memory", b"", "line 1"),
        ("a.json", "server-memory", b"{\n", "line 2"),
        ("a.md", "auto", b"# Title\n", "a.md"),
    ],
)
def test_a_record_that_is_too_large_is_left_out(
    tmp_path: Path, name: str, chosen: str, begin: bytes, place: str
) -> None:
    path = tmp_path / name
    path.write_bytes(begin)
    os.truncate(path, 130 << 20)
    tracemalloc.start()
    try:
        assert read(path, chosen) == []
        where, sentence = left_out(path, chosen)[-1]
        assert (where, "it has more than 67,108,864 bytes" in sentence) == (place, True)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_is_not_there_or_an_unknown_database(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        open_source(tmp_path / "nowhere", "auto", ANN)
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE things (id INTEGER)")
    with pytest.raises(SourceError, match="none of the known programs"):
        open_source(path, "auto", ANN)
    for chosen in ("mcp-memory-service", "shared-context-server"):
        with pytest.raises(SourceError, match="is no file of"):
            read(path, chosen)


@pytest.mark.slow
def test_a_column_that_sql_makes_up_is_no_larger_than_a_file_may_be(tmp_path: Path) -> None:
    path = tmp_path / "memories.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE memories (content_hash TEXT, content TEXT,"
            " extra TEXT AS (hex(zeroblob(150000000))))"
        )
        connection.execute("INSERT INTO memories (content_hash, content) VALUES ('a', 'hello')")
    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match="too big"):
            read(path, "mcp-memory-service")
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_keys_are_made_so_that_different_names_stay_different() -> None:
    assert key_of("plain") == "plain"
    assert key_of("a", 7) == "a.7"
    made = [key_of(name) for name in ("a/b", "a:b", "a.b", "x" * 300, "x" * 301, "", "/", "\n", " ")]
    assert len(set(made)) == len(made)
    assert all(0 < len(key) <= 255 and not set(key) & set('/\\:*?"<>|\n') for key in made)


def test_tags_and_times_are_read_as_programs_write_them() -> None:
    assert tags_of("a, b,,a", ["c", 7]) == ["a", "b", "c", "7"]
    assert (tags_of(None), tags_of(""), tags_of([])) == (None, None, None)
    assert str(time_of("2025-08-01 10:00:00")) == "2025-08-01 10:00:00+00:00"
    assert str(time_of(0)) == "1970-01-01 00:00:00+00:00"
    assert [time_of(nothing) for nothing in (None, "")] == [None, None]
    odd: list[Any] = ["soon", 1e300, []]
    assert list(map(time_of, odd)) == odd


def test_what_does_not_fit_its_field_is_kept_in_the_metadata() -> None:
    odd: SourceLine = source_line(
        "here",
        0,
        key="k",
        content="x",
        created_at="soon",
        expires_at=1e300,
        created_by="a" * 200,
        conversation_id="c" * 300,
        tags=["t" * 300, "short"],
        metadata={"m": 1},
    )
    line = decode_line(odd.raw)
    assert (len(line.created_by or ""), len(line.conversation_id or ""), len(line.tags[0])) == (128, 255, 200)
    assert (line.created_at, line.expires_at) == (None, None)
    assert json.loads(bytes(line.metadata)) == {  # type: ignore[arg-type]
        "m": 1,
        "created_at": "soon",
        "expires_at": 1e300,
        "created_by": "a" * 200,
        "conversation_id": "c" * 300,
        "tags": ["t" * 300, "short"],
    }


_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = (
    *("id", "memory", "metadata", "created_at", "categories", "run_id", "user_id", "expiration_date", "type"),
    *("name", "entityType", "observations", "from", "to", "relationType", "results", "entities", "relations"),
)


@given(
    st.dictionaries(st.sampled_from(_FIELDS), _ANYTHING, max_size=6),
    st.sampled_from(["mem0", "server-memory"]),
)
def test_no_file_breaks_a_reader(content: dict[str, Any], chosen: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        for text in (json.dumps(content), json.dumps([content])):
            path.write_text(text)
            with contextlib.suppress(SourceError):
                read(path, chosen)


@given(
    st.dictionaries(
        st.sampled_from(["tags", "created", "key", "importance", "kind", "scope", "x"]), _ANYTHING
    )
)
def test_no_front_matter_breaks_a_reader(about: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "note.md"
        path.write_text(f"---\n{json.dumps(about)}\n---\ntext")
        with contextlib.suppress(SourceError):
            assert len(read(path)) == 1
