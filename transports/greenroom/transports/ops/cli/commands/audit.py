"""`greenroom audit`: shows, exports and verifies the audit log.

If a server is running, the command attaches to it.
"""

from __future__ import annotations

import argparse
import json
import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import trio

from greenroom.actors import Agent, AuditLines, AuditRecord, ExportAuditLog, GetAuditLog, Principal
from greenroom.actors.core.audit.query import AuditChecked, CheckAudit, CheckpointAudit, ReadAuditLog
from greenroom.runtime import Checkpoint, GreenroomError, SharedRuntime
from greenroom.runtime.base.full_sync import sync_descriptor
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.audit_record import operator, record
from greenroom.transports.ops.cli.support.open_store import open_store
from greenroom.transports.ops.cli.support.terminal import printable

STANDARD_OUTPUT: Final = "-"
_FOLLOW_SECONDS: Final = 1.0
_PAGE: Final = 200


class BadCheckpointError(GreenroomError):
    """A file contains no checkpoints."""


async def audit(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Run an action on the audit log; return the exit code."""
    try:
        async with open_store(resolved.settings) as runtime:
            principal = operator(resolved.settings)
            match chosen.action:
                case "tail":
                    return await _tail(chosen, runtime, principal)
                case "export":
                    return await _export(chosen, runtime, principal)
                case "verify":
                    return await _verify(chosen, runtime, principal)
            checkpoint = await runtime.query(CheckpointAudit(), principal=principal)
            say(msgspec.json.encode(checkpoint).decode())
            await record(runtime, principal, "checkpoint_audit", count=checkpoint.count)
            return exit_codes.OK
    except OSError as error:
        return complain("audit", f"{error.filename}: {error.strerror or error}", exit_codes.NO_ACCESS)


async def _tail(chosen: argparse.Namespace, runtime: SharedRuntime, principal: Principal) -> int:
    agent = Agent(runtime, principal)
    records: list[AuditRecord] = []
    cursor = None
    while len(records) < chosen.lines:
        page = await agent.ask(GetAuditLog(cursor=cursor, limit=min(_PAGE, chosen.lines - len(records))))
        records += page.records
        cursor = page.next_cursor
        if cursor is None:
            break
    for each in reversed(records):
        _show(each, as_json=chosen.json)
    last = max((each.number or 0 for each in records), default=0)
    while chosen.follow:
        await trio.sleep(_FOLLOW_SECONDS)
        page = await runtime.query(ReadAuditLog(start=last + 1), principal=principal)
        for each in page.records:
            _show(each, as_json=chosen.json)
            last = each.number or last
    return exit_codes.OK


def _show(record: AuditRecord, *, as_json: bool) -> None:
    if as_json:
        say(msgspec.json.encode(record).decode())
        return
    who = " ".join(
        printable(f"{name} {value}")
        for name, value in (
            ("agent", record.agent),
            ("user", record.user),
            ("key", record.key_id),
            ("from", record.address),
        )
        if value is not None
    )
    what = [printable(record.action), record.outcome]
    if record.times > 1:
        what.append(f"{record.times} times")
    if record.session_id is not None:
        what.append(f"session {printable(record.session_id)}")
    for name, value in record.details.items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        what.append(f"{name}={printable(text)}")
    say(f"{record.time:%Y-%m-%d %H:%M:%S}  {' '.join(what)}  ({who or 'the server'})")


async def _export(chosen: argparse.Namespace, runtime: SharedRuntime, principal: Principal) -> int:
    """Write each linked record as a line of JSON, and then a checkpoint."""
    name = chosen.file or STANDARD_OUTPUT
    descriptor = (
        os.dup(1) if name == STANDARD_OUTPUT else os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    )
    lines = AuditLines(partial(runtime.query, principal=principal), ExportAuditLog())
    try:
        with os.fdopen(descriptor, "wb") as file:
            while part := await lines.more():
                file.write(part)
            file.flush()
            if name != STANDARD_OUTPUT:
                sync_descriptor(file.fileno())
    except BaseException:
        _drop(name)
        raise
    await runtime.query(CheckpointAudit())  # waits until the record of this export is stored
    last = 0 if lines.checkpoint is None else lines.checkpoint.count
    remark(f"greenroom audit: {lines.count:,} records up to number {last:,}, and a checkpoint")
    return exit_codes.OK


def _drop(name: str) -> None:
    if name != STANDARD_OUTPUT:
        with suppress(OSError):
            Path(name).unlink()


async def _verify(chosen: argparse.Namespace, runtime: SharedRuntime, principal: Principal) -> int:
    known = () if chosen.checkpoint is None else _checkpoints(Path(chosen.checkpoint))
    found = await runtime.query(CheckAudit(checkpoints=known), principal=principal)
    wrong = [str(each) for each in found.report.findings] + [
        f"records {each.first} to {each.last} had been seen and were missing when the store was opened"
        f" (at {each.time})"
        for each in found.breaks
        if not each.restored
    ]
    if chosen.json:
        say(json.dumps({"intact": not wrong, "wrong": wrong, **msgspec.to_builtins(found)}, indent=2))
    else:
        _show_check(found, wrong)
    return exit_codes.DAMAGED if wrong else exit_codes.OK


def _show_check(found: AuditChecked, wrong: list[str]) -> None:
    report = found.report
    for each in found.breaks:
        if each.restored:
            say(f"records {each.first} to {each.last} were lost when a backup was restored")
    if not wrong:
        what = "the log is empty" if not report.last else f"{report.rows:,} records are intact"
        more = f"; {report.redacted:,} of them no longer name a person" if report.redacted else ""
        say(f"{what}, up to number {report.last:,}{more}")
        return
    for sentence in wrong:
        say(sentence)
    remark(f"greenroom audit: the log is not what the server wrote; {report.rows:,} records were checked")


def _checkpoints(path: Path) -> tuple[Checkpoint, ...]:
    """Return the checkpoints in a file: the output of `checkpoint`, or an export."""
    found = []
    with path.open("rb") as file:
        for line in file:
            try:
                parsed = msgspec.json.decode(line)
                if isinstance(parsed, dict) and ("checkpoint" in parsed or "signature" in parsed):
                    found.append(msgspec.convert(parsed.get("checkpoint", parsed), Checkpoint))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise BadCheckpointError(f"{path} is no export and no checkpoint: {error}") from None
    if not found:
        raise BadCheckpointError(f"{path} has no checkpoint; `greenroom audit checkpoint` prints one")
    return tuple(found)
