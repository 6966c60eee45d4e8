"""Packages that import their public names at first use.

Each start of the program imports this, also that of a hook. So what takes long to import is imported late.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in `typing`, whose import takes half as long as the start of an interpreter
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_VERSION = "__version__"
_PUBLIC = "__all__"


def exports(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Export the names that a package imports under ``if TYPE_CHECKING``, and its `__version__`.

    Returns the package's `__getattr__` and `__dir__`. The names, and with them `__all__`, are read from the
    source at first use, so that there is one list of them.
    """
    module: Any = sys.modules[package]
    homes: dict[str, str] = {}

    def read_homes() -> dict[str, str]:
        if not homes:
            import re  # noqa: PLC0415 - see the module's docstring, as below

            source = module.__spec__.loader.get_source(package)
            exported = re.compile(r"^    from (\S+) import (\w+) as \2$", re.MULTILINE)
            homes.update({name: home for home, name in exported.findall(source)})
        return homes

    def load(name: str) -> object:
        value: object
        if name == _VERSION:
            from greenroom.runtime.base.system import program_version  # noqa: PLC0415

            value = program_version()
        elif name == _PUBLIC:
            value = sorted(read_homes())
        elif name.startswith("__") or name not in read_homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        else:
            from importlib import import_module  # noqa: PLC0415

            value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(module), *read_homes(), _PUBLIC, _VERSION})

    return load, list_names
