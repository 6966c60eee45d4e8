"""The server that uses the folder: how its parts are, as `health_check` says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, ok, warning

_TOPIC: Final = "server"
_REMEDIES: Final[Mapping[str, str]] = {
    "store": "look into the server's log for why, and check the store: greenroom verify",
    "actors": "find the traceback in the server's log, mend the cause, then: greenroom readmit KIND KEY",
    "messages": "look into the server's log for which and why",
}
"""What to do about each part; the others belong to other checks."""


def check(facts: Facts) -> Iterator[Finding]:
    """Tell how the parts of the owner are."""
    if facts.parts is None:
        return
    well = []
    for name, remedy in _REMEDIES.items():
        part = facts.parts[name]
        if part.status == "degraded":
            yield warning(_TOPIC, f"{name}: {part.cause}", remedy)
        else:
            well.append(name)
    if well:
        yield ok(_TOPIC, f"its {', '.join(well)} are well")
