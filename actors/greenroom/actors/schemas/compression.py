"""Compression of texts: what is asked, and what is answered."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies.memory_types import Fraction
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation.types import BRIEF

MAX_TEXT: Final = 500_000
USUAL_RATIO: Final = 0.5
SHOWN_RUNS: Final = 100
"""Runs of lines that an answer names of those that were left out, and of those that were shortened."""

AText = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT, description="what to make shorter")]
TargetRatio = Annotated[
    float, Meta(ge=0.01, le=1, description="compressed by original; 0.5 unless max_tokens is given")
]
TextTokens = Annotated[int, Meta(ge=1, description="how long it may be; one sentence may be longer")]
Threshold = Annotated[Fraction, Meta(description="least quality: keeps more than target_ratio for it")]


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """How much is left out.

    Attributes:
        parts: Sentences, and parts of sentences.
        headings: Headings.
        code_lines: Lines of code.
        rows: Rows of tables.
        words: Words without meaning, such as articles, within what was kept.
        lines: Runs of lines of which nothing is kept, as first and last line.
        shortened: Runs of lines of which something is kept, and not all.
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
        text: What is kept, in its order and its own words.
        tokens: How long that is: bytes of UTF-8 by 4.
        original_tokens: How long the text was.
        ratio: Bytes that are kept, by those there were.
        quality: How much is kept of the weight of what the text says for the first time, 0 to 1: of its
            distinct terms, of which a name weighs 2, a number 1.25 and another word 0.5.
        reached: Whether the quality is as high as was asked for, and the length had room for the most
            important sentence, which else comes alone, whole.
        dropped: What is left out.
    """

    text: str
    tokens: int
    original_tokens: int
    ratio: float
    quality: float
    reached: bool
    dropped: Annotated[Dropped, Meta(extra_json_schema=BRIEF)]
