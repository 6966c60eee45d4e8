"""Why searches in corpora of documents, and for what these speak of, come back empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import trio
from msgspec import UNSET

from greenroom.actors.app.emptiness.narrowing import Asker, Explained, Filter
from greenroom.actors.app.map.entity_mentions import FindEntity
from greenroom.actors.core.replies.empty_reasons import EmptyBecause
from greenroom.actors.corpus.listing import BrowseCorpora, CorpusEntities
from greenroom.actors.knowledge.corpora.requests.corpus_requests import EVERY_CORPUS
from greenroom.actors.knowledge.corpora.tools.entity_tools import FindVendorInfo, SuggestEntities
from greenroom.actors.knowledge.corpora.tools.query_service import ListCorpora
from greenroom.actors.memories.recall.emptiness import seconds_for
from greenroom.actors.orchestrations.ask_documents import GetFullContent, SemanticSearch
from greenroom.actors.orchestrations.list_documents import CorpusDocuments
from greenroom.actors.search.embedding.embedding_service import GetEmbedding

_DOCUMENTS: Final = "documents"
_ENTITIES: Final = "entities"
_SECONDS: Final = 0.5
"""How long names are counted that documents repeat."""


async def _of_corpora(asker: Asker, _request: Any, reply: Any) -> EmptyBecause | None:
    """Return that the corpora which were asked have nothing, or did not answer in time."""
    if getattr(reply, "partial_reason", None):
        return asker.because("cut", why=reply.partial_reason)
    asked = [
        each
        for each in (await asker.ask(ListCorpora())).corpora
        if each.corpus == reply.corpus
        or reply.corpus is UNSET  # ids need no corpus
        or (reply.corpus == EVERY_CORPUS and not each.root)
    ]
    return None if any(each.chunks for each in asked) else asker.because("nothing_stored", what=_DOCUMENTS)


async def _nothing_like_it(asker: Asker, request: SemanticSearch, reply: Any) -> EmptyBecause:
    if request.strategy != "bm25" and (await asker.ask(GetEmbedding())).state == "off":
        return asker.because("no_embedder", what=_DOCUMENTS, why=reply.query_analysis.reason)
    return asker.because("nothing_relevant", what=_DOCUMENTS)


async def _unknown_ids(asker: Asker, _request: Any, _reply: Any) -> EmptyBecause:
    return asker.because("unknown_ids", what="passages")


async def _not_declared(asker: Asker, request: Any, _reply: Any) -> EmptyBecause:
    """Return that nothing has a name, and how many names the documents have that nobody declared."""
    found: Any = None
    with trio.move_on_after(seconds_for(_SECONDS)):
        found = await asker.ask(SuggestEntities(corpus=request.corpus, limit=200))
    count = "many" if found is None else f"{len(found.suggestions):,}"
    return asker.because("not_declared", name=request.vendor_filter, count=count)


async def _all_declared(asker: Asker, _request: Any, _reply: Any) -> EmptyBecause:
    return asker.because("all_declared")


_FIND_ENTITIES: Final = Explained(
    _ENTITIES, {"entity_type": Filter()}, first=_of_corpora, last=_not_declared, wide={}
)

EXPLAINED: Final[Mapping[type[Any], Explained]] = {
    SemanticSearch: Explained(
        _DOCUMENTS,
        {"min_score": Filter(), "min_relevance": Filter()},
        first=_of_corpora,
        last=_nothing_like_it,
        wide={},
    ),
    GetFullContent: Explained("passages", first=_of_corpora, last=_unknown_ids),
    ListCorpora: Explained("collections of documents"),
    BrowseCorpora: Explained("collections of documents"),
    CorpusDocuments: Explained(
        _DOCUMENTS,
        {
            "holding": Filter(lambda found: (each.title for each in found.documents), widest=""),
            "kind": Filter(lambda found: (each.kind for each in found.documents)),
            "path": Filter(lambda found: (each.path for each in found.documents)),
        },
    ),
    CorpusEntities: Explained(
        _ENTITIES,
        {
            "holding": Filter(lambda found: (each.name for each in found.entities), widest=""),
            "entity_type": Filter(),
        },
    ),
    FindVendorInfo: _FIND_ENTITIES,
    FindEntity: _FIND_ENTITIES,
    SuggestEntities: Explained(
        "names", {"min_count": Filter(widest=1)}, first=_of_corpora, last=_all_declared, wide={}
    ),
}
