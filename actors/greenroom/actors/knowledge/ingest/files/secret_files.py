"""Recognise files that hold secrets, by name and place; the lists are in ``secret_files.toml``.

Case is ignored, and a copy counts as its original: ``id_rsa.old``, ``.secrets.json.swp``, ``token (1).json``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from fnmatch import translate
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple

from greenroom.actors.content.documents.kinds import DATA, PROSE, kind_by_name
from greenroom.actors.content.syntax import language_of

_COPIED: Final = re.compile(
    r"(~+|\#|\s*\((another )?(\d{1,3}(st|nd|rd|th)? ?)?((copy|kopie|copie|copia)( \d{1,3})?)?\)"
    r"|[ ._-]+(bak|backup|bkup|bkp|bck|old|new|orig|original|saved?|sav|copy|kopie|copie|copia|prev|previous"
    r"|te?mp|sw[a-p]"
    r"|dpkg-\w+|rpm\w+|\d{1,14}([-_T.:]\d{1,6}){0,5})[ _-]?\d{0,3})(?=(\.\w{1,12})?$)",
    re.IGNORECASE,
)
"""Marks that programs and people append to the name of a copy, or insert before its ending."""
_COPY_OF: Final = re.compile(r"^(copy of |backup of |\.?#|\.(?=.*\.sw[a-p]$))", re.IGNORECASE)
_AS_TEXT: Final = re.compile(r"(?<=[^.])(\.\w{1,12})\.(txt|text)$", re.IGNORECASE)
"""An ending for text after another ending, as editors and mail programs append it."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN: Final = re.compile(r"[ ._-]+")
_WRITTEN_TEXT: Final = frozenset({"adoc", "asciidoc", "org", "tex"})
_REMEMBERED: Final = 8_192
"""The cache has this many recent names: most names occur often."""


class _Lists(NamedTuple):
    """The lists, prepared: sets of whole names, and regular expressions."""

    closed_folders: frozenset[str]
    closed_places: re.Pattern[str]
    names: frozenset[str]
    names_like: re.Pattern[str]
    patterns: re.Pattern[str]
    suffixes: tuple[str, ...]
    places: tuple[str, ...]
    folder_names: frozenset[str]
    folders: re.Pattern[str]
    packaging: re.Pattern[str]
    words: re.Pattern[str]
    about: frozenset[str]
    data: frozenset[str]
    examples: frozenset[str]
    translations: re.Pattern[str]


@cache
def _load_lists() -> _Lists:
    text = files("greenroom.actors.knowledge.ingest.files").joinpath("secret_files.toml").read_text("utf-8")
    lists: dict[str, list[str]] = tomllib.loads(text)
    roots, places = (_join(lists[name]) for name in ("closed_roots", "closed_places"))
    variants = f"(-({_join(lists['variants'])}|v?[0-9]+))*"
    language = r"[a-z]{2,3}([_-]\w{2,8})?/"
    return _Lists(
        closed_folders=frozenset(lists["closed_folders"]),
        closed_places=re.compile(f"^({roots})|{places}"),
        names=frozenset(lists["names"]),
        names_like=_compile(lists["names_like"]),
        patterns=_compile(lists["patterns"]),
        suffixes=tuple(lists["suffixes"]),
        places=tuple(lists["places"]),
        folder_names=frozenset(lists["folders"]),
        folders=re.compile(f"/({_join(lists['folders'])})/"),
        packaging=_compile(lists["packaging"]),
        words=re.compile(f"((?P<before>.*)-)?({_join(lists['words'])}){variants}"),
        about=frozenset(lists["about"]),
        data=frozenset(lists["data"]),
        examples=frozenset(lists["examples"]),
        translations=re.compile(f"/({_join(lists['translations'])})/({language})?$"),
    )


def is_closed_folder(name: str) -> bool:
    """Return whether a folder of this name holds keys, so that it is never read."""
    return name.lower() in _load_lists().closed_folders


def is_closed_place(path: str) -> bool:
    """Return whether an absolute path is never read, whatever its name."""
    return _load_lists().closed_places.search(f"{path.lower()}/") is not None


def is_secret_folder(name: str) -> bool:
    """Return whether the files in a folder of this name are secrets, except code."""
    return name.lower() in _load_lists().folder_names


def is_secret_file(path: str, root: str = "") -> bool:
    """Return whether a file holds secrets; names of folders count only below ``root``."""
    folder, _, name = path.rpartition("/")
    named = folder.removeprefix(root.rstrip("/"))
    folder, named = (f"/{each.strip('/')}/".lower() for each in (folder, named))
    return any(_is_secret(folder, named, each) for each in _names_of(name))


@lru_cache(_REMEMBERED)
def _names_of(name: str) -> tuple[str, ...]:
    """Return a name, and the names that it may be a copy of."""
    names = [name.strip()]
    for each in names:  # the loop itself appends shorter names
        others = (_COPIED.sub("", each), _COPY_OF.sub("", each), _AS_TEXT.sub(r"\1", each))
        names += [other for other in others if other and other not in names]
    return tuple(names)


def _is_secret(folder: str, named: str, name: str) -> bool:
    """Return whether a file holds secrets; ``named`` is the path in which folder names count."""
    listed, lower, sort = _load_lists(), name.lower(), _classify(name)
    if sort in {"key", "example"}:
        return sort == "key"
    is_text = _ending(lower) in DATA and not lower.startswith(".")
    if is_text and listed.translations.search(named) is not None:
        return False
    if sort == "named" or f"{folder}{lower}".endswith(listed.places):
        return True
    return sort == "secret word" or (sort == "other" and listed.folders.search(named) is not None)


_Sort = Literal["key", "example", "named", "written", "secret word", "packaging", "other"]


@lru_cache(_REMEMBERED)
def _classify(name: str) -> _Sort:
    listed, lower = _load_lists(), name.lower()
    ending = _ending(lower)
    is_data = not ending or ending in listed.data
    sorts: dict[_Sort, Callable[[], object]] = {
        "key": lambda: lower.endswith(listed.suffixes),
        "example": lambda: lower.endswith(".pub") or _is_example(lower),
        "named": lambda: lower in listed.names or listed.names_like.match(lower),
        "written": lambda: _is_written(name, ending),
        "secret word": lambda: listed.patterns.match(lower) or (is_data and _means_secret(name)),
        "packaging": lambda: listed.packaging.match(lower),
    }
    return next((sort for sort, holds in sorts.items() if holds()), "other")


def _is_example(lower: str) -> bool:
    parts = [part for part in _BETWEEN.split(lower) if part]
    return not _load_lists().examples.isdisjoint((*parts[:1], *parts[-2:]))


def _is_written(name: str, ending: str) -> bool:
    kind = kind_by_name(name)
    if kind in PROSE or ending in _WRITTEN_TEXT or language_of(name) is not None:
        return True
    return kind == "code" and ending not in DATA


def _means_secret(name: str) -> bool:
    """Return whether a name ends with a word for secrets and is not about secrets."""
    stem = _HUMP.sub("-", name.lstrip(".")).lower()
    ending = _ending(stem)
    words = _BETWEEN.sub("-", stem.removesuffix(f".{ending}") if ending else stem).strip("-")
    found = _load_lists().words.fullmatch(words)
    if found is None:
        return False
    before = (found["before"] or "").split("-")
    return _load_lists().about.isdisjoint({before[0], before[-1]})


def _ending(lower: str) -> str:
    stem, _, ending = lower.rpartition(".")
    return ending if stem.strip(".") else ""


def _join(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, texts))


def _compile(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))
