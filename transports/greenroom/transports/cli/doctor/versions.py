"""Versions: of this program, of what it is made of, and of the server that uses the folder."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import lmdb

from greenroom.transports.base import exit_codes
from greenroom.transports.ops.cli.doctor.facts import Facts
from greenroom.transports.ops.cli.doctor.finding import Finding, error, ok, warning

_TOPIC: Final = "versions"
_PACKAGES: Final = ("msgspec", "trio", "mcp", "h11", "wsproto", "psutil", "platformdirs")


def check(facts: Facts) -> Iterator[Finding]:
    """Tell the versions, and whether the server that uses the folder has another one."""
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
        _TOPIC,
        f"greenroom {own}, Python {platform.python_version()} on {system}; LMDB {libraries}; "
        f"{', '.join(parts)}",
    )
    if lacking:
        yield error(
            _TOPIC,
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
        yield ok(_TOPIC, f"the server that uses the folder has the same version, {own}")
    else:
        said = f"is greenroom {theirs}" if theirs else "is an older greenroom, which does not say its version"
        yield warning(
            _TOPIC,
            f"the server that uses the folder {said}, and this one is {own}",
            "restart the clients that started it, so that all on the folder have one version",
        )
    if facts.parts is None:
        yield warning(
            _TOPIC,
            "the figures of the server that uses the folder are those of another version and are not judged",
            "run the doctor of that version",
        )
