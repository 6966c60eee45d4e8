"""The checks of `greenroom doctor`, each within its time, all of them beside each other."""

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
from greenroom.transports.cli.doctor import (
    clock,
    disk,
    encryption,
    limits,
    packages,
    server,
    settings,
    versions,
)
from greenroom.transports.ops.cli.doctor import audit, embedder, folder, locks, permissions
from greenroom.transports.ops.cli.doctor.facts import Facts, Mounts, Place, gather
from greenroom.transports.ops.cli.doctor.finding import Finding, error, refused

Check = Callable[[Facts], Iterable[Finding] | Awaitable[Iterable[Finding]]]

CHECKS: Final[Mapping[str, Check]] = {
    "versions": versions.check,
    "folder": folder.check,
    "locks": locks.check,
    "server": server.check,
    "settings": settings.check,
    "permissions": permissions.check,
    "encryption": encryption.check,
    "audit": audit.check,
    "embedder": embedder.check,
    "disk": disk.check,
    "clock": clock.check,
    "limits": limits.check,
    "packages": packages.check,
}
"""The checks by topic, in the order in which they are shown."""

SECONDS: Final = 15.0
"""How long one check may take."""
_HUNG: Final = "something hangs, such as a disk on the network"
_NOTHING: Final = f"nothing came for {SECONDS:g} s; {_HUNG}"
logger = logging.getLogger(__name__)


def mounted() -> Mounts:
    """Return mount points and the kinds of their file systems, in the order of mounting."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; only this needs it

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
    """Return what every check found, by topic in the order of the checks.

    Args:
        resolved: The settings in force.
        environment: The environment's variables.
        checks: The checks by topic.
        mounts: Returns the file systems.
        patience: Seconds to wait for each sign of the owner.
        now: Returns the time in seconds since 1970 UTC.
    """
    hung = Place(path=resolved.settings.data, kind="closed", trouble=_NOTHING)
    facts = Facts(resolved=resolved, environment=environment, now=now(), place=hung, patience=patience)
    with trio.move_on_after(SECONDS):
        facts = await gather(facts, mounts)
    found: dict[str, list[Finding]] = {topic: [] for topic in checks}
    limiter = trio.CapacityLimiter(len(checks))

    async def run(topic: str, check: Check) -> None:
        found[topic] = await _checked(topic, check, facts, limiter)

    async with trio.open_nursery() as nursery:
        for topic, check in checks.items():
            nursery.start_soon(run, topic, check)
    return [each for findings in found.values() for each in findings]


async def _checked(topic: str, check: Check, facts: Facts, limiter: trio.CapacityLimiter) -> list[Finding]:
    """Run one check; that it hangs or fails is a finding, and the others go on."""
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
            sentence = f"this could not be looked at ({place}{failure.strerror or failure})"
            return [error(topic, sentence, "see to it that this user may read it", exit_codes.NO_ACCESS)]
        except GreenroomError as failure:  # of a store of which a part is damaged
            return [refused(topic, failure, "see what is damaged: greenroom verify")]
        except Exception as failure:
            logger.debug("the check of %s failed", topic, exc_info=True)
            sentence = f"the check itself failed ({type(failure).__name__}: {failure})"
            return [error(topic, sentence, "report this as a fault of Greenroom", exit_codes.INTERNAL)]
    sentence = f"this could not be looked at within {SECONDS:g} s; {_HUNG}"
    remedy = "see whether `ls` of the folders that `greenroom config` names hangs, too"
    return [error(topic, sentence, remedy, exit_codes.NO_ACCESS)]
