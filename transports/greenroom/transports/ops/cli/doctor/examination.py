"""The checks of `greenroom doctor`; they run concurrently, each with a time limit."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Final, cast

import trio

from greenroom.runtime import GreenroomError
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.doctor import embedder, folder, machine, program, store
from greenroom.transports.ops.cli.doctor.advice import with_flags
from greenroom.transports.ops.cli.doctor.facts import Facts, Mounts, Place, gather
from greenroom.transports.ops.cli.doctor.finding import Finding, error, refused, under

Check = Callable[[Facts], Iterable[Finding] | Awaitable[Iterable[Finding]]]

CHECKS: Final[Mapping[str, Check]] = {
    "versions": program.check_versions,
    "folder": folder.check,
    "locks": folder.check_locks,
    "records": store.check_records,
    "server": program.check_server,
    "settings": program.check_settings,
    "permissions": folder.check_permissions,
    "encryption": store.check_encryption,
    "audit": store.check_audit,
    "embedder": embedder.check,
    "disk": machine.check_disk,
    "clock": machine.check_clock,
    "limits": machine.check_limits,
    "packages": program.check_packages,
    "masked": store.check_masked_files,
}
"""The checks by topic, in the order of the output."""

SECONDS: Final = 15.0
"""The most seconds that one check may take."""
_HUNG: Final = "something hangs, such as a disk on the network"
_NOTHING: Final = f"nothing came for {SECONDS:g} s; {_HUNG}"
logger = logging.getLogger(__name__)


def mounted() -> Mounts:
    """Return the mount points and their file systems, in the order of mounting."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types, and is only needed here

    return [(each.mountpoint, each.fstype) for each in psutil.disk_partitions(all=True)]


async def examine(
    resolved: Resolved,
    environment: Mapping[str, str],
    *,
    checks: Mapping[str, Check] = CHECKS,
    mounts: Callable[[], Mounts] = mounted,
    patience: float = 5.0,
    now: Callable[[], float] = time.time,
) -> list[Finding]:
    """Run all checks; return their findings by topic, in the order of the checks."""
    hung = Place(path=resolved.settings.data, kind="closed", trouble=_NOTHING)
    facts = Facts(resolved=resolved, environment=environment, now=now(), place=hung, patience=patience)
    with trio.move_on_after(SECONDS):
        facts = await gather(facts, mounts)
    found: dict[str, list[Finding]] = {topic: [] for topic in checks}
    limiter = trio.CapacityLimiter(len(checks))

    async def run(topic: str, check: Check) -> None:
        found[topic] = under(topic, await _checked(topic, check, facts, limiter))

    async with trio.open_nursery() as nursery:
        for topic, check in checks.items():
            nursery.start_soon(run, topic, check)
    return [with_flags(each, resolved) for findings in found.values() for each in findings]


async def _checked(topic: str, check: Check, facts: Facts, limiter: trio.CapacityLimiter) -> list[Finding]:
    """Run one check; if it hangs or fails, return a finding about this."""
    with trio.move_on_after(SECONDS):
        try:
            if iscoroutinefunction(check):
                return list(await check(facts))
            return await trio.to_thread.run_sync(
                lambda: list(cast("Iterable[Finding]", check(facts))),
                abandon_on_cancel=True,
                limiter=limiter,
            )
        except OSError as failure:
            place = f"{failure.filename}: " if failure.filename else ""
            sentence = f"this could not be checked ({place}{failure.strerror or failure})"
            return [error(sentence, "give this user the right to read it")]
        except GreenroomError as failure:  # for example a part of the store is damaged
            return [refused(failure, "see what is damaged: greenroom verify")]
        except Exception as failure:
            logger.debug("the check of %s failed", topic, exc_info=True)
            sentence = f"the check itself failed ({type(failure).__name__}: {failure})"
            return [error(sentence, "report this as a fault of Greenroom", exit_codes.INTERNAL)]
    sentence = f"this could not be checked within {SECONDS:g} s; {_HUNG}"
    remedy = "see whether `ls` of the folders that `greenroom config` names hangs, too"
    return [error(sentence, remedy)]
