"""Packages whose public names are imported when they are first asked for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

_EXPORT: Final = re.compile(r"^    from (\S+) import (\w+) as \2$", re.MULTILINE)


def exports(package: str) -> Callable[[str], object]:
    """Return the `__getattr__` of a package that re-exports its names under ``if TYPE_CHECKING``.

    What stands there for type checkers is read from the source, so that there is one list of the names.
    """
    spec: Any = sys.modules[package].__spec__
    homes = {name: module for module, name in _EXPORT.findall(spec.loader.get_source(package))}

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
