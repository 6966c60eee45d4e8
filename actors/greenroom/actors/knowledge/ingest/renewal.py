"""Corpora of documents whose files are read better now: when a server starts they are read again, slowly.

So it is where a reader of such files was installed or became newer since. Workspaces see to that themselves.
What was read of a file is replaced only while that is the same; one that nothing could read before is read as
it is.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Final, cast

import trio

from greenroom.actors.core.auth.namespaces import owner_of
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.documents import Kind
from greenroom.actors.knowledge.corpora.requests.catalogue import AllCorpora, corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow, ListDocuments
from greenroom.actors.knowledge.corpora.requests.entity_requests import ReadManifests
from greenroom.actors.knowledge.corpora.requests.ingestion import ListFailed
from greenroom.actors.knowledge.corpora.storage.readers import is_newer, reader_of, was_lacking
from greenroom.actors.knowledge.ingest.files.places import Reach, may_look
from greenroom.runtime import GreenroomError, RuntimeClient

logger = logging.getLogger(__name__)

_SERVER: Final = Principal(agent_id="greenroom")
QUIET_SECONDS: Final = 5.0
"""A server that has just started has other things to do."""


async def renew_documents(runtime: RuntimeClient, reach: Reach) -> None:
    """Read files again that are read better now, of all corpora, one after the other.

    Args:
        runtime: Where they are.
        reach: The files that may be read.
    """
    await trio.sleep(QUIET_SECONDS)
    try:
        rows = await runtime.query(AllCorpora())
    except GreenroomError as error:
        logger.info("no documents are read again: %s", error)
        return
    for row in rows:
        if row.root is None:
            try:
                await _renew(runtime, owner_of(row.full_name, _SERVER), row, reach)
            except GreenroomError as error:
                logger.info("the documents of %s are not read again: %s", row.full_name, error)


async def _renew(runtime: RuntimeClient, principal: Principal, row: CorpusRow, reach: Reach) -> None:
    """Read again what of a corpus is read better now; declare libraries that could not be before."""
    outdated = await _outdated(runtime, principal, row)
    paths = await read_in_thread(lambda: [path for path in outdated if may_look(path, reach)])
    request = ReadManifests(corpus=row.full_name, only_changed=True)  # which has names looked for, too
    found = await runtime.ask(corpus_address(row), request, principal=principal)
    if paths or found.is_changed:
        await trio.to_thread.run_sync(import_module, "greenroom.actors.knowledge.ingest.run")
        from greenroom.actors.knowledge.ingest.run import open_renewal  # noqa: PLC0415 - slow, and imported by now

        async with open_renewal(runtime, principal, row.full_name, closed=reach.closed) as ingestion:
            await ingestion.renew(paths)


async def _outdated(runtime: RuntimeClient, principal: Principal, row: CorpusRow) -> list[str]:
    """Return the files that were read by an older reader, or not at all for want of one."""
    where = corpus_address(row)
    failed = await runtime.ask(where, ListFailed(corpus=row.full_name), principal=principal)
    paths = [each.path for each in failed if was_lacking(each.reason)]
    after: str | None = None
    while True:
        page = await runtime.ask(where, ListDocuments(corpus=row.full_name, after=after), principal=principal)
        paths += (
            each.path
            for each in page.documents
            if each.is_file
            and is_newer(reader_of(each.path, cast("Kind", each.kind), is_source=False), each.reader)
        )
        after = page.after
        if after is None:
            return paths
