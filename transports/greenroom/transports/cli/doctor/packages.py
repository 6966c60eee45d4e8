"""Packages: which parts of the default install are left out here, and which extras are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from greenroom.actors.core.base.optional_packages import install, missing_extras
from greenroom.actors.knowledge.corpora.storage.readers import lacking
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, ok, warning

_TOPIC: Final = "packages"


def check(_: Facts) -> Iterator[Finding]:
    """Tell what is missing in the environment of this program, with the commands."""
    left_out = lacking()
    if left_out is not None:
        what, _colon, command = left_out.lack.partition(": ")
        yield warning(_TOPIC, what, command)
    extras = missing_extras()
    commands = f", of which these are not installed: {', '.join(map(install, extras))}" if extras else ""
    yield ok(_TOPIC, f"what comes as an extra is for whoever wants it{commands}")
