"""How imports of the languages of the JVM find files: a package is a folder."""

from __future__ import annotations

from posixpath import basename

from greenroom.actors.content.syntax.languages.language import Resolve
from greenroom.actors.content.syntax.places import Places, prefixes
from greenroom.actors.content.syntax.source import Import


def in_packages(*suffixes: str, has_functions: bool = False) -> Resolve:
    """Return what finds files by packages.

    Args:
        suffixes: How their names end, those of the importer's own language first.
        has_functions: Whether a package has names that no file is called by.
    """

    def resolve(imported: Import, importer: str, places: Places) -> list[str]:
        """A package is a folder; a name of it is a file, or is in the file of the class before."""
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
