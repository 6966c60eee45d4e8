"""Corpora of documents: what is put into one, and requests about it. Times inside are microseconds of UTC.

A *corpus* belongs to a user, to a project or to all. It is named by a word, such as ``docs``, which means
one's own and else one of all; or in full: ``user:alice:docs``, ``project:atlas:docs``, ``all:docs``. A
*document* is one file or text of it, a *chunk* a passage that is found alone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies.grades import Grade
from greenroom.actors.core.replies.memory_types import Fraction, QueryVectors
from greenroom.actors.core.replies.replies import ListReply, PartialReply
from greenroom.actors.core.replies.results_explained import NamedResult
from greenroom.actors.core.validation.types import NUMBER
from greenroom.actors.schemas.corpus_words import DEFAULT_CORPUS as DEFAULT_CORPUS
from greenroom.actors.search.index.prepared_terms import Run
from greenroom.runtime import Address, Message

MAX_PATH = 4_096
MAX_CHUNKS = 100_000
MOST_LOOKED_AT = 10_000
"""The most documents that are looked at for one page of them."""
MAX_FACTS = 8 * 1_048_576
"""The most bytes of what the syntax of one file says, packed."""
MAX_DOCUMENT_BYTES = 64 * 1_048_576
"""The most text that one document has, all chunks together."""

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
DocumentPath = Annotated[str, Meta(min_length=1, max_length=MAX_PATH)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{32}(?!\\n)$", extra={"takes": "32 hexadecimal digits"})]


class Chunk(msgspec.Struct, frozen=True):
    """A passage of a document, as a chunker makes it.

    Attributes:
        text: What it says, without its headings.
        headings: The headings above it, from the outermost. Of source code that was read by its syntax the
            path of the symbol that it is a part of, empty at the top, and then those that it defines.
        title: The title of its document.
        first_line: Its first line in the file, counted from 1; 0 in a document that has no lines.
        last_line: Its last line.
        first_byte: Where it begins in the file.
        last_byte: The first byte after it.
        page: Its page, in a document that has pages and no lines.
    """

    text: str
    headings: list[str]
    title: str
    first_line: int
    last_line: int
    first_byte: int
    last_byte: int
    page: int | None = None


class Document(msgspec.Struct, frozen=True):
    """A document with its chunks, in their order.

    Attributes:
        path: What it is known by in its corpus.
        title: What it is called.
        kind: What kind of file it is, such as ``markdown``.
        digest: BLAKE2b of its bytes, 16 bytes as hexadecimal digits.
        bytes: How many bytes it has.
        modified_at: When it was changed last.
        chunks: Its passages.
        is_file: Whether it was read from the file at its path, and not sent as a text under that name: then
            answers can say whether the file has changed since.
    """

    path: DocumentPath
    title: str
    kind: str
    digest: Digest
    bytes: int
    modified_at: int
    chunks: list[Chunk]
    is_file: bool = False


# -- filling a corpus: messages to its actor; not tools -----------------------------------


class DocumentStored(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `PutDocument`.

    Attributes:
        state: ``unchanged`` where the corpus had these very bytes, read as well: then nothing was done.
        chunks: How many it has.
        kept: How many of these were there before and have kept their ids.
    """

    state: Literal["added", "changed", "unchanged"]
    chunks: int
    kept: int


class Prepared(msgspec.Struct, frozen=True):
    """What storing a document takes and nothing but the document is needed for.

    Attributes:
        run: What its chunks are found by.
        prints: What tells its chunks apart, one after the other.
        blocks: Its chunks, compressed: which is the first in each block, and the block.
    """

    run: Run
    prints: bytes
    blocks: list[tuple[int, bytes]]


class PutDocument(Message[DocumentStored], frozen=True, kw_only=True):
    """Put a document in, or in the place of the one with its path: all of it or nothing.

    Attributes:
        prepared: What was made of it elsewhere; it is made here where it is missing, or not of use.
        facts: Of source code what its syntax says, packed.
        reader: What read it, see `corpus.readers`; what a newer one read of the same bytes counts.
        only_same: Whether it is put in only in the place of one of the same bytes.
    """

    corpus: CorpusName
    document: Document
    prepared: Prepared | None = None
    facts: Annotated[bytes, Meta(max_length=MAX_FACTS)] | None = None
    reader: Annotated[str, Meta(max_length=200)] = ""
    only_same: bool = False


class NoteReader(Message[None], frozen=True, kw_only=True):
    """Note that a newer reader failed at a document, which stays and is not read again by that; not a tool.

    Attributes:
        digest: Of the document's bytes; of others nothing is noted.
    """

    corpus: CorpusName
    path: str
    digest: Digest
    reader: Annotated[str, Meta(max_length=200)]


class DocumentsRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `RemoveDocuments`.

    Attributes:
        removed: Those that there were.
        left: Those that were not looked at, in a store that is nearly full: ask again for these.
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


class DocumentPage(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ListDocuments`: in no order that means anything.

    Attributes:
        after: Where the next page begins; None at the end.
    """

    documents: list[DocumentListed]
    after: str | None


class ListDocuments(Message[DocumentPage], frozen=True, kw_only=True):
    """List the documents of a corpus, in pages; what is put in or removed meanwhile may be missed.

    Attributes:
        holding: Only those whose path or title has this text, in any case; for one page so many are looked at
            as `MOST_LOOKED_AT` says, however few of them are found.
        kind: Only files of this kind.
        path: Only the one with this path.
    """

    corpus: CorpusName
    after: str | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_LOOKED_AT)] = 1_000
    holding: str = ""
    kind: str | None = None
    path: str | None = None


def is_text(text: str) -> bool:
    """Return whether a text has no lone surrogates, so that it can be kept."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# -- corpora themselves: messages between actors ------------------------------------------


class CorpusRow(msgspec.Struct, frozen=True, array_like=True):
    """A corpus in the index of corpora, and in its owner's catalogue.

    Attributes:
        owner: Whose it is.
        name: What it is called there.
        number: What tells its actor from others of the same owner; a name may come to be another's.
        created_at: When it was made.
        made_by: Who made it, as `policy.corpus_maker` says; empty for somebody who was erased.
        root: Of a workspace the folder that it is the index of.
        id_prefix: What the ids of its chunks begin with, see `chunk_id`; 0 for none yet.
        old_ids: Numbers below it are ids, too, which an older program gave; 0 for none.
    """

    owner: str
    name: str
    number: int
    created_at: int
    made_by: str = ""
    root: str | None = None
    id_prefix: int = 0
    old_ids: int = 0

    @property
    def full_name(self) -> str:
        """Its name in full."""
        return f"{self.owner}:{self.name}"

    @property
    def key(self) -> str:
        """The key of its actor's address."""
        return f"{self.owner}:{self.number}"


PREFIX_BITS = 25
NUMBER_BITS = 28
MAX_NUMBER = (1 << NUMBER_BITS) - 1
ID_PREFIXES = Address("id-prefixes", "all")


def chunk_id(prefix: int, number: int) -> int:
    """Return the id of the chunk with a number in the corpus with a prefix."""
    return prefix << NUMBER_BITS | number


def split_id(id: int) -> tuple[int, int]:
    """Return the prefix and the number of an id; the prefix is 0 in one from before there were prefixes."""
    return id >> NUMBER_BITS, id & MAX_NUMBER


class TakeIdPrefix(Message[int], frozen=True, kw_only=True):
    """Take the prefix of a new corpus's chunk ids, which no other has or had."""


class KnowIdPrefixes(Message[None], frozen=True, kw_only=True):
    """Note prefixes that corpora have."""

    prefixes: list[int]


class SetIdPrefix(Message[None], frozen=True, kw_only=True):
    """Give a corpus another prefix, or its first one.

    Attributes:
        row: Its row, with the prefix.
    """

    row: CorpusRow


class NextChunk(Message[int], frozen=True, kw_only=True):
    """Answer the number of a corpus's next chunk."""


class MakeCorpus(Message[CorpusRow], frozen=True, kw_only=True):
    """Make a corpus of the owner, if there is none of that name; a workspace where a folder is given."""

    name: NewCorpusName
    root: str | None = None

    def precheck(self) -> tuple[Address, TakeIdPrefix]:
        """Take a prefix for it."""
        return ID_PREFIXES, TakeIdPrefix()


class RenameOwned(Message[CorpusRow], frozen=True, kw_only=True):
    """Give a corpus of the owner another name, which is not taken."""

    name: NewCorpusName
    to: NewCorpusName


class DropOwned(Message[CorpusRow], frozen=True, kw_only=True):
    """Drop a corpus of the owner, with all that it has."""

    name: NewCorpusName


class CallCorpus(Message[None], frozen=True, kw_only=True):
    """Tell a corpus what it is called from now on, in full, and of which folder it is the index."""

    name: CorpusName
    root: str | None = None


class DiscardCorpus(Message[None], frozen=True, kw_only=True):
    """Tell a corpus that it is dropped: it answers no more, and removes what it has, step by step."""


class VerifyCorpus(Message["CorpusVerified"], frozen=True, kw_only=True):
    """Compare a corpus with the texts of its documents, and make anew what differs if that is wanted."""

    rebuild: bool = False


class CorpusVerified(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in one corpus.

    Attributes:
        chunks: Chunks that there are.
        problems: What differs from them, a sentence each.
        rebuilt: Whether all of that was made anew.
    """

    chunks: int
    problems: list[str]
    rebuilt: bool


class CorpusView(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a corpus, and how fresh it is.

    Attributes:
        corpus: Its name in full.
        root: The folder of code that it is the index of, if it is one.
        bytes: Of the files.
        text_bytes: Of the chunks' texts; ``stored_bytes`` is what these take in the store.
        indexed_at: When something was last put in or removed; null in an empty corpus.
        waiting_for_vectors: Chunks that words alone find as yet.
        failed_files: Files that could not be taken in, 100 at most; absent where there are none.
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
    """Say what is in a corpus."""

    row: CorpusRow


class CorporaListed(ListReply, frozen=True, kw_only=True):
    """Answers `ListCorpora`: those that the caller may see."""

    lists: ClassVar[tuple[str, ...]] = ("corpora",)

    corpora: list[CorpusView]


# -- asking ------------------------------------------------------------------------------

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
    """A passage that was found; of metadata only the first eight members, and of these what there is.

    Attributes:
        entity_id: The entity that it speaks of most, where one is known.
        source_file: The path of its document.
        hybrid_score: Measured: of passages with a score of 0.3 three in ten were of the right file.
        score: How well it matches, 0-1: 95 of 100 right ones that have half of the query's words have more
            than 0.7.
        grade: By its ``hybrid_score``.
        context_header: The document's title and the headings above it.
        vendor_names: The entities that it mentions.
        section_title: The nearest heading above it.
        citation: Where it stands: the file, and its first line or page.
        corpus: Where it was found, when all corpora were searched.
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
    """How fresh a corpus is.

    Attributes:
        indexed_at: When something was last put in or removed.
        waiting_for_vectors: Chunks that words alone find as yet.
        files_checked: How many files of the answer were compared with what is on disk now; present where you
            might have them read.
        changed_files: Those of them that have changed since.
        missing_files: Those that are gone.
    """

    indexed_at: datetime | None
    waiting_for_vectors: int
    files_checked: int | UnsetType = UNSET
    changed_files: list[str] | UnsetType = UNSET
    missing_files: list[str] | UnsetType = UNSET


class IndexedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that was read, as it was then; the members are as in `Document`."""

    path: str
    digest: str
    bytes: int
    modified_at: int


class QueryAnalysis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a query was understood.

    Attributes:
        form: What it looks like.
        reason: Why this strategy.
        corrected: What was looked for instead of words that no chunk has.
        unknown: Words that no chunk has, and that nothing is like.
    """

    form: Literal["question", "keywords", "identifier", "quoted"]
    reason: str
    corrected: dict[str, list[str]] = msgspec.field(default_factory=dict)
    unknown: list[str] = msgspec.field(default_factory=list)


class ChunksFound(PartialReply, frozen=True, kw_only=True):
    """Answers `SemanticSearch`, best first.

    Attributes:
        corpus: Which corpus was searched, in full; ``*`` for all that you may see, 20 at most.
        total_found: How many chunks have a word of the query, or a score of a half, and ``min_score`` at
            least; not fewer than are answered.
        query_analysis: How the query was understood, where the strategy is not the one that was asked for, as
            ``auto`` never is, or a word is not known.
        cache_hit: Whether you asked the same just before.
        weak: Present where no score is 0.7, so that an answer is hardly among them.
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
    """A passage in full; with ``around`` also what stands before and after it, joined.

    Attributes:
        entity_id: The entity that it speaks of most, where one is known.
        source_file: The path of its document.
        context_header: The document's title and the headings above it.
        vendor_names: The entities that it mentions.
        section_title: The nearest heading above it.
        citation: Where it begins: the file, and its first line or page.
        last_line: Where it ends, in a document that has lines.
        chunk_ids: The passages that were joined, where there are several.
        corpus: Where it is, when passages of several corpora were read.
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
    """Answers `GetFullContent`, in the order in which they were asked for.

    Attributes:
        unknown_ids: Ids of no chunk that you may see: never, or no more.
        corpus: Where they are; absent where that is in several, which each names, or in none.
        freshness: Of these corpora; absent where there are none.
    """

    lists: ClassVar[tuple[str, ...]] = ("chunks",)

    chunks: list[ChunkContent]
    unknown_ids: list[int]
    corpus: str | UnsetType = UNSET
    freshness: FreshnessView | UnsetType = UNSET
    execution_time_ms: float


class FindChunks(Message["FoundChunks"], frozen=True, kw_only=True):
    """Find the best chunks of a corpus. Not a tool: `SemanticSearch` asks it.

    Attributes:
        query: What is looked for.
        vectors: The query as the embedder sees it; None: words alone decide.
        absence: Why there are none, where some were wanted.
        min_score: The least score.
        min_relevance: The least measured one.
        may_be_nothing: Whether it is said if nothing that was found can be an answer.
        explain: Whether to tell what each signal added.
        about: A chunk's id or a document's path, to tell of that one, too; empty for none.
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
    """Answers `FindChunks`; members as in `ChunksFound`.

    Attributes:
        is_nothing: Whether none of the results can be an answer.
        files: The files of the results.
        parts: What each signal added to the strength of each result, if that was asked for.
        about: What was asked about, its strongest chunk; None where none was, or it is not here.
        partial: What was not looked through.
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
    """Read chunks of a corpus. Not a tool: `GetFullContent` asks it."""

    corpus: CorpusName
    id_prefix: int = 0
    chunk_ids: ChunkIds
    around: Around = 0


class ReadContent(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ReadChunks`; members as in `FullContent`, and the files of the chunks."""

    chunks: list[ChunkContent]
    unknown: list[int]
    freshness: FreshnessView
    files: list[IndexedFile]


class LoadCorpus(Message[None], frozen=True, kw_only=True):
    """Read a corpus's index into memory, for the search that comes next."""
