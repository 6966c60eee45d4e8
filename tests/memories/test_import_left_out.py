"""Of other programs' files what is sound is imported, what is not is named, and a mended file adds it."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exchanges import ANN, ImportRefusedError, imported, left_out, line, memories, read, taken

from greenroom.actors.memories.transfer.normalize import SourceLine
from greenroom.actors.memories.transfer.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.agents import Enter

TEA = {"type": "entity", "name": "Alice", "entityType": "person", "observations": ["likes tea"]}
MAPS = {"type": "entity", "name": "Bob", "entityType": "person", "observations": ["draws maps"]}
WHALE = {"id": "3", "memory": "saw a whale"}


class Broken(NamedTuple):
    """A file with records that cannot be imported.

    Attributes:
        put: Writes it; given True, with these records mended.
        sound: The contents of the others.
        reasons: Where the broken ones stand, and a part of why they are left out.
        mended: The contents that mending adds.
    """

    put: Callable[[Path, bool], None]
    sound: list[str]
    reasons: list[tuple[str, str]]
    mended: list[str]


def lines_of(*records: Any) -> str:
    texts = (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in records)
    return "\n".join(texts) + "\n"


def written(name: str, broken: str, mended: str) -> Callable[[Path, bool], None]:
    def put(folder: Path, is_mended: bool) -> None:  # noqa: FBT001  as the class says
        (folder / name).write_text(mended if is_mended else broken)

    return put


SOUND = ["Alice: likes tea"]
BOTH = ["Bob: draws maps"]
CUT = json.dumps(MAPS)[:50]
WRONG: dict[str, tuple[Any, str, str]] = {
    "cut line": (CUT, "line 2", f"this is no JSON: Unterminated string at column {CUT.rindex(chr(34)) + 1}"),
    "cut and indented line": (f"  {CUT}", "line 2", f"at column {CUT.rindex(chr(34)) + 3}"),
    "no object": ([7], "line 2", "record: it takes an object and got 7"),
    "no type": ({"name": "Bob"}, "line 2", "type: it takes entity or relation and got null"),
    "other type": (
        {**MAPS, "type": ["entity"]},
        "line 2",
        'type: it takes entity or relation and got ["entity"]',
    ),
    "no name": ({**MAPS, "name": None}, "line 2", "name: it takes text and got null"),
    "name of a wrong type": ({**MAPS, "name": True}, "line 2", "name: it takes text and got true"),
    "observations": ({**MAPS, "observations": "x"}, "line 2", 'observations: it takes a list and got "x"'),
    "null observed": ({**MAPS, "observations": [None]}, "line 2, observation 1", "text and got null"),
    "true observed": ({**MAPS, "observations": [True]}, "line 2, observation 1", "text and got true"),
    "relation": (
        {"type": "relation", "from": "a", "to": "b"},
        "line 2",
        "relationType: it takes text and got null",
    ),
    "half a character": ('{"type": "entity", "name": "\\ud800"}', "line 2", "lone surrogate"),
    "huge integer": (
        '{"type": "entity", "name": ' + "9" * 5_000 + "}",
        "line 2",
        "an integer of 5,000 digits",
    ),
    "no number": ('{"type": "entity", "name": "x", "n": NaN}', "line 2", "NaN is no number in JSON"),
    "deep": ('{"type": "entity", "name": ' + "[" * 30_000, "line 2", "nested too deeply"),
}
GRAPHS = {
    f"server-memory, {name}": Broken(
        written("memory.jsonl", lines_of(TEA, wrong), lines_of(TEA, MAPS)), SOUND, [(place, reason)], BOTH
    )
    for name, (wrong, place, reason) in WRONG.items()
}
MEMORIES = {
    "no text": ({"id": "2", "memory": ""}, "memory: it takes text"),
    "true": ({"id": "2", "memory": True}, "memory: it takes text and got true"),
    "no id": ({"id": None, "memory": "x"}, "id: it takes text and got null"),
    "twice": ({"id": "3", "memory": "another"}, "key: '3' is the key of memory 1"),
    "no object": (None, "memory: it takes an object and got null"),
}
MEM0 = {
    f"mem0, {name}": Broken(
        written("mem0.json", json.dumps({"results": [WHALE, bad]}), json.dumps({"results": [WHALE, good]})),
        ["saw a whale"],
        [("memory 2", reason)],
        ["likes tea"],
    )
    for good in ({"id": "2", "memory": "likes tea"},)
    for name, (bad, reason) in MEMORIES.items()
}
RELATION = {"from": "Alice", "to": "Bob", "relationType": "knows"}
RELATED = json.dumps({"entities": [], "relations": [RELATION, RELATION | {"to": "Cay"}]}, indent=2)
TWO = [WHALE, {"id": "2", "memory": "likes tea"}]
DOCUMENTS = {
    "results": json.dumps({"results": TWO}, indent=2),
    "memories behind others": json.dumps({"count": 2, "relations": [], "memories": TWO}, indent=4),
    "one line": json.dumps({"results": TWO}),
    "a line a memory": '{\n"results": [\n' + ",\n".join(map(json.dumps, TWO)) + "\n]\n}",
}


def cuts_of(whole: str, last: str) -> list[tuple[str, int, str]]:
    """Return a document cut in its last record's text and before it; the line, and why that is no JSON."""
    end = whole.index(last)
    begin = whole.rindex("{", 0, end)
    line = whole.count("\n", 0, begin) + 1
    is_one_line = "\n" not in whole[begin:end]
    column = f" at column {end - whole.rfind(chr(10), 0, end) - 1}" if is_one_line else ""
    why = f"from here on this is no JSON: Unterminated string{column}"
    return [(whole[: end + 3], line, why), (whole[: begin + 1], line, "no JSON: Expecting property name")]


OTHERS = {
    "server-memory, cut first": Broken(
        written("memory.jsonl", lines_of(CUT, TEA), lines_of(MAPS, TEA)), SOUND, [("line 1", "no JSON")], BOTH
    ),
    "server-memory, joined and cut": Broken(
        written("memory.jsonl", json.dumps(TEA) + CUT, json.dumps(TEA) + json.dumps(MAPS)),
        SOUND,
        [("line 1, value 2", "no JSON")],
        BOTH,
    ),
    "server-memory, an array with a broken line": Broken(
        written("memory.json", f"[\n{json.dumps(TEA)},\n{CUT},\n]", json.dumps([TEA, MAPS])),
        SOUND,
        [("line 3", "no JSON")],
        BOTH,
    ),
    "server-memory, a graph": Broken(
        written(
            "memory.json",
            json.dumps({"entities": [TEA, 7], "relations": [{"from": "a"}]}, indent=1),
            json.dumps({"entities": [TEA, MAPS], "relations": []}, indent=1),
        ),
        SOUND,
        [("entity 2", "an object and got 7"), ("relation 1", "relationType: it takes text and got null")],
        BOTH,
    ),
    "mem0, an array that breaks off": Broken(
        written(
            "mem0.json",
            json.dumps([WHALE, {"id": "2", "memory": "likes tea"}], indent=2)[:-20],
            json.dumps([WHALE, {"id": "2", "memory": "likes tea"}], indent=2),
        ),
        ["saw a whale"],
        [("line 6", "from here on this is no JSON")],
        ["likes tea"],
    ),
    **{
        f"mem0, cut after {len(cut)} characters, {name}": Broken(
            written("mem0.json", cut, whole), ["saw a whale"], [(f"line {number}", reason)], ["likes tea"]
        )
        for name, whole in DOCUMENTS.items()
        for cut, number, reason in cuts_of(whole, "likes tea")
    },
    "server-memory, a cut graph": Broken(
        written(
            "memory.json",
            json.dumps({"entities": [TEA, MAPS], "relations": []}, indent=2)[:250],
            json.dumps({"entities": [TEA, MAPS], "relations": []}, indent=2),
        ),
        SOUND,
        [("line 11", "from here on this is no JSON: Unterminated string")],
        BOTH,
    ),
    "server-memory, a graph cut in its relations": Broken(
        written(
            "memory.json",
            RELATED[:-30],
            RELATED,
        ),
        ["Alice knows Bob"],
        [("line 9", "from here on this is no JSON: Unterminated string")],
        ["Alice knows Cay"],
    ),
    "mem0, a cut line": Broken(
        written(
            "mem0.jsonl",
            lines_of(WHALE, '{"id": "2", "mem'),
            lines_of(WHALE, {"id": "2", "memory": "likes tea"}),
        ),
        ["saw a whale"],
        [("line 2", "this is no JSON")],
        ["likes tea"],
    ),
    "mem0, a relation": Broken(
        written(
            "mem0.json",
            json.dumps({"results": [WHALE], "relations": [{"source": "a", "target": None, "relation": "b"}]}),
            json.dumps({"results": [WHALE], "relations": [{"source": "a", "target": "c", "relation": "b"}]}),
        ),
        ["saw a whale"],
        [("relation 1", "target: it takes text and got null")],
        ["a b c"],
    ),
}


def memory_service(folder: Path, is_mended: bool) -> None:  # noqa: FBT001  see `Broken`
    (folder / "sqlite_vec.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / "sqlite_vec.db")) as connection, connection:
        connection.execute("CREATE TABLE memories (content_hash, content, tags, metadata, created_at)")
        rows: list[tuple[Any, ...]] = [("a", "likes tea"), ("b", ""), (None, "x"), ("d", 7), ("e", None)]
        if is_mended:
            rows[1:] = [("b", "draws maps"), ("c", "x"), ("d", "seven"), ("e", "none")]
        connection.executemany("INSERT INTO memories (content_hash, content) VALUES (?, ?)", rows)


def shared_context(folder: Path, is_mended: bool) -> None:  # noqa: FBT001  see `Broken`
    (folder / "chat.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / "chat.db")) as connection, connection:
        connection.executescript(
            "CREATE TABLE sessions (id, purpose, created_at, created_by, metadata);"
            "CREATE TABLE messages (id, session_id, sender, content, visibility, message_type, metadata, "
            "timestamp);"
            "CREATE TABLE agent_memory (id, agent_id, session_id, key, value, metadata, created_at, "
            "updated_at, expires_at);"
        )
        mended = {"agent": "coder", "session": "s", "content": "Yes", "purpose": "plan"} if is_mended else {}
        connection.execute(
            "INSERT INTO agent_memory (agent_id, key, value) VALUES ('coder', 'tea', ?), (?, 'k', ?)",
            ('"likes tea"', mended.get("agent"), '"green"'),
        )
        connection.execute("INSERT INTO sessions (id, purpose) VALUES ('s', ?)", (mended.get("purpose"),))
        connection.execute(
            "INSERT INTO messages (id, session_id, content) VALUES (1, ?, 'Go'), (2, 's', ?)",
            (mended.get("session"), mended.get("content")),
        )


def vault(folder: Path, is_mended: bool) -> None:  # noqa: FBT001  see `Broken`
    (folder / "a").mkdir(exist_ok=True)
    (folder / "a.b.md").write_text("likes tea")
    # It comes first, and its keys would be those of the file above.
    title = "'a: b'" if is_mended else "[a: b"
    (folder / "a" / "b.md").write_text(f"---\ntitle: {title}\n---\ndraws maps")
    (folder / "a" / "bytes.md").write_bytes(b"caf\xe9" if is_mended else b"caf\x81")


FILES = {
    **GRAPHS,
    **MEM0,
    **OTHERS,
    "mcp-memory-service": Broken(
        memory_service,
        ["likes tea"],
        [
            ("row 2, memory b", "content: it takes text"),
            ("row 3", "content_hash: it takes text and got null"),
            ("row 4, memory d", "content: it takes text and got 7"),
            ("row 5, memory e", "content: it takes text and got null"),
        ],
        ["draws maps", "none", "seven", "x"],
    ),
    "shared-context-server": Broken(
        shared_context,
        ["likes tea"],
        [
            ("agent_memory, row 2", "agent_id: it takes text and got null"),
            ("sessions, row 1", "purpose: it takes text and got null"),
            ("messages, row 1", "session_id: it takes text and got null"),
            ("messages, row 2", "content: it takes text and got null"),
        ],
        ["Go", "Yes", "green", "plan"],
    ),
    "markdown": Broken(
        vault,
        ["likes tea"],
        [
            ("a/b.md", "its front matter is no YAML, line 3: expected ',' or ']'"),
            ("a/bytes.md", "it is not UTF-8"),
        ],
        ["café", "draws maps"],
    ),
}


@pytest.mark.promise("exchange.atomic", "exchange.lines", "exchange.formats")
@pytest.mark.parametrize("broken", FILES.values(), ids=FILES)
async def test_what_is_sound_is_imported_and_a_mended_file_adds_the_rest_alone(
    enter: Enter, tmp_path: Path, broken: Broken
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    broken.put(folder, False)
    path = folder if any(folder.glob("**/*.md")) else next(folder.iterdir())
    async with enter(embedder="none") as home:
        with pytest.raises(ImportRefusedError):
            await taken(home, path, is_strict=True)
        assert await memories(home) == {}
        dry = await taken(home, path, dry_run=True)
        done = await taken(home, path)
        before = await memories(home)
        broken.put(folder, True)
        again = await taken(home, path)
        after = await memories(home)
    assert [each["content"] for each in before.values()] == broken.sound
    assert [
        (each.place, reason in each.sentence)
        for each, (_, reason) in zip(done.left_out, broken.reasons, strict=True)
    ] == [(place, True) for place, _ in broken.reasons], done.left_out
    for each in done.left_out:
        assert len(re.findall(r"\bline \d", f"{each.place}: {each.sentence}")) <= 1, each
        assert "\n" not in each.sentence
    assert (done.left_out_count, dry.left_out) == (len(broken.reasons), done.left_out)
    assert (done.lines, done.counts, dry.counts) == (1, {"created": 1}, {"created": 1})
    assert (again.left_out, again.counts) == ([], {"created": len(broken.mended), "skipped": 1})
    assert {key: after[key] for key in before} == before
    assert sorted(each["content"] for key, each in after.items() if key not in before) == broken.mended


@pytest.mark.promise("exchange.atomic")
async def test_of_our_own_json_lines_one_bad_line_still_keeps_all_out(enter: Enter) -> None:
    async with enter(embedder="none") as home:
        with pytest.raises(ImportRefusedError, match="line 2: this is not JSON"):
            await imported(home.runtime, ANN, line("a"), '{"key": "b", "conte', line("c"))
        assert await memories(home) == {}


@pytest.mark.promise("exchange.formats")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize(
    ("name", "text", "content"),
    [
        (
            "memory.jsonl",
            lines_of('{"type":"entity","name":"Zoë","observations":["trinkt “Tee”"]}'),
            "Zoë: trinkt “Tee”",
        ),
        ("mem0.json", '[{"id": "1", "memory": "Zoë trinkt “Tee”"}]', "Zoë trinkt “Tee”"),
        ("note.md", "---\ntags: [süß]\n---\nZoë trinkt “Tee”", "Zoë trinkt “Tee”"),
    ],
)
async def test_encodings_are_told_by_their_mark_or_guessed_and_said(
    enter: Enter, tmp_path: Path, encoding: str, name: str, text: str, content: str
) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    async with enter(embedder="none") as home:
        done = await taken(home, path)
        (found,) = (await memories(home)).values()
        if encoding == "cp1252":
            with pytest.raises(ImportRefusedError, match="was read as Windows-1252"):
                await taken(home, path, is_strict=True)
    assert found["content"] == content
    said = [each.sentence for each in done.remarks]
    assert said == (["it is no UTF-8, and was read as Windows-1252"] if encoding == "cp1252" else [])


@pytest.mark.promise("exchange.formats")
async def test_our_own_lines_may_be_in_utf_16_but_in_no_encoding_that_is_a_guess(
    enter: Enter, tmp_path: Path
) -> None:
    path = tmp_path / "own.jsonl"
    async with enter(embedder="none") as home:
        path.write_bytes(lines_of('{"key": "Zoë", "content": "Tee"}').encode("utf-16"))
        assert (await taken(home, path)).counts == {"created": 1}
        path.write_bytes(lines_of('{"key": "Zoë", "content": "Tee"}').encode("cp1252"))
        with pytest.raises(ImportRefusedError, match="line 1: the JSON is not UTF-8"):
            await taken(home, path)


@pytest.mark.promise("exchange.formats")
@pytest.mark.parametrize(
    "text",
    [
        lines_of({"type": "_aim", "source": "mcp-knowledge-graph"}, TEA, MAPS),
        json.dumps([TEA, MAPS]),
        json.dumps([TEA, MAPS], indent=2),
        lines_of([TEA, MAPS]),
        json.dumps(TEA) + json.dumps(MAPS),
        json.dumps(TEA) + ", " + json.dumps(MAPS),
        lines_of(TEA, TEA, MAPS),
        "\n\n"
        + lines_of({"type": "entity", "name": "Alice", "observations": ["likes tea"], "by": "\u2028"}, MAPS),
    ],
    ids=["marker", "array", "pretty array", "array in a line", "joined", "by a comma", "repeated", "odd end"],
)
def test_what_the_family_of_server_memory_writes_is_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_text(text)
    assert [each["content"] for each in read(path)] == ["Alice: likes tea", "Bob: draws maps"]
    assert left_out(path) == []


@pytest.mark.promise("exchange.formats")
@pytest.mark.parametrize(
    ("front", "kept"),
    [
        (
            "base: &b {x: 1}\nmore: *b\nmerged:\n  <<: *b\n  y: 2",
            {"base": {"x": 1}, "more": {"x": 1}, "merged": {"x": 1, "y": 2}},
        ),
        ("title: {{title}}\nfor: '{{ who }}'", {"title": "{{title}}", "for": "{{ who }}"}),
        ("title: {{date:YYYY-MM-DD}} {% note %}", {"title": "{{date:YYYY-MM-DD}} {% note %}"}),
        ('at: <% tp.date.now("HH: mm") %>', {"at": '<% tp.date.now("HH: mm") %>'}),
        ("list: [{{a}}, x]\n{{key}}: y", {"list": ["{{a}}", "x"], "{{key}}": "y"}),
        ("created: {{date}}\nimportance: {{n}}", {"created": "{{date}}", "importance": "{{n}}"}),
        ("yes: 1\n~: 2\n2024-01-01: 3", {"true": 1, "null": 2, "2024-01-01": 3}),
        ("x: [true, null, .inf, 1.5]", {"x": [True, None, ".inf", 1.5]}),
        ("author: [[Ann]]\nkey: true", {"author": [["Ann"]], "key": True}),
    ],
)
def test_front_matter_has_anchors_and_templates_and_no_words_of_python(
    tmp_path: Path, front: str, kept: dict[str, Any]
) -> None:
    path = tmp_path / "note.md"
    path.write_text(f"---\n{front}\n---\ntext")
    (made,) = read(path)
    assert made["metadata"] == {"path": "note.md", **kept}
    assert (made["key"], made["content"], made.get("created_by")) == ("note", "text", None)


def test_names_and_tags_in_front_matter_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_text(
        "---\ntags: [yes, null, 7, 1.5, {a: true}, {{tag}}]\nauthor: [Ann, Bob]\nid: 2024-05-01\n---\ntext"
    )
    (made,) = read(path)
    assert made["tags"] == ["true", "7", "1.5", '{"a": true}', "{{tag}}"]
    assert (made["created_by"], made["key"]) == ("Ann, Bob", "2024-05-01")


_WORDS = {"None", "True", "False", "nan", "inf"}
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
_GRAPH_FIELDS = ("type", "name", "entityType", "observations", "from", "to", "relationType", "content")
_MEM0_FIELDS = (
    *("id", "memory", "metadata", "created_at", "categories", "run_id", "user_id", "agent_id"),
    *("source", "target", "relationship", "expiration_date"),
)


def python_words(raw: bytes) -> set[str]:
    text = raw.decode()
    return {word for word in _WORDS if word in text}


@given(
    st.lists(
        st.dictionaries(st.sampled_from(_GRAPH_FIELDS), _VALUES | st.sampled_from(["entity", "relation"]))
    ),
    st.lists(st.dictionaries(st.sampled_from(_MEM0_FIELDS), _VALUES)),
    st.dictionaries(st.sampled_from(["tags", "key", "author", "created", "kind", "x"]), _VALUES),
)
@pytest.mark.promise("exchange.formats")
def test_no_value_of_a_wrong_type_becomes_a_word_of_python(
    tmp_path_factory: pytest.TempPathFactory,
    graph: list[dict[str, Any]],
    memories_of_mem0: list[dict[str, Any]],
    front: dict[str, Any],
) -> None:
    folder = tmp_path_factory.mktemp("files")
    files = {
        "server-memory": lines_of(*graph),
        "mem0": json.dumps({"results": memories_of_mem0, "relations": memories_of_mem0}),
        "markdown": f"---\n{json.dumps(front)}\n---\ntext",
    }
    for chosen, text in files.items():
        path = folder / chosen
        path.write_text(text)
        lines = [each for each in open_source(path, chosen, ANN).read() if isinstance(each, SourceLine)]
        assert not any(python_words(each.raw) for each in lines)
