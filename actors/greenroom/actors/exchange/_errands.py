"""Import and export as requests of the memory layer's tools."""

from __future__ import annotations

import secrets
from contextlib import aclosing
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from greenroom.actors import _refusals
from greenroom.actors._errand import Errand, report
from greenroom.actors.exchange._export_actor import MIME_TYPES, export_address, export_uri
from greenroom.actors.exchange._exporting import exported
from greenroom.actors.exchange._importing import Importer, ImportRefusedError
from greenroom.actors.exchange._json_lines import source_of_text
from greenroom.actors.exchange._making import SourceError
from greenroom.actors.requests import _exchange as requests
from greenroom.actors.requests import _memory_types as kinds
from greenroom.actors.requests._exchange import ExportFormat, MemoriesExported, MemoriesImported, OnConflict
from greenroom.actors.requests._memory_replies import MemoryFilters

if TYPE_CHECKING:
    from greenroom.actors._principal import Principal
    from greenroom.runtime import Doors

PIECE_BYTES: Final = 262_144
_STEPS: Final = {"checking": 0, "staging": 1, "importing": 2, "embedding": 3}
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


class ImportMemories(Errand[MemoriesImported], frozen=True, kw_only=True):
    """Import memories, all of them or none. The same lines again change nothing."""

    writes: ClassVar[bool] = True

    source: SourceText
    namespace: kinds.Namespace | None = None
    on_conflict: Annotated[OnConflict, Meta(description="where the key exists")] = "skip"
    dry_run: Annotated[bool, Meta(description="only count what would happen")] = False

    async def run(self, doors: Doors, principal: Principal) -> MemoriesImported:
        """Import the lines.

        Raises:
            Refusal: ``VALIDATION_ERROR`` names the lines that cannot be imported; nothing was.
        """
        importer = Importer(
            doors,
            principal,
            source_of_text(self.source),
            namespace=self.namespace,
            on_conflict=self.on_conflict,
            progress=_told,
        )
        try:
            done = await importer.run(dry_run=self.dry_run, wait_embedded=False)
        except ImportRefusedError as error:
            problems = [problem._asdict() for problem in error.problems]
            raise _refusals.invalid("source", f"nothing was imported: {error}", problems=problems) from None
        except SourceError as error:
            raise _refusals.invalid("source", f"nothing was imported: {error}") from None
        return MemoriesImported(
            dry_run=self.dry_run,
            lines=done.lines,
            counts=done.counts,
            namespaces=done.namespaces,
            digest=done.digest,
        )


class ExportMemories(Errand[MemoriesExported], frozen=True, kw_only=True):
    """Export memories that the caller may see; the answer links to the export."""

    namespace: kinds.NamespacePrefix | None = None
    filters: MemoryFilters | None = None
    format: ExportFormat = "jsonl"

    async def run(self, doors: Doors, principal: Principal) -> MemoriesExported:
        """Keep the export where the caller can read it.

        Raises:
            Refusal: ``VALIDATION_ERROR``: it is too large to be kept.
        """
        export_id = secrets.token_hex(16)
        writer = ExportWriter(self.format)
        number = size = count = 0
        digest = sha256()
        async with aclosing(exported(doors, principal, self.namespace, self.filters, _counted)) as pages:
            is_over = False
            while not is_over:
                page = await anext(pages, None)
                is_over = page is None
                piece = writer.end() if page is None else writer.lines(page)
                count += 0 if page is None else len(page)
                size += len(piece)
                digest.update(piece)
                _check_size(size)
                kept = requests.KeepExport(number=number, text=piece.decode(), format=self.format)
                await doors.ask(export_address(export_id), kept, principal=principal)
                number += 1
        return MemoriesExported(
            uri=export_uri(export_id),
            count=count,
            size_bytes=size,
            digest=digest.hexdigest(),
            format=self.format,
            mime_type=MIME_TYPES[self.format],
        )


def _check_size(size: int) -> None:
    if size > requests.MAX_EXPORT_BYTES:
        raise _refusals.invalid(
            "namespace",
            f"namespace: the export has more than {requests.MAX_EXPORT_BYTES:,} bytes; take a part of it, or "
            "`greenroom export`, which writes a file of any size",
            limit=requests.MAX_EXPORT_BYTES,
        )


class ExportWriter:
    """Writes lines as JSON Lines, or as one JSON array."""

    def __init__(self, format: ExportFormat) -> None:
        self._is_array = format == "json"
        self._is_empty = True

    def lines(self, page: list[msgspec.Raw]) -> bytes:
        """Return what some lines look like."""
        lines = [bytes(line) for line in page]
        if not self._is_array:
            return b"".join(line + b"\n" for line in lines)
        begin = b"[\n" if self._is_empty else b",\n"
        self._is_empty = self._is_empty and not lines
        return begin + b",\n".join(lines) if lines else b""

    def end(self) -> bytes:
        """Return what stands after the last of them."""
        if not self._is_array:
            return b""
        return b"[]\n" if self._is_empty else b"\n]\n"


def _told(stage: str, done: int, total: int) -> None:
    step = _STEPS[stage]
    part = 1.0 if not total else min(1.0, done / total)
    report(round(_PART * (step + part), 1), _PART * (len(_STEPS) - 1), f"{stage}: {done:,} of {total:,}")


def _counted(memories: int, roots: int, of: int) -> None:
    report(roots, of, f"{memories:,} memories")
