"""Similarity of source files by their imports."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import dirname

from greenroom.actors.content.syntax.languages import NO_LANGUAGE, language_named, resolve_import
from greenroom.actors.content.syntax.places import Places
from greenroom.actors.content.syntax.source import Source


def compare_by_imports(path: str, files: Mapping[str, Source], places: Places) -> dict[str, dict[str, float]]:
    """Compare a file with others by two signals from 0 to 1.

    By path: ``imports``, the share of common imports, and ``linked``, 1 if one imports the other.
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
    """Return the imports of a file: files, and names of modules outside of the workspace."""
    path, language = source.path, source.language
    where = (
        path if (language_named(language) or NO_LANGUAGE).imports_by_path else dirname(path)
    )  # there the importer's name matters, too
    found: set[str] = set()
    for each in source.imports:
        key = (where, language, each.module, each.name)
        if key not in known:
            known[key] = resolve_import(each, path, language, places)
        found.update(known[key] or [each.module])
    return found - {path}
