"""Optional packages: the parts that need them, their versions, and the command that installs them.

A package of the default install may be missing, too: where no wheel of it exists.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from typing import Final, NamedTuple

_MODULES: Final = {"google-re2": "re2"}
_OF_DEVELOPERS: Final = frozenset({"dev", "fuzz", "mutations"})
_OF_EXTRA: Final = re.compile(r"(?P<package>[A-Za-z0-9._-]+).*;.*extra == ['\"](?P<extra>[^'\"]+)")
_UNKNOWN: Final = "0"


class Part(NamedTuple):
    """A part of the program (``does``: "reading PDF files") that needs optional packages."""

    does: str
    packages: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [each for each in self.packages if not _is_there(each)]

    @property
    def lack(self) -> str:
        """The missing packages and the command that installs them; empty if none are missing."""
        missing = self.missing
        if not missing:
            return ""
        return f"{self.does} takes {', '.join(missing)}, not installed here: pip install {' '.join(missing)}"

    @property
    def versions(self) -> str:
        """The versions of the packages; empty if one is missing."""
        return "" if self.missing else " ".join(map(_version, self.packages))


def install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'greenroom[{extra}]'"


@cache
def missing_extras() -> tuple[str, ...]:
    """Return the extras for users that have a package which is not installed."""
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 - takes long to import

    try:
        wanted = [found for each in requires("greenroom") or () if (found := _OF_EXTRA.match(each))]
    except PackageNotFoundError:
        return ()
    lacking = dict.fromkeys(found["extra"] for found in wanted if _version(found["package"]) == _UNKNOWN)
    return tuple(each for each in lacking if each not in _OF_DEVELOPERS)


def _is_there(package: str) -> bool:
    try:
        return find_spec(_MODULES.get(package, package.replace("-", "_"))) is not None
    except (ImportError, ValueError):
        return False


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - takes long to import

    try:
        return version(package)
    except PackageNotFoundError:  # imported from a folder, without its metadata
        return _UNKNOWN
