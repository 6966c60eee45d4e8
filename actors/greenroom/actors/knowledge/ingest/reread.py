"""After the server's start, slowly read files again for which there is a better reader.

This matters after a reader was installed or updated. Workspaces do it themselves. A document is replaced
only if its file is unchanged; a file that failed because its reader was missing is read as it is now.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Final, cast

import trio

from greenroom.actors.content.documents import Kind
from greenroom.actors.core.auth.namespaces import owner_of
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.knowledge.corpora.requests.catalogue import AllCorpora, corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow, ListDocuments
from greenroom.actors.knowledge.corpora.requests.entity_requests import ReadManifests
from greenroom.actors.knowledge.corpora.requests.ingestion import ListFailed
from greenroom.actors.knowledge.corpora.storage.readers import get_reader, is_newer, was_missing
from greenroom.actors.knowledge.ingest.files.places import Reach, may_look
from greenroom.runtime import GreenroomError, RuntimeClient

logger = logging.getLogger(__name__)

_SERVER: Final = Principal(agent_id="greenroom")
QUIET_SECONDS: Final = 5.0
"""The wait after a server's start, since the server has other things to do first."""


async def renew_documents(runtime: RuntimeClient, reach: Reach) -> None:
    """In all corpora, read files again for which there is a better reader."""
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
    """Renew a corpus's outdated documents; declare libraries that could not be declared before."""
    outdated = await _outdated(runtime, principal, row)
    paths = await read_in_thread(lambda: [path for path in outdated if may_look(path, reach)])
    request = ReadManifests(corpus=row.full_name, only_changed=True)  # this also starts the matching of names
    found = await runtime.ask(corpus_address(row), request, principal=principal)
    if paths or found.is_changed:
        await trio.to_thread.run_sync(import_module, "greenroom.actors.knowledge.ingest.run")
        from greenroom.actors.knowledge.ingest.run import open_renewal  # noqa: PLC0415 - slow, but already imported

        async with open_renewal(runtime, principal, row.full_name, closed=reach.closed) as ingestion:
            await ingestion.renew(paths)


async def _outdated(runtime: RuntimeClient, principal: Principal, row: CorpusRow) -> list[str]:
    where = corpus_address(row)
    failed = await runtime.ask(where, ListFailed(corpus=row.full_name), principal=principal)
    paths = [each.path for each in failed if was_missing(each.reason)]
    after: str | None = None
    while True:
        page = await runtime.ask(where, ListDocuments(corpus=row.full_name, after=after), principal=principal)
        paths += (
            each.path
            for each in page.documents
            if each.is_file
            and is_newer(get_reader(each.path, cast("Kind", each.kind), is_source=False), each.reader)
        )
        after = page.after
        if after is None:
            return paths
