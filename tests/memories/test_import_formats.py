"""Files of other programs, made here as those programs make them, become memories."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.exchanges import memories, read, taken

from greenroom.actors import GetMemory
from greenroom.actors.memories.transfer.sources import FORMATS
from greenroom.transports.ops.cli.catalogue import FORMATS as FORMATS_OF_THE_COMMAND

if TYPE_CHECKING:
    from support.agents import Enter


def test_the_command_knows_every_format() -> None:
    assert FORMATS_OF_THE_COMMAND == FORMATS


# -- mem0 --------------------------------------------------------------------------


MEM0 = [
    {
        "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
        "memory": "Dev works at TechCorp as a senior engineer",
        "hash": "b7f4c1d2",
        "metadata": {"type": "professional"},
        "created_at": "2025-07-18T10:03:11.123456-07:00",
        "updated_at": "2025-07-19T10:03:11-07:00",
        "user_id": "dev",
        "run_id": "onboarding",
        "categories": ["work", "profile"],
        "score": None,
    },
    {
        "id": "2",
        "memory": "Likes tea",
        "metadata": None,
        "created_at": "2025-07-18T17:03:11",
        "agent_id": "helper",
    },
]


@pytest.mark.promise("exchange.formats")
@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"results": MEM0}),
        json.dumps({"results": MEM0, "relations": []}, indent=2),
        json.dumps({"count": 2, "next": None, "memories": MEM0}),
        json.dumps(MEM0),
        "\n".join(map(json.dumps, MEM0)),
    ],
)
async def test_mem0(enter: Enter, tmp_path: Path, text: str) -> None:
    path = tmp_path / "mem0.json"
    path.write_text(text)
    async with enter(embedder="none") as home:
        assert (await taken(home, path)).counts == {"created": 2}
        found = await memories(home)
        assert (await taken(home, path)).counts == {"skipped": 2}
    dev, tea = found["892db2ae-06d9-49e5-8b3e-585ef9b85b8e"], found["2"]
    assert dev["content"] == "Dev works at TechCorp as a senior engineer"
    assert (dev["created_at"], dev["updated_at"]) == ("2025-07-18T17:03:11.123456Z", "2025-07-19T17:03:11Z")
    assert (dev["tags"], dev["created_by"], dev["conversation_id"]) == (
        ["work", "profile"],
        "dev",
        "onboarding",
    )
    assert dev["metadata"] == {
        "type": "professional",
        "user_id": "dev",
        "run_id": "onboarding",
        "hash": "b7f4c1d2",
    }
    assert (tea["created_at"], tea["created_by"], tea["namespace"]) == (
        "2025-07-18T17:03:11Z",
        "helper",
        "user:ann",
    )


def test_what_mem0_keeps_as_a_graph_comes_along(tmp_path: Path) -> None:
    path = tmp_path / "mem0.json"
    relations = [{"source": "dev", "relationship": "works_at", "target": "techcorp"}]
    path.write_text(json.dumps({"results": MEM0[:1], "relations": relations}))
    assert [each["key"] for each in read(path)][1:] == ["dev.works_at.techcorp"]


# -- mcp-memory-service ---------------------------------------------------------------


def memory_service(path: Path, *, deletes: bool = True) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE NOT NULL, "
            "content TEXT NOT NULL, tags TEXT, memory_type TEXT, metadata TEXT, created_at REAL, "
            "updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT"
            + (", deleted_at REAL DEFAULT NULL, superseded_by TEXT" if deletes else "")
            + ")"
        )
        rows = [
            (
                "a" * 64,
                "Python 3.11 is required",
                "python, setup,python",
                "decision",
                '{"importance_score": 0.9}',
            ),
            ("b" * 64, "Python 3.12 is required", '["python"]', None, '{"quality_score": 4, "x": [1]}'),
            ("c" * 64, "ate lunch", "", "episodic", "not json"),
        ]
        for number, row in enumerate(rows):
            connection.execute(
                "INSERT INTO memories (content_hash, content, tags, memory_type, metadata, created_at, "
                "updated_at, created_at_iso, updated_at_iso) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, 1_700_000_000.5 + number, None, "2023-11-14T22:13:20Z", None),
            )
        if deletes:
            connection.execute("UPDATE memories SET superseded_by = ? WHERE id = 1", ("b" * 64,))
            connection.execute(
                "INSERT INTO memories (content_hash, content, deleted_at) VALUES ('d', 'forgotten', 1.0)"
            )


@pytest.mark.promise("exchange.formats")
async def test_mcp_memory_service(enter: Enter, tmp_path: Path) -> None:
    path = tmp_path / "sqlite_vec.db"
    memory_service(path)
    before = path.read_bytes()
    async with enter(embedder="none") as home:
        assert (await taken(home, path)).counts == {"created": 3}
        found = await memories(home)
        assert (await taken(home, path)).counts == {"skipped": 3}
    assert path.read_bytes() == before
    first, second, third = (found[letter * 64] for letter in "abc")
    assert (first["content"], first["tags"], first["importance"]) == (
        "Python 3.11 is required",
        ["python", "setup"],
        0.9,
    )
    assert first["created_at"] == "2023-11-14T22:13:20.500000Z"
    assert first["metadata"] == {"importance_score": 0.9, "memory_type": "decision"}
    assert (second["supersedes"], second["tags"]) == ("a" * 64, ["python"])
    assert (third["kind"], third["metadata"]) == (
        "episodic",
        {"metadata": "not json", "memory_type": "episodic"},
    )


@pytest.mark.parametrize("type", ["BLOB", "TEXT"])
async def test_bytes_in_a_database_are_texts_or_are_left_out(enter: Enter, tmp_path: Path, type: str) -> None:
    path = tmp_path / "sqlite_vec.db"
    memory_service(path)

    def put(content: bytes) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            put_as = f"UPDATE memories SET content = CAST(? AS {type}) WHERE id = 3"  # noqa: S608  BLOB or TEXT
            connection.execute(put_as, (content,))

    async with enter(embedder="none") as home:
        for content in ("caf\u00e9".encode(), b"caf\xe9"):
            put(content)
            assert read(path)[2]["content"] == "caf\u00e9"
        put(b"caf\x81")
        done = await taken(home, path)
    assert done.counts == {"created": 2}
    ((place, sentence, _),) = done.left_out
    assert place == f"row 3, memory {'c' * 64}"
    assert sentence.startswith("a text holds the lone surrogate")


def test_an_older_file_of_mcp_memory_service_has_fewer_columns(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    memory_service(path, deletes=False)
    assert [each["key"][0] for each in read(path)] == ["a", "b", "c"]


# -- server-memory ----------------------------------------------------------------------


GRAPH: list[dict[str, Any]] = [
    {
        "type": "entity",
        "name": "John_Smith",
        "entityType": "person",
        "observations": ["Speaks fluent Spanish", "Graduated in 2019"],
    },
    {"type": "entity", "name": "Anthropic", "entityType": "organization", "observations": []},
    {"type": "relation", "from": "John_Smith", "to": "Anthropic", "relationType": "works_at"},
]


@pytest.mark.promise("exchange.formats")
@pytest.mark.parametrize("is_graph", [False, True])
async def test_server_memory(enter: Enter, tmp_path: Path, *, is_graph: bool) -> None:
    path = tmp_path / "memory.jsonl"
    whole = {"entities": GRAPH[:2], "relations": GRAPH[2:]}
    path.write_text(json.dumps(whole, indent=1) if is_graph else "\n".join(map(json.dumps, GRAPH)) + "\n")
    async with enter(embedder="none") as home:
        assert (await taken(home, path)).counts == {"created": 4}
        found = await memories(home)
        assert (await taken(home, path)).counts == {"skipped": 4}
    by_content = {each["content"]: each for each in found.values()}
    assert by_content.keys() == {
        "John_Smith: Speaks fluent Spanish",
        "John_Smith: Graduated in 2019",
        "Anthropic (organization)",
        "John_Smith works at Anthropic",
    }
    spanish = by_content["John_Smith: Speaks fluent Spanish"]
    assert (spanish["tags"], spanish["conversation_id"], spanish["position"]) == (
        ["entity", "person"],
        "John_Smith",
        0,
    )
    assert spanish["metadata"] == {"entity": "John_Smith", "entityType": "person"}
    assert found["John_Smith.works_at.Anthropic"]["metadata"]["relationType"] == "works_at"


def test_an_observation_keeps_its_key_when_others_go(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_text(json.dumps(GRAPH[0]))
    both = {each["content"]: each["key"] for each in read(path)}
    path.write_text(json.dumps({**GRAPH[0], "observations": ["Graduated in 2019"]}))
    (left,) = read(path)
    assert both[left["content"]] == left["key"]


# -- shared-context-server -----------------------------------------------------------------


THEN, LATER = "2025-08-01 10:00:00", "2025-08-02 10:00:00"
SHARED_CONTEXT = """
    CREATE TABLE sessions (id TEXT PRIMARY KEY, purpose TEXT NOT NULL, created_at TIMESTAMP,
        updated_at TIMESTAMP, is_active BOOLEAN DEFAULT TRUE, created_by TEXT NOT NULL, metadata TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
        sender TEXT NOT NULL, sender_type TEXT DEFAULT 'generic', content TEXT NOT NULL,
        visibility TEXT DEFAULT 'public', message_type TEXT DEFAULT 'agent_response', metadata TEXT,
        timestamp TIMESTAMP, parent_message_id INTEGER);
    CREATE TABLE agent_memory (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL,
        session_id TEXT, key TEXT NOT NULL, value TEXT NOT NULL, metadata TEXT, created_at TIMESTAMP,
        updated_at TIMESTAMP, expires_at TIMESTAMP);
    """
STORED_BY_AGENTS = [
    ("planner", None, "plan", '{"steps": [1, 2]}', None, THEN, LATER, None),
    ("planner", "session_1", "note", "plain text", '{"m": 1}', THEN, THEN, None),
    ("planner", None, "nothing", "null", None, THEN, THEN, None),
    ("coder", None, "editor", '"vim"', None, THEN, THEN, None),
    ("planner", None, "gone", "1", None, THEN, THEN, "2025-08-01 11:00:00"),
]
SAID = [
    ("session_1", "planner", "Shall we begin?", "public", "2025-08-01 10:00:01", None),
    ("session_1", "coder", "Yes", "private", "2025-08-01 10:00:02", 1),
]


def shared_context(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SHARED_CONTEXT)
        session = ("session_1", "plan the release", THEN, THEN, 1, "planner", '{"team": "core"}')
        connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)", session)
        connection.executemany(
            "INSERT INTO messages (session_id, sender, content, visibility, timestamp, parent_message_id) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            SAID,
        )
        connection.executemany(
            "INSERT INTO agent_memory (agent_id, session_id, key, value, metadata, created_at, updated_at, "
            "expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            STORED_BY_AGENTS,
        )


@pytest.mark.promise("exchange.formats")
async def test_shared_context_server(enter: Enter, tmp_path: Path) -> None:
    path = tmp_path / "chat_history.db"
    shared_context(path)
    async with enter(embedder="none") as home:
        home.clock.jump(30 * 365 * 86_400_000_000)
        assert (await taken(home, path)).counts == {"created": 7, "expired": 1}
        found = await memories(home)
        plan = await home.agent("planner", user="ann").ask(GetMemory(key="plan"))
        nothing = await home.agent("planner", user="ann").ask(GetMemory(key="nothing"))
        assert (await taken(home, path)).counts == {"skipped": 7, "expired": 1}
    assert (bytes(plan.value), bytes(nothing.value)) == (b'{"steps": [1, 2]}', b"null")
    assert found["plan"]["namespace"] == "agent:planner"
    assert (found["plan"]["created_at"], found["plan"]["updated_at"]) == (
        "2025-08-01T10:00:00Z",
        "2025-08-02T10:00:00Z",
    )
    assert found["session_1.note"]["value"] == "plain text"
    editor = found["coder.editor"]
    assert (editor["content"], editor["created_by"], editor["namespace"]) == ("vim", "coder", "user:ann")
    assert found["session_1.purpose"]["content"] == "plan the release"
    answer = found["session_1.2"]
    assert (answer["conversation_id"], answer["position"], answer["created_by"]) == ("session_1", 2, "coder")
    assert answer["metadata"] == {"visibility": "private", "parent_message_id": 1}
    assert answer["kind"] == "episodic"


@pytest.mark.promise("exchange.formats")
def test_values_of_any_type_in_a_database_are_taken_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "chat_history.db"
    shared_context(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM agent_memory")
        for key, value in {"deep": "[" * 30_000, "bytes": b'"\xff"', "blob": b"1"}.items():
            connection.execute(
                "INSERT INTO agent_memory (agent_id, key, value) VALUES ('planner', ?, ?)", (key, value)
            )
        connection.execute("ALTER TABLE agent_memory RENAME COLUMN value TO old")
        connection.execute("ALTER TABLE agent_memory ADD COLUMN value")
        connection.execute("UPDATE agent_memory SET value = old")
        connection.execute(
            "INSERT INTO agent_memory (agent_id, key, value, old) VALUES ('planner', 'number', 7, '')"
        )
    values = {each["key"]: each["value"] for each in read(path) if "value" in each}
    assert values == {"deep": "[" * 30_000, "bytes": "\u00ff", "blob": 1, "number": 7}
