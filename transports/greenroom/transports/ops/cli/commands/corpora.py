"""`greenroom corpora`: corpora of documents, shown, renamed and dropped, and documents removed from one.

A running server has the store: then we attach to it, as any other process does.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable, Mapping

from greenroom.actors import Agent, CorpusView, DropCorpus, ListCorpora, Principal, RenameCorpus
from greenroom.actors.core.auth.scopes import KNOWLEDGE
from greenroom.actors.core.validation.parse import check_request
from greenroom.actors.knowledge.ingest.run import open_ingestion
from greenroom.runtime import Refusal, RuntimeClient
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.cli.support.acting import acting_principal
from greenroom.transports.cli.support.json_output import say_json
from greenroom.transports.ops.cli.output import complain, say
from greenroom.transports.ops.cli.support.error_report import with_flags
from greenroom.transports.ops.cli.support.open_store import open_store

_Deed = Callable[[argparse.Namespace, RuntimeClient, Principal], Awaitable[None]]


async def corpora(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Carry one of the commands out; return the exit code."""
    settings = resolved.settings
    try:
        async with open_store(settings) as runtime:
            scope = KNOWLEDGE if chosen.action == "list" else "knowledge:write"
            principal = await acting_principal(runtime, settings, "greenroom corpora", scope)
            await _DEEDS[chosen.action](chosen, runtime, principal)
    except Refusal as refusal:
        return complain("corpora", with_flags(refusal.sentence, chosen), exit_codes.FAILED)
    return exit_codes.OK


async def _list(chosen: argparse.Namespace, runtime: RuntimeClient, principal: Principal) -> None:
    found = (await Agent(runtime, principal).ask(ListCorpora())).corpora
    if chosen.json:
        say_json(found)
        return
    for each in found:
        say(_line(each))


async def _rename(chosen: argparse.Namespace, runtime: RuntimeClient, principal: Principal) -> None:
    request = check_request(RenameCorpus(corpus=chosen.corpus, to=chosen.to))
    _tell(chosen, "renamed", (await request.run(runtime, principal)).corpus)


async def _drop(chosen: argparse.Namespace, runtime: RuntimeClient, principal: Principal) -> None:
    request = check_request(DropCorpus(corpus=chosen.corpus))
    _tell(chosen, "dropped", (await request.run(runtime, principal)).corpus)


async def _remove(chosen: argparse.Namespace, runtime: RuntimeClient, principal: Principal) -> None:
    async with open_ingestion(runtime, principal, chosen.corpus, make=False) as ingestion:
        done = await ingestion.texts([], chosen.documents)
    if chosen.json:
        say(json.dumps({"corpus": done.corpus, "removed": done.removed}))
    else:
        say(f"removed: {done.removed:,} of {len(set(chosen.documents)):,} documents from {done.corpus}")


_DEEDS: Mapping[str, _Deed] = {"list": _list, "rename": _rename, "drop": _drop, "remove": _remove}


def _tell(chosen: argparse.Namespace, deed: str, corpus: str) -> None:
    say(json.dumps({deed: corpus}) if chosen.json else f"{deed}: {corpus}")


def _line(corpus: CorpusView) -> str:
    fresh = "" if corpus.indexed_at is None else f", last changed {corpus.indexed_at:%Y-%m-%d %H:%M} UTC"
    count = corpus.failed_files or 0
    failed = f", {count:,} file{'' if count == 1 else 's'} failed" if count else ""
    return f"{corpus.corpus}: {corpus.documents:,} documents in {corpus.chunks:,} chunks{fresh}{failed}"
