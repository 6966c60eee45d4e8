"""Manifests of projects: which count, and that libraries come and go with those that are ingested."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from harness import PATIENCE
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from support.agents import FAST
from trio.testing import MockClock

from greenroom.actors import (
    Agent,
    DefineEntities,
    DocumentText,
    EntityDeclaration,
    FindVendorInfo,
    IngestDocuments,
    Principal,
    Reach,
    SemanticSearch,
    open_greenroom,
)
from greenroom.actors.knowledge.entities import is_third_party, select_libraries
from greenroom.actors.knowledge.entities.records import DeclarationFile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from greenroom.actors import DocumentsIngested

MEMBERS = {
    "pyproject.toml": (
        '[project]\ndependencies = ["{}"]\n'
        '[tool.uv.workspace]\nmembers = ["packages/*", "apps/**/web"]\nexclude = ["packages/old"]\n'
    ),
    "package.json": (
        '{{"dependencies": {{"{}": "1"}}, "workspaces": ["packages/*", "apps/**/web", "!packages/old"]}}'
    ),
    "Cargo.toml": (
        '[dependencies]\n{} = "1"\n'
        '[workspace]\nmembers = ["packages/*", "apps/**/web"]\nexclude = ["packages/old"]\n'
    ),
}


def named(*files: tuple[str, str]) -> dict[str, str | None]:
    libraries, _ = select_libraries([DeclarationFile(path, text) for path, text in files])
    return {each.name: each.version for each in libraries}


@pytest.mark.promise("entities.manifests")
@pytest.mark.parametrize("kind", MEMBERS)
def test_the_nearest_to_the_root_counts_and_the_members_of_its_workspace(kind: str) -> None:
    folders = {
        "/r": "root",
        "/r/packages/a": "one",
        "/r/apps/web": "two",
        "/r/apps/x/y/web": "three",
        "/r/packages/old": "no1",
        "/r/packages/a/b": "no2",
        "/r/apps/x": "no3",
        "/r/demo": "no4",
        "/r/packages": "no5",
        "/r2": "beside",
    }
    files = [(f"{folder}/{kind}", MEMBERS[kind].format(f"lib-{name}")) for folder, name in folders.items()]
    assert set(named(*files)) == {f"lib-{name}" for name in ("root", "one", "two", "three", "beside")}


@pytest.mark.promise("entities.manifests")
@pytest.mark.parametrize(
    ("workspace", "text", "kind", "one"),
    [
        (
            "pnpm-workspace.yaml",
            (
                "# all\npackages:\n  # ours\n  - 'packages/*' # most\n  - \"apps/web\"\n"
                "  - '!packages/old'\ncatalog:\n  - x\n"
            ),
            "package.json",
            '{{"dependencies": {{"{}": "1"}}}}',
        ),
        (
            "go.work",
            "go 1.22\n\nuse (\n\t./packages/a // one\n\t./packages/b\n)\nuse ./apps/web\n",
            "go.mod",
            "require example.org/{} v1.0.0\n",
        ),
    ],
)
def test_a_file_beside_it_may_say_what_belongs_to_a_workspace(
    workspace: str, text: str, kind: str, one: str
) -> None:
    folders = {"r": "root", "r/packages/a": "a", "r/packages/b": "b", "r/apps/web": "web"}
    others = {"r/packages/old": "old", "r/x": "x", "r/apps/web/y": "y"}
    files = [(f"{folder}/{kind}", one.format(f"lib-{name}")) for folder, name in (folders | others).items()]
    found = named(*files, (f"r/{workspace}", text))
    assert set(found) == {f"lib-{name}" for name in folders.values()}
    assert set(named(*files)) == {"lib-root"}


def test_each_kind_counts_by_itself_and_the_first_version_stays() -> None:
    files = [
        ("b/package.json", '{"dependencies": {"three": "2", "vite-x": "5"}}'),
        ("pyproject.toml", '[project]\ndependencies = ["three", "httpx==1"]'),
        ("a/go.mod", "require example.org/httpx v9.0.0"),
    ]
    assert named(*files) == {"three": "2", "httpx": "==1", "vite-x": "5"}


def test_one_that_cannot_be_read_is_told_and_none_below_it_counts() -> None:
    files = [("pyproject.toml", "= = ="), ("a/pyproject.toml", '[project]\ndependencies = ["httpx"]')]
    libraries, unreadable = select_libraries([DeclarationFile(*each) for each in files])
    assert libraries == []
    assert [each.partition(":")[0] for each in unreadable] == ["pyproject.toml"]


@given(st.sampled_from(sorted(MEMBERS)), st.lists(st.text(max_size=30), max_size=4), st.text(max_size=60))
def test_whatever_a_workspace_names_it_is_read(kind: str, members: list[str], junk: str) -> None:
    patterns = [each.replace('"', "").replace("\\", "") for each in members]
    stated = ", ".join(f'"{each}"' for each in [*patterns, "a*" * 40])
    text = MEMBERS[kind].format("lib-x").replace('"packages/*"', stated)
    named((kind, text), (f"{junk}/{kind}", text), ("a" * 80 + f"/{kind}", junk))
    named(("pnpm-workspace.yaml", junk), ("go.work", junk), ("a/package.json", "{}"), ("a/go.mod", junk))


@pytest.mark.parametrize(
    ("path", "root", "is_so"),
    [
        ("/src/app/go.mod", "/src/app", False),
        ("/src/app/third_party/x/go.mod", "/src/app", True),
        ("/src/vendor/app/go.mod", "/src/vendor/app", False),
        ("/src/app/tests/Fixtures/go.mod", "/src/app", True),
        ("vendor/go.mod", "", True),
        ("vendor", "", False),
    ],
)
def test_folders_of_what_others_made_count_for_nothing(path: str, root: str, *, is_so: bool) -> None:
    assert is_third_party(path, root) is is_so


# -- as they are ingested ------------------------------------------------------------------------------


class Project:
    """A folder that is ingested into a corpus."""

    def __init__(self, folder: Path, agent: Agent) -> None:
        self.folder = folder
        self.agent = agent

    def write(self, **files: str) -> None:
        for name, text in files.items():
            path = self.folder / name.replace("__", "/").replace("_TOML", ".toml").replace("_MD", ".md")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    async def ingest(self) -> DocumentsIngested:
        return await self.agent.ask(IngestDocuments(paths=[str(self.folder)], corpus="docs"))

    async def libraries(self) -> dict[str, object]:
        """Return the versions of what is known, when all was gone through."""
        with trio.fail_after(PATIENCE):
            while True:
                found = await self.agent.ask(FindVendorInfo(vendor_filter="*", corpus="docs", limit=50))
                if not found.waiting_for_matching:
                    return {each.name: each.version for each in found.entities}
                await trio.lowlevel.checkpoint()


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncIterator[Project]:
    folder = (tmp_path / "project").resolve()
    folder.mkdir(exist_ok=True)
    async with open_greenroom(tmp_path / "store", embedder="none", options=FAST) as runtime:
        yield Project(
            folder,
            Agent(runtime, Principal(agent_id="a", user="ann"), reach=Reach(roots=[str(folder)])),
        )


def requiring(*requirements: str) -> str:
    return f"[project]\ndependencies = {list(requirements)!r}\n"


@pytest.mark.slow
@pytest.mark.promise("entities.manifests")
async def test_libraries_come_and_go_with_the_manifests_that_are_ingested(tmp_path: Path) -> None:
    async with opened(tmp_path) as project:
        project.write(
            pyproject_TOML=requiring("httpx>=0.27", "click"),
            vendor__x__Cargo_TOML='[dependencies]\nserde = "1"\n',
            vendor__x__README_MD="A copy.",
            use_MD="# Use\n\nWe ask with httpx.\n",
        )
        await project.ingest()
        assert await project.libraries() == {"click": UNSET, "httpx": ">=0.27"}
        found = await project.agent.ask(SemanticSearch(query="how we ask", corpus="docs"))
        assert found.results[0].vendor_names == ["httpx"]
        project.write(pyproject_TOML=requiring("httpx>=0.28", "attrs-x"))
        await project.ingest()
        assert await project.libraries() == {"attrs-x": UNSET, "httpx": ">=0.28"}
        project.write(pyproject_TOML="[project\n")
        await project.ingest()
        assert await project.libraries() == {"attrs-x": UNSET, "httpx": ">=0.28"}
        (project.folder / "pyproject.toml").unlink()
        await project.ingest()
        assert await project.libraries() == {}


@pytest.mark.slow
@pytest.mark.promise("entities.manifests")
async def test_what_somebody_declared_stays_when_its_manifest_goes(tmp_path: Path) -> None:
    async with opened(tmp_path) as project:
        project.write(pyproject_TOML=requiring("httpx>=0.27", "click"))
        await project.ingest()
        httpx = EntityDeclaration(name="HTTPX", type="library", description="Asks.", version="0.27")
        await project.agent.ask(DefineEntities(entities=[httpx], corpus="docs"))
        await project.agent.ask(DefineEntities(remove=["click"], corpus="docs"))
        await project.ingest()
        assert await project.libraries() == {"HTTPX": "0.27"}
        (project.folder / "pyproject.toml").unlink()
        await project.ingest()
        assert await project.libraries() == {"HTTPX": "0.27"}


@pytest.mark.slow
@pytest.mark.promise("entities.manifests")
async def test_what_a_run_that_was_cut_left_undone_the_next_one_does(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    assert mock_clock.rate == 0  # however busy the machine is, no time passes
    async with opened(tmp_path) as project:
        project.write(a__pyproject_TOML=requiring("httpx"))
        await project.agent.ask(IngestDocuments(paths=[str(project.folder / "a")], corpus="docs"))
        project.write(a__pyproject_TOML=requiring("attrs-x"))
        project.write(**{f"z{number}_MD": f"number {number}" for number in range(5)})
        with trio.fail_after(1):
            done = await project.ingest()
        assert not done.complete
        assert "attrs-x" not in await project.libraries()
        assert (await project.ingest()).complete
        assert await project.libraries() == {"attrs-x": UNSET}


@pytest.mark.slow
@pytest.mark.promise("entities.manifests")
async def test_a_library_that_is_an_english_word_is_found_where_it_is_plainly_code(tmp_path: Path) -> None:
    async with opened(tmp_path) as project:
        project.write(
            pyproject_TOML=requiring("click", "requests"),
            a_MD="Click the button, and click again: that requests nothing.",
            b_MD="The command line is made with `click`.",
            c_MD="At the top stands `import requests`, below it\n\n    import click\n",
        )
        await project.ingest()
        await project.libraries()
        found = await project.agent.ask(FindVendorInfo(vendor_filter="*", corpus="docs"))
        counts = {each.name: each.mention_count for each in found.entities}
        assert counts == {"click": 2, "requests": 1}


@pytest.mark.slow
async def test_texts_are_manifests_too_and_more_libraries_than_there_may_be_are_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as project:
        many = ",\n".join(f'"lib-{number}": "1"' for number in range(20_001))
        sent = [DocumentText("a/package.json", f'{{"dependencies": {{\n{many}\n}}}}')]
        done = await project.agent.ask(IngestDocuments(texts=sent, corpus="docs"))
        assert (done.added, [each.path for each in done.named]) == (1, ["a/package.json"])
        assert "its libraries are refused" in done.named[0].reason
        sent = [DocumentText("a/package.json", '{"dependencies": {"vite-x": "5"}}')]
        await project.agent.ask(IngestDocuments(texts=sent, corpus="docs"))
        assert await project.libraries() == {"vite-x": "5"}
