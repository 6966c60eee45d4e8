"""`greenroom import` and `greenroom export`: read memories from files and write them to files.

If a server is running, the command attaches to it, and the server does the work.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from contextlib import aclosing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import trio

from greenroom.actors.core.replies.damage import Damaged, merge_damage
from greenroom.actors.memories.requests.import_lines import LineError, check_below
from greenroom.actors.memories.transfer.export_actor import export_lines
from greenroom.actors.memories.transfer.import_export import ExportWriter
from greenroom.actors.memories.transfer.import_run import Imported, Importer, ImportRefusedError
from greenroom.actors.memories.transfer.normalize import SourceError, SourceUnreadableError
from greenroom.actors.memories.transfer.sources import FORMATS, Source, open_source
from greenroom.runtime import Refusal
from greenroom.runtime.base.full_sync import sync_descriptor
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import API_KEY_VARIABLE, Settings
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.authentication import acting_principal
from greenroom.transports.ops.cli.support.error_report import with_flags
from greenroom.transports.ops.cli.support.identity import principal_of
from greenroom.transports.ops.cli.support.open_store import embedder_choice, open_for_dry_run, open_store
from greenroom.transports.ops.cli.support.terminal import printable, show_progress

TO_STANDARD_OUTPUT: Final = "-"


async def import_memories(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Import a file or a folder; return the exit code."""
    settings = resolved.settings
    path, principal = Path(chosen.file), principal_of(settings)
    try:
        source = open_source(path, chosen.format, principal)
        with show_progress() as shows:
            embedder = embedder_choice(settings, os.environ)
            opening = (
                open_for_dry_run("import", settings, embedder)
                if chosen.dry_run
                else open_store(settings, embedder, may="create")
            )
            async with opening as runtime:
                if os.environ.get(API_KEY_VARIABLE):
                    principal = await acting_principal(runtime, settings, "greenroom import", "memory:write")
                    source = open_source(path, chosen.format, principal)
                importer = Importer(
                    runtime,
                    principal,
                    source,
                    namespace=chosen.namespace,
                    on_conflict=chosen.on_conflict,
                    is_strict=chosen.strict,
                    progress=shows,
                )
                done = await importer.run(dry_run=chosen.dry_run)
    except ImportRefusedError as error:
        for problem in error.problems:
            _name(path, problem.place, problem.sentence)
        if chosen.json:
            document = {"lines": 0, "counts": {}, "refused": _places(error.problems), "more": error.more}
            say(json.dumps({**document, "format": source.format, "dry_run": chosen.dry_run}, indent=2))
        more = "; there may be more" if error.more else ""
        return complain(
            "import", f"nothing was imported, since {path} has such lines{more}", exit_codes.FAILED
        )
    except SourceError as error:
        code = exit_codes.NO_ACCESS if isinstance(error, SourceUnreadableError) else exit_codes.FAILED
        return complain("import", f"nothing was imported: {error}", code)
    except Refusal as refusal:
        sentence = f"nothing was imported: {with_flags(refusal.sentence, chosen)}"
        return complain("import", sentence, exit_codes.FAILED)
    _show_import(chosen, path, source, done)
    if done.lines:
        code = exit_codes.LEFT_OUT if done.left_out_count else exit_codes.OK
        return exit_codes.FAILED if done.counts.get("refused") else code
    if done.left_out_count:
        sentence = f"nothing was imported, since nothing in {path} can be"
        return complain("import", sentence, exit_codes.FAILED)
    others = ", ".join(each for each in FORMATS if each not in {"auto", source.format})
    sentence = f"{path}, read as {source.format}, holds no memories; --format may say {others}"
    return complain("import", f"nothing was imported: {sentence}", exit_codes.FAILED)


def _places(problems: Sequence[LineError]) -> list[dict[str, str]]:
    return [{"place": each.place, "reason": each.sentence} for each in problems]


def _memories(count: int) -> str:
    return f"{count:,} {'memory' if count == 1 else 'memories'}"


def _name(path: Path, place: str, sentence: str) -> None:
    remark(printable(f"greenroom import: {path}{place and ', '}{place}: {sentence}"))


def _show_import(chosen: argparse.Namespace, path: Path, source: Source, done: Imported) -> None:
    for each in done.remarks:
        _name(path, each.place, each.sentence)
    for problem in done.left_out:
        _name(path, problem.place, f"left out: {problem.sentence}")
    if done.left_out_count:
        remark(f"greenroom import: {done.left_out_count:,} left out; mend them and import the same again")
    if done.counts.keys() == {"skipped"}:
        remark("greenroom import: nothing is new: the store has every key already (see --on-conflict)")
    if chosen.json:
        document = {**done._asdict(), "format": source.format, "dry_run": chosen.dry_run}
        document["left_out"] = _places(done.left_out)
        document["remarks"] = [{"place": each.place, "remark": each.sentence} for each in done.remarks]
        say(json.dumps(document, indent=2))
        return
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(done.counts.items()))
    places = f"{len(done.namespaces):,} namespaces" if len(done.namespaces) > 1 else "".join(done.namespaces)
    verb = "would come of" if chosen.dry_run else "came of"
    of = f"{_memories(done.lines)} for {places or 'no namespace'} ({source.format})"
    if done.lines:
        say(f"{counts or 'nothing'}: that {verb} {of}")
    if done.embedded is False:
        remark(
            "greenroom import: they are found by their words; their meaning follows when the embedder works"
        )


async def export_memories(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Export the visible memories to a file; return the exit code."""
    path = None if chosen.file == TO_STANDARD_OUTPUT else Path(chosen.file)
    if path is not None and path.exists():
        return complain("export", f"{path} exists already; choose another name", exit_codes.NO_ACCESS)
    if chosen.namespace is not None:
        check_below(chosen.namespace)
    part = None if path is None else path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        damage: list[Damaged] = []
        count, size, digest, unwritten = await _write(chosen, resolved.settings, part, damage)
        if path is not None and part is not None:
            os.link(part, path)  # unlike a rename, a link fails if the file exists by now
    except OSError as error:
        return complain(
            "export", f"{path} cannot be written: {error.strerror or error}", exit_codes.NO_ACCESS
        )
    finally:
        if part is not None:
            with suppress(OSError):
                part.unlink()
    for root in unwritten:
        remark(
            f"greenroom export: an import into {root} is decided and could not yet be written: a part of it "
            "may be missing; the server's log says why"
        )
    document = {"memories": count, "bytes": size, "sha256": digest, "unwritten": unwritten}
    document |= _name_lost(damage)
    if path is None:
        remark(f"greenroom export: {_memories(count)}, {size:,} bytes, SHA-256 {digest}")
    elif chosen.json:
        say(json.dumps({"file": str(path), **document}, indent=2))
    else:
        verb = "is" if count == 1 else "are"
        say(f"{_memories(count)} {verb} in {path}: {size:,} bytes, SHA-256 {digest}")
    return exit_codes.LEFT_OUT if damage else exit_codes.OK


def _name_lost(damage: Sequence[Damaged]) -> dict[str, object]:
    """Print which memories are damaged on disk and left out; return these as JSON."""
    found = merge_damage(damage)
    if not isinstance(found, Damaged):
        return {}
    entries = [one for each in damage for one in each.entries]
    for entry in entries:
        known = ", ".join(f"{name} {value!r}" for name, value in entry.items())
        remark(printable(f"greenroom export: left out, as it is damaged on disk: {known}"))
    are = "memory is" if found.count == 1 else "memories are"
    remark(f"greenroom export: {found.count:,} {are} damaged on disk and left out; {found.remedy}")
    return {"damaged": {"count": found.count, "entries": entries}}


async def _write(
    chosen: argparse.Namespace, settings: Settings, part: Path | None, damage: list[Damaged]
) -> tuple[int, int, str, list[str]]:
    """Write the export; return counts of memories and bytes, the digest, and incomplete roots."""
    unwritten: list[str] = []
    writer, digest = ExportWriter(chosen.format), sha256()
    count = size = 0
    descriptor = os.dup(1) if part is None else os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with show_progress() as shows, os.fdopen(descriptor, "wb") as file:
        async with open_store(settings, embedder_choice(settings, os.environ)) as runtime:
            principal = await acting_principal(runtime, settings, "greenroom export", "memory:read")
            found = export_lines(
                runtime,
                principal,
                chosen.namespace,
                progress=lambda memories, roots, of: shows(_memories(memories), roots, of),
                unwritten=unwritten,
                damage=damage,
            )
            async with aclosing(found) as pages:
                async for page in pages:
                    piece = writer.lines(page)
                    await trio.to_thread.run_sync(file.write, piece)
                    digest.update(piece)
                    size, count = size + len(piece), count + len(page)
        piece = writer.end()
        file.write(piece)
        digest.update(piece)
        file.flush()
        if part is not None:
            sync_descriptor(file.fileno())
    return count, size + len(piece), digest.hexdigest(), unwritten
