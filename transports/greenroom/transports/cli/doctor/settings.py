"""Settings: what stands in the environment and is none of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from greenroom.runtime.base.arguments import did_you_mean
from greenroom.transports.base.config.settings import all_settings, variable
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, ok, warning

_TOPIC: Final = "settings"


def check(facts: Facts) -> Iterator[Finding]:
    """Tell of variables that begin like ours and are none of ours."""
    for name in facts.resolved.strangers:
        meant = did_you_mean(name, map(variable, all_settings()))
        yield warning(
            _TOPIC,
            f"the variable {name} is no setting{meant}",
            "name it as `greenroom config` has it, or remove it",
        )
    if not facts.resolved.strangers:
        file = facts.resolved.config
        yield ok(_TOPIC, f"they are understood; {f'{file} was read' if file else 'there is no file of them'}")
