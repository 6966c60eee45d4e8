"""The tools for code: searching a workspace, reading its files, and what is never read."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Literal

import msgspec
import pytest
import trio
from msgspec import UNSET, UnsetType
from support.agents import FAST
from support.code_agents import ANN, agent_in, read, search, settled
from support.corpora import document_of

from greenroom.actors import (
    REQUESTS,
    Agent,
    CompleteCode,
    PutDocument,
    Reach,
    StartSession,
    ask_corpus,
    open_greenroom,
    parse_request,
)
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.replies.grades import GRADES
from greenroom.actors.knowledge.corpora.requests.code_relations import (
    DependenciesFound,
    Dependency,
    SimilarFound,
)
from greenroom.actors.knowledge.corpora.requests.code_symbols import CodeMatched, OutlineMade, SymbolsFound
from greenroom.actors.knowledge.corpora.requests.workspace import KeepWorkspace, Kept
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus
from greenroom.actors.knowledge.workspaces.files import read_part
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces
from greenroom.actors.knowledge.workspaces.places import check_root, resolve_file, workspace_name
from greenroom.runtime import Refusal


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A workspace."""
    folder = (tmp_path / "code").resolve()
    (folder / "src/deep").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "src/boats.py").write_text("".join(f"line_{number} = {number}\n" for number in range(1, 101)))
    (folder / "src/deep/anchor.py").write_text("def drop_anchor(depth):\n    return depth\n")
    (folder / "src/harbour.ts").write_text("export function dropAnchor() { return 1 }\n")
    (folder / "tests/test_anchor.py").write_text("def test_drop_anchor():\n    assert drop_anchor(1)\n")
    (folder / ".env").write_text("KEY=1\n")
    return folder


# -- searching ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("code.found", "code.freshness")
async def test_code_is_found_by_file_with_its_lines_and_how_fresh_that_is(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        found = await search(agent, '{"query":"drop anchor depth"}')
        assert found.workspace == str(code)
        assert (found.freshness.indexed, found.freshness.of) == (4, 4)
        first = found.results[0]
        assert (first.file_path, first.line_range) == ("src/deep/anchor.py", [1, 2])
        assert "def drop_anchor(depth)" in first.excerpt
        assert len({each.file_path for each in found.results}) == len(found.results) == 3
        assert not found.cache_hit
        assert (await search(agent, '{"query":"drop anchor depth"}')).cache_hit


INDEXED_TOOLS = {
    "search_code_semantic": '{"query":"anchor kelp"}',
    "code_search": '{"pattern":"function kelp"}',
    "symbol_search": '{"symbol":"kelp"}',
    "outline": "{}",
    "dependency_search": '{"target":"kelp"}',
    "similar_files": '{"path":"src/boats.py"}',
}


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.promise("code.many", "code.freshness")
async def test_an_answer_of_half_an_index_comes_in_time_and_says_how_far_that_is(
    code: Path, tmp_path: Path
) -> None:
    name = f"user:ann:{workspace_name(str(code))}"
    asked = [parse_request(REQUESTS[tool], said.encode()) for tool, said in INDEXED_TOOLS.items()]
    async with (
        open_greenroom(tmp_path / "data", embedder="none", options=FAST) as runtime,
        open_workspaces(runtime) as kept,
    ):
        agent = Agent(runtime, ANN, reach=Reach(workspaces=(str(code),)), workspaces=kept)
        await ensure_corpus(runtime, ANN, name, str(code))

        async def keep(state: Kept) -> None:
            request = KeepWorkspace(corpus=name, keeper="another", state=state, of=7)
            await ask_corpus(runtime, ANN, request)

        off = await Agent(runtime, ANN, reach=Reach(workspaces=(str(code),))).ask(asked[0])
        assert (off.freshness.state, off.partial, off.unknown) == ("off", UNSET, UNSET)
        await keep("indexing")
        document = document_of("src/deep/anchor.py", [(["drop_anchor"], "def drop_anchor(): return 1")])
        await ask_corpus(runtime, ANN, PutDocument(corpus=name, document=document))
        for each in asked:
            with trio.fail_after(4):
                half = await agent.ask(each)
            assert half.partial
            assert half.partial_reason == "1 of 7 files are indexed so far; ask again"
            assert getattr(half, "unknown", UNSET) is UNSET
        await keep("watching")
        for each in asked:
            assert (await agent.ask(each)).partial is UNSET
        whole = await search(agent, INDEXED_TOOLS["search_code_semantic"])
        assert [each.file_path for each in whole.results] == ["src/deep/anchor.py"]
        assert whole.unknown == ["kelp"]


@pytest.mark.slow
@pytest.mark.promise("code.many")
async def test_the_first_search_of_a_folder_waits_for_its_index(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        found = await search(agent, '{"query":"drop anchor kelp"}')
        while found.partial:  # where no processor was free for five seconds
            assert found.unknown is UNSET
            found = await search(agent, '{"query":"drop anchor kelp"}')
        assert found.unknown == ["kelp"]
        assert (len(found.results), found.freshness.of) == (3, 4)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.promise("code.found")
@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ('"scope":"src"', {"src/deep/anchor.py", "src/harbour.ts"}),
        ('"scope":"src/deep"', {"src/deep/anchor.py"}),
        ('"filters":{"file_types":["ts"]}', {"src/harbour.ts"}),
        ('"filters":{"file_types":[".py"],"exclude_paths":["tests"]}', {"src/deep/anchor.py"}),
        ('"filters":{"exclude_paths":["test_*","src/deep"]}', {"src/harbour.ts"}),
        ('"min_relevance":1', set()),
        ('"limit":1', {"src/deep/anchor.py"}),
    ],
)
async def test_a_search_is_narrowed(code: Path, tmp_path: Path, arguments: str, wanted: set[str]) -> None:
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        found = await search(agent, '{"query":"drop anchor depth",MORE}'.replace("MORE", arguments))
        assert {each.file_path for each in found.results} == wanted


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.promise("code.relevance")
async def test_files_have_a_score_a_relevance_and_its_grade_by_which_a_search_is_cut(
    code: Path, tmp_path: Path
) -> None:
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        files = (await search(agent, '{"query":"drop anchor depth"}')).results
        assert files[0].score > 0.7
        for of, least in (("score", "min_score"), ("relevance_score", "min_relevance")):
            values = [getattr(each, of) for each in files]
            assert values == sorted(values, reverse=True)
            for value in values:
                found = await search(agent, f'{{"query":"drop anchor depth","{least}":{value - 0.0001}}}')
                assert found.results == [each for each in files if getattr(each, of) >= value - 0.0001]
            for grade, worth in GRADES.items():
                found = await search(agent, f'{{"query":"drop anchor depth","{least}":"{grade}"}}')
                assert found.results == [each for each in files if each.relevance_score >= worth]
                assert all((each.grade == grade) <= (each.relevance_score >= worth) for each in files)


@pytest.mark.slow
@pytest.mark.promise("code.found")
async def test_what_changed_lately_can_count_for_more(code: Path, tmp_path: Path) -> None:
    os.utime(code / "src/deep/anchor.py", (1, 1))
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        for weight, is_first in ((0, True), (0.9, False)):
            arguments = '{"query":"drop anchor depth","filters":{"recency_weight":W}}'
            found = await search(agent, arguments.replace("W", str(weight)))
            assert (found.results[0].file_path == "src/deep/anchor.py") is is_first


@pytest.mark.promise("code.freshness")
async def test_without_an_index_a_search_says_so(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code) as agent:
        found = await search(agent, '{"query":"drop anchor"}')
        assert (found.results, found.freshness.state, found.freshness.as_of) == ([], "off", None)


# -- symbols -----------------------------------------------------------------------------------------

SHIP = """class Ship:
    \"\"\"What swims.\"\"\"

    def drop_anchor(self):
        return sink(self)


def sink(ship):
    return ship
"""


async def symbols(agent: Agent, arguments: str) -> SymbolsFound:
    found: SymbolsFound = await agent.ask(parse_request(REQUESTS["symbol_search"], arguments.encode()))
    return found


@pytest.mark.slow
@pytest.mark.promise("code.symbols")
async def test_symbols_are_found_where_they_are_defined_and_used(code: Path, tmp_path: Path) -> None:
    (code / "src/ship.py").write_text(SHIP)
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        found = await symbols(agent, '{"symbol":"sink"}')
        (defined,) = found.definitions
        assert (defined.symbol, defined.kind, defined.file_path, defined.lines) == (
            "sink",
            "function",
            "src/ship.py",
            [8, 9],
        )
        (used,) = found.references
        assert (used.file_path, used.line, used.role, used.within) == (
            "src/ship.py",
            5,
            "call",
            "Ship.drop_anchor",
        )
        assert (found.matched, found.names, used.scope, used.means) == (
            "name",
            UNSET,
            "exact",
            UNSET,  # there is one definition that it can mean
        )
        names = [each.symbol for each in (await symbols(agent, '{"symbol":"*anchor*"}')).definitions]
        assert names == ["drop_anchor", "test_drop_anchor", "Ship.drop_anchor"]
        methods = await symbols(agent, '{"symbol":"*anchor*","kind":"method"}')
        assert [each.symbol for each in methods.definitions] == ["Ship.drop_anchor"]
        cut = await symbols(agent, '{"symbol":"*","limit":1}')
        assert len(cut.definitions) == 1 < cut.total_definitions
        (code / "src/ship.py").unlink()
        while (await symbols(agent, '{"symbol":"sink"}')).definitions:
            pass


PARTS = [
    f"export function {name}Delay(attempt, limit) {{\n  const waited = {name}Table[attempt] ?? limit;\n"
    f"  return waited + Math.random() * {name}Share(waited);\n}}\n"
    for name in ("retry", "upload", "cookie", "header")
]


@pytest.mark.slow
@pytest.mark.promise("code.sources-first")
async def test_bundles_and_what_git_calls_generated_come_behind_the_source(
    code: Path, tmp_path: Path
) -> None:
    for folder in ("src", "a", "api"):
        (code / folder).mkdir(exist_ok=True)
    for number, part in enumerate(PARTS):
        (code / f"src/part{number}.js").write_text(part)
    (code / "a/client.js").write_text("".join(PARTS).replace("export ", ""))
    (code / "api/client.js").write_text("const retryDelay = 'retry delay of the api';\n")
    (code / ".gitattributes").write_text("api/** linguist-generated\n")
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        found = [each.file_path for each in (await search(agent, '{"query":"retry delay limit"}')).results]
        assert found[0] == "src/part0.js"
        assert "a/client.js" in found
        defined = [each.file_path for each in (await symbols(agent, '{"symbol":"retryDelay"}')).definitions]
        assert defined[0] == "src/part0.js"
        assert set(defined) == {"src/part0.js", "a/client.js", "api/client.js"}
        (code / ".gitattributes").unlink()
        again = [each.file_path for each in (await symbols(agent, '{"symbol":"retryDelay"}')).definitions]
        assert again[0] == "api/client.js"


HANDED_ON = {
    "fleet/__init__.py": "from .ships import *\n",
    "fleet/ships.py": "def launch(): pass\nclass Boat:\n    def row(self): launch()\n",
    "a_textual.py": "launch()\n",
    "b_exact.py": "from fleet import launch as go, Boat\ngo()\nBoat.row()\nboat.row()\nstart(go)\n",
    "c_own.py": "def launch(): pass\nlaunch()\n",
}


@pytest.mark.slow
@pytest.mark.promise("code.exact", "code.symbols")
async def test_references_that_mean_a_definition_come_first_and_say_which(code: Path, tmp_path: Path) -> None:
    for path, text in HANDED_ON.items():
        (code / path).parent.mkdir(exist_ok=True)
        (code / path).write_text(text)

    async def told(arguments: str) -> list[tuple[object, ...]]:
        found = await symbols(agent, arguments)
        assert found.total_references == len(found.references)
        every = [f"{each.file_path}:{each.symbol}" for each in found.definitions]
        return [
            (
                each.file_path,
                each.line,
                each.role,
                (each.means or every) if each.scope == "exact" else "textual",
            )
            for each in found.references
        ]

    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        here = ["fleet/ships.py:launch"]
        assert await told('{"symbol":"launch"}') == [
            ("b_exact.py", 1, "import", here),
            ("b_exact.py", 2, "call", here),
            ("b_exact.py", 5, "other", here),
            ("c_own.py", 2, "call", ["c_own.py:launch"]),
            ("fleet/ships.py", 3, "call", here),
            ("a_textual.py", 1, "call", "textual"),
        ]
        assert await told('{"symbol":"Boat.row"}') == [
            ("b_exact.py", 3, "call", ["fleet/ships.py:Boat.row"]),
            ("b_exact.py", 4, "call", "textual"),
        ]
        assert {each[3] for each in await told('{"symbol":"launch","kind":"class"}')} == {"textual"}
        first = await symbols(agent, '{"symbol":"launch","limit":1}')
        assert (len(first.references), first.total_references) == (1, 6)


@pytest.mark.slow
@pytest.mark.promise("code.symbols")
async def test_names_that_are_like_it_are_found_where_nothing_has_a_name(code: Path, tmp_path: Path) -> None:
    (code / "src/ship.py").write_text(SHIP)
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        for name in ("dropanchor", "drop_anchr", "anchorDrop"):
            found = await symbols(agent, json.dumps({"symbol": name}))
            assert found.matched == "fuzzy"
            assert isinstance(found.names, list)
            assert "drop_anchor" in found.names
            assert "drop_anchor" in {each.symbol for each in found.definitions}
            assert "tests/test_anchor.py" in {each.file_path for each in found.references}
        exact = await symbols(agent, '{"symbol":"sink","kind":"class"}')
        assert (exact.matched, exact.names, exact.definitions) == ("name", UNSET, [])
        for nowhere in ("zebra", "drop_anchr*", "\u0000", ".", "*."):
            found = await symbols(agent, json.dumps({"symbol": nowhere}))
            assert (found.matched, found.definitions, found.references) == ("name", [], [])


@pytest.mark.slow
@pytest.mark.promise("code.completed")
async def test_paths_and_symbols_of_the_workspace_are_completed(code: Path, tmp_path: Path) -> None:
    (code / "src/ship.py").write_text(SHIP)
    (code / "src/many.py").write_text("".join(f"def many_{number}(): pass\n" for number in range(250)))

    async def completed(kind: Literal["path", "symbol"], value: str) -> list[str]:
        return (await agent.ask(CompleteCode(kind=kind, value=value))).values

    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        assert await completed("path", "src/d") == ["src/deep/anchor.py"]
        assert await completed("path", "anc") == ["src/deep/anchor.py"]
        assert await completed("symbol", "drop") == ["dropAnchor", "drop_anchor", "Ship.drop_anchor"]
        assert await completed("symbol", "ship.") == ["Ship.drop_anchor"]
        assert await completed("symbol", "zebra") == []
        many = await agent.ask(CompleteCode(kind="symbol", value="many_"))
        assert (len(many.values), many.has_more) == (100, True)
        assert many.values[:11] == [*(f"many_{number}" for number in range(10)), "many_10"]


# -- similar files ------------------------------------------------------------------------------------

DOCKS = {
    "docks/cranes.py": "import weights\ndef lift_container(crane, tonnage):\n    weights.check(tonnage)\n",
    "docks/gantry.py": "import weights\ndef hoist(container, tonnage):\n    weights.check(tonnage)\n",
    "docks/weights.py": "def check(limit):\n    return limit < 9\n",
    "docks/paint.py": "def brush(colour):\n    return colour\n",
    "tests/test_cranes.py": "from docks import cranes\ndef test_it():\n    cranes.lift_container(1, 2)\n",
}


async def similar(agent: Agent, arguments: str) -> SimilarFound:
    found: SimilarFound = await agent.ask(parse_request(REQUESTS["similar_files"], arguments.encode()))
    return found


@pytest.fixture
def docks(code: Path) -> Path:
    (code / "docks").mkdir()
    for path, text in DOCKS.items():
        (code / path).write_text(text)
    return code


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.promise("code.similar")
async def test_files_that_are_like_one_are_found_and_what_they_have_in_common(
    docks: Path, tmp_path: Path
) -> None:
    async with agent_in(tmp_path, docks, is_kept=True) as agent:
        await settled(agent)
        found = await similar(agent, '{"path":"docks/cranes.py"}')
        assert (found.path, found.workspace) == ("docks/cranes.py", str(docks))
        by_path = {each.file_path: each for each in found.results}
        assert list(by_path)[:2] == ["tests/test_cranes.py", "docks/gantry.py"]
        twin, other = by_path["tests/test_cranes.py"], by_path["docks/gantry.py"]
        assert (twin.signals["name"], twin.signals["linked"]) == (1, 1)
        assert (other.signals["imports"], "linked" in other.signals) == (1, False)
        assert {"tonnage", "weights"} <= set(other.shared)
        assert "docks/cranes.py" not in by_path
        scores = [each.relevance_score for each in found.results]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)


@pytest.mark.slow
@pytest.mark.promise("code.similar")
async def test_similar_files_are_narrowed_and_what_is_not_indexed_is_told(
    docks: Path, tmp_path: Path
) -> None:
    async def paths(arguments: str) -> list[str]:
        found = await similar(agent, '{"path":"docks/cranes.py",MORE}'.replace("MORE", arguments))
        return [each.file_path for each in found.results]

    (docks / ".hidden.py").write_text("def lift_container(): pass\n")
    os.utime(docks / "tests/test_cranes.py", (1, 1))
    async with agent_in(tmp_path, docks, is_kept=True) as agent:
        await settled(agent)
        assert await paths('"scope":"tests"') == ["tests/test_cranes.py", "tests/test_anchor.py"]
        assert (await paths('"filters":{"exclude_paths":["tests"]}'))[0] == "docks/gantry.py"
        assert await paths('"filters":{"file_types":["ts"]}') == []
        assert await paths('"limit":1') == ["tests/test_cranes.py"]
        assert await paths('"min_relevance":1') == []
        assert (await paths('"filters":{"recency_weight":0.9}'))[0] == "docks/gantry.py"
        unknown = await similar(agent, '{"path":".hidden.py"}')
        assert unknown.empty_because != UNSET
        assert (unknown.results, unknown.empty_because.code) == ([], "not_indexed")
        for wrong in ("gone.py", "docks", "../x.py", ".env"):
            with pytest.raises(Refusal, match=re.escape(wrong)):
                await similar(agent, json.dumps({"path": wrong}))


@pytest.mark.slow
@pytest.mark.promise("code.symbols")
async def test_a_file_or_a_folder_is_outlined_within_a_budget(code: Path, tmp_path: Path) -> None:
    (code / "src/ship.py").write_text(SHIP)
    (code / "notes.md").write_text("# Notes\n")
    (code / "old.cbl").write_text("DISPLAY 'HELLO'.\n")  # nothing reads it, which says nothing of the notes

    async def outlined(agent: Agent, arguments: str) -> OutlineMade:
        made: OutlineMade = await agent.ask(parse_request(REQUESTS["outline"], arguments.encode()))
        return made

    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        made = await outlined(agent, '{"path":"src/ship.py"}')
        assert (made.shown, made.left_out, made.is_cut) == (3, 0, False)
        assert "class Ship" in made.outline
        assert "def sink(ship)" in made.outline
        folder = (await outlined(agent, '{"path":"src"}')).outline
        assert "drop_anchor(depth)" in folder
        assert "test_drop_anchor" not in folder
        (code / "src/large.py").write_text("".join(f"def f_{at}(): ...\n" for at in range(1_000)))
        while not (cut := await outlined(agent, '{"max_tokens":200}')).left_out:
            pass
        assert len(cut.outline) <= 4 * 200
        with pytest.raises(Refusal, match=r"'src/none\.py' is not there"):
            await outlined(agent, '{"path":"src/none.py"}')
        with pytest.raises(Refusal, match=r"^path: 'notes\.md' has no symbols; read_file it$"):
            await outlined(agent, '{"path":"notes.md"}')


# -- patterns ----------------------------------------------------------------------------------------


async def matched(agent: Agent, pattern: str, more: str = "") -> CodeMatched:
    arguments = f'{{"pattern":{msgspec.json.encode(pattern).decode()}{more}}}'
    found: CodeMatched = await agent.ask(parse_request(REQUESTS["code_search"], arguments.encode()))
    return found


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.promise("code.patterns")
async def test_a_name_alone_finds_symbols_of_every_kind_and_the_answer_names_the_kinds(
    code: Path, tmp_path: Path
) -> None:
    (code / "src/ship.py").write_text("KEEL = 1\n\n\nclass Mast: ...\n\n\ndef keel(): ...\n")
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        for name, line in (("KEEL", 1), ("Mast", 4), ("keel", 7), ("nowhere", None)):
            found = await matched(agent, name)
            assert [each.lines[0] for each in found.matches] == ([] if line is None else [line])
            assert isinstance(found.kinds, list)
            assert {"class", "constant", "function", "method", "variable"} <= set(found.kinds)
        assert (await matched(agent, "function keel")).kinds is UNSET


@pytest.mark.slow
@pytest.mark.promise("code.patterns")
async def test_places_that_a_pattern_means_are_found(code: Path, tmp_path: Path) -> None:
    (code / "src/ship.py").write_text(SHIP)
    (code / "src/fleet.py").write_text(FLEET + '\nNAME = "the flag"\n\nclass Navy(Fleet): ...\n')
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        for pattern, places in {
            "function *anchor": [
                ("src/deep/anchor.py", 1),
                ("src/ship.py", 4),
                ("tests/test_anchor.py", 1),
            ],
            "class S*": [("src/ship.py", 1)],
            "calls sink": [("src/fleet.py", 10), ("src/ship.py", 5)],
            "imports ship": [("src/fleet.py", 3), ("src/fleet.py", 3)],
            "inherits Fleet": [("src/fleet.py", 14)],
            "string the f*": [("src/fleet.py", 12)],
            "regex ^export .*1": [("src/harbour.ts", 1)],
            "(class_definition) @class": [("src/fleet.py", 5), ("src/fleet.py", 14), ("src/ship.py", 1)],
            "calls nothing": [],
        }.items():
            found = await matched(agent, pattern)
            assert [(each.file_path, each.lines[0]) for each in found.matches] == places
            assert (found.partial, found.unread) == (UNSET, 0)
        in_folder = await matched(agent, "regex anchor", ',"scope":"src/deep","file_types":["py"]')
        assert {each.file_path for each in in_folder.matches} == {"src/deep/anchor.py"}
        assert in_folder.files_searched == 1
        for pattern in ("function *", "regex line_"):
            few = await matched(agent, pattern, ',"limit":2')
            assert (len(few.matches), few.partial_reason) == (2, "there are more matches than limit")
        for pattern in ("more nonsense", "regex (", "(no_such_node) @x", '((string) @s (#match? @s "a"))'):
            with pytest.raises(Refusal, match="pattern: "):
                await matched(agent, pattern)


MANY = 270
"""Files that are searched in two batches."""


@pytest.mark.slow
@pytest.mark.promise("code.patterns")
async def test_files_that_are_masked_changed_or_gone_are_searched_as_they_are(
    code: Path, tmp_path: Path
) -> None:
    token = "ghp_" + "a1B2" * 9
    (code / "src/held.py").write_text(f"TOKEN = '{token}'\n")
    (code / "src/linked.py").write_text("quagga = 1\n")
    (code / "src/late.py").write_text("x = 1\n")
    for number in range(MANY):
        (code / f"src/many_{number:03}.py").write_text(f"def many(): return {number}\n")
    (tmp_path / "outside.py").write_text("quagga = 'outside'\n")
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        assert (await matched(agent, f"regex {token[4:20]}")).matches == []
        held = await matched(agent, r"regex = '\[")  # only the mark of the masked secret begins so
        assert [each.file_path for each in held.matches] == ["src/held.py"]
        last = await matched(agent, f"regex return {MANY - 1}$")
        assert [each.file_path for each in last.matches] == [f"src/many_{MANY - 1:03}.py"]
        assert last.partial is UNSET
        (code / "src/late.py").write_text("quagga = 2\n")
        (code / "src/many_000.py").unlink()
        (code / "src/linked.py").unlink()
        (code / "src/linked.py").symlink_to(tmp_path / "outside.py")
        found = await matched(agent, "regex quagga")
        assert [each.file_path for each in found.matches] == ["src/late.py"]


# -- what depends on what ----------------------------------------------------------------------------

FLEET = """import os
from deep.anchor import drop_anchor
from ship import Ship, sink

class Fleet:
    def moor(self):
        drop_anchor(1)

    def lose(self):
        sink(Ship())
"""


async def dependencies(agent: Agent, arguments: str) -> DependenciesFound:
    request = parse_request(REQUESTS["dependency_search"], arguments.encode())
    found: DependenciesFound = await agent.ask(request)
    return found


def told(found: list[Dependency] | UnsetType) -> list[tuple[str, int]]:
    return [
        (f"{each.file_path}:{each.symbol}" if each.symbol else each.file_path, each.depth)
        for each in found or []
    ]


@pytest.mark.slow
@pytest.mark.promise("code.depends")
async def test_what_a_file_imports_and_what_imports_it_is_found_over_steps(
    code: Path, tmp_path: Path
) -> None:
    (code / "src/ship.py").write_text(SHIP)
    (code / "src/fleet.py").write_text(FLEET)
    (code / "src/admiral.py").write_text("import fleet\n")
    (code / "src/deep/anchor.py").write_text("import ship\n\ndef drop_anchor(depth):\n    return depth\n")
    (code / "web").mkdir()
    (code / "web/tsconfig.json").write_text('{"compilerOptions":{"paths":{"@/*":["lib/*"]}}}')
    (code / "web/lib").mkdir()
    (code / "web/lib/sea.ts").write_text("export const sea = 1\n")
    (code / "web/main.ts").write_text("import { sea } from '@/sea'\n")
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        found = await dependencies(agent, '{"target":"src/fleet.py"}')
        assert (found.target_is, found.are, found.outside, found.is_cut) == ("file", "imports", ["os"], False)
        assert told(found.dependencies) == [("src/deep/anchor.py", 1), ("src/ship.py", 1)]
        assert told(found.dependents) == [("src/admiral.py", 1)]
        users = await dependencies(agent, '{"target":"src/ship.py","direction":"dependents"}')
        assert users.dependencies is UNSET
        assert told(users.dependents) == [
            ("src/deep/anchor.py", 1),
            ("src/fleet.py", 1),
            ("src/admiral.py", 2),
        ]
        near = await dependencies(agent, '{"target":"src/ship.py","depth":1}')
        assert (told(near.dependents), near.is_cut) == (told(users.dependents)[:2], True)
        few = await dependencies(agent, '{"target":"src/ship.py","limit":1}')
        assert (told(few.dependents), few.is_cut) == (told(users.dependents)[:1], True)
        mapped = await dependencies(agent, '{"target":"web/main.ts"}')
        assert told(mapped.dependencies) == [("web/lib/sea.ts", 1)]
        (code / "src/ship.py").write_text("import admiral\n")
        while not (found := await dependencies(agent, '{"target":"src/ship.py"}')).cycles:
            pass
        assert ["src/ship.py", "src/admiral.py", "src/fleet.py"] in found.cycles


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.promise("code.depends")
async def test_what_a_symbol_uses_and_what_uses_it_is_found_by_names(code: Path, tmp_path: Path) -> None:
    (code / "src/ship.py").write_text(SHIP)
    (code / "src/fleet.py").write_text(FLEET)
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        found = await dependencies(agent, '{"target":"sink"}')
        assert (found.target_is, found.are, found.means) == ("symbol", "textual", ["src/ship.py:sink"])
        assert told(found.dependencies) == []
        users = [("src/fleet.py:Fleet.lose", 1), ("src/ship.py:Ship.drop_anchor", 1)]
        assert told(found.dependents) == users
        whole = await dependencies(agent, '{"target":"Fleet"}')
        assert told(whole.dependencies) == [
            ("src/deep/anchor.py:drop_anchor", 1),
            ("src/ship.py:Ship", 1),
            ("src/ship.py:sink", 1),
        ]
        own = await dependencies(agent, '{"target":"Ship.drop_anchor","direction":"dependents"}')
        assert told(own.dependents) == []  # the file that is imported has another of that name
        none = await dependencies(agent, '{"target":"no_such"}')
        assert (none.target_is, none.means, none.freshness.state) == ("unknown", [], "watching")


@pytest.mark.slow
@pytest.mark.promise("code.symbols")
async def test_one_symbol_of_a_file_is_read_as_it_was_indexed_or_not_at_all(
    code: Path, tmp_path: Path
) -> None:
    (code / "src/ship.py").write_text(SHIP)
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        for name in ("Ship.drop_anchor", "drop_anchor"):
            (file,) = await read(
                agent, '{"path":"src/ship.py","again":true,"symbol":"NAME"}'.replace("NAME", name)
            )
            assert (file.lines, file.text) == (
                [4, 5],
                "    def drop_anchor(self):\n        return sink(self)\n",
            )
        with pytest.raises(Refusal, match=r"has no 'Boat'; it has Ship, Ship\.drop_anchor, sink"):
            await read(agent, '{"path":"src/ship.py","symbol":"Boat"}')
        with pytest.raises(Refusal, match="are not known"):
            await read(agent, '{"path":"README.md","symbol":"Boat"}')
    (code / "src/ship.py").write_text("\n" + SHIP)
    async with agent_in(tmp_path, code) as agent:
        with pytest.raises(Refusal, match="was changed since it was indexed"):
            await read(agent, '{"path":"src/ship.py","symbol":"sink"}')


# -- which folder ------------------------------------------------------------------------------------


@pytest.mark.promise("code.roots")
async def test_the_folder_that_a_session_began_in_counts_where_the_client_is_the_same_user(
    code: Path, tmp_path: Path
) -> None:
    for told in (True, False):
        async with agent_in(tmp_path, told=told) as agent:
            with pytest.raises(Refusal, match="it is not known which folder"):
                await read(agent, '{"path":"src/boats.py"}')
            await agent.ask(StartSession(workspace_path=str(code)))
            if told:
                assert (await read(agent, '{"path":"src/boats.py"}'))[0].total_lines == 100
            else:
                with pytest.raises(Refusal, match="it is not known which folder"):
                    await read(agent, '{"path":"src/boats.py"}')


@pytest.mark.promise("code.roots")
@pytest.mark.parametrize(
    "folder", ["/", "~", "/proc", "DATA", "CODE/.git", "CODE/.ssh", "CODE/src/boats.py", "CODE/no"]
)
async def test_what_is_no_workspace_is_refused_with_a_sentence(
    code: Path, tmp_path: Path, folder: str
) -> None:
    named = (
        folder.replace("~", str(Path.home())).replace("CODE", str(code)).replace("DATA", f"{tmp_path}/data")
    )
    async with agent_in(tmp_path, Path(named)) as agent:
        with pytest.raises(Refusal, match=r"is no workspace: it|is no workspace: what"):
            await search(agent, '{"query":"x"}')


def test_folders_of_one_name_are_told_apart_and_a_name_is_always_one() -> None:
    names = [workspace_name(path) for path in ("/a/app", "/b/app", "/a/ä ö", "/a/..x", "/" + "n" * 300)]
    assert len(set(names)) == len(names)
    assert names[0].startswith("app-")
    assert names[2].startswith("workspace-")
    assert max(map(len, names)) <= 64


async def test_of_several_workspaces_the_first_is_meant_unless_a_path_says_otherwise(
    code: Path, tmp_path: Path
) -> None:
    other = (tmp_path / "other").resolve()
    other.mkdir()
    (other / "b.py").write_text("x = 2\n")
    async with agent_in(tmp_path, code, other) as agent:
        paths = '{"paths":["src/harbour.ts","b.py","OTHER/b.py"]}'
        files = await read(agent, paths.replace("OTHER", str(other)))
        assert [each.total_lines or each.error for each in files][0::2] == [1, 1]
        assert "is not there" in str(files[1].error)
        found = await search(agent, '{"query":"x","scope":"OTHER"}'.replace("OTHER", str(other)))
        assert found.workspace == str(other)


# -- reading -----------------------------------------------------------------------------------------


@pytest.mark.promise("code.read")
@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ("", [1, 100]),
        (',"lines":"10-12"', [10, 12]),
        (',"lines":"99-"', [99, 100]),
        (',"lines":"99-400"', [99, 100]),
        (',"lines":"50"', [50, 50]),
        (',"lines":"50","around":3', [47, 53]),
        (',"lines":"1","around":2', [1, 3]),
    ],
)
async def test_lines_of_a_file_are_read(code: Path, tmp_path: Path, arguments: str, lines: list[int]) -> None:
    async with agent_in(tmp_path, code) as agent:
        (file,) = await read(agent, '{"path":"src/boats.py"MORE}'.replace("MORE", arguments))
        first, last = lines
        assert (file.lines, file.total_lines) == (lines, 100)
        assert file.text == "".join(f"line_{number} = {number}\n" for number in range(first, last + 1))


@pytest.mark.promise("code.unchanged")
async def test_what_this_client_read_and_did_not_change_is_one_line(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code) as agent:
        some = '{"path":"src/boats.py","lines":"1-2"}'
        assert (await read(agent, some))[0].text == "line_1 = 1\nline_2 = 2\n"
        (again,) = await read(agent, some)
        assert (again.unchanged, again.path) == (True, "src/boats.py")
        assert not again.text
        assert (await read(agent, '{"path":"src/boats.py","lines":"2"}'))[0].text == "line_2 = 2\n"
        assert (await read(agent, some[:-1] + ',"again":true}'))[0].text
        os.utime(code / "src/boats.py", (1, 1))
        assert (await read(agent, some))[0].unchanged is True
        (code / "src/boats.py").write_text("other\n")
        assert (await read(agent, some))[0].text == "other\n"


@pytest.mark.slow
@pytest.mark.promise("code.read")
async def test_what_has_no_room_is_cut_between_lines_and_says_how_to_go_on(
    code: Path, tmp_path: Path
) -> None:
    (code / "long.txt").write_text("".join(f"{number:0>99}\n" for number in range(1, 1_001)))
    (code / "wide.txt").write_text("x" * 100_000)
    async with agent_in(tmp_path, code) as agent:
        (first,) = await read(agent, '{"path":"long.txt"}')
        assert (first.lines, first.note) == ([1, 400], 'there is no room for more; lines: "401-" goes on')
        (second,) = await read(agent, '{"path":"long.txt","lines":"401-"}')
        assert second.lines == [401, 800]
        both = await read(agent, '{"paths":["long.txt","src/boats.py","long.txt"],"again":true}')
        assert sum(len(each.text or "") for each in both) <= 40_000
        assert [each.total_lines for each in both] == [1_000, 100, 1_000]
        (wide,) = await read(agent, '{"path":"wide.txt"}')
        assert len(wide.text or "") == 40_000


@pytest.mark.promise("code.read")
async def test_odd_files_are_read_as_they_are_or_named(code: Path, tmp_path: Path) -> None:
    (code / "empty.py").write_text("")
    (code / "wide.txt").write_bytes("Größe\n".encode("utf-16"))
    (code / "crlf.c").write_bytes(b"int a;\r\nint b;")
    (code / "latin.c").write_bytes("größe".encode("latin-1"))
    (code / "image.png").write_bytes(b"\x89PNG\0\0")
    (code / "key.txt").write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    os.mkfifo(code / "pipe")
    with (code / "huge.bin").open("wb") as file:
        file.write(b"text\n" * 2_000)
        file.truncate(65 << 20)
    names = ["empty.py", "wide.txt", "crlf.c", "latin.c"]
    odd = ["image.png", "key.txt", "pipe", "huge.bin", "src", "gone.py"]
    async with agent_in(tmp_path, code) as agent:
        said = [(await read(agent, '{"path":"PATH"}'.replace("PATH", name)))[0].text for name in names]
        assert said == ["", "Größe\n", "int a;\r\nint b;", "größe"]
        refused = await read(agent, '{"paths":["ODD"]}'.replace("ODD", '","'.join(odd)))
        assert [str(each.error).partition(f"{each.path!r} is not ")[2] for each in refused] == [
            "read: it is no text: there is a NUL in its first 8,192 bytes",
            (
                "read: it may hold secrets, by what is in it; `greenroom serve --read-secrets key.txt` "
                "has read_file read it"
            ),
            "read: it is not a regular file",
            "read: it has 68,157,440 bytes and the limit is 67,108,864",
            "read: it is not a regular file",
            "there",
        ]
        with pytest.raises(Refusal, match="it has 100 lines"):
            await read(agent, '{"path":"src/boats.py","lines":"101"}')


@pytest.mark.promise("code.roots")
@pytest.mark.parametrize(
    "path",
    [
        "../outside.py",
        "/etc/passwd",
        "out.py",
        "linked/outside.py",
        ".env",
        ".ENV",
        "src/../.git/config",
        "ID_RSA",
        "loop",
    ],
)
async def test_nothing_outside_and_no_secret_is_read(code: Path, tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("secret = 1\n")
    (code / ".git").mkdir()
    for name in (".git/config", ".ENV", "ID_RSA"):
        (code / name).write_text("token")
    (code / "out.py").symlink_to(outside)
    (code / "linked").symlink_to(tmp_path)
    (code / "loop").symlink_to("loop")
    async with agent_in(tmp_path, code) as agent:
        with pytest.raises(Refusal):
            await read(agent, '{"path":"PATH"}'.replace("PATH", path))


@pytest.mark.promise("code.roots")
async def test_a_folder_that_becomes_a_link_after_the_check_is_not_followed(
    code: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/anchor.py").write_text("secret = 1\n")
    place = resolve_file("path", "src/deep/anchor.py", [check_root(str(code), [])], [])
    assert (await read_part(place.path, 1, None, 99)).lines == 2
    (code / "src/deep").rename(code / "src/deeper")
    (code / "src/deep").symlink_to(tmp_path / "outside")
    with pytest.raises(UnreadableFileError, match="symbolic link"):
        await read_part(place.path, 1, None, 99)
    (code / "src/boats.py").unlink()
    (code / "src/boats.py").symlink_to(tmp_path / "outside/anchor.py")
    with pytest.raises(OSError, match="symbolic links"):
        await read_part(f"{code}/src/boats.py", 1, None, 99)


async def test_a_link_within_the_workspace_is_the_file_that_it_leads_to(code: Path, tmp_path: Path) -> None:
    (code / "short.py").symlink_to("src/deep/anchor.py")
    async with agent_in(tmp_path, code) as agent:
        assert (await read(agent, '{"path":"short.py"}'))[0].path == "src/deep/anchor.py"


async def test_one_path_or_several_and_lines_in_order(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code) as agent:
        for arguments in ("{}", '{"path":"a","paths":["b"]}', '{"path":"src/boats.py","lines":"9-2"}'):
            with pytest.raises(Refusal) as refused:
                await read(agent, arguments)
            assert refused.value.code == "VALIDATION_ERROR"


@pytest.mark.slow
@pytest.mark.promise("code.roots")
async def test_what_the_operator_allows_is_read_though_it_may_hold_secrets(
    code: Path, tmp_path: Path
) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nx\n"
    for path, text in {
        "src/.env": "A=2\n",
        "src/test.pem": key,
        "src/other.pem": key,
        "notes.txt": key,
        ".ssh/id_rsa": key,
        ".git/config": "x",
    }.items():
        (code / path).parent.mkdir(exist_ok=True)
        (code / path).write_text(text)
    allowed = ("src/.env", "test.*", "notes.txt", "id_rsa", "config")
    async with agent_in(tmp_path, code, secrets=allowed, is_kept=True) as agent:
        for path, text in (("src/.env", "A=2\n"), ("src/test.pem", key), ("notes.txt", key)):
            assert (await read(agent, json.dumps({"path": path})))[0].text == text
        for path in (".env", "src/other.pem", ".ssh/id_rsa", ".git/config", "../secrets"):
            with pytest.raises(Refusal) as refused:
                await read(agent, json.dumps({"path": path}))
            assert refused.value.code == "PERMISSION_DENIED"
        await settled(agent)
        found = await search(agent, '{"query":"PRIVATE KEY"}')
        assert found.results == []  # read is not indexed
    async with agent_in(tmp_path, code) as agent:
        for path in ("src/.env", "src/test.pem", "notes.txt"):
            with pytest.raises(Refusal, match="secrets"):
                await read(agent, json.dumps({"path": path}))


@pytest.mark.slow
@pytest.mark.promise("code.read")
async def test_of_a_file_without_room_its_symbols_can_be_read(code: Path, tmp_path: Path) -> None:
    functions = "".join(f"def part_{number}():\n    return {number}\n\n\n" for number in range(1_500))
    (code / "src/long.py").write_text(functions)
    (code / "src/long.txt").write_text("word\n" * 10_000)
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        (long,) = await read(agent, '{"path":"src/long.py","outline":true}')
        assert (long.text, long.total_lines) == (UNSET, 6_000)
        assert "1-2 def part_0()" in str(long.outline)
        assert len(str(long.outline)) <= 8_000
        for path, more in (("src/long.txt", ""), ("src/long.py", ',"lines":"1-4"'), ("src/ship.py", "")):
            (code / "src/ship.py").write_text(SHIP)
            (file,) = await read(agent, f'{{"path":"{path}","outline":true{more}}}')
            assert file.text
            assert file.outline is UNSET
