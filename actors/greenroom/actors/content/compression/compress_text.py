"""The tool that compresses a text for a prompt."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from greenroom.actors.content.compression.compress import compress
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.client import Client
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.memory_types import Fraction
from greenroom.actors.core.replies.paging import BYTES_PER_TOKEN, tokens_of_size
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.replies.sources import note_whole
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.types import BRIEF
from greenroom.runtime import Procedure

MAX_TEXT: Final = 500_000
USUAL_RATIO: Final = 0.5
SHOWN_RUNS: Final = 100
"""A reply names at most this many runs of dropped lines, and this many of shortened lines."""

AText = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT, description="what to make shorter")]
TargetRatio = Annotated[
    float, Meta(ge=0.01, le=1, description="compressed by original; 0.5 unless max_tokens is given")
]
TextTokens = Annotated[int, Meta(ge=1, description="how long it may be; one sentence may be longer")]
Threshold = Annotated[Fraction, Meta(description="least quality: keeps more than target_ratio for it")]


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """How much was dropped.

    Attributes:
        parts: Sentences, and parts of sentences.
        headings: Headings.
        code_lines: Lines of code.
        rows: Rows of tables.
        words: Filler words, such as articles, in kept parts.
        lines: Runs of dropped lines, as first and last line.
        shortened: Runs of partly kept lines.
        more_runs: How many runs are not named here.
    """

    parts: int
    headings: int
    code_lines: int
    rows: int
    words: int
    lines: list[list[int]]
    shortened: list[list[int]]
    more_runs: int


class TextCompressed(Reply, frozen=True, kw_only=True):
    """Answers `CompressText`.

    Attributes:
        text: The kept parts, word for word, in their order.
        tokens: The length of the text: bytes of UTF-8 divided by 4.
        original_tokens: The length of the original text.
        ratio: Kept bytes divided by original bytes.
        quality: The share of the weight of distinct terms that is kept, 0 to 1. A name weighs 2, a number
            1.25, another word 0.5.
        reached: Whether the quality reached the threshold and the most important sentence fitted; else that
            sentence comes alone.
        dropped: What was dropped.
    """

    text: str
    tokens: int
    original_tokens: int
    ratio: float
    quality: float
    reached: bool
    dropped: Annotated[Dropped, Meta(extra_json_schema=BRIEF)]


@operation(
    "compress_text",
    scope="server:read",
    tool=ToolText(
        title="Compress a text",
        description="Make a long text shorter for a prompt, without a model: keeps headings, code, "
        "names, numbers and what is new, word for word, and says what it left out.",
        weight=1,
    ),
)
class CompressText(Procedure[TextCompressed], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Make a text shorter: keep what says most for its length, word for word."""

    runs = "here"

    text: AText
    target_ratio: TargetRatio | None = None
    max_tokens: TextTokens | None = None
    quality_threshold: Threshold = 0.0

    async def run(self, client: Client) -> TextCompressed:
        """Compress the text in a thread; nothing is stored."""
        del client  # this request needs no actor
        if self.target_ratio is not None and self.max_tokens is not None:
            raise auth_errors.invalid(
                "target_ratio", "target_ratio: give target_ratio or max_tokens, one of them"
            )
        note_whole("", len(self.text.encode()))
        return await run_in_thread(self._compressed)

    def _compressed(self) -> TextCompressed:
        size = len(self.text.encode())
        if self.max_tokens is not None:
            budget = self.max_tokens * BYTES_PER_TOKEN
        else:
            budget = int(size * (self.target_ratio or USUAL_RATIO))
        made = compress(
            self.text, budget, least=self.quality_threshold, is_strict=self.max_tokens is not None
        )
        kept = len(made.text.encode())
        runs = len(made.lines) + len(made.shortened)
        lines = [list(run) for run in made.lines[:SHOWN_RUNS]]
        shortened = [list(run) for run in made.shortened[:SHOWN_RUNS]]
        return TextCompressed(
            text=made.text,
            tokens=tokens_of_size(kept),
            original_tokens=tokens_of_size(size),
            ratio=round(kept / size, 4),
            quality=round(made.quality, 4),
            reached=made.fits and made.quality >= self.quality_threshold,
            dropped=Dropped(
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
