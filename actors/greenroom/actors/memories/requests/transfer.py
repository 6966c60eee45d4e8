"""Import and export of memories: lines of a file, requests of the tools, internal messages.

An import is *staged*, line by line, in the actors of its namespaces. Then the import's own actor *decides* it
in one commit, and from then on every namespace *applies* its lines. An undecided import changes nothing; a
decided import is completed, even after a crash of any process.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.damage import Damaged
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.resources.resources import Resource
from greenroom.actors.core.resources.resources import ResourceInfo as ResourceInfo
from greenroom.actors.core.validation import types
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.runtime import Address, Message

OnConflict = Literal["skip", "overwrite", "version"]
ExportFormat = Literal["jsonl", "json"]
ImportState = Literal["staging", "decided", "done"]
Outcome = Literal["created", "versioned", "overwritten", "skipped", "unchanged", "expired", "refused"]

MAX_SOURCE_BYTES = 4 << 20
"""A request has at most this many bytes of lines; use `greenroom import` for larger files."""
MAX_EXPORT_BYTES = 32 << 20
"""A stored export that can be read has at most this many bytes; use `greenroom export` for larger ones."""
MAX_PART_BYTES = 4_000_000
"""One part has at most this many bytes. At worst it doubles in a message, which must fit into the message
limit (8 MiB by default). A part can also be imported with one request."""
IMPORT = "import"
"""The kind of the actors of imports."""

Counts = dict[str, int]
"""The number of lines by `Outcome`."""


class MemoryLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One memory in a file of JSON Lines: either ``content`` or ``value``.

    Only ``key`` is required.

    Attributes:
        namespace: The target; by default that of the import, or the importing user's own.
        created_by: The author; the memory itself belongs to the importing user.
        imported: The author in the source, which is only recorded.
        updated_at: When it was last changed; by default ``created_at``.
        supersedes: The key of the memory in the same namespace that this one supersedes.
        session_id: In an agent's own namespace: the session that the memory belongs to.
        unreviewed: Whether a rule made it and no person has reviewed it; by default an existing memory is
            unchanged.
    """

    key: types.MemoryKey
    content: Annotated[str, Meta(min_length=1)] | None = None
    value: types.Json | UnsetType = UNSET
    namespace: kinds.Namespace | None = None
    created_at: types.Instant | None = None
    updated_at: types.Instant | None = None
    created_by: kinds.Author | None = None
    imported: kinds.ImportSource | None = None
    conversation_id: kinds.ConversationId | None = None
    position: kinds.Position | None = None
    tags: kinds.Tags = []
    kind: kinds.MemoryKind = "semantic"
    importance: kinds.Fraction = kinds.DEFAULT_IMPORTANCE
    scope: kinds.Scope | None = None
    expires_at: types.DayEnd | None = None
    metadata: types.JsonObject | UnsetType = UNSET
    supersedes: types.MemoryKey | None = None
    session_id: types.SessionId | None = None
    unreviewed: bool | None = None


NOT_STAGING = "IMPORT_NOT_STAGING"
"""The refusal code for lines of an import that is decided or given up."""


def import_address(staging: str) -> Address:
    """Return the address of the import's actor, for the id of an attempt."""
    return Address(IMPORT, staging.partition(".")[0])


# -- tools -------------------------------------------------------------


class MemoriesImported(Reply, frozen=True, kw_only=True):
    """Answers `ImportMemories`.

    Attributes:
        dry_run: Whether nothing was written.
        lines: The number of memories in the source.
        counts: The number of memories by outcome: ``created``, ``versioned``, ``overwritten``,
            ``skipped`` (the key exists), ``unchanged`` (the same memory exists), ``expired``.
        namespaces: The number of lines by namespace.
        digest: SHA-256 of the lines.
    """

    dry_run: bool
    lines: int
    counts: Counts
    namespaces: dict[str, int]
    digest: str


class ExportPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an export, which is whole lines, or a whole JSON array.

    Attributes:
        uri: Where the same caller can read it for a day.
        digest: SHA-256 of its bytes.
    """

    uri: str
    count: int
    size_bytes: int
    digest: str


class MemoriesExported(Reply, frozen=True, kw_only=True):
    """Answers `ExportMemories`.

    Attributes:
        uri: Where the same caller can read the export, or its first part, for a day.
        digest: SHA-256 of the bytes of all parts.
        parts: All of it, in parts that fit into a message of the protocol; mostly one.
        unwritten: Namespaces that may be incomplete: a decided import could not be applied there yet.
            Exports wait for an import that makes progress.
    """

    uri: str
    count: int
    size_bytes: int
    digest: str
    parts: list[ExportPart]
    format: ExportFormat
    mime_type: str
    unwritten: list[str]


# -- to the actor of one import -----------------------------------------


class ImportProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an import.

    Attributes:
        staging: The id of this attempt; a later attempt has another one.
        applied: The outcomes by root, for finished roots.
    """

    state: ImportState
    staging: str
    roots: list[str]
    applied: dict[str, Counts]


class BeginImport(Message[ImportProgress], frozen=True, kw_only=True):
    """Begin an import, or return the state of an earlier attempt at it."""

    audit_action: ClassVar[str] = "import_memories"

    roots: list[str]


class DecideImport(Message[ImportProgress], frozen=True, kw_only=True):
    """Decide an import: all lines are staged, with the number of batches for each root."""

    staging: str
    batches: dict[str, int]


class ReleaseImport(Message[None], frozen=True, kw_only=True):
    """Decide an import in the commit of another actor, like `DecideImport`."""

    staging: str
    batches: dict[str, int]


class ReadImport(Message[ImportProgress | None], frozen=True, kw_only=True):
    """Return the state of an import; None if it never began, or ended long ago."""


def staged_query(release: ReleaseImport) -> tuple[Address, Message[ImportProgress | None]]:
    """Return the query for the state of a staged import."""
    return import_address(release.staging), ReadImport()


class ImportApplied(Message[None], frozen=True, kw_only=True):
    """A namespace has applied its part."""

    staging: str
    root: str
    counts: Counts


class LinesStaged(Message[None], frozen=True, kw_only=True):
    """A namespace has staged lines; the import replies if they are not wanted."""

    staging: str
    root: str


class UrgeImport(Message[None], frozen=True, kw_only=True):
    """The import's own timer: continue a decided import that is not applied everywhere."""


class GiveUpImport(Message[None], frozen=True, kw_only=True):
    """The import's own timer: forget an import not decided in time, or ended long ago.

    An importer sends it, too, to give up an attempt.
    """


# -- to the actor of a namespace ----------------------------------------


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """The number of batches of an import that a namespace has staged and applied.

    Attributes:
        digest: The digest of all staged lines, for the importing principal.
    """

    batches: int
    applied: int
    digest: bytes = b""


class StageLines(Message[Staged], frozen=True, kw_only=True):
    """Stage a batch of lines until the import is decided.

    Attributes:
        staging: The id of the attempt.
        lines: JSON of `MemoryLine`, checked, with namespaces.
    """

    audit_action: ClassVar[str] = "import_memories"

    staging: str
    root: str
    number: int
    on_conflict: OnConflict
    lines: list[msgspec.Raw]

    def precheck(self) -> tuple[Address, Message[ImportProgress | None]]:
        """Query whether the attempt is still being staged: another process may have decided it."""
        return import_address(self.staging), ReadImport()


class ReadStaged(Message[Staged], frozen=True, kw_only=True):
    """Return how much of an import is staged here."""

    staging: str


class TryLines(Message[Counts], frozen=True, kw_only=True):
    """Count the outcomes of lines without writing them."""

    audit_action: ClassVar[str] = "import_memories"

    root: str
    on_conflict: OnConflict
    lines: list[msgspec.Raw]


class ApplyLines(Message[None], frozen=True, kw_only=True):
    """Apply a decided import; the actor sends it to itself to continue."""

    staging: str
    batches: int


class DropLines(Message[None], frozen=True, kw_only=True):
    """Drop the staged lines of an import that was given up."""

    staging: str


class ExportedPage(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ExportPage`: JSON of `MemoryLine`, the start of the next page, and damaged records."""

    lines: list[msgspec.Raw]
    next: int | None
    damaged: Damaged | UnsetType = UNSET


class ExportPage(Message[ExportedPage], frozen=True, kw_only=True):
    """Return about ``limit_bytes`` bytes of visible memories, in order of creation."""

    namespace: kinds.NamespacePrefix
    filters: MemoryFilters | None = None
    start: int = 0
    limit_bytes: int = 1 << 20


# -- to the actor of one export -----------------------------------------


class KeepExport(Message[None], frozen=True, kw_only=True):
    """Store a piece of a part of an export until it expires."""

    part: int
    number: int
    text: str
    format: ExportFormat


class ForgetExport(Message[None], frozen=True, kw_only=True):
    """The export's own timer: it has expired."""


class ExportResource(Resource, frozen=True, kw_only=True):
    """An export of memories: its text, with a media type of its own."""

    uri: str
    mime_type: str
    text: str
