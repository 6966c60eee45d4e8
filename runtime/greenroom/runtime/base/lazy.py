"""Packages whose public names are imported when they are first asked for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

from greenroom.runtime.base.version import program_version

_EXPORT: Final = re.compile(r"^    from (\S+) import (\w+) as \2$", re.MULTILINE)
_VERSION: Final = "__version__"


class Exports(NamedTuple):
    """What a package that re-exports its names lazily has in the place of them.

    Attributes:
        load: Its `__getattr__`.
        listed: Its `__dir__`, for completion.
        names: Its `__all__`.
    """

    load: Callable[[str], object]
    listed: Callable[[], list[str]]
    names: list[str]


def exports(package: str) -> Exports:
    """Return what makes a package re-export its names under ``if TYPE_CHECKING``, and its `__version__`.

    What stands there for type checkers is read from the source, so that there is one list of the names.
    """
    module = sys.modules[package]
    spec: Any = module.__spec__
    homes = {name: home for home, name in _EXPORT.findall(spec.loader.get_source(package))}

    def load(name: str) -> object:
        if name == _VERSION:
            value: object = program_version()
        elif name in homes:
            value = getattr(import_module(homes[name]), name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(module, name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(module), *homes, _VERSION})

    return Exports(load, listed, sorted(homes))
