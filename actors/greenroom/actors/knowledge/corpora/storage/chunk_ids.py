"""Chunk ids: the corpus's random prefix and the chunk's number, in an integer below 2^53.

    id = prefix << 28 | number

Prefixes are random and never reused, so that neither an id nor a gap reveals other corpora. Numbers count
up in each corpus and are never reused. In stores before format 3, the id was only the number.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from greenroom.actors.knowledge.corpora.requests import corpus_requests
from greenroom.actors.knowledge.corpora.requests.catalogue import (
    AllCorpora,
    catalogue_address,
    corpus_address,
)
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.runtime import Actor, Context, GreenroomError, Refusal, RuntimeClient, handles

logger = logging.getLogger(__name__)

_PREFIXES: Final = b"p"
_PREFIX_BYTES: Final = 4
_DRAWS: Final = 1_000


class IdPrefixActor(Actor):
    """All prefixes that the corpora of a store have or had."""

    kind = corpus_requests.ID_PREFIXES.kind

    @handles(corpus_requests.TakeIdPrefix)
    def take(self, _: corpus_requests.TakeIdPrefix, context: Context) -> int:
        """Draw a prefix that no corpus has or had before."""
        for _draw in range(_DRAWS):
            prefix = context.random.randrange(1, 1 << corpus_requests.PREFIX_BITS)
            if context.get(_key(prefix), bytes) is None:
                context.put(_key(prefix), b"")
                return prefix
        raise Refusal(
            "QUOTA_EXCEEDED", "too many corpora were made: no ids are left for passages of another corpus"
        )

    @handles(corpus_requests.KnowIdPrefixes)
    def know(self, request: corpus_requests.KnowIdPrefixes, context: Context) -> None:
        """Record prefixes in use, since a repair may have lost them."""
        context.use_reserve()
        for prefix in request.prefixes:
            if context.get(_key(prefix), bytes) is None:
                context.put(_key(prefix), b"")


async def give_prefixes(runtime: RuntimeClient, *, renew: bool) -> None:
    """Give each corpus of an older store a prefix; the next start resumes this.

    A store with one corpus keeps its older ids, since they cannot mean passages of another corpus. ``renew``
    changes every prefix, because a store restored from a backup would reuse numbers.
    """
    try:
        rows = await runtime.query(AllCorpora())
        if not rows:
            return
        used = [row.id_prefix for row in rows if row.id_prefix]
        await runtime.ask(corpus_requests.ID_PREFIXES, corpus_requests.KnowIdPrefixes(prefixes=used))
        is_only = len(rows) == 1 and rows[0].number == 1
        for row in rows:
            if renew or not row.id_prefix:
                await _give_prefix(runtime, row, keeps_ids=is_only)
    except GreenroomError:
        logger.exception("ids of passages stay as they were until the next start")


async def _give_prefix(runtime: RuntimeClient, row: CorpusRow, *, keeps_ids: bool) -> None:
    old = row.old_ids
    if keeps_ids and not row.id_prefix:
        old = await runtime.ask(corpus_address(row), corpus_requests.NextChunk())
    prefix = await runtime.ask(corpus_requests.ID_PREFIXES, corpus_requests.TakeIdPrefix())
    given = msgspec.structs.replace(row, id_prefix=prefix, old_ids=old)
    await runtime.ask(catalogue_address(row.owner), corpus_requests.SetIdPrefix(row=given))


def _key(prefix: int) -> bytes:
    return _PREFIXES + prefix.to_bytes(_PREFIX_BYTES)
