"""The requests of the tools `import_memories` and `export_memories`."""

from __future__ import annotations

import secrets
from contextlib import aclosing, suppress
from hashlib import sha256
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.client import Client, report_progress
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.damage import Damaged, merge_damage
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.requests import transfer as requests
from greenroom.actors.memories.requests.import_lines import decode_line
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.memories.requests.transfer import (
    ExportFormat,
    MemoriesExported,
    MemoriesImported,
    OnConflict,
)
from greenroom.actors.memories.transfer.export_actor import (
    MIME_TYPES,
    export_address,
    export_lines,
    export_uri,
)
from greenroom.actors.memories.transfer.import_run import Importer, ImportRefusedError
from greenroom.actors.memories.transfer.normalize import SourceError
from greenroom.actors.memories.transfer.sources import source_of_text
from greenroom.runtime import Procedure, Refusal, StorageFullError

_STEPS: Final = {"checking": 0, "staging": 1, "importing": 2, "embedding": 3}
_AROUND: Final = 4
"""At most this many bytes are added around a line, or around all lines."""
_PART: Final = 100
"""Progress counts in hundredths of a step, since the steps count different things."""

SourceText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=requests.MAX_SOURCE_BYTES,
        description="JSON Lines. One memory a line: key, content or value; optional namespace, created_at, "
        "created_by, conversation_id, position, tags, kind, importance, scope, expires_at, metadata",
    ),
]


@operation(
    "import_memories",
    scope="memory:write",
    tool=ToolText(
        title="Import memories",
        description="Store many memories at once from JSON Lines, all or none; a bad line is "
        "named. Repeating it changes nothing.",
        overwrites=True,
        repeatable=True,
    ),
)
class ImportMemories(Procedure[MemoriesImported], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Import memories, all or none; the same lines again change nothing."""

    runs = "here"
    source: SourceText
    namespace: kinds.Namespace | None = None
    on_conflict: Annotated[OnConflict, Meta(description="where the key exists")] = "skip"
    dry_run: Annotated[bool, Meta(description="only count what would happen")] = False

    async def run(self, client: Client) -> MemoriesImported:
        """Import the lines.

        Raises:
            Refusal: ``VALIDATION_ERROR`` names the lines that cannot be imported; nothing was imported.
        """
        runtime, principal = client.runtime, client.principal
        importer = Importer(
            runtime,
            principal,
            source_of_text(self.source),
            namespace=self.namespace,
            on_conflict=self.on_conflict,
            progress=_report_import,
        )
        try:
            done = await importer.run(dry_run=self.dry_run, wait_embedded=False)
        except ImportRefusedError as error:
            problems = [problem._asdict() for problem in error.problems]
            raise auth_errors.invalid("source", f"nothing was imported: {error}", problems=problems) from None
        except SourceError as error:
            raise auth_errors.invalid("source", f"nothing was imported: {error}") from None
        return MemoriesImported(
            dry_run=self.dry_run,
            lines=done.lines,
            counts=done.counts,
            namespaces=done.namespaces,
            digest=done.digest,
        )


@operation(
    "export_memories",
    scope="memory:read",
    tool=ToolText(
        title="Export memories",
        description="Write memories that you may see into files, which the answer links to as "
        "resources. import_memories takes the same lines.",
    ),
    keeps=True,
)
class ExportMemories(Procedure[MemoriesExported], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Export visible memories; the reply links to the parts of the export."""

    runs = "here"

    namespace: kinds.Below | None = None
    filters: Annotated[MemoryFilters | None, Meta(description="all that are given must fit")] = None
    format: Annotated[ExportFormat, Meta(description="of the files")] = "jsonl"

    async def run(self, client: Client) -> MemoriesExported:
        """Store the export as resources.

        Raises:
            Refusal: ``VALIDATION_ERROR``: The export, or one memory, is too large;
                ``QUOTA_EXCEEDED``: It exceeds the caller's quota.
            StorageFullError: The store has no room for it.
        """
        parts = _Parts(client, self.format)
        unwritten: list[str] = []
        damage: list[Damaged] = []
        found = export_lines(
            client.runtime, client.principal, self.namespace, self.filters, _report_export, unwritten, damage
        )
        try:
            async with aclosing(found) as pages:
                async for page in pages:
                    await parts.add(page)
            await parts.end()
        except (Refusal, StorageFullError) as error:
            await parts.drop()
            if isinstance(error, Refusal):
                raise
            raise StorageFullError(
                "the store has no room to keep an export; make room, or take `greenroom export`, which "
                "writes a file and works with a full store, too",
                error.numbers,
            ) from error
        client.on_export(parts.size)
        return MemoriesExported(
            uri=parts.all[0].uri,
            count=sum(part.count for part in parts.all),
            size_bytes=parts.size,
            digest=parts.digest.hexdigest(),
            parts=parts.all,
            format=self.format,
            mime_type=MIME_TYPES[self.format],
            unwritten=unwritten,
            damaged=merge_damage(damage),
        )


class _Parts:
    """An export that is being cut into parts, each of which fits into a message."""

    def __init__(self, client: Client, format: ExportFormat) -> None:
        self.all: list[requests.ExportPart] = []
        self.size = 0
        self.digest = sha256()
        self._client = client
        self._format: ExportFormat = format
        self._id = secrets.token_hex(16)
        self._begin()

    async def add(self, page: list[msgspec.Raw]) -> None:
        """Store lines; end a full part, and begin the next."""
        fitting: list[msgspec.Raw] = []
        for line in page:
            size = len(bytes(line)) + _AROUND
            if size > requests.MAX_PART_BYTES:
                raise _too_large_a_line(line)
            if self._room < size:
                await self._keep(self._writer.lines(fitting))
                await self.end()
                self._begin()
                fitting = []
            self._room -= size
            self._count += 1
            fitting.append(line)
        await self._keep(self._writer.lines(fitting))

    async def end(self) -> None:
        """End the current part."""
        await self._keep(self._writer.end(), is_last=True)
        part = requests.ExportPart(
            uri=export_uri(self._id, len(self.all) + 1),
            count=self._count,
            size_bytes=self._bytes,
            digest=self._digest.hexdigest(),
        )
        self.all.append(part)

    async def drop(self) -> None:
        """Remove the stored pieces, since no one will get their address."""
        with suppress(StorageFullError):  # then they expire after a day
            await self._client.runtime.ask(export_address(self._id), requests.ForgetExport())

    def _begin(self) -> None:
        self._writer = ExportWriter(self._format)
        self._digest = sha256()
        self._room = requests.MAX_PART_BYTES - _AROUND
        self._number = self._count = self._bytes = 0

    async def _keep(self, piece: bytes, *, is_last: bool = False) -> None:
        if not piece and not (is_last and not self._number):  # an empty part is stored as well
            return
        self.size += len(piece)
        self._bytes += len(piece)
        _check_size(self.size)
        self.digest.update(piece)
        self._digest.update(piece)
        part = len(self.all) + 1
        kept = requests.KeepExport(part=part, number=self._number, text=piece.decode(), format=self._format)
        await self._client.charge_bytes(len(piece), f"{self._id} {part} {self._number}")
        self._number += 1
        await self._client.ask(export_address(self._id), kept)


def _too_large_a_line(line: msgspec.Raw) -> Refusal:
    memory = decode_line(line)
    return auth_errors.invalid(
        "namespace",
        f"namespace: the memory {memory.key!r} in {memory.namespace} takes {len(bytes(line)):,} bytes, and a "
        f"message has room for {requests.MAX_PART_BYTES:,}; leave it out by filters, or take `greenroom "
        "export`, which writes a file of any size",
        limit=requests.MAX_PART_BYTES,
    )


def _check_size(size: int) -> None:
    if size > requests.MAX_EXPORT_BYTES:
        raise auth_errors.invalid(
            "namespace",
            f"namespace: the export has more than {requests.MAX_EXPORT_BYTES:,} bytes; take a part of it, or "
            "`greenroom export`, which writes a file of any size",
            limit=requests.MAX_EXPORT_BYTES,
        )


class ExportWriter:
    """Write lines as JSON Lines, or as one JSON array."""

    def __init__(self, format: ExportFormat) -> None:
        self._is_array = format == "json"
        self._is_empty = True

    def lines(self, page: list[msgspec.Raw]) -> bytes:
        """Return the bytes of some lines."""
        lines = [bytes(line) for line in page]
        if not self._is_array:
            return b"".join(line + b"\n" for line in lines)
        begin = b"[\n" if self._is_empty else b",\n"
        self._is_empty = self._is_empty and not lines
        return begin + b",\n".join(lines) if lines else b""

    def end(self) -> bytes:
        """Return the bytes after the last line."""
        if not self._is_array:
            return b""
        return b"[]\n" if self._is_empty else b"\n]\n"


def _report_import(stage: str, done: int, total: int) -> None:
    step = _STEPS[stage]
    part = 1.0 if not total else min(1.0, done / total)
    report_progress(
        round(_PART * (step + part), 1), _PART * (len(_STEPS) - 1), f"{stage}: {done:,} of {total:,}"
    )


def _report_export(memories: int, roots: int, of: int) -> None:
    report_progress(roots, of, f"{memories:,} memories")
