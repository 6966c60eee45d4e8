"""The reasons for empty answers, by type of request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar

import msgspec
import trio
from msgspec import UNSET

from greenroom.actors.app.emptiness.narrowing import Asker, Explanation, Filter
from greenroom.actors.app.map.entity_mentions import FindEntity
from greenroom.actors.core.audit.query import GetAuditLog, GetAuditState, ReadAuditLog
from greenroom.actors.core.keys.admin import ListApiKeys
from greenroom.actors.core.replies.empty_reasons import EmptyBecause, explain_no_match
from greenroom.actors.core.replies.replies import ListReply
from greenroom.actors.knowledge.corpora.requests.corpus_requests import EVERY_CORPUS
from greenroom.actors.knowledge.corpora.storage.readers import is_of_unread
from greenroom.actors.knowledge.corpora.tools.entity_tools import FindVendorInfo, SuggestEntities
from greenroom.actors.knowledge.corpora.tools.listing import (
    BrowseCorpora,
    CorpusEntities,
    ListWorkspaces,
    WorkspaceFiles,
)
from greenroom.actors.knowledge.corpora.tools.query_service import ListCorpora
from greenroom.actors.knowledge.ingest.list_documents import CorpusDocuments
from greenroom.actors.knowledge.ingest.search_documents import GetFullContent, SemanticSearch
from greenroom.actors.knowledge.workspaces.tools.dependency_search import DependencySearch
from greenroom.actors.knowledge.workspaces.tools.outline import Outline
from greenroom.actors.knowledge.workspaces.tools.pattern_search import CodeSearch
from greenroom.actors.knowledge.workspaces.tools.semantic_search import SearchCodeSemantic
from greenroom.actors.knowledge.workspaces.tools.similar_files import SimilarFiles
from greenroom.actors.knowledge.workspaces.tools.symbol_search import SymbolSearch
from greenroom.actors.memories.recall.emptiness import WhyNoneListed, seconds_for
from greenroom.actors.memories.requests.keyvalue_requests import ListMemory
from greenroom.actors.memories.requests.requests import ListMemories
from greenroom.actors.search.embedding.embedding_service import GetEmbedding
from greenroom.actors.sessions.handlers.find_sessions import FindSessions
from greenroom.actors.sessions.requests.requests import (
    GetMessages,
    SearchBySender,
    SearchByTimerange,
    SearchContext,
)
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.actors.sessions.workflows.tools import GetWorkflowPatterns, SuggestNextAction
from greenroom.runtime import GreenroomError

R = TypeVar("R", bound=ListReply)

SECONDS: Final = 1.0
"""The time limit for finding a reason; after that, the answer has no reason."""
MOST_RECORDS: Final = 1_000
"""This many of the newest audit records are searched for a match of a filter."""
_FILES: Final = "files"
_SYMBOLS: Final = "symbols"
_PLACES: Final = "places in the code"
_DOCUMENTS: Final = "documents"
_ENTITIES: Final = "entities"
_LONGEST_SYMBOL: Final = 200
_COUNT_SECONDS: Final = 0.5
"""The time limit for counting names that documents repeat."""
_STEPS: Final = "steps"
_MESSAGES: Final = "messages"
_MOST: Final = 1_000
"""At most this many messages are read."""
_USUAL_THRESHOLD: Final = next(
    field.default for field in msgspec.structs.fields(SearchContext) if field.name == "fuzzy_threshold"
)


async def _of_memories(asker: Asker, request: ListMemories, _: Any) -> EmptyBecause:
    reason: EmptyBecause = await asker.ask(WhyNoneListed(request=request))
    return reason


async def _of_records(asker: Asker, request: GetAuditLog, _: Any) -> EmptyBecause | None:
    """Return the filters that no record matches; this look-up is not audited as a read."""
    last = (await asker.ask(GetAuditState())).last
    found = (await asker.ask(ReadAuditLog(start=max(0, last - MOST_RECORDS), limit=MOST_RECORDS))).records
    if not found:
        return None
    given = {name: value for name, value in request.filters().items() if name != "limit"}
    alone = {
        name: value
        for name, value in given.items()
        if not any(GetAuditLog(**{name: value}).matches(each) for each in found)
    }
    return explain_no_match(
        asker.principal.scopes,
        "records",
        alone or given,
        lambda name: {value for each in found if isinstance(value := getattr(each, name, None), str)},
    )


async def _of_steps(asker: Asker, _request: Any, reply: Any) -> EmptyBecause | None:
    """Return that no steps are recorded, or too few for a pattern."""
    if not reply.steps:
        return asker.because("nothing_stored" if asker.learns_workflows else "learning_off", what=_STEPS)
    return None


async def _nothing_repeated(asker: Asker, _request: Any, reply: Any) -> EmptyBecause:
    return asker.because("nothing_repeated", count=f"{reply.steps:,}")


async def _of_messages(asker: Asker, request: Any, _: Any) -> EmptyBecause | None:
    """Return that the session has no messages, or which parameter excludes them."""
    found = await asker.ask(GetMessages(session_id=request.session_id, limit=_MOST))
    if found.lacks_reason:
        return asker.because("nothing_stored", what=_MESSAGES)
    if isinstance(request, GetMessages) and request.since_id is not None:
        return asker.because("nothing_new", what=_MESSAGES)
    parameters: dict[str, object] = {}
    if isinstance(request, SearchBySender):
        parameters = {"sender": request.sender}
    elif isinstance(request, SearchByTimerange):
        parameters = {"start_time": request.start_time, "end_time": request.end_time}
    senders = {message.sender for message in found.messages}
    return (
        explain_no_match(asker.principal.scopes, _MESSAGES, parameters, lambda _: senders)
        if parameters
        else None
    )


async def _no_relevant_message(asker: Asker, _request: Any, _reply: Any) -> EmptyBecause:
    return asker.because("nothing_relevant", what=_MESSAGES)


# -- code and documents ------------------------------------------------------------------------------


async def _of_index(asker: Asker, _request: Any, reply: Any) -> EmptyBecause | None:
    """Return that the index is empty or incomplete, if it is."""
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
    found = await asker.ask(SymbolSearch(symbol=name[:_LONGEST_SYMBOL], limit=10))
    return {each.symbol for each in found.definitions}


async def _no_way(asker: Asker, request: DependencySearch, reply: Any) -> EmptyBecause:
    """Return that the target is unknown, or has no dependencies."""
    if reply.target_is == "unknown":
        known = await _symbols_like(asker, request.target)
        return explain_no_match(
            asker.principal.scopes, "files and symbols", {"target": request.target}, lambda _: known
        )
    ways = {"dependencies": "it needs nothing", "dependents": "nothing needs it"}
    searched = ways.values() if request.direction == "both" else (ways[request.direction],)
    return asker.because("stands_alone", target=request.target, ways=" and ".join(searched))


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


async def _of_corpora(asker: Asker, _request: Any, reply: Any) -> EmptyBecause | None:
    """Return that the searched corpora are empty, or did not answer in time."""
    if getattr(reply, "partial_reason", None):
        return asker.because("cut", why=reply.partial_reason)
    searched = [
        each
        for each in (await asker.ask(ListCorpora())).corpora
        if each.corpus == reply.corpus
        or reply.corpus is UNSET  # ids need no corpus
        or (reply.corpus == EVERY_CORPUS and not each.root)
    ]
    return None if any(each.chunks for each in searched) else asker.because("nothing_stored", what=_DOCUMENTS)


async def _nothing_like_it(asker: Asker, request: SemanticSearch, reply: Any) -> EmptyBecause:
    if request.strategy != "bm25" and (await asker.ask(GetEmbedding())).state == "off":
        return asker.because("no_embedder", what=_DOCUMENTS, why=reply.query_analysis.reason)
    return asker.because("nothing_relevant", what=_DOCUMENTS)


async def _unknown_ids(asker: Asker, _request: Any, _reply: Any) -> EmptyBecause:
    return asker.because("unknown_ids", what="passages")


async def _not_declared(asker: Asker, request: Any, _reply: Any) -> EmptyBecause:
    """Return that nothing has this name, and how many undeclared names the documents have."""
    found: Any = None
    with trio.move_on_after(seconds_for(_COUNT_SECONDS)):
        found = await asker.ask(SuggestEntities(corpus=request.corpus, limit=200))
    count = "many" if found is None else f"{len(found.suggestions):,}"
    return asker.because("not_declared", name=request.vendor_filter, count=count)


async def _all_declared(asker: Asker, _request: Any, _reply: Any) -> EmptyBecause:
    return asker.because("all_declared")


_FIND_ENTITIES: Final = Explanation(
    _ENTITIES, {"entity_type": Filter()}, first=_of_corpora, last=_not_declared, wide={}
)

EXPLANATIONS: Final[Mapping[type[Any], Explanation]] = {
    ListWorkspaces: Explanation("folders of code"),
    WorkspaceFiles: Explanation(
        _FILES, {"holding": Filter(lambda found: (each.path for each in found.files), widest="")}
    ),
    SearchCodeSemantic: Explanation(_FILES, _FILTERS | _SCORED, _of_index, _nothing_relevant(_FILES), _WIDE),
    SymbolSearch: Explanation(_SYMBOLS, {"kind": Filter()}, _of_index, _nothing_relevant(_SYMBOLS), _WIDE),
    Outline: Explanation(_SYMBOLS, first=_of_index),
    DependencySearch: Explanation(_FILES, first=_of_index, last=_no_way),
    SimilarFiles: Explanation(_FILES, _FILTERS, _of_index, _nothing_relevant(_FILES), _WIDE),
    CodeSearch: Explanation(
        _PLACES,
        {"scope": _SCOPE, "file_types": _ENDINGS},
        _of_index,
        _nothing_relevant(_PLACES),
        _WIDE,
    ),
    SemanticSearch: Explanation(
        _DOCUMENTS,
        {"min_score": Filter(), "min_relevance": Filter()},
        first=_of_corpora,
        last=_nothing_like_it,
        wide={},
    ),
    GetFullContent: Explanation("passages", first=_of_corpora, last=_unknown_ids),
    ListCorpora: Explanation("collections of documents"),
    BrowseCorpora: Explanation("collections of documents"),
    CorpusDocuments: Explanation(
        _DOCUMENTS,
        {
            "holding": Filter(lambda found: (each.title for each in found.documents), widest=""),
            "kind": Filter(lambda found: (each.kind for each in found.documents)),
            "path": Filter(lambda found: (each.path for each in found.documents)),
        },
    ),
    CorpusEntities: Explanation(
        _ENTITIES,
        {
            "holding": Filter(lambda found: (each.name for each in found.entities), widest=""),
            "entity_type": Filter(),
        },
    ),
    FindVendorInfo: _FIND_ENTITIES,
    FindEntity: _FIND_ENTITIES,
    SuggestEntities: Explanation(
        "names", {"min_count": Filter(widest=1)}, first=_of_corpora, last=_all_declared, wide={}
    ),
    ListSessions: Explanation(
        "sessions",
        {
            "status": Filter(),
            "project_id": Filter(lambda found: (each.project_id for each in found.sessions)),
        },
    ),
    FindSessions: Explanation(
        "sessions",
        {
            "status": Filter(),
            "project_id": Filter(lambda found: (each.session.project_id for each in found.sessions)),
            "agent": Filter(lambda found: (each.session.created_by for each in found.sessions)),
            "tool": Filter(),
            "text": Filter(),
        },
    ),
    GetMessages: Explanation(_MESSAGES, {"visibility_filter": Filter(widest="all")}, first=_of_messages),
    SearchBySender: Explanation(_MESSAGES, first=_of_messages),
    SearchByTimerange: Explanation(_MESSAGES, first=_of_messages),
    SearchContext: Explanation(
        _MESSAGES,
        {
            "search_scope": Filter(widest="all"),
            "recent_hours": Filter(),
            "max_rows_scanned": Filter(),
            "fuzzy_threshold": Filter(widest=_USUAL_THRESHOLD),
        },
        first=_of_messages,
        last=_no_relevant_message,
        wide={},
    ),
    ListMemory: Explanation(
        "keys of your own",
        {
            "session_id": Filter(lambda found: (each.session_id for each in found.entries), widest="all"),
            "prefix": Filter(lambda found: (each.key for each in found.entries)),
        },
    ),
    ListMemories: Explanation("memories", first=_of_memories),
    GetWorkflowPatterns: Explanation(
        _STEPS, {"context": Filter(widest=[])}, _of_steps, _nothing_repeated, wide={}
    ),
    SuggestNextAction: Explanation(_STEPS, {"context": Filter()}, _of_steps, _nothing_repeated, wide={}),
    GetAuditLog: Explanation("records", first=_of_records),
    ListApiKeys: Explanation("API keys", {"include_ended": Filter(widest=True)}),
}
"""All requests whose answers may be empty, except memory searches, which give their own reasons."""


async def explain_empty(asker: Asker, request: Any, reply: R) -> R:
    """Return an empty answer with its reason."""
    reason: EmptyBecause | None = None
    with trio.move_on_after(seconds_for(SECONDS)):
        try:
            reason = await EXPLANATIONS[type(request)].explain(asker, request, reply)
        except GreenroomError:  # a failed look-up must not cost the answer
            reason = None
    return msgspec.structs.replace(reply, empty_because=reason or asker.because("unexplained"))
