"""Import and export of memories: the line of a file, requests of the tools, messages between actors.

An import is *staged*, line by line, in the actors whose namespaces it is for; then an actor of its
own *decides* it in one commit, and from then on every namespace *applies* what it has. What was not
decided changes nothing; what was is carried out whole, whoever dies.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation import types
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.runtime import Address, Message

OnConflict = Literal["skip", "overwrite", "version"]
ExportFormat = Literal["jsonl", "json"]
ImportState = Literal["staging", "decided", "done"]
Outcome = Literal["created", "versioned", "overwritten", "skipped", "unchanged", "expired", "refused"]

MAX_SOURCE_BYTES = 4 << 20
"""The most that lines may take that come with a request; larger files go through `greenroom import`."""
MAX_EXPORT_BYTES = 32 << 20
"""The most that an export may take that is kept to be read; larger ones go through `greenroom export`."""
MAX_PART_BYTES = 4_000_000
"""The most that one part of it takes: in a message it becomes twice as long at worst, and that must fit
into a frame (8 MiB unless told); and it can be imported with a request."""
IMPORT = "import"
"""The kind of the actors of imports."""

Counts = dict[str, int]
"""How many lines had which `Outcome`."""


class MemoryLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One memory in a file of JSON Lines: either ``content`` or ``value``; all but ``key`` may be missing.

    Attributes:
        namespace: Where it goes; the importing user's own unless the import says another one.
        created_by: The author; the memory itself belongs to the importing user.
        imported: What the source says of the author that is not counted as true.
        updated_at: When it was last changed; ``created_at`` unless given.
        supersedes: The key of the memory in the same namespace that this one takes the place of.
        session_id: In an agent's own namespace: the session that the memory belongs to.
        unreviewed: Whether a rule found it and nobody has looked at it since; one that is there already stays
            as it is unless given.
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
"""The code of the refusal of lines for an import that is decided, or was given up."""


def import_address(staging: str) -> Address:
    """Return the actor of the import of which this is an attempt."""
    return Address(IMPORT, staging.partition(".")[0])


# -- tools -------------------------------------------------------------


class MemoriesImported(Reply, frozen=True, kw_only=True):
    """Answers `ImportMemories`.

    Attributes:
        dry_run: Whether nothing was written.
        lines: How many memories the source has.
        counts: How many of them had which outcome: ``created``, ``versioned``, ``overwritten``,
            ``skipped`` (the key is there), ``unchanged`` (the same memory is there), ``expired``.
        namespaces: How many lines went to which namespace.
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
        uri: Where it can be read for a day, by the same caller.
        count: How many memories it holds.
        digest: SHA-256 of its bytes.
    """

    uri: str
    count: int
    size_bytes: int
    digest: str


class MemoriesExported(Reply, frozen=True, kw_only=True):
    """Answers `ExportMemories`.

    Attributes:
        uri: Where the export, or its first part, can be read for a day, by the same caller.
        count: How many memories it holds.
        digest: SHA-256 of the bytes of all parts.
        parts: All of it, in parts that fit into a message of the protocol; most exports are one.
        unwritten: Namespaces of which a part may be missing: an import was decided there, and could not
            yet be written. Exports wait for one that goes on.
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
    """Where an import is.

    Attributes:
        staging: The id under which this attempt is staged; a later attempt has another one.
        roots: The roots that it is for.
        applied: What came of the lines, by those roots that are done.
    """

    state: ImportState
    staging: str
    roots: list[str]
    applied: dict[str, Counts]


class BeginImport(Message[ImportProgress], frozen=True, kw_only=True):
    """Begin an import, or find out how far an earlier attempt at the same one has come."""

    deed: ClassVar[str] = "import_memories"

    roots: list[str]


class DecideImport(Message[ImportProgress], frozen=True, kw_only=True):
    """Decide that an import takes effect: everything is staged, in so many batches for each root."""

    staging: str
    batches: dict[str, int]


class ReleaseImport(Message[None], frozen=True, kw_only=True):
    """Another actor's word that its commit has decided the import, as `DecideImport` does."""

    staging: str
    batches: dict[str, int]


class ReadImport(Message[ImportProgress | None], frozen=True, kw_only=True):
    """Find out where an import is; None: nobody began it, or it is long over."""


def staged_question(release: ReleaseImport) -> tuple[Address, Message[ImportProgress | None]]:
    """Return the question whether what is staged is still there to be decided about."""
    return import_address(release.staging), ReadImport()


class ImportApplied(Message[None], frozen=True, kw_only=True):
    """A namespace's word that it has applied its part."""

    staging: str
    root: str
    counts: Counts


class LinesStaged(Message[None], frozen=True, kw_only=True):
    """A namespace's word that it keeps lines now: are they wanted?"""

    staging: str
    root: str


class UrgeImport(Message[None], frozen=True, kw_only=True):
    """The import's word to itself: what is decided is not done everywhere."""


class GiveUpImport(Message[None], frozen=True, kw_only=True):
    """The import's word to itself: forget what was not decided in time, or is long done.

    Also an importer's word that what it staged is not worth deciding about.
    """


# -- to the actor of a namespace ----------------------------------------


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """How many batches of an import a namespace has, and how many of those it has applied.

    Attributes:
        digest: Stands for all lines that it has, where that was asked for.
    """

    batches: int
    applied: int
    digest: bytes = b""


class StageLines(Message[Staged], frozen=True, kw_only=True):
    """Keep a batch of lines until it is decided what becomes of them.

    Attributes:
        staging: Of which attempt at which import.
        root: The root of their namespaces.
        number: The batch's number, from 0.
        lines: JSON of `MemoryLine`, checked, with their namespaces.
    """

    deed: ClassVar[str] = "import_memories"

    staging: str
    root: str
    number: int
    on_conflict: OnConflict
    lines: list[msgspec.Raw]

    def precheck(self) -> tuple[Address, Message[ImportProgress | None]]:
        """Ask whether that attempt is still being staged: another process may have come first."""
        return import_address(self.staging), ReadImport()


class ReadStaged(Message[Staged], frozen=True, kw_only=True):
    """Find out how much of an import is staged here."""

    staging: str


class TryLines(Message[Counts], frozen=True, kw_only=True):
    """Count what would become of lines."""

    deed: ClassVar[str] = "import_memories"

    root: str
    on_conflict: OnConflict
    lines: list[msgspec.Raw]


class ApplyLines(Message[None], frozen=True, kw_only=True):
    """The import's word that it is decided; then the actor's word to itself to go on."""

    staging: str
    batches: int


class DropLines(Message[None], frozen=True, kw_only=True):
    """The import's word that it was given up."""

    staging: str


class ExportedPage(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ExportPage`: JSON of `MemoryLine`, and where the next page begins."""

    lines: list[msgspec.Raw]
    next: int | None


class ExportPage(Message[ExportedPage], frozen=True, kw_only=True):
    """Hand over the memories below a namespace that the asker may see, in the order of their creation.

    Attributes:
        start: The number of the entry to begin with.
        limit_bytes: After so many bytes the page ends.
    """

    namespace: kinds.NamespacePrefix
    filters: MemoryFilters | None = None
    start: int = 0
    limit_bytes: int = 1 << 20


# -- to the actor of one export -----------------------------------------


class KeepExport(Message[None], frozen=True, kw_only=True):
    """Keep a piece of a part of an export, for as long as it can be read."""

    part: int
    number: int
    text: str
    format: ExportFormat


class ForgetExport(Message[None], frozen=True, kw_only=True):
    """The export's word to itself: its time is over."""
