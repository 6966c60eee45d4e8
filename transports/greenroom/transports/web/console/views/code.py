"""Code: workspaces, with their indexes and files, and relations of symbols and files."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from greenroom.actors import (
    DependencySearch,
    Outline,
    ReadFile,
    ReadResource,
    SymbolSearch,
    WorkspaceResource,
)
from greenroom.actors.core.resources.resource_uris import workspace_uri
from greenroom.actors.core.validation.parse import check_request
from greenroom.runtime import Refusal
from greenroom.transports.web.console.view import Place, Reader, View
from greenroom.transports.web.console.views.knowledge import EVERY, list_files, list_workspaces

TOPICS: Final = 20
"""When one of this many workspaces changes, the first page is updated at once."""
OUTLINE_TOKENS: Final = 10_000
SYMBOLS: Final = 50
LINES: Final = 500
"""The lines of a file on one page."""
DEEPEST: Final = 4


async def code(reader: Reader, place: Place) -> View:
    """Return the list of workspaces, or a page of one workspace: files, file or symbol."""
    if not place.rest:
        return await _all(reader)
    uri = workspace_uri(place.rest)
    read = await reader.ask(ReadResource(uri=uri))
    assert isinstance(read, WorkspaceResource), "it is the URI of a workspace"
    shown = {"corpus": place.rest, "view": read.workspace, "state": read.freshness, "failed": read.failed}
    if (path := place.name("file")) is not None:
        return await _file(reader, place, shown, path)
    found: Any = None
    if (symbol := place.get("symbol")) is not None:
        found = await _answer_or_sentence(reader, SymbolSearch(symbol=symbol, limit=SYMBOLS))
    shown["symbols"] = found
    shown["page"] = await list_files(reader, place, place.rest)
    shown["crumbs"] = crumbs(place.name("folder") or "")
    return View("workspace.html", str(read.workspace.root), shown, topics=(uri,), every=EVERY)


async def _all(reader: Reader) -> View:
    listed = await list_workspaces(reader)
    topics = tuple(workspace_uri(each.workspace.corpus) for each in listed[:TOPICS])
    return View("code.html", "Code", {"workspaces": listed}, topics=topics, every=EVERY)


async def _file(reader: Reader, place: Place, shown: dict[str, Any], path: str) -> View:
    whole = f"{shown['view'].root}/{path}"
    shown |= {"path": path, "crumbs": crumbs(path), "lines_a_page": LINES}
    first = max(1, place.number("line") or 1)
    first -= (first - 1) % LINES
    source = await _answer_or_sentence(
        reader, ReadFile(path=whole, lines=f"{first}-{first + LINES - 1}", again=True)
    )
    shown["source"] = source if isinstance(source, str) else source.files[0]
    text = None if isinstance(source, str) else source.files[0].text
    shown["lines"] = text.removesuffix("\n").split("\n") if isinstance(text, str) else []
    shown["outline"] = await _answer_or_sentence(reader, Outline(path=whole, max_tokens=OUTLINE_TOKENS))
    shown["symbols"] = [] if isinstance(shown["outline"], str) else symbols_of(shown["outline"].outline)
    shown["dependencies"] = await _answer_or_sentence(reader, DependencySearch(target=whole))
    return View("code_file.html", path, shown, topics=(workspace_uri(shown["corpus"]),))


def crumbs(path: str) -> list[tuple[str, str]]:
    """Return the name and the path of each part of a path."""
    parts = path.strip("/").split("/") if path.strip("/") else []
    return [(part, "/".join(parts[: at + 1])) for at, part in enumerate(parts)]


class Symbol(NamedTuple):
    """A symbol of an outline: its first line, its depth, and its text."""

    line: int
    depth: int
    text: str


_SYMBOL: Final = re.compile(r"( *)([0-9]{1,9})(?:-[0-9]+)? (.+)")


def symbols_of(outline: str) -> list[Symbol]:
    """Return the symbols that an outline names with their lines."""
    found = [match for line in outline.split("\n") if (match := _SYMBOL.fullmatch(line)) is not None]
    least = min((len(match[1]) for match in found), default=0)
    return [
        Symbol(int(line), min((len(space) - least) // 2, DEEPEST), text.partition("  # ")[0].strip())
        for space, line, text in (match.groups() for match in found)
    ]


async def _answer_or_sentence(reader: Reader, request: Any) -> Any:
    """Return a reply for a part of a page, or the sentence of its refusal.

    A missing scope or an invalid value still refuses the whole page.
    """
    reader.check_scope(type(request))
    check_request(request)
    try:
        return await reader.ask(request)
    except Refusal as refusal:
        return str(refusal)
