"""Code in many files: what is shown of frequent names, and that what is kept between calls is right."""

from __future__ import annotations

import json
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no hints
import pytest
from msgspec import UNSET
from support.code_agents import agent_in, settled

from greenroom.actors import REQUESTS, Agent, parse_request
from greenroom.actors.knowledge.corpora.requests.code_symbols import CodeMatched, OutlineMade, SymbolsFound

FILES = 50
USES = 5


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A workspace in which every file uses a name, and one defines it."""
    folder = (tmp_path / "code").resolve()
    (folder / "yard").mkdir(parents=True)
    for number in range(FILES):
        text = "def run(): pass\n" + "launch()\n" * USES
        (folder / f"a_{number:02}.py").write_text(text)
    (folder / "yard/__init__.py").write_text("")
    (folder / "yard/ships.py").write_text(
        "def launch(): pass\nlaunch()\n\nclass Dock:\n    def run(self): pass\n"
    )
    (folder / "z_imports.py").write_text("from yard.ships import launch\nlaunch()\n")
    return folder


async def symbols(agent: Agent, **arguments: object) -> SymbolsFound:
    found: SymbolsFound = await agent.ask(
        parse_request(REQUESTS["symbol_search"], json.dumps(arguments).encode())
    )
    return found


@pytest.mark.slow
@pytest.mark.promise("code.exact", "code.symbols")
async def test_of_a_frequent_name_the_uses_near_its_definition_come_first(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        found = await symbols(agent, symbol="launch", limit=5)
        assert [(each.file_path, each.line, each.scope) for each in found.references] == [
            ("yard/ships.py", 2, "exact"),
            ("z_imports.py", 1, "exact"),
            ("z_imports.py", 2, "exact"),
            ("a_00.py", 2, "textual"),
            ("a_00.py", 3, "textual"),
        ]
        assert (found.total_references, found.is_cut) == (FILES * USES + 3, True)
        assert [each.file_path for each in found.definitions] == ["yard/ships.py"]
        owned = await symbols(agent, symbol="ships.launch")
        assert [(each.file_path, each.line) for each in owned.references] == [("z_imports.py", 1)]


@pytest.mark.slow
@pytest.mark.promise("code.symbols")
async def test_all_definitions_of_a_frequent_name_are_counted_by_kind(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        found = await symbols(agent, symbol="run", limit=2)
        assert [each.file_path for each in found.definitions] == ["a_00.py", "a_01.py"]
        assert found.total_definitions == FILES + 1
        of_kind = await symbols(agent, symbol="run", kind="method")
        assert [each.symbol for each in of_kind.definitions] == ["Dock.run"]
        assert of_kind.total_definitions == 1
        of_class = await symbols(agent, symbol="Dock.run")
        assert [each.file_path for each in of_class.definitions] == ["yard/ships.py"]
        assert of_class.total_definitions == 1


@pytest.mark.slow
@pytest.mark.promise("code.symbols", "code.freshness")
async def test_counts_of_a_frequent_name_follow_its_files(code: Path, tmp_path: Path) -> None:
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        whole = FILES * USES + 3
        assert (await symbols(agent, symbol="launch")).total_references == whole
        (code / "a_00.py").unlink()
        while (found := await symbols(agent, symbol="launch")).total_references != whole - USES:
            assert found.total_references == whole
        (code / "a_01.py").write_text("launch()\n")
        while (await symbols(agent, symbol="launch")).total_references != whole - 2 * USES + 1:
            pass
        (code / "b_new.py").write_text("def launch(): pass\n")
        while len((found := await symbols(agent, symbol="launch")).definitions) != 2:
            pass
        assert found.total_references == whole - 2 * USES + 1
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        again = await symbols(agent, symbol="launch")
        assert (again.definitions, again.total_references) == (found.definitions, found.total_references)


@pytest.mark.slow
@pytest.mark.promise("code.exact")
async def test_a_changed_manifest_changes_what_imports_mean(code: Path, tmp_path: Path) -> None:
    (code / "web").mkdir()
    (code / "web/boat.ts").write_text("export function sail() {}\n")
    (code / "main.ts").write_text('import { sail } from "@web/boat"\nsail()\n')
    settings = {"compilerOptions": {"baseUrl": ".", "paths": {"@web/*": ["nowhere/*"]}}}
    (code / "tsconfig.json").write_text(json.dumps(settings))
    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)

        async def scopes() -> set[str]:
            found = await symbols(agent, symbol="sail")
            return {each.scope for each in found.references if each.file_path == "main.ts"}

        assert await scopes() == {"textual"}
        (code / "tsconfig.json").write_text(json.dumps(settings).replace("nowhere", "web"))
        assert await scopes() == {"exact"}


@pytest.mark.slow
@pytest.mark.promise("code.symbols")
async def test_an_outline_has_the_files_below_its_folder_alone(code: Path, tmp_path: Path) -> None:
    (code / "yards").mkdir()
    (code / "yards/crane.py").write_text("def lift(): pass\n")

    async def outlined(path: str) -> OutlineMade:
        arguments = json.dumps({"path": path}).encode()
        made: OutlineMade = await agent.ask(parse_request(REQUESTS["outline"], arguments))
        return made

    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        assert [line for line in (await outlined("yard")).outline.splitlines() if ".py" in line] == [
            "yard/ships.py"
        ]
        (code / "yard/buoy.py").write_text("def ring(): pass\n")
        while "yard/buoy.py" not in (await outlined("yard")).outline:
            pass
        small = await agent.ask(parse_request(REQUESTS["outline"], b'{"max_tokens":100}'))
        assert small.shown + small.left_out == FILES + 5


@pytest.mark.slow
@pytest.mark.promise("code.patterns")
async def test_the_process_of_a_search_waits_for_the_next_and_ends_with_the_server(
    code: Path, tmp_path: Path
) -> None:
    (code / "text.py").write_text('NAME = "flag ship"\n')

    async with agent_in(tmp_path, code, is_kept=True) as agent:
        await settled(agent)
        before = {each.pid for each in psutil.Process().children()}

        async def search() -> set[int]:
            found: CodeMatched = await agent.ask(
                parse_request(REQUESTS["code_search"], b'{"pattern":"string flag*"}')
            )
            assert ([each.file_path for each in found.matches], found.partial) == (["text.py"], UNSET)
            return {each.pid for each in psutil.Process().children()} - before

        first = await search()
        assert len(first) == 1
        assert await search() == first
        psutil.Process(*first).kill()
        assert len(await search() - first) == 1
    assert not {each.pid for each in psutil.Process().children()} - before - first
