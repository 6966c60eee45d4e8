"""Completing names that somebody begins to type: what is asked, and what is answered."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.runtime import Message

MAX_VALUES: Final = 100
"""The protocol's limit."""
NameKind = Literal["path", "symbol"]
Begun = Annotated[str, Meta(max_length=4_096, description="what is typed so far")]


class NameCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """Names that may be meant, the likeliest first, `MAX_VALUES` at most.

    Attributes:
        values: The names.
        has_more: Whether there are more, or there may be.
    """

    values: list[str]
    has_more: bool


class FindNames(Message[NameCompletion], frozen=True, kw_only=True):
    """Find names in a corpus that begin like this, as a whole or after a part; not a tool.

    Attributes:
        kind: ``path``, of documents; ``symbol``, of what source code defines.
        value: What is typed so far; its case does not matter.
        path: The document whose symbols are meant; empty for all.
    """

    corpus: CorpusName
    kind: NameKind
    value: Begun = ""
    path: Begun = ""
