"""Why searches for code of the workspace come back empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from greenroom.actors.app.emptiness.narrowing import Asker, Explained, Filter
from greenroom.actors.core.replies.empty_reasons import EmptyBecause, no_match
from greenroom.actors.corpus.workspace_listing import ListWorkspaces, WorkspaceFiles
from greenroom.actors.knowledge.corpora.storage.readers import is_of_unread
from greenroom.actors.knowledge.workspaces.tools.code_search import CodeSearch
from greenroom.actors.orchestrations.dependency_search import DependencySearch
from greenroom.actors.orchestrations.outline import Outline
from greenroom.actors.orchestrations.search_code import SearchCodeSemantic
from greenroom.actors.orchestrations.similar_files import SimilarFiles
from greenroom.actors.orchestrations.symbol_search import SymbolSearch

_FILES: Final = "files"
_SYMBOLS: Final = "symbols"
_PLACES: Final = "places in the code"
_LONGEST_SYMBOL: Final = 200


async def _of_index(asker: Asker, _request: Any, reply: Any) -> EmptyBecause | None:
    """Return that the index has nothing yet, or not all."""
    freshness = reply.freshness
    if freshness.state == "indexing" or (freshness.of or 0) > freshness.indexed:
        of = "files that are still counted" if freshness.of is None else f"{freshness.of:,} files"
        return asker.because("indexing", indexed=f"{freshness.indexed:,}", of=of)
    if not freshness.indexed:
        code = "index_off" if freshness.state in {"off", "unwatched"} else "nothing_stored"
        return asker.because(code, what=_FILES)
    reason = getattr(reply, "partial_reason", None)
    if reason and not is_of_unread(reason):
        return asker.because("cut", why=reason)
    return None


def _nothing_relevant(what: str) -> Any:
    async def nothing_relevant(asker: Asker, _request: Any, reply: Any) -> EmptyBecause:
        if reason := getattr(reply, "partial_reason", None):
            return asker.because("not_read", what=what, why=reason)
        return asker.because("nothing_relevant", what=what)

    return nothing_relevant


async def _symbols_like(asker: Asker, name: str) -> set[str]:
    """Return the symbols that are called nearly so."""
    found = await asker.ask(SymbolSearch(symbol=name[:_LONGEST_SYMBOL], limit=10))
    return {each.symbol for each in found.definitions}


async def _no_way(asker: Asker, request: DependencySearch, reply: Any) -> EmptyBecause:
    """Return that nothing is called like the target, or that nothing depends on it."""
    if reply.target_is == "unknown":
        known = await _symbols_like(asker, request.target)
        return no_match(
            asker.principal.scopes, "files and symbols", {"target": request.target}, lambda _: known
        )
    ways = {"dependencies": "it needs nothing", "dependents": "nothing needs it"}
    asked = ways.values() if request.direction == "both" else (ways[request.direction],)
    return asker.because("stands_alone", target=request.target, ways=" and ".join(asked))


def _paths(found: Any) -> Iterator[PurePosixPath]:
    for name in found.lists:
        yield from (PurePosixPath(each.file_path) for each in getattr(found, name))


def _folders(found: Any) -> Iterator[str]:
    return (str(folder) for path in _paths(found) for folder in path.parents)


def _endings(found: Any) -> Iterator[str]:
    return (path.suffix.removeprefix(".") for path in _paths(found))


_WIDE: Final = {"limit": 50}
_SCOPE: Final = Filter(_folders, widest="")
_ENDINGS: Final = Filter(_endings, widest=[])
_FILTERS: Final = {
    "scope": _SCOPE,
    "min_relevance": Filter(widest=0.0),
    "filters.file_types": _ENDINGS,
    "filters.exclude_paths": Filter(widest=[]),
}
_SCORED: Final = {"min_score": Filter(widest=0.0)}
EXPLAINED: Final[Mapping[type[Any], Explained]] = {
    ListWorkspaces: Explained("folders of code"),
    WorkspaceFiles: Explained(
        _FILES, {"holding": Filter(lambda found: (each.path for each in found.files), widest="")}
    ),
    SearchCodeSemantic: Explained(_FILES, _FILTERS | _SCORED, _of_index, _nothing_relevant(_FILES), _WIDE),
    SymbolSearch: Explained(_SYMBOLS, {"kind": Filter()}, _of_index, _nothing_relevant(_SYMBOLS), _WIDE),
    Outline: Explained(_SYMBOLS, first=_of_index),
    DependencySearch: Explained(_FILES, first=_of_index, last=_no_way),
    SimilarFiles: Explained(_FILES, _FILTERS, _of_index, _nothing_relevant(_FILES), _WIDE),
    CodeSearch: Explained(
        _PLACES,
        {"scope": _SCOPE, "file_types": _ENDINGS},
        _of_index,
        _nothing_relevant(_PLACES),
        _WIDE,
    ),
}
