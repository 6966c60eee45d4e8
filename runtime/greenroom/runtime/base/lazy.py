"""Packages that import their public names at first use."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from greenroom.runtime.base.system import program_version

_EXPORT: Final = re.compile(r"^    from (\S+) import (\w+) as \2$", re.MULTILINE)
_VERSION: Final = "__version__"


def exports(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Export the names that a package imports under ``if TYPE_CHECKING``, and its `__version__`.

    Returns the package's `__getattr__`, `__dir__` and `__all__`. The names are read from the source, so that
    there is one list of them.
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

    def list_names() -> list[str]:
        return sorted({*vars(module), *homes, _VERSION})

    return load, list_names, sorted(homes)
