"""The pages: code runs and prints what they show, links lead somewhere, the reference is the code's own."""

import ast
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from harness import PATIENCE
from support.forking import forked_program

from greenroom.actors.search.ranking.weights import DOCUMENT_SIGNALS, DOCUMENT_WEIGHTS
from greenroom.transports import TOOLS
from greenroom.transports.mcp.tools.tool_profiles import PROFILES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted(ROOT.glob("docs/**/*.md")),
]
RUN = [page for page in PAGES if re.search(r"^```(python|console)$", page.read_text(), re.MULTILINE)]
RANKING = ROOT / "docs/document-ranking.md"
COMMANDS = ("pip install . && greenroom serve --ws 127.0.0.1:8765", "pip install -e '.[dev]' && pytest")
ANYTHING = "…"

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
RUNNABLE = re.compile(FENCE.pattern + r"(?:\s*^```text\n(.*?)^```$)?", FENCE.flags)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block, and the text block that follows it at once: what it prints."""

    language: str
    text: str
    line: int
    shown: str


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> Iterator[Block]:
    source = page.read_text()
    for found in RUNNABLE.finditer(source):
        yield Block(found[1], found[2], source.count("\n", 0, found.start()) + 2, found[3] or "")


def matches(printed: str, shown: str) -> bool:
    """Return whether ``printed`` is what a page shows, where an ellipsis stands for anything."""
    pattern = ".*".join(map(re.escape, shown.strip().split(ANYTHING)))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what `PATH` is for the commands of pages: `greenroom` is forked, see `support.forking`."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "greenroom").write_text(f'#!/bin/sh\nexec {shlex.join(forked_program())} "$@"\n')
    (folder / "greenroom").chmod(0o755)
    return os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: str) -> Path:
    """Make an empty folder the current one and the home, with this environment's programs on the path."""
    for variable in [name for name in os.environ if name.startswith(("GREENROOM_", "XDG_"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", programs)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_python(block: Block, page: Path, module: types.ModuleType) -> str:
    printed = io.StringIO()
    # Empty lines before it make a traceback point to the page's own line.
    code = compile("\n" * (block.line - 1) + block.text, name_of(page), "exec", dont_inherit=True)
    with contextlib.redirect_stdout(printed):
        exec(code, vars(module))  # noqa: S102  the project's own pages
    return printed.getvalue()


def run_console(block: Block, home: Path) -> Iterator[tuple[str, str, str]]:
    """Run each command of a console block; yield it with what it printed and what the page shows."""
    for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        yield command, done.stdout, shown


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_code_of_a_page_runs_and_prints_what_it_shows(
    page: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a page prints is found by vectors, however long a busy machine takes to load what makes them.
    monkeypatch.setattr("greenroom.actors.search.embedding.embedding_service.LOAD_SECONDS", PATIENCE)
    module = types.ModuleType("page_" + re.sub(r"\W", "_", page.stem))
    monkeypatch.setitem(sys.modules, module.__name__, module)  # where annotations are looked up
    for block in blocks(page):
        where = f"{name_of(page)}:{block.line}"
        if block.language == "python":
            printed = run_python(block, page, module)
            assert matches(printed, block.shown), f"{where} prints:\n{printed}"
        elif block.language == "console":
            for command, printed, shown in run_console(block, home):
                assert matches(printed, shown), f"{where}: {command} prints:\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_of_data_can_be_read(page: Path) -> None:
    for block in blocks(page):
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)


def slugs(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the usual renderers make them."""
    prose = FENCE.sub("", page.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(prose)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.exists(), f"{name_of(page)} links to {target}"
        assert not anchor or anchor in slugs(other), f"{name_of(page)} links to {target}"


def test_every_page_is_linked_from_the_readme_or_its_pages() -> None:
    reached = {ROOT / "README.md"}
    waiting = list(reached)
    while waiting:
        page = waiting.pop()
        for target in LINK.findall(FENCE.sub("", page.read_text())):
            other = (page.parent / target.partition("#")[0]).resolve()
            if other in PAGES and other not in reached:
                reached.add(other)
                waiting.append(other)
    assert set(PAGES) - reached == set()


@pytest.mark.parametrize("package", ["transports", "actors", "runtime"])
def test_the_modules_that_the_architecture_tells_of_are_there(package: str) -> None:
    home = ROOT / package / "greenroom" / package
    table = (ROOT / "docs/architecture.md").read_text().partition(f"### {package}\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert rows
    for row in rows:
        folder = ""  # that of the first name is that of the others
        for name in re.findall(r"`([^`]+)`", row):
            folder, _, module = name.rpartition("/") if "/" in name[:-1] else (folder, "", name)
            assert (home / folder / f"{module}.py").is_file() or (home / name).is_dir(), name


@pytest.mark.quick
@pytest.mark.promise("docs.tools")
def test_the_page_of_tools_has_each_one_and_no_other() -> None:
    page = (ROOT / "docs/how-to/which-tool-when.md").read_text()
    wishes = page.partition("## Which tools are listed")[0]
    bold = re.findall(r"\*\*`(\w+)`\*\*", wishes)
    assert sorted(bold) == sorted(PROFILES["core"].tools or ())
    assert sorted(re.findall(r"`(\w+)`", wishes)) == sorted(
        tool.name for tool in TOOLS.values() if tool.alias is None
    )
    assert set(PROFILES) <= set(re.findall(r"`([\w-]+)`", page))
    assert len(page.split()) <= 600


@pytest.mark.quick
@pytest.mark.promise("docs.short")
def test_the_pages_are_short() -> None:
    reference = [path for path in (ROOT / "docs/reference").rglob("*") if path.is_file()]
    by_hand = [path for path in ROOT.glob("docs/**/*.md") if path not in reference]
    words = [sum(len(path.read_text().split()) for path in paths) for paths in (by_hand, reference)]
    assert words[0] <= 50_000
    assert words[1] <= 60_000
    assert len((ROOT / "docs/tutorial.md").read_text().split()) <= 900


def test_the_reference_is_the_codes_own() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "docs/generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_code_that_is_answered_is_in_the_table_of_codes() -> None:
    answered: set[str] = set()
    for path in [*ROOT.glob("actors/**/*.py"), *ROOT.glob("transports/**/*.py")]:
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in {
                "Refusal",
                "ServiceError",
                "Failure",
            }:
                words = [str(each.value) for each in call.args if isinstance(each, ast.Constant)]
                answered.update(word for word in words if re.fullmatch("[A-Z]+(_[A-Z]+)*", word))
    table = (ROOT / "docs/reference/tools.md").read_text().partition("\n## Codes\n")[2]
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE))
    assert "RATE_LIMITED" in answered
    assert answered <= listed


def rows_of(page: Path, heading: str) -> Iterator[list[str]]:
    """Return the cells of the first table below a heading, without its first two rows."""
    table = re.search(r"(?:^\|.*\n)+", page.read_text().partition(f"\n{heading}\n")[2], re.MULTILINE)
    assert table is not None
    for row in table[0].splitlines()[2:]:
        yield [cell.strip() for cell in row.strip("|").split("|")]


def test_the_page_on_documents_has_the_signals_and_their_weights() -> None:
    assert set(DOCUMENT_SIGNALS) == set(DOCUMENT_WEIGHTS)
    shown = {signal.strip("`"): float(weight) for signal, weight, *_ in rows_of(RANKING, "## The signals")}
    assert shown == DOCUMENT_WEIGHTS


def test_what_asking_twice_saves_is_said_as_the_example_shows_it() -> None:
    example = (ROOT / "docs/examples/reading/README.md").read_text().partition("```text\n")[2]
    *_, tokens, answered = example.partition("\n```")[0].splitlines()
    told = list(rows_of(ROOT / "docs/how-to/search-documents.md", "## Ask for little, open what you need"))
    assert [row[1] for row in told] == tokens.partition("average")[2].split()
    assert [row[2] for row in told] == re.findall(r"\d+ of \d+", answered)


def test_what_asking_for_code_saves_is_said_as_the_example_shows_it() -> None:
    example = (ROOT / "docs/examples/code/README.md").read_text()
    ends = [block.partition("\n```")[0].splitlines()[-2:] for block in example.split("```text\n")[1:]]
    told = list(rows_of(ROOT / "docs/how-to/use-code.md", "## What it saves"))
    assert [row[1:] for row in told[:2]] == [tokens.partition("average")[2].split() for tokens, _ in ends]
    assert told[2][1:] == re.findall(r"\d+ of \d+", ends[0][1])


def test_the_readme_has_the_two_commands_and_ci_runs_them() -> None:
    lines = [line.strip() for block in blocks(ROOT / "README.md") for line in block.text.splitlines()]
    ci = (ROOT / ".ci/run").read_text().replace("pip install --quiet", "pip install")
    for command in COMMANDS:
        assert command in lines
        assert f'step "README: {command}"' in ci
        for part in command.split(" && "):
            assert re.search(rf"^(?!step ).*{re.escape(part)}", ci, re.MULTILINE), part
