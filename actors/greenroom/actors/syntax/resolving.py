"""Which files of a workspace an import means, as far as the language alone says it."""

from __future__ import annotations

from greenroom.actors.content.syntax.languages import NO_LANGUAGE, language_named
from greenroom.actors.content.syntax.places import Places
from greenroom.actors.content.syntax.source import Import


def resolve_import(imported: Import, importer: str, language: str, places: Places) -> list[str]:
    """Return the files that an import means.

    It is one in most languages; a package of Go, and all of a package of Java, is several. It is none where
    nothing in the workspace is meant, or where more than paths and manifests would have to be known, such as
    search paths, what is built, what a module hands on.

    Args:
        imported: What a file imports.
        importer: The path of that file.
        language: Its language.
        places: The files of the workspace.
    """
    found = (language_named(language) or NO_LANGUAGE).resolve(imported, importer, places)
    return [path for path in found if path != importer]
