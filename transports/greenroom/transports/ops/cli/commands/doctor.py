"""`greenroom doctor`: finds problems and their remedies, and changes nothing."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Final

import msgspec

from greenroom.transports.base.config.load import Resolved
from greenroom.transports.clients.hooks.failures import failure_files, failures_of
from greenroom.transports.clients.hooks.spool import MAX_BYTES, MAX_FILES, REFUSED, waiting
from greenroom.transports.clients.setup.change import LEFT_ALONE
from greenroom.transports.clients.setup.faults import AGAIN
from greenroom.transports.clients.table import CLIENTS, HOOK_CLIENTS
from greenroom.transports.ops.cli.commands.setup_check import Checked, inspect_client, try_out, uses_bridge
from greenroom.transports.ops.cli.doctor import folder
from greenroom.transports.ops.cli.doctor.advice import with_flags
from greenroom.transports.ops.cli.doctor.examination import CHECKS, examine
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, Report, exit_code, ok, under, warning, worst
from greenroom.transports.ops.cli.output import say, say_json
from greenroom.transports.ops.cli.support.store_texts import size
from greenroom.transports.ops.cli.support.terminal import printable


async def doctor(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Run all checks and print the findings; return the exit code."""
    findings = await examine(resolved, os.environ, checks=ALL_CHECKS)
    if chosen.try_clients:
        tried = under("clients", await try_clients(resolved))
        findings += [with_flags(each, resolved) for each in tried]
    findings = [_printable(each) for each in findings]
    if chosen.json:
        report = Report(
            version=version("greenroom"),
            folder=printable(str(resolved.settings.data)),
            worst=worst(findings),
            findings=findings,
        )
        say_json(report)
    else:
        for line in _lines(findings):
            say(line)
    return exit_code(findings)


def _printable(finding: Finding) -> Finding:
    """Make a finding's texts safe for a terminal, since file names may contain any characters."""
    remedy = None if finding.remedy is None else printable(finding.remedy)
    return msgspec.structs.replace(finding, finding=printable(finding.finding), remedy=remedy)


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    for each in findings:
        yield f"{each.level:<8} {each.topic:<12} {each.finding}"
        if each.remedy is not None:
            yield f"{'':<8} {'':<12} -> {each.remedy}"
    wrong = {level: sum(each.level == level for each in findings) for level in ("error", "warning")}
    counts = [f"{many:,} {level}{'s' if many > 1 else ''}" for level, many in wrong.items() if many]
    yield ", ".join(counts) if counts else "nothing wrong was found"


_RECENT: Final = timedelta(days=7)
_SOON: Final = timedelta(minutes=1)
_NEARLY: Final = 0.8


def check_folder(facts: Facts) -> Iterator[Finding]:
    """Check the folder, unless all clients use the server of another machine."""
    used = {uses_bridge(name) for name in CLIENTS} - {None}
    if used == {True} and facts.place.kind in {"missing", "empty"}:
        yield ok("the clients use the server of another machine, so no store is needed here")
    else:
        yield from folder.check(facts)


def check_clients(facts: Facts) -> Iterator[Finding]:
    """Check the files of each client, without starting a server."""
    found = [inspect_client(name, facts.resolved) for name in CLIENTS]
    for each in found:
        yield from of_client(each)
    if not any(each.configured for each in found):
        yield ok("no client has Greenroom set up; `greenroom setup` does it")
    elif left := [each.client for each in found if each.found and not each.configured and not each.wrong]:
        yield ok(f"found, without Greenroom: {', '.join(left)}; `greenroom setup` does it")


async def try_clients(resolved: Resolved) -> list[Finding]:
    """Start the server of each configured client as the client does; return the findings."""
    findings: list[Finding] = []
    for name in CLIENTS:
        result = inspect_client(name, resolved)
        if result.configured:
            known = len(result.wrong)
            await try_out(result, resolved)
            del result.wrong[:known]  # the check of files has already reported these
            if result.wrong or result.server is not None:
                findings += of_client(result)
    return findings


def of_client(result: Checked) -> Iterator[Finding]:
    """Return the findings about a client; no findings if it is not configured."""
    for sentence in result.wrong:
        what, _, remedy = sentence.rpartition("; ")
        if not what or remedy == AGAIN:
            remedy = f"set it up again: greenroom setup {result.client} --yes"
        elif remedy == LEFT_ALONE:
            remedy = f"mend it by hand: {result.file}"
        yield warning(f"{result.client}: {what or sentence}", remedy)
    if result.configured and not result.wrong:
        state = [f"configured in {result.file}"]
        if result.hooks is not None:
            state.append(result.hooks)
        if result.server is not None:
            state.append(f"its server starts: greenroom {result.server}, {result.tools} tools")
        yield ok(f"{result.client}: {', '.join(state)}")


def check_hooks(facts: Facts) -> Iterator[Finding]:
    """Report the hooks that failed recently."""
    having = [name for name in HOOK_CLIENTS if inspect_client(name, facts.resolved).hooks is not None]
    failures = failures_of(facts.settings.data)
    if not failures.count or failures.last_at is None:
        who = f"set up for {', '.join(having)}" if having else "no client has any"
        yield ok(f"{who}; none has failed")
        return
    many = "1 has" if failures.count == 1 else f"{failures.count:,} have"
    sentence = (
        f"{many} failed, {failures.last_hook} last, on "
        f"{failures.last_at:%Y-%m-%d %H:%M:%S} UTC: {failures.last_sentence}"
    )
    if _now(facts) - failures.last_at < _RECENT:
        files = shlex.join(map(str, failure_files(facts.settings.data)))
        yield warning(sentence, f"do what it says, and forget the failures then: rm {files}")
    else:
        yield ok(sentence)


def check_spool(facts: Facts) -> Iterator[Finding]:
    """Report the events that wait in the spool, and its unreadable files."""
    found = waiting(facts.settings.data)
    if found.refused:
        refused = facts.place.path / "spool" / REFUSED
        yield warning(
            f"{found.refused:,} files could not be read and were set aside in {refused}",
            f"check whether anything in them is missing, and remove them: rm -r {shlex.quote(str(refused))}",
        )
    if not found.files:
        yield ok("nothing waits")
        return
    since = f", the first since {found.oldest_at:%Y-%m-%d %H:%M:%S} UTC" if found.oldest_at else ""
    sentence = f"{found.files:,} events of hooks wait ({size(found.bytes)}){since}"
    is_late = found.oldest_at is not None and _now(facts) - found.oldest_at > _SOON
    if facts.figures is not None and is_late:
        remedy = "look into the server's log for why it does not take them, and start it again"
        yield warning(f"{sentence}, although a server is running", remedy)
    elif found.files > _NEARLY * MAX_FILES or found.bytes > _NEARLY * MAX_BYTES:
        remedy = "start a server, which takes them: greenroom serve"
        yield warning(f"{sentence}; of more than {MAX_FILES:,} the newest are lost", remedy)
    else:
        yield ok(f"{sentence}; the next server takes them")


def _now(facts: Facts) -> datetime:
    return datetime.fromtimestamp(facts.now, UTC)


ALL_CHECKS: Final = {
    **CHECKS,
    "folder": check_folder,
    "clients": check_clients,
    "hooks": check_hooks,
    "spool": check_spool,
}
