"""Code: workspaces, with their indexes and files, and relations of symbols and files."""

from __future__ import annotations

from typing import Any, Final

from greenroom.actors import DependencySearch, Outline, ReadResource, SymbolSearch, WorkspaceResource
from greenroom.actors.core.resources.resource_uris import workspace_uri
from greenroom.actors.core.validation.parse import check_request
from greenroom.runtime import Refusal
from greenroom.transports.web.console.view import Place, Reader, View
from greenroom.transports.web.console.views.knowledge import EVERY, list_files, list_workspaces

TOPICS: Final = 20
"""When one of this many workspaces changes, the first page is updated at once."""
OUTLINE_TOKENS: Final = 10_000
SYMBOLS: Final = 50


async def code(reader: Reader, place: Place) -> View:
    """Return the list of workspaces, or a page of one workspace: files, file or symbol."""
    if not place.rest:
        return await _all(reader)
    uri = workspace_uri(place.rest)
    read = await reader.ask(ReadResource(uri=uri))
    assert isinstance(read, WorkspaceResource), "it is the URI of a workspace"
    shown = {"corpus": place.rest, "view": read.workspace, "state": read.freshness, "failed": read.failed}
    if (path := place.name("file")) is not None:
        return await _file(reader, shown, path)
    found: Any = None
    if (symbol := place.get("symbol")) is not None:
        found = await _answer_or_sentence(reader, SymbolSearch(symbol=symbol, limit=SYMBOLS))
    shown["symbols"] = found
    shown["page"] = await list_files(reader, place, place.rest)
    return View("workspace.html", str(read.workspace.root), shown, topics=(uri,), every=EVERY)


async def _all(reader: Reader) -> View:
    listed = await list_workspaces(reader)
    topics = tuple(workspace_uri(each.workspace.corpus) for each in listed[:TOPICS])
    return View("code.html", "Code", {"workspaces": listed}, topics=topics, every=EVERY)


async def _file(reader: Reader, shown: dict[str, Any], path: str) -> View:
    whole = f"{shown['view'].root}/{path}"
    shown["path"] = path
    shown["outline"] = await _answer_or_sentence(reader, Outline(path=whole, max_tokens=OUTLINE_TOKENS))
    shown["dependencies"] = await _answer_or_sentence(reader, DependencySearch(target=whole))
    return View("code_file.html", path, shown, topics=(workspace_uri(shown["corpus"]),))


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
