"""Why searches for code of the workspace come back empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from greenroom.actors.base.emptiness import EmptyBecause, no_match
from greenroom.actors.emptiness.narrowing import Asker, Explained, Filter
from greenroom.actors.orchestrations.code_search import CodeSearch
from greenroom.actors.orchestrations.dependency_search import DependencySearch
from greenroom.actors.orchestrations.outline import Outline
from greenroom.actors.orchestrations.search_code import SearchCodeSemantic
from greenroom.actors.orchestrations.similar_files import SimilarFiles
from greenroom.actors.orchestrations.symbol_search import SymbolSearch

_FILES: Final = "files"
_SYMBOLS: Final = "symbols"
_PLACES: Final = "places in the code"


async def _of_index(asker: Asker, _request: Any, reply: Any) -> EmptyBecause | None:
    """Return that the index has nothing yet, or not all."""
    freshness = reply.freshness
    if freshness.state == "indexing" or (freshness.of or 0) > freshness.indexed:
        of = "files that are still counted" if freshness.of is None else f"{freshness.of:,} files"
        return asker.because("indexing", indexed=f"{freshness.indexed:,}", of=of)
    if not freshness.indexed:
        code = "index_off" if freshness.state in {"off", "unwatched"} else "nothing_stored"
        return asker.because(code, what=_FILES)
    if getattr(reply, "partial", None):
        return asker.because("cut", why=reply.partial)
    return None


def _nothing_relevant(what: str) -> Any:
    async def nothing_relevant(asker: Asker, _request: Any, _reply: Any) -> EmptyBecause:
        return asker.because("nothing_relevant", what=what)

    return nothing_relevant


async def _no_way(asker: Asker, request: DependencySearch, reply: Any) -> EmptyBecause:
    """Return that nothing is called like the target, or that nothing depends on it."""
    if reply.target_is == "unknown":
        said = {"target": request.target}
        return no_match(asker.principal.scopes, "files and symbols", said, lambda _: set())
    ways = {"dependencies": "it needs nothing", "dependents": "nothing needs it"}
    asked = ways.values() if request.direction == "both" else (ways[request.direction],)
    return asker.because("stands_alone", target=request.target, ways=" and ".join(asked))


_FILTERS: Final = {
    "scope": Filter(widest=""),
    "min_relevance": Filter(widest=0.0),
    "filters.file_types": Filter(widest=[]),
    "filters.exclude_paths": Filter(widest=[]),
}
EXPLAINED: Final[Mapping[type[Any], Explained]] = {
    SearchCodeSemantic: Explained(_FILES, _FILTERS, _of_index, _nothing_relevant(_FILES), {}),
    SymbolSearch: Explained(_SYMBOLS, {"kind": Filter()}, _of_index, _nothing_relevant(_SYMBOLS), {}),
    Outline: Explained(_SYMBOLS, first=_of_index),
    DependencySearch: Explained(_FILES, first=_of_index, last=_no_way),
    SimilarFiles: Explained(_FILES, _FILTERS, _of_index, _nothing_relevant(_FILES), {}),
    CodeSearch: Explained(
        _PLACES,
        {"scope": Filter(widest=""), "file_types": Filter(widest=[])},
        _of_index,
        _nothing_relevant(_PLACES),
        {},
    ),
}
