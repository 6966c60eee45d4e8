"""Files of other programs, made here as those programs make them, become memories."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import tempfile
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness import PROGRAM, clean_environment
from hypothesis import given, settings
from hypothesis import strategies as st
from support.exchanges import export

from greenroom.actors import GetMemory, Principal
from greenroom.actors.exchange._importing import Imported, Importer, ImportRefusedError
from greenroom.actors.exchange._lines import decode_line
from greenroom.actors.exchange._making import Made, SourceError, key_of, made, tags_of, time_of
from greenroom.actors.exchange._sources import FORMATS, open_source
from greenroom.transports.cli import _FORMATS as FORMATS_OF_THE_COMMAND

if TYPE_CHECKING:
    from support.agents import Enter, House

ANN = Principal(agent_id="planner", user="ann")


async def taken(home: House, path: Path, format: str = "auto", **options: Any) -> Imported:
    return await Importer(home.runtime, ANN, open_source(path, format, ANN), **options).run()


async def memories(home: House) -> dict[str, dict[str, Any]]:
    return {each["key"]: each for each in await export(home.runtime, ANN)}


def read(path: Path, format: str = "auto") -> list[dict[str, Any]]:
    return [json.loads(made.raw) for made in open_source(path, format, ANN).read()]


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


async def test_bytes_in_a_database_are_texts_or_are_refused(enter: Enter, tmp_path: Path) -> None:
    path = tmp_path / "sqlite_vec.db"
    memory_service(path)
    async with enter(embedder="none") as home:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE memories SET content = ? WHERE id = 3", ("caf\u00e9".encode(),))
        assert read(path)[2]["content"] == "caf\u00e9"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE memories SET content = ? WHERE id = 3", (b"caf\xe9",))
        with pytest.raises(ImportRefusedError, match=f"memory {'c' * 64}: a text holds the lone surrogate"):
            await taken(home, path)


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


# -- Markdown ---------------------------------------------------------------------------------


def vault(folder: Path) -> None:
    (folder / "projects").mkdir(parents=True)
    (folder / ".obsidian").mkdir()
    (folder / ".obsidian" / "hidden.md").write_text("# not a note")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "projects" / "Atlas.md").write_text(
        "---\ntags: [maps, atlas]\ncreated: 2025-03-01\nauthor: Ann\nimportance: 0.75\nstatus: open\n---\n"
        "What Atlas is.\n\n# Goals\n\nShip it.\n\n## Later\n\n```sh\n# no heading\n```\n\n"
        "# Empty\n\n# Goals\nTwice.\n"
    )
    (folder / "plain.md").write_text("\ufeff# Title\n\nOne thought.\n")
    (folder / "windows.MD").write_bytes(b"first\r\n\r\n---\r\nsecond\r\n")


@pytest.mark.promise("exchange.formats")
async def test_markdown(enter: Enter, tmp_path: Path) -> None:
    vault(tmp_path / "vault")
    os.utime(tmp_path / "vault" / "plain.md", (1_700_000_000, 1_700_000_000))
    async with enter(embedder="none") as home:
        done = await taken(home, tmp_path / "vault")
        found = await memories(home)
        assert (await taken(home, tmp_path / "vault")).counts == {"skipped": 6}
    assert done.counts == {"created": 6}
    assert found.keys() == {
        "projects.Atlas",
        "projects.Atlas.Goals",
        "projects.Atlas.Later",
        "projects.Atlas.Goals~2",
        "plain",
        "windows",
    }
    assert found["projects.Atlas"]["content"] == "What Atlas is."
    later = found["projects.Atlas.Later"]
    assert later["content"] == "## Later\n\n```sh\n# no heading\n```"
    assert (later["tags"], later["created_by"], later["importance"]) == (["maps", "atlas"], "Ann", 0.75)
    assert (later["conversation_id"], later["position"]) == ("projects/Atlas.md", 2)
    assert later["created_at"] == "2025-03-01T00:00:00Z"
    assert later["metadata"] == {"path": "projects/Atlas.md", "status": "open", "heading": "Goals > Later"}
    assert found["plain"]["content"] == "# Title\n\nOne thought."
    assert found["plain"]["created_at"] == "2023-11-14T22:13:20Z"
    assert found["windows"]["content"] == "first\r\n\r\n---\r\nsecond"


@pytest.mark.promise("exchange.formats")
def test_links_out_of_a_folder_are_not_followed_and_are_told(tmp_path: Path) -> None:
    inside, outside = tmp_path / "vault", tmp_path / "secrets"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.md").write_text("not yours")
    (outside / "password").write_text("not yours")
    (inside / "note.md").write_text("mine")
    (inside / "deep" / "again.md").symlink_to(inside / "note.md")
    (inside / "host.md").symlink_to(outside / "password")
    (inside / "deep" / "up.md").symlink_to("../../secrets/secret.md")
    (inside / "via.md").symlink_to(inside / "deep" / "up.md")
    (inside / "folder").symlink_to(outside)
    (inside / "nowhere.md").symlink_to(tmp_path / "nothing")
    (tmp_path / "alias").symlink_to(inside)
    left_out = ["deep/up.md", "host.md", "via.md"]
    for vault in (inside, tmp_path / "alias"):
        source = open_source(vault, "auto", ANN)
        assert [json.loads(line.raw)["content"] for line in source.read()] == ["mine", "mine"]
        assert [name for name in source.left_out if not name.startswith("folder/")] == left_out
    command = [*PROGRAM, "import", str(inside), "--data", str(tmp_path / "data"), "--embedder", "none"]
    done = subprocess.run(
        [*command, "--json"], env=clean_environment(tmp_path), capture_output=True, check=False, text=True
    )
    said = json.loads(done.stdout)
    assert (said["counts"], said["left_out"]) == ({"created": 2}, left_out)
    assert all(f"{name!r} is left out" in done.stderr for name in left_out)


def test_one_markdown_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_text("---\nkey: my note\nkind: procedural\nexpires: 2040-01-01T00:00:00+01:00\n---\ndo this")
    (made,) = read(path)
    assert (made["key"], made["kind"], made["content"]) == ("my note", "procedural", "do this")
    assert made["expires_at"].startswith("2040-01-01T00:00:00")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"caf\xe9", "note.md is not UTF-8: .* at byte 3"),
        (b"---\ntags: [a\n---\nx", "front matter is no YAML"),
        (b"---\na: &a [x]\nb: [*a, *a]\n---\nx", "refers to itself"),
        (b"---\n" + b"k: v\n" * 20_000 + b"---\nx", "too large"),
        (b"---\nk: " + b"9" * 5_000 + b"\n---\nx", "an integer of 5,000 digits.*put it in quotes"),
        (b"---\nk: -0x" + b"9" * 5_000 + b"\n---\nx", "an integer of 5,003 digits"),
        (b'---\nk: !!int "' + b"9" * 5_000 + b'"\n---\nx', "an integer of 5,000 digits"),
        (b"---\nk: " + b"[" * 800 + b"]" * 800 + b"\n---\nx", "nested too deeply"),
        (b"---\nk: " + b"[" * 30_000 + b"\n---\nx", "nested too deeply"),
    ],
)
def test_what_is_wrong_with_a_markdown_file_is_told(tmp_path: Path, text: bytes, sentence: str) -> None:
    path = tmp_path / "note.md"
    path.write_bytes(text)
    with pytest.raises(SourceError, match=sentence):
        read(path)


# -- what is none of them --------------------------------------------------------------------

_HUGE = b"9" * 5_000
_DEEP = b"[" * 30_000 + b"]" * 30_000


@pytest.mark.promise("exchange.formats")
@pytest.mark.parametrize(
    ("format", "content", "sentence"),
    [
        ("mem0", b'{"x": 1}', "holds no list of memories"),
        ("mem0", b"nonsense", "is no JSON"),
        ("mem0", b"[1]", "memory 1 is no object"),
        ("mem0", b"\xff", "is not UTF-8"),
        ("server-memory", b'{"type": "thing"}', "the type is 'thing'"),
        ("server-memory", b'{"type": "entity"}', "has no name"),
        ("server-memory", b'{"type": "relation", "from": "a"}', "from, relationType and to"),
        ("server-memory", b'{"type": "entity", "name": "a"}\nnonsense', "line 2: this is no JSON"),
        ("mcp-memory-service", b"nonsense", "cannot be read as SQLite"),
        ("shared-context-server", b"SQLite format 3\0" + b"x" * 5_000, "cannot be read as SQLite"),
        ("mem0", _DEEP, "is no JSON: it is nested too deeply"),
        ("mem0", b'[{"id": "1", "memory": ' + _DEEP + b"}]", "is no JSON: it is nested too deeply"),
        ("server-memory", _DEEP, "line 1: this is no JSON: it is nested too deeply"),
        ("server-memory", b'{"x": ' + _DEEP + b"}", "is no JSON: it is nested too deeply"),
        ("auto", _DEEP, "nested too deeply"),
        ("mem0", b'[{"memory": "x", "n": ' + _HUGE + b"}]", "an integer of 5,000 digits.*put it in quotes"),
        ("server-memory", b'{"type": "entity", "name": ' + _HUGE + b"}", "an integer of 5,000 digits"),
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
    with pytest.raises(SourceError, match="memory 1 is nested too deeply"):
        made("memory 1", 0, value=value)


def test_a_database_with_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chat_history.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE agent_memory (id INTEGER, agent_id TEXT, key TEXT, value TEXT)")
        connection.execute("CREATE TABLE messages (id INTEGER)")
    with pytest.raises(SourceError, match="its agent_memory have no created_at, expires_at, metadata"):
        read(path)


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
    assert values == {"deep": "[" * 30_000, "bytes": '"\udcff"', "blob": 1, "number": 7}


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
        ("a.jsonl", "server-memory", b"", "line 1 has more than 67,108,864 bytes"),
        ("a.json", "server-memory", b"{\n", "a.json is read in one piece"),
        ("a.md", "auto", b"# Title\n", "a.md is read in one piece"),
    ],
)
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
    odd: Made = made(
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


@settings(max_examples=300)
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


@settings(max_examples=300)
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
