"""`greenroom ingest`: puts files and folders into a corpus, once or whenever they change.

If a server is running, the command attaches to it. This process reads the files.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from typing import NoReturn

import msgspec

from greenroom.actors.knowledge.corpora.requests.ingestion import DocumentsIngested
from greenroom.actors.knowledge.ingest.files.places import Reach, check_place
from greenroom.actors.knowledge.ingest.files.watch import NotWatchedError, watch
from greenroom.actors.knowledge.ingest.run import Ingestion, open_ingestion
from greenroom.runtime import Refusal
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.authentication import acting_principal
from greenroom.transports.ops.cli.support.error_report import (
    run_on_trio,
    run_until_signal,
    start_logging,
    with_flags,
)
from greenroom.transports.ops.cli.support.open_store import embedder_choice, open_store, own_folders
from greenroom.transports.ops.cli.support.terminal import printable, show_progress

_SHOWN = 20
"""The text output names at most this many files that were left out."""


def ingest(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Fill a corpus, and with ``--watch`` keep it up to date; return the exit code."""
    if not chosen.watch:
        return run_on_trio(_ingest, chosen, resolved)
    start_logging(resolved.settings.log_level)
    return run_until_signal("ingest", partial(_ingest, chosen, resolved), exit_codes.OK)


async def _ingest(chosen: argparse.Namespace, resolved: Resolved) -> int:
    settings = resolved.settings
    try:
        reach = reach_of(settings)
        roots = [check_place(path, reach) for path in chosen.paths]
        with show_progress() as shows:
            async with open_store(settings, embedder_choice(settings, os.environ), may="create") as runtime:
                principal = await acting_principal(runtime, settings, "greenroom ingest", "knowledge:write")
                async with open_ingestion(
                    runtime, principal, chosen.corpus, closed=reach.closed, progress=partial(shows, "files")
                ) as ingestion:
                    if chosen.watch:
                        await _keep_up(chosen, ingestion, roots)
                    done = await ingestion.files(roots)
                    waits = await ingestion.waits_for_vectors()
    except Refusal as refusal:
        return complain("ingest", with_flags(refusal.sentence, chosen), exit_codes.FAILED)
    except NotWatchedError as error:
        return complain("ingest", str(error), exit_codes.FAILED)
    _show(chosen, done)
    if waits:
        remark("greenroom ingest: all of it is found by its words; its meaning follows while a server runs")
    return exit_codes.OK if done.complete else exit_codes.FAILED


async def _keep_up(chosen: argparse.Namespace, ingestion: Ingestion, roots: list[str]) -> NoReturn:
    """Apply changes of the files until interrupted."""
    async with watch(roots) as changes:  # starts before the first ingest, so that no change is missed
        _show(chosen, await ingestion.files(roots))
        remark(f"greenroom ingest: watching {', '.join(map(printable, roots))}")
        while True:
            paths = await changes.next()
            done = await (ingestion.changes(roots, paths) if paths else ingestion.files(roots))
            if done.added or done.changed or done.removed:
                _show(chosen, done)


def reach_of(settings: Settings) -> Reach:
    """Return what the user of a command may ingest: anything except the program's own folders."""
    return Reach(roots=None, closed=own_folders(settings))


def _show(chosen: argparse.Namespace, done: DocumentsIngested) -> None:
    if chosen.json:
        document = msgspec.to_builtins(done)
        del document["success"]
        say(json.dumps(document, indent=None if chosen.watch else 2))
        return
    for each in done.named[:_SHOWN]:
        remark(f"greenroom ingest: {printable(each.path)} is left out: {each.reason}")
    if len(done.named) > _SHOWN:
        remark(f"greenroom ingest: {len(done.named) - _SHOWN:,} more are left out; --json names them")
    counts = {state: getattr(done, state) for state in ("added", "changed", "removed", "unchanged")}
    words = ", ".join(f"{count:,} {state}" for state, count in counts.items())
    say(f"{words} in {done.corpus}: {done.bytes:,} bytes in {done.chunks:,} chunks")
    if done.left_out:
        reasons = ", ".join(f"{count:,} since {reason}" for reason, count in sorted(done.left_out.items()))
        remark(f"greenroom ingest: left out {reasons}")
