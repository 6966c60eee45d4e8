"""`greenroom corpora`: lists, renames and drops corpora, and removes documents.

If a server is running, the command attaches to it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from greenroom.actors import (
    Agent,
    ClientContext,
    CorpusView,
    DropCorpus,
    ListCorpora,
    Principal,
    RenameCorpus,
)
from greenroom.actors.core.auth.scopes import KNOWLEDGE
from greenroom.actors.core.validation.parse import check_request
from greenroom.actors.knowledge.corpora.tools.corpus_admin import find_corpus
from greenroom.actors.knowledge.ingest.run import open_ingestion
from greenroom.runtime import RuntimeClient
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.output import complain, say, say_json
from greenroom.transports.ops.cli.support.authentication import acting_principal
from greenroom.transports.ops.cli.support.confirm import is_typed
from greenroom.transports.ops.cli.support.open_store import open_store


async def corpora(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Run an action on corpora; return the exit code."""
    settings = resolved.settings
    async with open_store(settings) as runtime:
        scope = KNOWLEDGE if chosen.action == "list" else "knowledge:write"
        principal = await acting_principal(runtime, settings, "greenroom corpora", scope)
        context = ClientContext(runtime, principal)
        match chosen.action:
            case "list":
                _show(chosen, (await Agent(runtime, principal).ask(ListCorpora())).corpora)
            case "rename":
                renaming = check_request(RenameCorpus(corpus=chosen.corpus, to=chosen.to))
                _tell(chosen, "renamed", (await renaming.run(context)).corpus)
            case "drop":
                dropping = check_request(DropCorpus(corpus=chosen.corpus))
                name = (await find_corpus(runtime, principal, dropping.corpus)).full_name
                if not await _is_confirmed(chosen, name):
                    return complain("corpora", f"{name} was not dropped; --yes does it", exit_codes.FAILED)
                _tell(chosen, "dropped", (await dropping.run(context)).corpus)
            case _:
                await _remove(chosen, runtime, principal)
    return exit_codes.OK


async def _is_confirmed(chosen: argparse.Namespace, name: str) -> bool:
    question = (
        f"greenroom corpora: this drops {name} with all its documents and cannot be undone;\n"
        "their files stay. To continue, type yes:"
    )
    return chosen.yes or (not chosen.json and await is_typed("yes", question))


def _show(chosen: argparse.Namespace, found: Sequence[CorpusView]) -> None:
    if chosen.json:
        say_json(found)
        return
    for each in found:
        say(_line(each))


async def _remove(chosen: argparse.Namespace, runtime: RuntimeClient, principal: Principal) -> None:
    async with open_ingestion(runtime, principal, chosen.corpus, make=False) as ingestion:
        done = await ingestion.texts([], chosen.documents)
    if chosen.json:
        say(json.dumps({"corpus": done.corpus, "removed": done.removed}))
    else:
        say(f"removed: {done.removed:,} of {len(set(chosen.documents)):,} documents from {done.corpus}")


def _tell(chosen: argparse.Namespace, action: str, corpus: str) -> None:
    say(json.dumps({action: corpus}) if chosen.json else f"{action}: {corpus}")


def _line(corpus: CorpusView) -> str:
    fresh = "" if corpus.indexed_at is None else f", last changed {corpus.indexed_at:%Y-%m-%d %H:%M} UTC"
    count = corpus.failed_files or 0
    failed = f", {count:,} file{'' if count == 1 else 's'} failed" if count else ""
    return f"{corpus.corpus}: {corpus.documents:,} documents in {corpus.chunks:,} chunks{fresh}{failed}"
