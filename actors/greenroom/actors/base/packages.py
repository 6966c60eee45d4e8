"""Packages that may be missing: what needs them, which versions are here, and the command that installs them.

A part of the default install is left out where there is no wheel of it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple


class Part(NamedTuple):
    """A part of the program that needs packages.

    Attributes:
        does: What it does, as in "reading PDF files".
        packages: The names of the packages, by which they are installed.
    """

    does: str
    packages: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """The packages that cannot be imported here."""
        return [each for each in self.packages if not _is_there(each)]

    @property
    def lack(self) -> str:
        """What is missing and the command that installs it; empty where nothing is."""
        missing = self.missing
        if not missing:
            return ""
        return f"{self.does} takes {', '.join(missing)}, not installed here: pip install {' '.join(missing)}"

    @property
    def versions(self) -> str:
        """The versions of the packages; empty where one is missing."""
        return "" if self.missing else " ".join(map(_version, self.packages))


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
        return "0"


_MODULES = {"google-re2": "re2"}
