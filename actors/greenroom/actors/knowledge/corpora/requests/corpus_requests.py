"""Requests and replies about corpora of documents. Times inside are microseconds of UTC.

A *corpus* belongs to a user, to a project or to all. A short name such as ``docs`` means the caller's own
corpus, or else the corpus that belongs to all. Full names are ``user:alice:docs``, ``project:atlas:docs``,
``all:docs``. A *document* is one file or text of a corpus; a *chunk* is a passage that a search can find.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.content.documents.document_types import Digest, Document, MarkPlace
from greenroom.actors.content.syntax.origins import Origin
from greenroom.actors.core.auth.corpora import DEFAULT_CORPUS as DEFAULT_CORPUS
from greenroom.actors.core.git.project_names import project_of_path
from greenroom.actors.core.replies.damage import Damaged
from greenroom.actors.core.replies.grades import Grade
from greenroom.actors.core.replies.memory_types import Fraction
from greenroom.actors.core.replies.replies import ListReply, PartialReply
from greenroom.actors.core.replies.results_explained import NamedResult
from greenroom.actors.core.validation.types import NUMBER
from greenroom.actors.search.embedding.vector_messages import QueryVectors
from greenroom.actors.search.index.memtable import Run
from greenroom.runtime import Address, Message

MAX_CHUNKS = 100_000
MOST_LOOKED_AT = 10_000
"""Maximum number of documents that are scanned for one page."""
MAX_FACTS = 8 * 1_048_576
"""Maximum bytes of one file's packed syntax facts."""
MAX_DOCUMENT_BYTES = 64 * 1_048_576
"""Maximum text of one document, all chunks together."""

_OWNER_NAME = "[A-Za-z0-9_.@+~-]{1,100}"
_NAME = "[A-Za-z0-9_.@+-]{1,64}"
CorpusName = Annotated[
    str,
    Meta(
        pattern=f"^(((user|project):{_OWNER_NAME}|all):)?{_NAME}(?!\\n)$",
        description="where to look",
        extra={
            "takes": "1 to 64 characters of A-Z, a-z, 0-9, _ . @ + -, which may follow user:NAME:, "
            "project:NAME: or all:"
        },
    ),
]
EVERY_CORPUS = "*"
SearchedCorpus = Annotated[
    str,
    Meta(
        pattern=f"^(\\*|(((user|project):{_OWNER_NAME}|all):)?{_NAME})(?!\\n)$",
        description="where to look; * in all that you may see",
        extra={
            "takes": "* or 1 to 64 characters of A-Z, a-z, 0-9, _ . @ + -, which may follow user:NAME:, "
            "project:NAME: or all:"
        },
    ),
]
NewCorpusName = Annotated[
    str,
    Meta(
        pattern=f"^{_NAME}(?!\\n)$",
        description="its new name",
        extra={"takes": "1 to 64 characters of A-Z, a-z, 0-9, _ . @ + -"},
    ),
]


# -- filling a corpus: messages to its actor; not tools -----------------------------------

MAX_PUTS: Final = 32
"""A batch of documents is stored in one turn of its corpus, so its size limits how long searches wait."""


class DocumentStored(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `PutDocument`.

    Attributes:
        state: ``unchanged``: the corpus has the same bytes, read equally well, so nothing was stored.
        kept: Chunks that existed before and keep their ids.
    """

    state: Literal["added", "changed", "unchanged"]
    chunks: int
    kept: int


class Prepared(msgspec.Struct, frozen=True):
    """The parts of a stored document that can be made outside the actor.

    ``blocks`` are the document's compressed chunks; each block has the number of its first chunk.
    """

    run: Run
    prints: bytes
    blocks: list[tuple[int, bytes]]


class PutDocument(Message[DocumentStored], frozen=True, kw_only=True):
    """Store a document atomically; replace the document that has the same path.

    Attributes:
        prepared: The document's prepared parts; if they are missing or unusable, the actor makes them.
        reader: The document's reader, see `storage.readers`; a newer reader replaces the same bytes.
        only_same: Whether to store the document only if the corpus has the same bytes.
    """

    corpus: CorpusName
    document: Document
    prepared: Prepared | None = None
    facts: Annotated[bytes, Meta(max_length=MAX_FACTS)] | None = None
    origin: Origin | None = None
    reader: Annotated[str, Meta(max_length=200)] = ""
    only_same: bool = False


class PutDocuments(Message[list[DocumentStored]], frozen=True, kw_only=True):
    """Store several documents of one corpus in one commit: all of them, or none."""

    corpus: CorpusName
    puts: Annotated[list[PutDocument], Meta(min_length=1, max_length=MAX_PUTS)]


class NoteReader(Message[None], frozen=True, kw_only=True):
    """Record that a newer reader failed at a document; the document stays; not a tool.

    That reader will not read it again. If the document has another digest, nothing is recorded.
    """

    corpus: CorpusName
    path: str
    digest: Digest
    reader: Annotated[str, Meta(max_length=200)]


class DocumentsRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `RemoveDocuments`.

    ``left`` has paths that were not processed, since the store is nearly full: send them again.
    """

    removed: list[str]
    left: list[str] = []


class RemoveDocuments(Message[DocumentsRemoved], frozen=True, kw_only=True):
    """Remove documents, each as a whole; an unknown path is no error."""

    corpus: CorpusName
    paths: Annotated[list[str], Meta(max_length=1_000)]


class DocumentListed(msgspec.Struct, frozen=True, kw_only=True):
    """A document in a listing."""

    path: str
    digest: str
    title: str
    kind: str
    bytes: int
    modified_at: int
    indexed_at: int
    chunks: int
    is_file: bool = False
    reader: str = ""
    masking: int = 0
    masked: list[int] = []
    marks: list[MarkPlace] = []


class DocumentPage(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `ListDocuments`, in an arbitrary order; ``after`` is None at the end."""

    documents: list[DocumentListed]
    after: str | None
    damaged: Damaged | UnsetType = UNSET


class ListDocuments(Message[DocumentPage], frozen=True, kw_only=True):
    """List the documents of a corpus in pages; concurrent changes may be missed.

    ``holding`` selects documents with this text in path or title, in any case. One page scans at most
    `MOST_LOOKED_AT` documents, even if few match.
    """

    corpus: CorpusName
    after: str | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_LOOKED_AT)] = 1_000
    holding: str = ""
    kind: str | None = None
    path: str | None = None


def is_text(text: str) -> bool:
    """Return whether a text has no lone surrogates, so that it can be stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# -- corpora themselves: messages between actors ------------------------------------------


class CorpusRow(msgspec.Struct, frozen=True, array_like=True):
    """A corpus in the index of corpora, and in its owner's catalogue.

    Attributes:
        number: A part of the address of the corpus's actor; unlike a name, it is never reused.
        made_by: The corpus's creator, see `policy.corpus_maker`; empty for an erased person.
        root: The folder of a workspace.
        project: The id of the workspace's project; empty if it follows from the path alone.
        id_prefix: Prefix of the corpus's chunk ids, see `chunk_id`; 0 if it has none yet.
        old_ids: Smaller numbers are chunk ids of an older program; 0 if there are none.
    """

    owner: str
    name: str
    number: int
    created_at: int
    made_by: str = ""
    root: str | None = None
    id_prefix: int = 0
    old_ids: int = 0
    project: str = ""

    @property
    def projects(self) -> tuple[str, ...]:
        """The ids of a workspace's project: the present one, and that of its path."""
        if self.root is None:
            return ()
        of_path = project_of_path(self.root)
        return (self.project, of_path) if self.project not in {"", of_path} else (of_path,)

    @property
    def full_name(self) -> str:
        """The full name of the corpus."""
        return f"{self.owner}:{self.name}"

    @property
    def key(self) -> str:
        """The key in the address of the corpus's actor."""
        return f"{self.owner}:{self.number}"


PREFIX_BITS = 25
NUMBER_BITS = 28
MAX_NUMBER = (1 << NUMBER_BITS) - 1
ID_PREFIXES = Address("id-prefixes", "all")


def chunk_id(prefix: int, number: int) -> int:
    """Return the id of a chunk from its corpus's prefix and its number."""
    return prefix << NUMBER_BITS | number


def split_id(id: int) -> tuple[int, int]:
    """Return the prefix and the number of an id; older ids have the prefix 0."""
    return id >> NUMBER_BITS, id & MAX_NUMBER


class TakeIdPrefix(Message[int], frozen=True, kw_only=True):
    """For a new corpus, draw a chunk-id prefix that no corpus has or had."""


class KnowIdPrefixes(Message[None], frozen=True, kw_only=True):
    """Record prefixes that corpora have."""

    prefixes: list[int]


class SetIdPrefix(Message[None], frozen=True, kw_only=True):
    """Change a corpus's prefix, or set its first prefix."""

    row: CorpusRow


class NextChunk(Message[int], frozen=True, kw_only=True):
    """Return the number of a corpus's next chunk."""


class MakeCorpus(Message[CorpusRow], frozen=True, kw_only=True):
    """Create a corpus of the owner unless the name exists; with ``root``, create a workspace.

    If ``project`` is given, it becomes the project of an older workspace, too.
    """

    name: NewCorpusName
    root: str | None = None
    project: str | None = None

    def precheck(self) -> tuple[Address, TakeIdPrefix]:
        """Draw the corpus's prefix."""
        return ID_PREFIXES, TakeIdPrefix()


class RenameOwned(Message[CorpusRow], frozen=True, kw_only=True):
    """Rename a corpus of the owner to a free name."""

    name: NewCorpusName
    to: NewCorpusName


class DropOwned(Message[CorpusRow], frozen=True, kw_only=True):
    """Drop a corpus of the owner, with all its records."""

    name: NewCorpusName


class CallCorpus(Message[None], frozen=True, kw_only=True):
    """Set a corpus's full name, the folder that it indexes, and the folder's project."""

    name: CorpusName
    root: str | None = None
    project: str = ""


class DiscardCorpus(Message[None], frozen=True, kw_only=True):
    """Drop a corpus: it no longer replies, and deletes its records in steps."""


class VerifyCorpus(Message["CorpusVerified"], frozen=True, kw_only=True):
    """Compare a corpus with the texts of its documents; repair it if `rebuild` is set."""

    rebuild: bool = False


class CorpusVerified(msgspec.Struct, frozen=True, kw_only=True):
    """Result of verifying one corpus; ``problems`` has a sentence for each difference."""

    chunks: int
    problems: list[str]
    rebuilt: bool


class CorpusView(msgspec.Struct, frozen=True, kw_only=True):
    """Content and freshness of a corpus.

    Attributes:
        root: The folder of code that the corpus indexes, if any.
        text_bytes: The size of the chunks' texts; ``stored_bytes`` is their size in the store.
        indexed_at: When a document was last stored or removed; null in an empty corpus.
        waiting_for_vectors: Chunks without vectors; so far, searches find them only by words.
        failed_files: Files that could not be ingested, 100 at most; absent if there are none.
    """

    corpus: str
    root: str | UnsetType = UNSET
    created_at: datetime
    documents: int
    chunks: int
    bytes: int
    text_bytes: int
    stored_bytes: int
    indexed_at: datetime | None
    waiting_for_vectors: int
    failed_files: int | UnsetType = UNSET


class DescribeCorpus(Message[CorpusView], frozen=True, kw_only=True):
    """Return the content of a corpus in numbers."""

    row: CorpusRow


class CorporaListed(ListReply, frozen=True, kw_only=True):
    """Reply to `ListCorpora`: the corpora that the caller may see."""

    lists: ClassVar[tuple[str, ...]] = ("corpora",)

    corpora: list[CorpusView]


# -- searching and reading ---------------------------------------------------------------

Strategy = Literal["auto", "vector", "bm25", "hybrid"]
UsedStrategy = Literal["vector", "bm25", "hybrid"]
DetailLevel = Literal["full", "metadata"]
AStrategy = Annotated[Strategy, Meta(description="auto: by the query's form")]
ADetailLevel = Annotated[DetailLevel, Meta(description="metadata: ids and scores, for get_full_content")]
MinScore = Annotated[
    Fraction | Grade | None,
    Meta(extra_json_schema=NUMBER, description="least score, 0-1, or grade high, medium"),
]
MinHybridScore = Annotated[
    Fraction | Grade | None, Meta(extra_json_schema=NUMBER, description="least hybrid_score, or grade")
]
QueryText = Annotated[str, Meta(min_length=1, max_length=500, description="question, words or identifier")]
TopK = Annotated[int, Meta(ge=1, le=50, description="how many")]
ChunkId = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
ChunkIds = Annotated[list[ChunkId], Meta(min_length=1, max_length=10, description="ids of the hits")]
Around = Annotated[int, Meta(ge=0, le=3, description="also so many passages before and after each")]


class ChunkFound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A found passage; detail level ``metadata`` has only the first eight members, if known.

    Attributes:
        entity_id: The entity that it mentions most, if known.
        hybrid_score: A measured probability: of passages with 0.3, three in ten were from the right file.
        score: How well the passage matches, 0-1: of 100 right passages with half of the query's words, 95
            score more than 0.7.
        context_header: The document's title and the headings above it.
        citation: Its place: the file, and its first line or page.
    """

    chunk_id: int
    entity_id: str | None = None
    source_file: str
    entity_type: str | None = None
    hybrid_score: float
    score: float
    grade: Grade
    rank: int
    corpus: str | UnsetType = UNSET
    chunk_text: str | UnsetType = UNSET
    context_header: str | UnsetType = UNSET
    vendor_names: list[str] = msgspec.field(default_factory=list)
    section_title: str | UnsetType = UNSET
    citation: str | UnsetType = UNSET


class FreshnessView(msgspec.Struct, frozen=True, kw_only=True):
    """Freshness of a corpus.

    Attributes:
        waiting_for_vectors: Chunks without vectors; so far, searches find them only by words.
        files_checked: Files of the reply that were compared with the disk; present if the caller may
            ingest them.
    """

    indexed_at: datetime | None
    waiting_for_vectors: int
    files_checked: int | UnsetType = UNSET
    changed_files: list[str] | UnsetType = UNSET
    missing_files: list[str] | UnsetType = UNSET


class IndexedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was read; members as in `Document`."""

    path: str
    digest: str
    bytes: int
    modified_at: int


class QueryAnalysis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a query was understood.

    Attributes:
        corrected: Replacements for words that no chunk has.
        unknown: Words that no chunk has, and that resemble no word of a chunk.
    """

    form: Literal["question", "keywords", "identifier", "quoted"]
    reason: str
    corrected: dict[str, list[str]] = msgspec.field(default_factory=dict)
    unknown: list[str] = msgspec.field(default_factory=list)


class ChunksFound(PartialReply, frozen=True, kw_only=True):
    """Reply to `SemanticSearch`, best first.

    Attributes:
        corpus: Full name of the searched corpus; ``*`` for all visible corpora, 20 at most.
        total_found: How many chunks have a word of the query or a score of 0.5, and reach ``min_score``;
            never fewer than are returned.
        query_analysis: How the query was understood; present if the strategy is not the requested one, as
            with ``auto``, or if a word is unknown.
        weak: Present if no score reaches 0.7: then no result is likely to be right.
    """

    lists: ClassVar[tuple[str, ...]] = ("results",)

    results: list[ChunkFound]
    total_found: int
    strategy_used: UsedStrategy
    query_analysis: QueryAnalysis | UnsetType = UNSET
    execution_time_ms: float
    corpus: str
    freshness: FreshnessView
    cache_hit: bool
    weak: bool | UnsetType = UNSET


class ChunkContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passage in full; with ``around`` also its neighbours, joined.

    Attributes:
        entity_id: The entity that it mentions most, if known.
        context_header: The document's title and the headings above it.
        citation: Where it begins: the file, and its first line or page.
        last_line: Its last line, in a document with lines.
    """

    chunk_id: int
    entity_id: str | None = None
    source_file: str
    entity_type: str | None = None
    chunk_text: str
    context_header: str
    vendor_names: list[str] = msgspec.field(default_factory=list)
    section_title: str
    citation: str
    last_line: int | UnsetType = UNSET
    chunk_ids: list[int] | UnsetType = UNSET
    corpus: str | UnsetType = UNSET


class FullContent(ListReply, frozen=True, kw_only=True):
    """Reply to `GetFullContent`, in the order of the request.

    Attributes:
        unknown_ids: Ids of chunks that never existed, are gone, or are not visible.
        corpus: The chunks' corpus; absent if there is none, or if there are several, which the chunks name.
        freshness: The freshness of these corpora; absent if there are none.
    """

    lists: ClassVar[tuple[str, ...]] = ("chunks",)

    chunks: list[ChunkContent]
    unknown_ids: list[int]
    corpus: str | UnsetType = UNSET
    freshness: FreshnessView | UnsetType = UNSET
    execution_time_ms: float


class FindChunks(Message["FoundChunks"], frozen=True, kw_only=True):
    """Find the best chunks of a corpus. Not a tool: `SemanticSearch` sends it.

    Attributes:
        vectors: The embedded query; if it is None, only words decide.
        absence: Why vectors are missing, if they were wanted.
        may_be_nothing: Whether to report if no result can be right.
        about: A chunk's id or a document's path to explain as well; empty for none.
    """

    corpus: CorpusName
    id_prefix: int = 0
    query: QueryText
    vectors: QueryVectors | None = None
    absence: str | None = None
    strategy: Strategy = "auto"
    top_k: TopK = 10
    min_score: Fraction = 0.0
    min_relevance: Fraction = 0.0
    may_be_nothing: bool = False
    detail_level: DetailLevel = "full"
    explain: bool = False
    about: str = ""


class FoundChunks(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `FindChunks`; members as in `ChunksFound`.

    Attributes:
        is_nothing: Whether none of the results can be right.
        about: The requested chunk, or the requested document's best chunk; None if none is found.
    """

    results: list[ChunkFound]
    total: int
    strategy: UsedStrategy
    analysis: QueryAnalysis
    freshness: FreshnessView
    cache_hit: bool
    is_nothing: bool = False
    files: list[IndexedFile] = []
    parts: list[dict[str, float]] = []
    about: tuple[ChunkFound, NamedResult] | None = None
    partial: str = ""


class ReadChunks(Message["ReadContent"], frozen=True, kw_only=True):
    """Read chunks of a corpus. Not a tool: `GetFullContent` sends it."""

    corpus: CorpusName
    id_prefix: int = 0
    chunk_ids: ChunkIds
    around: Around = 0


class ReadContent(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `ReadChunks`; members as in `FullContent`, and the files of the chunks."""

    chunks: list[ChunkContent]
    unknown: list[int]
    freshness: FreshnessView
    files: list[IndexedFile]


class LoadCorpus(Message[None], frozen=True, kw_only=True):
    """Load a corpus's index into memory before the next search."""
