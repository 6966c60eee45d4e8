"""Filling corpora from outside, renaming and dropping them: which actor is asked for which name."""

from __future__ import annotations

from typing import ClassVar, TypeVar

import msgspec

from greenroom.actors.base.orchestration import Orchestration
from greenroom.actors.core.auth import corpora
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.knowledge.corpora.requests import corpus_requests as schemas
from greenroom.actors.knowledge.corpora.requests.catalogue import (
    FindCorpus,
    catalogue_address,
    check_owner,
    corpus_address,
    corpus_not_found,
)
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.runtime import Message, RuntimeClient

R = TypeVar("R")


async def ask_corpus(
    runtime: RuntimeClient, principal: Principal, message: Message[R], *, make: bool = False
) -> R:
    """Ask the corpus that a message names in its field ``corpus``, and return the reply.

    Args:
        runtime: Where it is.
        principal: Who asks.
        message: Such as `PutDocument`.
        make: Whether to make the corpus if there is none. What a word alone means is then the
            principal's own, and without a user that of all.

    Raises:
        Refusal: ``CORPUS_NOT_FOUND``, or what the corpus refuses.
    """
    name: str = message.corpus  # type: ignore[attr-defined]  # as the docstring asks
    row = await (made_corpus if make else found_corpus)(runtime, principal, name)
    named = msgspec.structs.replace(message, corpus=row.full_name)
    return await runtime.ask(corpus_address(row), named, principal=principal)


async def found_corpus(runtime: RuntimeClient, principal: Principal, name: str) -> CorpusRow:
    """Return the corpus that a name means.

    Raises:
        Refusal: ``CORPUS_NOT_FOUND``.
    """
    check_owner(principal, name)
    row = await runtime.query(FindCorpus(name=name), principal=principal)
    if row is None:
        raise corpus_not_found(name)
    return row


async def made_corpus(
    runtime: RuntimeClient, principal: Principal, name: str, root: str | None = None
) -> CorpusRow:
    """Return the corpus that a name means, a new one if there is none; of a folder, the workspace.

    Raises:
        Refusal: ``CORPUS_NOT_FOUND``: the caller may not have one there.
    """
    check_owner(principal, name)
    row = await runtime.query(FindCorpus(name=name), principal=principal)
    if row is not None and root in {None, row.root}:
        return row
    wanted = corpora.meant(principal, name)[0]
    return await runtime.ask(
        catalogue_address(wanted.owner), schemas.MakeCorpus(name=wanted.name, root=root), principal=principal
    )


class CorpusRenamed(Reply, frozen=True, kw_only=True):
    """Answers `RenameCorpus` with its new name in full."""

    corpus: str


class RenameCorpus(Orchestration[CorpusRenamed], frozen=True, kw_only=True):
    """Give a corpus another name; it stays whose it is."""

    writes: ClassVar[bool] = True

    corpus: schemas.CorpusName
    to: schemas.NewCorpusName

    async def run(self, runtime: RuntimeClient, principal: Principal) -> CorpusRenamed:
        """Ask its owner's catalogue."""
        row = await found_corpus(runtime, principal, self.corpus)
        request = schemas.RenameOwned(name=row.name, to=self.to)
        renamed = await runtime.ask(catalogue_address(row.owner), request, principal=principal)
        return CorpusRenamed(corpus=renamed.full_name)


class CorpusDropped(Reply, frozen=True, kw_only=True):
    """Answers `DropCorpus` with the name in full of what is gone."""

    corpus: str


class DropCorpus(Orchestration[CorpusDropped], frozen=True, kw_only=True):
    """Drop a corpus with all its documents; the files that they came from are not touched."""

    writes: ClassVar[bool] = True

    corpus: schemas.CorpusName

    async def run(self, runtime: RuntimeClient, principal: Principal) -> CorpusDropped:
        """Ask its owner's catalogue."""
        row = await found_corpus(runtime, principal, self.corpus)
        dropped = await runtime.ask(
            catalogue_address(row.owner), schemas.DropOwned(name=row.name), principal=principal
        )
        return CorpusDropped(corpus=dropped.full_name)
