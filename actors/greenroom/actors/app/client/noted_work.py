"""The work that a request leaves in a session: files, a search, a memory.

`NOTED` is complete: no other request leaves work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from greenroom.actors.app.map.entity_mentions import FindEntity
from greenroom.actors.core.auth.namespaces import AGENT
from greenroom.actors.core.replies.replies import SearchResults, SenderMessages, TimeRangeMessages
from greenroom.actors.knowledge.corpora.requests.code_relations import SimilarFound
from greenroom.actors.knowledge.corpora.requests.code_requests import FilesRead
from greenroom.actors.knowledge.corpora.requests.code_symbols import OutlineMade
from greenroom.actors.knowledge.corpora.requests.corpus_requests import FullContent
from greenroom.actors.knowledge.corpora.requests.entity_requests import EntityFound
from greenroom.actors.knowledge.corpora.tools.entity_tools import FindVendorInfo
from greenroom.actors.knowledge.ingest.search_documents import GetFullContent, SemanticSearch
from greenroom.actors.knowledge.workspaces.tools.dependency_search import DependencySearch
from greenroom.actors.knowledge.workspaces.tools.outline import Outline
from greenroom.actors.knowledge.workspaces.tools.pattern_search import CodeSearch
from greenroom.actors.knowledge.workspaces.tools.read_file import ReadFile
from greenroom.actors.knowledge.workspaces.tools.semantic_search import SearchCodeSemantic
from greenroom.actors.knowledge.workspaces.tools.similar_files import SimilarFiles
from greenroom.actors.knowledge.workspaces.tools.symbol_search import SymbolSearch
from greenroom.actors.memories.recall.recall_context import RecallContext
from greenroom.actors.memories.recall.replies import ContextRecalled, MemoriesFound
from greenroom.actors.memories.recall.search_requests import MemorySearch, RetrieveMemory
from greenroom.actors.memories.requests import requests as memories
from greenroom.actors.memories.requests.replies import MemorySaved
from greenroom.actors.sessions.requests import requests as sessions


class Noted(NamedTuple):
    """The work of one answered request.

    Attributes:
        files: The files read, by their names in the answer.
        is_private: Whether the search covered the agent's private data.
    """

    files: Iterable[str] = ()
    search: str | None = None
    is_private: bool = False
    memory: MemorySaved | None = None


_Note = Callable[[Any, Any], Noted]
"""Extracts the work from a request and its answer."""


def _searched(field: str) -> _Note:
    """Return an extractor for the query in a field of a request."""
    return lambda request, _: Noted(search=getattr(request, field))


def _searched_memories(words: Callable[[Any], str | None]) -> _Note:
    """Return an extractor for a memory query; a search of private memories is private."""

    def note(request: Any, answer: MemoriesFound | ContextRecalled | EntityFound) -> Noted:
        namespaces = [found.namespace for found in answer.memories]
        namespaces.append(f"{getattr(request, 'namespace', None)}:")
        is_private = any(each.startswith(AGENT) for each in namespaces)
        return Noted(search=words(request), is_private=is_private)

    return note


def _words_of_search(request: MemorySearch) -> str | None:
    if said := request.query or request.time_expr or ", ".join(request.tags or ()):
        return said
    return f"{request.after or ''} to {request.before or ''}"


def _searched_messages(request: sessions.SearchContext, answer: SearchResults) -> Noted:
    found = [hit.message for hit in answer.results]
    is_private = request.search_scope == "private" or _has_private(found)
    return Noted(search=request.query, is_private=is_private)


def _searched_sender(request: sessions.SearchBySender, answer: SenderMessages) -> Noted:
    return Noted(search=request.sender, is_private=_has_private(answer.messages))


def _searched_times(request: sessions.SearchByTimerange, answer: TimeRangeMessages) -> Noted:
    times = f"{request.start_time.isoformat()} to {request.end_time.isoformat()}"
    return Noted(search=times, is_private=_has_private(answer.messages))


def _read_files(_: ReadFile, answer: FilesRead) -> Noted:
    return Noted(files=[each.path for each in answer.files if not each.error])


def _outlined(_: Outline, answer: OutlineMade) -> Noted:
    return Noted(files=[answer.path] if answer.path else ())


def _compared(_: SimilarFiles, answer: SimilarFound) -> Noted:
    return Noted(files=[answer.path])


def _read_documents(_: GetFullContent, answer: FullContent) -> Noted:
    return Noted(files=dict.fromkeys(each.source_file for each in answer.chunks))


def _stored(_: Any, answer: MemorySaved) -> Noted:
    return Noted(memory=answer)


NOTED: Final[Mapping[type[Any], _Note]] = {
    ReadFile: _read_files,
    Outline: _outlined,
    SimilarFiles: _compared,
    GetFullContent: _read_documents,
    SearchCodeSemantic: _searched("query"),
    SymbolSearch: _searched("symbol"),
    CodeSearch: _searched("pattern"),
    DependencySearch: _searched("target"),
    SemanticSearch: _searched("query"),
    FindEntity: _searched_memories(lambda request: request.vendor_filter),
    FindVendorInfo: _searched("vendor_filter"),
    MemorySearch: _searched_memories(_words_of_search),
    RetrieveMemory: _searched_memories(lambda request: request.query or request.key),
    RecallContext: _searched_memories(lambda request: request.task),
    sessions.SearchContext: _searched_messages,
    sessions.SearchBySender: _searched_sender,
    sessions.SearchByTimerange: _searched_times,
    memories.StoreMemory: _stored,
    memories.UpdateMemory: _stored,
}
"""The extractor of each request type."""


def _has_private(found: Iterable[Any]) -> bool:
    return any(each.visibility != "public" for each in found)
