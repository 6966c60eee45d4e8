"""The tool that makes a text shorter for a model."""

from __future__ import annotations

from typing import ClassVar

from greenroom.actors.base.orchestration import Orchestration
from greenroom.actors.content.compression import compress
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.replies.paging import BYTES_PER_TOKEN, tokens_of_size
from greenroom.actors.core.replies.sources import note_whole
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.schemas import compression as schemas
from greenroom.runtime import RuntimeClient


class CompressText(
    Orchestration[schemas.TextCompressed], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Make a text shorter: keep what says most for its length, word for word."""

    writes: ClassVar[bool] = False

    text: schemas.AText
    target_ratio: schemas.TargetRatio | None = None
    max_tokens: schemas.TextTokens | None = None
    quality_threshold: schemas.Threshold = 0.0

    async def run(self, runtime: RuntimeClient, principal: Principal) -> schemas.TextCompressed:
        """Compress it in a thread; nothing is stored.

        Raises:
            Refusal: ``VALIDATION_ERROR``: two lengths are given.
        """
        del runtime, principal  # it is about nothing that is here
        if self.target_ratio is not None and self.max_tokens is not None:
            raise auth_errors.invalid(
                "target_ratio", "target_ratio: give target_ratio or max_tokens, one of them"
            )
        note_whole("", len(self.text.encode()))
        return await run_in_thread(self._compressed)

    def _compressed(self) -> schemas.TextCompressed:
        size = len(self.text.encode())
        if self.max_tokens is not None:
            budget = self.max_tokens * BYTES_PER_TOKEN
        else:
            budget = int(size * (self.target_ratio or schemas.USUAL_RATIO))
        made = compress(
            self.text, budget, least=self.quality_threshold, is_strict=self.max_tokens is not None
        )
        kept = len(made.text.encode())
        runs = len(made.lines) + len(made.shortened)
        lines = [list(run) for run in made.lines[: schemas.SHOWN_RUNS]]
        shortened = [list(run) for run in made.shortened[: schemas.SHOWN_RUNS]]
        return schemas.TextCompressed(
            text=made.text,
            tokens=tokens_of_size(kept),
            original_tokens=tokens_of_size(size),
            ratio=round(kept / size, 4),
            quality=round(made.quality, 4),
            reached=made.fits and made.quality >= self.quality_threshold,
            dropped=schemas.Dropped(
                parts=made.dropped.get("prose", 0),
                headings=made.dropped.get("heading", 0),
                code_lines=made.dropped.get("code", 0),
                rows=made.dropped.get("row", 0),
                words=made.words,
                lines=lines,
                shortened=shortened,
                more_runs=runs - len(lines) - len(shortened),
            ),
        )
