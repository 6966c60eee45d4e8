"""Checks of the program: versions, the running server, settings and packages."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import lmdb

from greenroom.actors.core.base.optional_packages import install_command, missing_extras
from greenroom.actors.knowledge.corpora.storage.readers import find_missing
from greenroom.runtime.base.arguments import did_you_mean
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.settings import all_settings, variable
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, warning

_PACKAGES: Final = ("msgspec", "trio", "mcp", "h11", "wsproto", "psutil", "platformdirs")


def check_versions(facts: Facts) -> Iterator[Finding]:
    """Report the versions, and whether the running server has a different version."""
    own = version("greenroom")
    found, lacking = {}, []
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            lacking.append(name)
    parts = [f"{name} {number}" for name, number in found.items()]
    system = f"{platform.system()} {platform.release()} ({platform.machine()})"
    libraries = ".".join(map(str, lmdb.version()))
    yield ok(
        f"greenroom {own}, Python {platform.python_version()} on {system}; LMDB {libraries}; "
        f"{', '.join(parts)}"
    )
    if lacking:
        yield error(
            f"Python at {sys.executable} does not know the package {', '.join(lacking)}",
            "install Greenroom again, in an environment of its own",
            exit_codes.FAILED,
        )
    yield from _owner(facts, own)


def _owner(facts: Facts, own: str) -> Iterator[Finding]:
    if facts.figures is None:
        return
    theirs = facts.figures.get("version")
    if theirs == own:
        yield ok(f"the server that uses the folder has the same version, {own}")
    else:
        theirs_is = f"is greenroom {theirs}" if theirs else "is an older greenroom without a version number"
        yield warning(
            f"the server that uses the folder {theirs_is}, and this one is {own}",
            "restart the clients that started it, so that all on the folder have one version",
        )
    if facts.parts is None:
        yield warning(
            "the figures of the server that uses the folder are those of another version and are not judged",
            "run the doctor of that version",
        )


_REMEDIES: Final[Mapping[str, str]] = {
    "store": "look into the server's log for why, and check the store: greenroom verify",
    "actors": "find the traceback in the server's log, mend the cause, and then",
    "messages": "look into the server's log for which and why; the next start counts anew",
}
"""The remedy for each part that this check covers; other checks cover other parts."""


def check_server(facts: Facts) -> Iterator[Finding]:
    """Report the health of the owner's parts."""
    if facts.parts is None:
        return
    well = []
    for name, remedy in _REMEDIES.items():
        part = facts.parts[name]
        if part.status == "degraded":
            again = _readmit(facts) if name == "actors" else ""
            yield warning(f"{name}: {part.cause}", f"{remedy}{again}")
        else:
            well.append(name)
    if well:
        yield ok(f"its {', '.join(well)} are well")


def _readmit(facts: Facts) -> str:
    """Return the commands that readmit the actors that were set aside."""
    aside = ((facts.figures or {}).get("actors") or {}).get("set_aside") or []
    pairs = (each.partition("/") for each in aside)
    return "".join(
        f": greenroom readmit {shlex.quote(kind)} {shlex.quote(key)};" for kind, _, key in pairs
    ).rstrip(";")


def check_settings(facts: Facts) -> Iterator[Finding]:
    """Report environment variables that have our prefix but are no settings."""
    for name in facts.resolved.strangers:
        meant = did_you_mean(name, map(variable, all_settings()))
        yield warning(
            f"the variable {name} is no setting{meant}", "name it as `greenroom config` has it, or remove it"
        )
    if not facts.resolved.strangers:
        file = facts.resolved.config
        yield ok(f"they are understood; {f'{file} was read' if file else 'there is no file of them'}")


def check_packages(_: Facts) -> Iterator[Finding]:
    """Report missing packages, with the commands that install them."""
    left_out = find_missing()
    if left_out is not None:
        what, _colon, command = left_out.lack.partition(": ")
        yield warning(what, command)
    extras = missing_extras()
    commands = (
        f", of which these are not installed: {', '.join(map(install_command, extras))}" if extras else ""
    )
    yield ok(f"extras are optional{commands}")
