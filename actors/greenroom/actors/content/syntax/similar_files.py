"""What source files have in common by their imports."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import dirname

from greenroom.actors.content.syntax.languages import NO_LANGUAGE, language_named
from greenroom.actors.content.syntax.places import Places
from greenroom.actors.content.syntax.source import Source
from greenroom.actors.syntax.resolving import resolve_import


def alike_by_imports(path: str, files: Mapping[str, Source], places: Places) -> dict[str, dict[str, float]]:
    """Return how like a file others are, by two signals from 0 to 1.

    Args:
        path: The file.
        files: This and the others, as far as they were read by their syntax.
        places: The files of the workspace.

    Returns:
        By path: ``imports``, which share of what the two import they have in common, and ``linked``, 1 where
        one imports the other.
    """
    known: dict[tuple[str, str, str, str], list[str]] = {}
    brought = {each: _brought(source, places, known) for each, source in files.items()}
    own = brought.get(path, set())
    found: dict[str, dict[str, float]] = {}
    for other, theirs in brought.items():
        if other != path:
            every = len(own | theirs)
            found[other] = {
                "imports": len(own & theirs) / every if every else 0.0,
                "linked": float(other in own or path in theirs),
            }
    return found


def _brought(source: Source, places: Places, known: dict[tuple[str, str, str, str], list[str]]) -> set[str]:
    """Return what a file imports: files, and the names of what is not in the workspace."""
    path, language = source.path, source.language
    where = (
        path if (language_named(language) or NO_LANGUAGE).imports_by_path else dirname(path)
    )  # only there the importer's name counts, too
    found: set[str] = set()
    for each in source.imports:
        key = (where, language, each.module, each.name)
        if key not in known:
            known[key] = resolve_import(each, path, language, places)
        found.update(known[key] or [each.module])
    return found - {path}
