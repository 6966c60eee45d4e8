"""What an operator asks of all memories: whether the index is what the memories say."""

from __future__ import annotations

import msgspec

from greenroom.runtime import Message


class IndexVerified(msgspec.Struct, frozen=True, kw_only=True):
    """What was found below one root.

    Attributes:
        memories: Memories that the index is to have.
        problems: How the index differs from them, a sentence each; empty when it does not.
        rebuilt: Whether the index was made anew because of that.
        unindexed: Memories of an older program that wait to be indexed; then nothing was compared.
    """

    memories: int
    problems: list[str]
    rebuilt: bool
    unindexed: int = 0


class VerifyIndex(Message[IndexVerified], frozen=True, kw_only=True):
    """Compare the index below one root with the memories, and make it anew if that is wanted and needed."""

    rebuild: bool = False
