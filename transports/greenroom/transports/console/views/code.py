"""Code: workspaces, how far their indexes are, their files, and what symbols and files are to each other."""

from __future__ import annotations

from typing import Any, Final

from greenroom.actors import DependencySearch, Outline, ReadResource, SymbolSearch, WorkspaceResource
from greenroom.actors.base.parse import check_request
from greenroom.actors.schemas.resource_uris import workspace_uri
from greenroom.runtime import Refusal
from greenroom.transports.console.view import Place, Reader, View
from greenroom.transports.console.views import corpora

WORKSPACES: Final = 20
"""Workspaces of which the first page tells how they are kept."""
OUTLINE_TOKENS: Final = 10_000
SYMBOLS: Final = 50


async def code(reader: Reader, place: Place) -> View:
    """Return the list of workspaces, or a page of one: its files, a file, a symbol."""
    if not place.rest:
        return await _all(reader)
    uri = workspace_uri(place.rest)
    read = await reader.ask(ReadResource(uri=uri))
    assert isinstance(read, WorkspaceResource), "it is the URI of a workspace"
    shown = {"corpus": place.rest, "view": read.workspace, "state": read.freshness}
    if (path := place.name("file")) is not None:
        return await _file(reader, shown, path)
    found: Any = None
    if (symbol := place.get("symbol")) is not None:
        found = await _answer_or_sentence(reader, SymbolSearch(symbol=symbol, limit=SYMBOLS))
    shown["symbols"] = found
    shown["page"] = await corpora.documents(reader, place, place.rest)
    return View("workspace.html", str(read.workspace.root), shown, topics=(uri,), every=corpora.EVERY)


async def _all(reader: Reader) -> View:
    listed = await corpora.corpora(reader, of_code=True)
    states: dict[str, Any] = {}
    for each in listed[:WORKSPACES]:
        read = await reader.ask(ReadResource(uri=workspace_uri(each.corpus)))
        states[each.corpus] = read.freshness
    shown = {"workspaces": listed, "states": states}
    topics = tuple(workspace_uri(name) for name in states)
    return View("code.html", "Code", shown, topics=topics, every=corpora.EVERY)


async def _file(reader: Reader, shown: dict[str, Any], path: str) -> View:
    whole = f"{shown['view'].root}/{path}"
    shown["path"] = path
    shown["outline"] = await _answer_or_sentence(reader, Outline(path=whole, max_tokens=OUTLINE_TOKENS))
    shown["dependencies"] = await _answer_or_sentence(reader, DependencySearch(target=whole))
    return View("code_file.html", path, shown, topics=(workspace_uri(shown["corpus"]),))


async def _answer_or_sentence(reader: Reader, request: Any) -> Any:
    """Return the answer to a request; a refusal's sentence where only a part of the page is refused."""
    check_request(request)
    try:
        return await reader.ask(request)
    except Refusal as refusal:
        return str(refusal)
