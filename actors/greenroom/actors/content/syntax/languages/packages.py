"""Resolution of imports in JVM languages: a package is a folder."""

from __future__ import annotations

from posixpath import basename

from greenroom.actors.content.syntax.languages.language import Resolve
from greenroom.actors.content.syntax.places import Places, prefixes
from greenroom.actors.content.syntax.source import Import


def in_packages(*suffixes: str, has_functions: bool = False) -> Resolve:
    """Return a resolver by packages.

    The extensions of the importer's own language come first. ``has_functions``: whether a package may have
    names without a file of that name.
    """

    def resolve(imported: Import, importer: str, places: Places) -> list[str]:
        """Resolve a package to a folder, a name to its file or its class's."""
        package = imported.module.replace(".", "/")
        names = [package] if imported.name == "*" else [f"{package}/{imported.name}", package]
        for name in names:
            for path in prefixes(name, "/"):
                if basename(path)[:1].islower():
                    break
                for suffix in suffixes:
                    found = places.ending(path + suffix, importer)
                    if found is not None:
                        return [found]
        if imported.name != "*" and not has_functions:
            return []
        packages = [
            [path for path in places.folder(folder) if path.endswith(suffixes)]
            for folder in places.folders_ending(package)
        ]
        filled = [each for each in packages if each]
        return filled[0] if len(filled) == 1 else []

    return resolve
