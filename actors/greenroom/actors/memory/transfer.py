"""The memory actor's part in import and export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.actors.memory import export, import_staging
from greenroom.actors.schemas import transfer as requests
from greenroom.runtime import Actor, Context, Slices, handles

if TYPE_CHECKING:
    from greenroom.actors.memory.repository import MemoryRepository


class MemoryTransfer(Actor):
    """Base of the memory actor: what it does with lines of files."""

    _repository: MemoryRepository

    @handles(requests.StageLines)
    def stage_lines(self, request: requests.StageLines, context: Context) -> requests.Staged:
        """Keep a batch of lines until it is decided what becomes of them."""
        return import_staging.stage(self._repository, request, context)

    @handles(requests.ReadStaged)
    def read_staged(self, request: requests.ReadStaged, context: Context) -> requests.Staged:
        """Answer how much of an import is here."""
        return import_staging.staged(request, context)

    @handles(requests.TryLines)
    def try_lines(self, request: requests.TryLines, context: Context) -> Slices[requests.Counts]:
        """Count what would become of lines."""
        return import_staging.try_lines(self._repository, request, context)

    @handles(requests.ApplyLines)
    def apply_lines(self, request: requests.ApplyLines, context: Context) -> Slices[None]:
        """Write a batch of what was decided."""
        return import_staging.apply(self._repository, request, context)

    @handles(requests.DropLines)
    def drop_lines(self, request: requests.DropLines, context: Context) -> Slices[None]:
        """Remove a batch of what was given up."""
        return import_staging.drop(request, context)

    @handles(requests.ExportPage)
    def export_page(self, request: requests.ExportPage, context: Context) -> Slices[requests.ExportedPage]:
        """Answer a page of an export."""
        return export.page(self._repository, request, context)
