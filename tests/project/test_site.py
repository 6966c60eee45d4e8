"""The site of the pages: links, search, what programs read, and that nothing of it comes from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import unquote

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OTHER_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
LOADED = re.compile(r"""url\(\s*["']?(?!data:)([^"')]+)|@import\s+["']([^"']+)""")
"""What a style sheet loads; `data:` is inside of it."""
LOADING = {"src", "srcset", "data", "poster", "action", "background"}
"""Attributes whose URL a browser follows by itself, or sends something to."""


class Parsed(NamedTuple):
    """What of a page leads somewhere: where to, what it loads, and what can be led to."""

    links: list[str]
    loads: list[str]
    anchors: set[str]


class Reader(HTMLParser):
    """Reads one page of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.parsed = Parsed([], [], set())
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._style = tag == "style"
        for name, value in attrs:
            if name == "id" and value:
                self.parsed.anchors.add(value)
            elif name in LOADING or (name in {"href", "xlink:href"} and tag != "a"):
                self.parsed.loads.append(value or "")
            elif name == "href":
                self.parsed.links.append(value or "")
            elif name == "style":
                self.parsed.loads.extend(loaded_by(value or ""))

    def handle_data(self, data: str) -> None:
        if self._style:
            self.parsed.loads.extend(loaded_by(data))


def loaded_by(style: str) -> list[str]:
    return ["".join(found) for found in LOADED.findall(style)]


def parsed(page: Path) -> Parsed:
    reader = Reader()
    reader.feed(page.read_text())
    return reader.parsed


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "site"
    made = build(ROOT, folder)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Parsed]:
    return {page.resolve(): parsed(page) for page in site.rglob("*.html")}


def build(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "docs/build_site.py"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.promise("docs.site")
def test_every_link_of_the_site_leads_to_a_page_and_its_anchor(pages: dict[Path, Parsed]) -> None:
    assert len(pages) > len(list(ROOT.glob("docs/**/*.md")))
    lost = []
    for page, inside in pages.items():
        for link in {*inside.links, *inside.loads}:
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue
            target, _, anchor = unquote(link).partition("#")
            other = (page.parent / target.partition("?")[0]).resolve() if target else page
            if not other.is_file() or (anchor and other in pages and anchor not in pages[other].anchors):
                lost.append(f"{page.name}: {link}")
    assert lost == []


@pytest.mark.quick
@pytest.mark.promise("docs.local")
def test_no_page_of_the_site_loads_anything_from_another_host(site: Path, pages: dict[Path, Parsed]) -> None:
    loads = {page: inside.loads for page, inside in pages.items()}
    loads |= {sheet: loaded_by(sheet.read_text()) for sheet in site.rglob("*.css")}
    loads |= {
        image: re.findall(r'(?:href|src)="([^"#]+)', image.read_text()) for image in site.rglob("*.svg")
    }
    assert sum(map(len, loads.values())) > len(loads)
    assert [
        f"{file.name}: {url}" for file, urls in loads.items() for url in urls if OTHER_HOST.match(url)
    ] == []


@pytest.mark.promise("docs.local")
def test_search_finds_a_page_in_a_browser_that_has_the_files_alone(site: Path, chromium: Browser) -> None:
    asked: list[str] = []
    page = chromium.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.fill("input[name=q]", "revoked keys")
    page.press("input[name=q]", "Enter")
    page.locator("#search-results li a", has_text="Give out keys").first.click()
    page.wait_for_selector("h1:has-text('Give out keys')")
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith(("data:", site.as_uri()))] == []


@pytest.mark.promise("docs.site")
def test_its_first_page_shows_what_the_readme_shows_first(site: Path) -> None:
    screen, _, _ = (ROOT / "README.md").read_text().partition("\n## ")
    page = (site / "index.html").read_text()
    pictures = re.findall(r"!\[[^\]]+\]\(docs/images/([^)]+)\)", screen)
    assert pictures == re.findall(r'<img [^>]*src="_images/([^"]+)"', page)
    for paragraph in re.findall(r"^[A-Z>].+", screen, re.MULTILINE):
        assert re.split(r"[`\[\]>]", paragraph.strip("> "))[0] in unescape(page)


@pytest.mark.promise("docs.site")
def test_its_pages_are_dark_where_the_system_is_and_where_the_reader_asks(
    site: Path, chromium: Browser
) -> None:
    def shown(scheme: Literal["dark", "light"], clicks: int) -> tuple[int, ...]:
        context = chromium.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto((site / "tutorial.html").as_uri())
        for _ in range(clicks):
            page.locator("button.theme-toggle:visible").first.click()
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        context.close()
        return tuple(int(part) for part in re.findall(r"\d+", colour)[:3])

    assert max(shown("dark", 0)) < 64
    assert min(shown("light", 0)) > 192
    assert max(min(shown("light", clicks)) for clicks in (1, 2)) > 192
    assert min(max(shown("light", clicks)) for clicks in (1, 2)) < 64


@pytest.mark.promise("docs.site")
def test_the_search_index_and_the_text_for_programs_have_every_page(site: Path) -> None:
    sources = {page.relative_to(site / "_sources") for page in (site / "_sources").rglob("*.md")}
    index = json.loads(
        (site / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")")
    )
    assert {Path(f"{name}.md") for name in index["docnames"]} == sources
    overview, whole = (site / "llms.txt").read_text(), (site / "llms-full.txt").read_text()
    assert re.match(r"# .+\n\n> .+\n\n## ", overview)
    listed = re.findall(r"^- \[.+?\]\(_sources/(.+?)\): .+$", overview, re.MULTILINE)
    assert sorted(listed) == sorted(str(page) for page in sources - {Path("index.md")})
    for page in listed:
        assert (site / "_sources" / page).read_text().rstrip() in whole


@pytest.mark.quick
@pytest.mark.promise("docs.site")
def test_the_site_has_a_page_for_each_package_and_each_part(site: Path) -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
    pages = {page.stem for page in (site / "reference/python").glob("*.html")}
    assert {package for package in packages if package != "greenroom.adapters"} <= pages
    assert {name for name in pages if name.startswith("greenroom.adapters.")} == {
        f"greenroom.adapters.{folder.parent.name}"
        for folder in ROOT.glob("transports/greenroom/adapters/*/__init__.py")
        if folder.parent.name != "base"
    }
    parts = (
        "tutorial",
        "how-to/install",
        "reference/tools",
        "reference/settings",
        "reference/http",
        "security",
    )
    assert all((site / f"{part}.html").is_file() for part in parts)


@pytest.mark.quick
@pytest.mark.promise("docs.figures")
def test_every_figure_has_a_text_a_table_and_the_values_of_that() -> None:
    page = (ROOT / "docs/benchmarks.md").read_text()
    figures = re.findall(r"!\[([^\]]+)\]\((images/[\w-]+\.svg)\)\n\n<!-- table: .*\n((?:\|.*\n)+)", page)
    drawn = {path.name for path in (ROOT / "docs/images").glob("*.svg")} - {"demo.svg"}
    assert len(figures) == page.count("![") == len(drawn) > 3
    for text, image, table in figures:
        assert len(text.split()) > 10
        rows = [[cell.strip() for cell in row.strip("|\n").split("|")] for row in table.splitlines()]
        texts = re.findall(r"<text[^>]*>([^<]+)</text>", (ROOT / "docs" / image).read_text())
        values = sorted(value for _, *values in rows[2:] for value in values)
        assert sorted(set(values) - set(texts)) == []
        names = [row[0] for row in rows[2:]] + rows[0][1:] * (len(rows[0]) > 2)
        assert sorted(set(names) - set(texts)) == []


@pytest.mark.promise("docs.site")
def test_a_lost_link_anchor_or_picture_and_a_page_that_is_not_listed_fail_the_site(tmp_path: Path) -> None:
    for page in (
        "README",
        "CHANGELOG",
        "CONTRIBUTING",
        "SECURITY",
        "bench/README",
        "docs/search",
        "docs/unlisted",
    ):
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / f"{page}.md").write_text(f"# {page}\n\nText.\n")
    for program in ("conf.py", "build_site.py"):
        shutil.copy(ROOT / "docs" / program, tmp_path / "docs")
    outside = ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY", "bench/README")
    listed = "".join(f"- [{page}](../{page}.md)\n" for page in outside)
    index = tmp_path / "docs/index.md"
    whole = f"# All\n\nAll pages.\n\n## Part\n\n{listed}- [Search](search.md)\n"
    lost = "[it](gone.md), [there](search.md#nowhere), [here](../README.md#part)"
    index.write_text(f"{whole}\nSee {lost} and ![a picture](no.png).\n")
    broken = build(tmp_path, tmp_path / "site")
    assert broken.returncode != 0
    assert not (tmp_path / "site/llms.txt").exists()
    said = [line for line in broken.stderr.splitlines() if "WARNING" in line]
    for word in ("gone.md", "'nowhere'", "'part'", "no.png", "unlisted.md"):
        assert any(word in line for line in said), (word, broken.stderr)


@pytest.mark.promise("docs.site")
def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Ada")
    refused = build(ROOT, tmp_path)
    assert (refused.returncode, [*tmp_path.iterdir()]) == (2, [tmp_path / "letter.txt"])
    assert f"{tmp_path} has something else in it" in refused.stderr
