"""What the first page of the console says should be done, and the backups that it knows of."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.console import looker
from support.keyed import premises
from support.presences import process_of

from greenroom.actors import GetEmbedding
from greenroom.actors.app.administration.advice import Known, advice
from greenroom.actors.core.audit.actor import LastBackup, record_action
from greenroom.actors.core.audit.query import AuditGap
from greenroom.actors.core.auth.grants import Grant, KeyRecord
from greenroom.actors.core.validation.times import DAY, to_datetime

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.agents import Enter, House


HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}}'


async def known_of(at: House) -> Known:
    """Return what is known of a server about which there is nothing to be said."""
    return Known(
        now=100 * DAY,
        is_sound=True,
        statistics=at.runtime.statistics(),
        embedding=await at.runtime.query(GetEmbedding()),
        backup=LastBackup(at=94 * DAY, to="/b", bytes=1),
        gaps=[],
        keys=[],
        processes=[process_of("one")],
    )


def key_ending(at: int, **told: Any) -> KeyRecord:
    grant = Grant(name="ci", scopes=frozenset({"*"}))
    return KeyRecord(key_id="k" * 12, digest=b"", grant=grant, created=0, created_by=None, expires=at, **told)


def part(known: Known, of: str, **values: Any) -> Known:
    """Return what is known with other statistics of one part."""
    old = getattr(known.statistics, of)
    new = dataclasses.replace(old, **values) if of == "store" else msgspec.structs.replace(old, **values)
    return known._replace(statistics=msgspec.structs.replace(known.statistics, **{of: new}))


WRONG: dict[str, tuple[str, str, str, Callable[[Known], Known]]] = {
    "failed": ("error", "store", "restart", lambda well: well._replace(is_sound=False)),
    "failures": ("warning", "store", "log", lambda well: part(well, "store", failures=3)),
    "full": ("error", "space", "--max-size", lambda well: part(well, "store", used_bytes=95, map_bytes=100)),
    "disk": ("error", "disk", "make room", lambda well: part(well, "store", disk_free=1 << 20)),
    "aside": (
        "error",
        "actors",
        "readmit memory bob",
        lambda well: part(well, "actors", set_aside=["memory/bob"]),
    ),
    "raised": ("warning", "messages", "log", lambda well: part(well, "messages", failed=1)),
    "letters": ("warning", "messages", "log", lambda well: part(well, "messages", dead_letters=1)),
    "notes": ("warning", "messages", "--rate-limit", lambda well: part(well, "commits", dropped_notes=1)),
    "silent": ("warning", "processes", "end it", lambda well: part(well, "relay", silent_seconds=9)),
    "nobody": ("error", "processes", "should take over", lambda well: part(well, "relay", owner_pid=0)),
    "versions": (
        "warning",
        "processes",
        "restart",
        lambda well: well._replace(processes=[process_of("a"), process_of("b", version="0")]),
    ),
    "embedder": (
        "warning",
        "embedder",
        "--embedder",
        lambda well: well._replace(embedding=msgspec.structs.replace(well.embedding, state="failing")),
    ),
    "no backup": ("warning", "backup", "greenroom backup", lambda well: well._replace(backup=None)),
    "old backup": (
        "warning",
        "backup",
        "greenroom backup",
        lambda well: well._replace(backup=LastBackup(at=93 * DAY, to="/b", bytes=1)),
    ),
    "gap": (
        "error",
        "audit",
        "audit verify",
        lambda well: well._replace(gaps=[AuditGap(first=1, last=2, found_at=to_datetime(0), restored=False)]),
    ),
    "key": ("warning", "keys", "rotate", lambda well: well._replace(keys=[key_ending(113 * DAY)])),
    "hooks": (
        "warning",
        "hooks",
        "log",
        lambda well: well._replace(processes=[process_of("a", hooks_waiting=101)]),
    ),
    "refused": (
        "warning",
        "hooks",
        "doctor",
        lambda well: well._replace(processes=[process_of("a", hooks_refused=1)]),
    ),
}
"""What may be wrong: how bad it is, what it is about, what stands in the remedy, and how it comes."""


@pytest.mark.parametrize("wrong", WRONG)
async def test_each_trouble_is_told_with_its_remedy(enter: Enter, wrong: str) -> None:
    severity, topic, remedy, comes = WRONG[wrong]
    async with enter() as at:
        (said,) = advice(comes(await known_of(at)))
        assert (said.severity, said.topic) == (severity, topic)
        assert remedy in said.remedy


async def test_what_is_well_is_not_told_and_errors_come_first(enter: Enter) -> None:
    async with enter() as at:
        well = await known_of(at)
        fine = [
            key_ending(115 * DAY),
            key_ending(101 * DAY, revoked=1),
            key_ending(99 * DAY),
            key_ending(101 * DAY, replaced_by="m" * 12),
        ]
        restored = AuditGap(first=1, last=2, found_at=to_datetime(0), restored=True)
        assert advice(well._replace(keys=fine, gaps=[restored])) == []
        many = part(well, "actors", set_aside=[f"memory/{number}" for number in range(50)])
        found = advice(many._replace(backup=None, keys=[key_ending(101 * DAY)] * 50))
        assert [each.severity for each in found] == ["error"] * 4 + ["warning"] * 5


@pytest.mark.slow
async def test_a_backup_is_known_until_the_next_one(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        owner = await looker(here)
        assert "no backup is known" in (await owner.look("/")).text
        record_action(at.runtime, "backup_store", to=f"/backups/{HOSTILE}", bytes=2_048)
        await here.settled()
        page = await owner.look("/")
        page.check_inert()
        assert "no backup is known" not in page.text
        assert "Size 2 kB File /backups/" in page.text
