"""What switches hooks off: files in a project, and what the person set.

A file `.greenroom.toml` counts for its folder and all below. It narrows what hooks keep and give, and nothing
in it widens that: an invalid file switches hooks off. Each hook imports this module, so it imports next to
nothing.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False  # see `greenroom.runtime.base.lazy`
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final

FILE: Final = ".greenroom.toml"
MOST_BYTES: Final = 4 << 10
MOST_PATTERNS: Final = 200
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PLAIN: Final = r"""(?:"(?:\\.|[^"\\\n])*+"(?!")|'[^'\n]*+'(?!')|#[^\n]*+|[^"'#.{])*+"""
"""Text without dotted names and tables in values, on which `tomllib` spends seconds."""
_ABSENT: Final = (FileNotFoundError, NotADirectoryError)


class BadSwitchError(Exception):
    """What excludes paths or switches hooks off cannot be understood; the sentence says why."""


class Switches:
    """What counts in one folder.

    Attributes:
        off: Whether hooks are switched off there.
        has_exclusions: Whether any path is excluded.
    """

    def __init__(self, folder: str, switch: str | None = None, excluded: Iterable[str] = ()) -> None:
        """Read the files in a folder and above it.

        Args:
            folder: The folder that the client works in.
            switch: What the person set: ``on``, ``off``, or None for what the files say.
            excluded: The patterns that the person set; a path is absolute or begins with ``~/``.

        Raises:
            BadSwitchError: A file or a pattern cannot be understood.
        """
        self._folder = folder
        own = [("/", _components(_expand(each), "GREENROOM_HOOKS_EXCLUDE")) for each in excluded]
        self._excluded: list[tuple[str, list[str]]] = own
        self.off = switch == "off"
        for place in [] if self.off else _places(folder):
            is_off, patterns = _read(place)
            self.off |= is_off and switch != "on"
            self._excluded += [(place, each) for each in patterns]
        self.has_exclusions = bool(self._excluded)
        self.off = self.off or self.excludes(folder)

    def excludes(self, path: str) -> bool:
        """Return whether a path is excluded.

        A relative one is below the client's folder, or may be the end of an excluded one: two names at least.
        """
        if not self._excluded or "\0" in path:
            return False
        whole = os.path.join(self._folder, os.path.expanduser(path))  # noqa: PTH111, PTH118 - `pathlib` takes long to import
        paths = {os.path.normpath(whole), os.path.realpath(whole)}
        ends = [] if os.path.isabs(path) else os.path.normpath(path).casefold().split("/")  # noqa: PTH117
        ends = [each for each in ends if each != ".."]
        return any(
            _is_end(pattern, ends) or any(_matches(pattern, place, each) for each in paths)
            for place, pattern in self._excluded
        )


def _places(folder: str) -> Iterator[str]:
    """Yield a folder and all above it, as it is spelled and without links."""
    if "\0" in folder or not os.path.isabs(folder):  # noqa: PTH117 - of another system
        return
    for at in dict.fromkeys((os.path.normpath(folder), os.path.realpath(folder))):
        yield at
        while at != os.path.dirname(at):  # noqa: PTH120
            at = os.path.dirname(at)  # noqa: PTH120, PLW2901
            yield at


def _read(place: str) -> tuple[bool, list[list[str]]]:
    """Read the file in a folder: whether it switches hooks off, and what it excludes."""
    path = f"{place.rstrip('/')}/{FILE}"
    try:
        content = _content(path)
    except _ABSENT:
        return False, []
    except OSError as error:
        raise BadSwitchError(f"{path} cannot be read: {error.strerror}") from None
    import re  # noqa: PLC0415 - most projects have no such file
    import tomllib  # noqa: PLC0415

    try:
        text = content.decode()
        plain = re.match(_PLAIN, text)
        if plain and (rest := text[plain.end() :]):
            line = text.count("\n", 0, plain.end()) + 1
            raise BadSwitchError(
                f"{path} has {rest[:40]!r} in line {line}, but only hooks and exclude are known, "
                "with true, false and texts within a line"
            )
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also no UTF-8
        raise BadSwitchError(f"{path} is not TOML: {str(error)[:200]}") from None
    is_on, patterns = document.pop("hooks", True), document.pop("exclude", [])
    if document:
        raise BadSwitchError(
            f"{path} has {next(iter(document))[:40]!r}, but only hooks and exclude are known"
        )
    if not isinstance(is_on, bool):
        raise BadSwitchError(f"{path} has {str(is_on)[:40]!r} for hooks, but false is allowed")
    if (
        not isinstance(patterns, list)
        or len(patterns) > MOST_PATTERNS
        or not all(isinstance(each, str) for each in patterns)
    ):
        raise BadSwitchError(f"{path} has no list of at most {MOST_PATTERNS} texts for exclude")
    return not is_on, [_components(each, path) for each in patterns]


def _content(path: str) -> bytes:
    descriptor = os.open(path, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadSwitchError(f"{path} is no plain file")
        content = os.read(descriptor, MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MOST_BYTES:
        raise BadSwitchError(f"{path} is larger than {MOST_BYTES:,} bytes")
    return content


def _expand(pattern: str) -> str:
    return os.path.expanduser(pattern) if pattern.startswith("~/") else pattern  # noqa: PTH111


def _components(pattern: str, source: str) -> list[str]:
    """Split a pattern into names; the first is empty if the pattern is a path."""
    names = pattern.casefold().rstrip("/").split("/")
    if len(names) > 1 and names[0]:
        names.insert(0, "")
    if not names[-1] or pattern.startswith("!") or {"", ".", "..", "**"} & set(names[1:] or names):
        raise BadSwitchError(
            f"{source} excludes {pattern[:80]!r}, but a name or a path is allowed, with * for parts of names"
        )
    return names


def _matches(pattern: list[str], place: str, path: str) -> bool:
    """Return whether a pattern of a place excludes a path."""
    base = place.rstrip("/") + "/"
    if not path.startswith(base):
        return False
    names = path[len(base) :].casefold().split("/")
    if pattern[0]:
        return any(_is_like(each, pattern[0]) for each in names if each.strip("*?"))
    return _begins(names, pattern[1:])


def _is_end(pattern: list[str], names: list[str]) -> bool:
    """Return whether a relative path from another folder may be one that a pattern excludes."""
    return not pattern[0] and any(_begins(names, pattern[at:]) for at in range(1, len(pattern) - 1))


def _begins(names: list[str], wanted: list[str]) -> bool:
    return len(names) >= len(wanted) and all(map(_is_like, names, wanted))


def _is_like(name: str, pattern: str) -> bool:
    """Return whether a pattern matches a name, or in turn a name with wildcards."""
    import fnmatch  # noqa: PLC0415 - only where something is excluded

    has_wildcards = "*" in name or "?" in name or "[" in name
    return fnmatch.fnmatchcase(name, pattern) or (has_wildcards and fnmatch.fnmatchcase(pattern, name))
