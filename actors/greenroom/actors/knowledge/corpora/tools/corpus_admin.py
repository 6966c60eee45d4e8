"""Address corpora by name from outside of actors; rename and drop them."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from greenroom.actors.core.auth import corpora
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.client import Client
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.knowledge.corpora.requests import corpus_requests
from greenroom.actors.knowledge.corpora.requests.catalogue import (
    FindCorpus,
    catalogue_address,
    check_owner,
    corpus_address,
    corpus_not_found,
)
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.runtime import Message, Procedure, RuntimeClient

R = TypeVar("R")


async def ask_corpus(
    runtime: RuntimeClient, principal: Principal, message: Message[R], *, make: bool = False
) -> R:
    """Send a message to the corpus in its field ``corpus``, and return the reply.

    Args:
        runtime: The runtime of the corpus.
        principal: The caller.
        message: A message such as `PutDocument`.
        make: Whether to create a missing corpus. A short name then means the principal's own corpus or,
            without a user, the corpus that belongs to all.

    Raises:
        Refusal: ``CORPUS_NOT_FOUND``, or a refusal of the corpus.
    """
    name: str = message.corpus  # type: ignore[attr-defined]  # as the docstring requires
    row = await (ensure_corpus if make else find_corpus)(runtime, principal, name)
    named = msgspec.structs.replace(message, corpus=row.full_name)
    return await runtime.ask(corpus_address(row), named, principal=principal)


async def find_corpus(runtime: RuntimeClient, principal: Principal, name: str) -> CorpusRow:
    """Return the corpus with a name, or refuse."""
    check_owner(principal, name)
    row = await runtime.query(FindCorpus(name=name), principal=principal)
    if row is None:
        raise corpus_not_found(name)
    return row


async def ensure_corpus(
    runtime: RuntimeClient,
    principal: Principal,
    name: str,
    root: str | None = None,
    project: str | None = None,
) -> CorpusRow:
    """Return the corpus with a name, or create it; with ``root``, a project's workspace."""
    check_owner(principal, name)
    row = await runtime.query(FindCorpus(name=name), principal=principal)
    if row is not None and root in {None, row.root} and project in {None, *row.projects[:1]}:
        return row
    wanted = corpora.find_candidates(principal, name)[0]
    return await runtime.ask(
        catalogue_address(wanted.owner),
        corpus_requests.MakeCorpus(name=wanted.name, root=root, project=project),
        principal=principal,
    )


class CorpusRenamed(Reply, frozen=True, kw_only=True):
    """Reply to `RenameCorpus`: the new full name."""

    corpus: str


class RenameCorpus(Procedure[CorpusRenamed], frozen=True, kw_only=True):
    """Rename a corpus; its owner stays the same."""

    runs = "here"
    corpus: corpus_requests.CorpusName
    to: corpus_requests.NewCorpusName

    async def run(self, client: Client) -> CorpusRenamed:
        """Send the request to the catalogue of the corpus's owner."""
        runtime, principal = client.runtime, client.principal
        row = await find_corpus(runtime, principal, self.corpus)
        request = corpus_requests.RenameOwned(name=row.name, to=self.to)
        renamed = await runtime.ask(catalogue_address(row.owner), request, principal=principal)
        return CorpusRenamed(corpus=renamed.full_name)


class CorpusDropped(Reply, frozen=True, kw_only=True):
    """Reply to `DropCorpus`: the full name of the dropped corpus."""

    corpus: str


class DropCorpus(Procedure[CorpusDropped], frozen=True, kw_only=True):
    """Drop a corpus with all its documents; their files are not touched."""

    runs = "here"
    corpus: corpus_requests.CorpusName

    async def run(self, client: Client) -> CorpusDropped:
        """Send the request to the catalogue of the corpus's owner."""
        runtime, principal = client.runtime, client.principal
        row = await find_corpus(runtime, principal, self.corpus)
        dropped = await runtime.ask(
            catalogue_address(row.owner), corpus_requests.DropOwned(name=row.name), principal=principal
        )
        return CorpusDropped(corpus=dropped.full_name)
