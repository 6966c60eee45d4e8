"""The dependencies of the project: those of pyproject.toml that nobody has to compile.

A wheel is for all platforms, so markers say where compiled packages are wanted. They cannot tell musl from
glibc, nor a 32-bit system on a 64-bit kernel. The tags of wheels can, where a wheel is built to be installed
at once, as by `pip install .`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.tags import Tag, sys_tags

_MARKER = (
    "python_version < '3.15' and platform_python_implementation == 'CPython'"
    " and (platform_machine == 'x86_64' or platform_machine == 'aarch64' or platform_machine == 'arm64')"
)


class Dependencies(MetadataHookInterface):
    """Says what the project depends on."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dependencies by the tables of this hook."""
        metadata["dependencies"] = dependencies(self.config, list(sys_tags()))


def dependencies(tables: Mapping[str, Any], tags: Iterable[Tag]) -> list[str]:
    """Return the requirements for which a machine that takes wheels of these tags needs no compiler."""
    here = {tag.platform for tag in tags if tag.interpreter == tag.abi}  # as for each CPython with its lock
    found = list(tables["dependencies"])
    for group in tables["compiled"]:
        platforms: Collection[str] = group["platforms"]
        if not here.isdisjoint(platforms):
            found += [f"{requirement}; {_MARKER}" for requirement in group["dependencies"]]
    return found
