"""Code of many languages in a workspace: what is read by its syntax, and what is read as text and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from support.code_agents import agent_in, read, settled
from support.code_samples import SAMPLES

from greenroom.actors import REQUESTS, Agent, parse_request
from greenroom.actors.content.syntax.plain_text import block_of, first_lines, lines_with
from greenroom.runtime import Refusal

DART = """import 'anchor.dart';

// moorFerry is used by the harbour.
class Ferry extends Vessel {
  void moorFerry(Rope rope) {
    rope.tie();
  }
  int get count => 1;
}

void main() {
  Ferry().moorFerry(Rope());
}
"""
SQL = """-- what sails
CREATE TABLE ferries (
  id INTEGER PRIMARY KEY,
  name TEXT
);

CREATE VIEW sailing AS
  SELECT * FROM ferries;
"""
PAGE = "<html><head><script>const ferryPage = 1;</script></head><body><p>Welcome</p></body></html>\n"
TEMPLATE = "{% block ferryList %}\n{% endblock %}\n"


async def ask(agent: Agent, name: str, arguments: str) -> Any:
    return await agent.ask(parse_request(REQUESTS[name], arguments.encode()))


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A workspace of which some files are read as text."""
    folder = (tmp_path / "code").resolve()
    files = {
        "lib/ferry.dart": DART,
        "db/schema.sql": SQL,
        "pages/index.html": PAGE,
        "pages/list.html.j2": TEMPLATE,
        "empty.ipynb": '{"cells": [], "nbformat": 4, "metadata": {}, "unread_note": 1}',
        "app.py": 'QUERY = "db/schema.sql"\n\n\ndef sail():\n    return QUERY\n',
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.promise("code.unread")
async def test_what_is_read_as_text_is_said_and_looked_through_by_every_tool_for_symbols(
    code: Path, tmp_path: Path
) -> None:
    unread = "the symbols of 1 Dart file and 1 SQL file are not known"
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)

        found = await ask(agent, "symbol_search", '{"symbol":"Ferry.moorFerry"}')
        assert (found.definitions, unread in str(found.partial_reason)) == ([], True)
        assert [(each.file_path, each.line) for each in found.in_text] == [
            ("lib/ferry.dart", 3),
            ("lib/ferry.dart", 5),
            ("lib/ferry.dart", 12),
        ]
        found = await ask(agent, "symbol_search", '{"symbol":"sail"}')
        assert ([each.symbol for each in found.definitions], found.in_text) == (["sail"], UNSET)

        matched = await ask(agent, "code_search", '{"pattern":"function moor*"}')
        assert (matched.matches, unread in str(matched.partial_reason)) == ([], True)
        assert {each.file_path for each in matched.in_text} == {"lib/ferry.dart"}
        matched = await ask(agent, "code_search", '{"pattern":"function moor*","scope":"db"}')
        assert (matched.matches, matched.in_text) == ([], UNSET)

        depends = await ask(agent, "dependency_search", '{"target":"db/schema.sql"}')
        assert (depends.dependents, depends.dependencies) == ([], UNSET)
        assert unread in str(depends.partial_reason)
        assert [(each.file_path, each.line) for each in depends.in_text] == [("app.py", 1)]
        depends = await ask(agent, "dependency_search", '{"target":"moorFerry"}')
        assert (depends.target_is, len(depends.in_text)) == ("unknown", 3)

        made = await ask(agent, "outline", '{"path":"db/schema.sql"}')
        assert made.outline.splitlines() == [
            "db/schema.sql (8 lines)",
            "  2 CREATE TABLE ferries (",
            "  7 CREATE VIEW sailing AS",
        ]
        assert (made.shown, "as text" in str(made.partial_reason)) == (0, True)
        with pytest.raises(Refusal, match="the symbols of 1 Dart file"):
            await ask(agent, "outline", '{"path":"lib"}')


@pytest.mark.slow
@pytest.mark.promise("code.unread")
async def test_a_symbol_is_read_from_text_where_its_file_is_read_as_text(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        (file,) = await read(agent, '{"path":"lib/ferry.dart","symbol":"moorFerry"}')
        assert (file.lines, file.text) == ([5, 7], "  void moorFerry(Rope rope) {\n    rope.tie();\n  }\n")
        assert "as text" in str(file.note)
        (file,) = await read(agent, '{"path":"db/schema.sql","symbol":"sailing","around":1}')
        assert file.lines == [6, 8]
        with pytest.raises(Refusal, match="no line has 'raft'"):
            await read(agent, '{"path":"db/schema.sql","symbol":"raft"}')


@pytest.mark.slow
@pytest.mark.promise("code.unread")
async def test_pages_templates_and_what_shows_nothing_are_text_of_code(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        for query, path in (
            ("ferryPage", "pages/index.html"),
            ("ferryList", "pages/list.html.j2"),
            ("unread_note", "empty.ipynb"),
        ):
            found = await ask(agent, "search_code_semantic", f'{{"query":"{query}"}}')
            assert found.results[0].file_path == path
        assert (found.freshness.indexed, found.freshness.of) == (6, 6)


@pytest.mark.slow
@pytest.mark.promise("code.symbols")
async def test_symbols_of_every_language_are_found_outlined_and_read(tmp_path: Path) -> None:
    folder = (tmp_path / "code").resolve()
    for path, sample in SAMPLES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(sample.data)
    async with agent_in(tmp_path, folder, is_kept=True) as agent:
        await settled(agent)
        for path, sample in SAMPLES.items():
            symbol, signature, summary, lines = sample.above
            found = await ask(agent, "symbol_search", f'{{"symbol":"{symbol}"}}')
            (shown,) = [each for each in found.definitions if each.file_path == path][:1]
            assert (shown.signature, shown.summary, shown.lines) == (signature, summary, list(lines))
            assert (found.partial, found.in_text) == (UNSET, UNSET)
            (file,) = await read(agent, f'{{"path":"{path}","symbol":"{symbol}"}}')
            assert file.lines == list(lines)
            made = await ask(agent, "outline", f'{{"path":"{path}"}}')
            assert signature[:80] in made.outline
            depends = await ask(agent, "dependency_search", f'{{"target":"{path}"}}')
            outside = {module for module, _, _ in sample.imports}
            assert (set(depends.outside), depends.partial) == (outside, UNSET)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("moorFerry", (5, 7)),
        ("Ferry.moorFerry", (5, 7)),
        ("Ferry", (4, 9)),
        ("main", (11, 13)),
        ("rope", (6, 6)),
        ("moor", None),
        ("moor*", (5, 7)),
    ],
)
def test_a_block_of_text_is_what_is_indented_below_a_name(name: str, lines: tuple[int, int] | None) -> None:
    if name == "rope":
        assert [each.line for each in lines_with(name, DART)] == [5, 6]
    else:
        assert block_of(name, DART) == lines


def test_an_outline_of_text_has_as_many_lines_as_there_is_room_for() -> None:
    lines, left_out = first_lines(DART, 60)
    assert ([each.line for each in lines], left_out) == ([1, 4], 1)
    assert first_lines("a\n" * 3, 0) == ([], 3)
