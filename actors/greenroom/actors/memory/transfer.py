"""The memory actor's part in import and export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.actors.memory import export as exporting
from greenroom.actors.memory import import_staging as importing
from greenroom.actors.schemas import transfer as requests
from greenroom.runtime import Actor, Context, Slices, handles

if TYPE_CHECKING:
    from greenroom.actors.memory.repository import Keeper


class MemoryExchange(Actor):
    """Base of the memory actor: what it does with lines of files."""

    _keeper: Keeper

    @handles(requests.StageLines)
    def stage_lines(self, request: requests.StageLines, context: Context) -> requests.Staged:
        """Keep a batch of lines until it is decided what becomes of them."""
        return importing.stage(self._keeper, request, context)

    @handles(requests.ReadStaged)
    def read_staged(self, request: requests.ReadStaged, context: Context) -> requests.Staged:
        """Answer how much of an import is here."""
        return importing.staged(request, context)

    @handles(requests.TryLines)
    def try_lines(self, request: requests.TryLines, context: Context) -> Slices[requests.Counts]:
        """Count what would become of lines."""
        return importing.try_lines(self._keeper, request, context)

    @handles(requests.ApplyLines)
    def apply_lines(self, request: requests.ApplyLines, context: Context) -> Slices[None]:
        """Write a batch of what was decided."""
        return importing.apply(self._keeper, request, context)

    @handles(requests.DropLines)
    def drop_lines(self, request: requests.DropLines, context: Context) -> Slices[None]:
        """Remove a batch of what was given up."""
        return importing.drop(request, context)

    @handles(requests.ExportPage)
    def export_page(self, request: requests.ExportPage, context: Context) -> Slices[requests.ExportedPage]:
        """Answer a page of an export."""
        return exporting.page(self._keeper, request, context)
