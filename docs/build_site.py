"""Make the site of these pages, replacing an older one: `python docs/build_site.py FOLDER`.

The pages are read as they are. Those outside of `docs/` that the site has come into `project/`, and links
follow them; the navigation is the list of links in `docs/index.md`, and above it the first page shows what
the first screen of the README does. Sphinx makes HTML of them, and fails at
whatever is wrong: a link that leads nowhere, its anchor too, or a page that `docs/index.md` does not list.
Beside the HTML are `llms.txt`, which tells programs where the Markdown of each page is, and `llms-full.txt`,
which has it all.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

DOCS: Final = Path(__file__).resolve().parent
ROOT: Final = DOCS.parent
ELSEWHERE: Final = {
    ROOT / "README.md": "project/readme.md",
    ROOT / "CHANGELOG.md": "project/changelog.md",
    ROOT / "CONTRIBUTING.md": "project/contributing.md",
    ROOT / "SECURITY.md": "project/security.md",
    ROOT / "bench" / "README.md": "project/benchmarks.md",
    DOCS / "search.md": "how-search-works.md",  # Sphinx's own page for searching is search.html
}
"""The pages that have another place in the site than in `docs/`."""
MADE: Final = ".buildinfo"  # Sphinx leaves it in what it makes
CODE_BLOCK: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE: Final = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"(\]\()([^)\s]+)(?=\))")
LISTED: Final = re.compile(r"^- \[([^\]]+)\]\(([^)\s]+)\)", re.MULTILINE)


class Section(NamedTuple):
    """A heading of the index with its pages: their titles and paths in the site."""

    title: str
    pages: list[tuple[str, str]]


def main() -> int:
    """Make the site, and return Sphinx's exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where to put the site")
    site = parser.parse_args().folder.resolve()
    if site.exists() and any(site.iterdir()) and not (site / MADE).exists():
        parser.error(f"{site} has something else in it; choose an empty folder or an earlier site")
    with tempfile.TemporaryDirectory() as work:
        sources = Path(work) / "sources"
        stage(sources)
        listed = list(sections((sources / "index.md").read_text()))
        with (sources / "index.md").open("a") as index:
            index.writelines(navigation(listed))
        shutil.rmtree(site, ignore_errors=True)
        code = run_sphinx(sources, site, Path(work) / "doctrees")
        if code == 0:
            (site / "llms.txt").write_text("".join(overview(sources, listed)))
            (site / "llms-full.txt").write_text("".join(whole(sources, listed)))
    return code


def stage(sources: Path) -> None:
    """Copy all pages, pictures and files to their places in the site, with adjusted links."""
    kept = [path for path in DOCS.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    places = {path: path.relative_to(DOCS).as_posix() for path in kept} | ELSEWHERE
    for path, place in places.items():
        copy = sources / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            copy.write_text(relinked(path, places))
        else:
            shutil.copy(path, copy)
    index = sources / "index.md"
    _, mark, listed = index.read_text().partition("\n## ")
    index.write_text(first_screen(places) + mark + listed)


def first_screen(places: dict[Path, str]) -> str:
    """Return what the README shows first, for the first page of the site."""
    readme = ROOT / "README.md"
    return relinked(readme, places | {readme: "index.md"}).partition("\n## ")[0].rstrip() + "\n"


def relinked(path: Path, places: dict[Path, str]) -> str:
    """Return a page with links to the places of other pages in the site."""

    def moved(link: re.Match[str]) -> str:
        target, mark, anchor = link[2].partition("#")
        place = places.get((path.parent / target).resolve()) if target else None
        if place is None:  # another host's, or for Sphinx to complain about
            return link[0]
        return link[1] + os.path.relpath(place, Path(places[path]).parent) + mark + anchor

    parts = CODE.split(path.read_text())
    return "".join(part if number % 2 else LINK.sub(moved, part) for number, part in enumerate(parts))


def sections(index: str) -> Iterator[Section]:
    """Yield the sections of the index."""
    for section in index.split("\n## ")[1:]:
        yield Section(section.partition("\n")[0], [(each[1], each[2]) for each in LISTED.finditer(section)])


def navigation(listed: list[Section]) -> Iterator[str]:
    """Yield what makes Sphinx put the sections beside each page."""
    for section in listed:
        pages = "".join(f"{title} <{page}>\n" for title, page in section.pages)
        yield f"\n```{{toctree}}\n:hidden:\n:caption: {section.title}\n\n{pages}```\n"


def run_sphinx(sources: Path, site: Path, doctrees: Path) -> int:
    """Make the HTML; warnings are errors, and each is printed."""
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-b", "html", "-d", doctrees, "-c", DOCS]
    command = [sys.executable, "-m", "sphinx", *options, sources, site]
    return subprocess.run(command, check=False).returncode  # noqa: S603  it is what stands here


# -- for programs that read ------------------------------------------------------


def overview(sources: Path, listed: list[Section]) -> Iterator[str]:
    """Yield `llms.txt`: what Greenroom is, and each page with its first sentence."""
    yield f"# Greenroom\n\n> {first_sentence((sources / 'index.md').read_text())}\n"
    for section in listed:
        yield f"\n## {section.title}\n\n"
        for title, page in section.pages:
            yield f"- [{title}](_sources/{page}): {first_sentence((sources / page).read_text())}\n"


def whole(sources: Path, listed: list[Section]) -> Iterator[str]:
    """Yield `llms-full.txt`: every page, each below its path."""
    for section in listed:
        for _, page in section.pages:
            yield f"<!-- {page} -->\n\n{(sources / page).read_text().rstrip()}\n\n"


def first_sentence(page: str) -> str:
    """Return the first sentence of a page's first paragraph of prose, as plain text."""
    body = CODE_BLOCK.sub("", re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)).partition("\n\n")[2]
    prose = next(text for text in body.split("\n\n") if re.match(r"\s*[A-Za-z`*\[]", text))
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(prose.split()))
    return re.split(r"(?<=[.:])\s", plain, maxsplit=1)[0].rstrip(":")


if __name__ == "__main__":
    sys.exit(main())
