"""The browser of this machine's user, and whether it can read a file of theirs.

A browser in a sandbox (Snap, Flatpak) reads few folders, and one of another system (Windows' beside WSL, or
that of a remote editor) has other paths. Where nothing tells which browser comes, it is taken for an ordinary
one.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import webbrowser
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from contextlib import suppress
from pathlib import Path
from typing import Final

_HANDLERS: Final = frozenset(
    {"xdg-open", "gio", "gvfs-open", "gnome-open", "kde-open", "kde-open5", "exo-open"}
)
"""Programs that open what the desktop says."""
_CONFINED_PARTS: Final = frozenset({"snap", "snapd", "flatpak"})
_ELSEWHERE: Final = re.compile(r"wslview|wsl-open|explorer|.*\.exe", re.IGNORECASE)
_CONFINED_SCRIPT: Final = re.compile(
    rb"/snap/|\bsnap +run\b|\bflatpak +run\b|\.exe\b|\bwslview\b|vscode|cursor-server", re.IGNORECASE
)
_REMOTE_SCRIPT: Final = "helpers/browser.sh"
"""What editors that work on another machine set as the browser there."""
_MOST_SCRIPT: Final = 1 << 16
_PATIENCE: Final = 5.0  # seconds for the desktop to say which browser it has
_TYPE: Final = "text/html"


class Browser:
    """The browser that a file would be opened in."""

    def __init__(self) -> None:
        try:
            self._browser: webbrowser.BaseBrowser | None = webbrowser.get()
        except webbrowser.Error:
            self._browser = None

    def reads_files(self) -> bool:
        """Return whether there is one, and it can read files of this user."""
        if self._browser is None or _is_sandboxed(os.environ):
            return False
        words = [self._browser.name, *self._browser.args]
        if _CONFINED_SCRIPT.search(" ".join(words).encode(errors="replace")):
            return False
        in_wsl = _is_wsl(os.environ)
        if Path(words[0]).name in _HANDLERS:
            return not in_wsl and not any(map(_is_confined, _run_by_desktop(os.environ)))
        return not _is_confined(words[0], scripts=in_wsl)

    def open_file(self, path: Path) -> bool:
        """Open a file; return whether a browser surely has it.

        Some browsers run in the terminal until they end.
        """
        return self._browser is not None and self._browser.open(path.as_uri())


def _is_sandboxed(environment: Mapping[str, str]) -> bool:
    """Return whether this program runs in a sandbox, whose files no browser outside sees."""
    return Path("/.flatpak-info").exists() or "SNAP" in environment


def _run_by_desktop(environment: Mapping[str, str]) -> list[str]:
    """Return the desktop's entry for pages, and the programs that it names."""
    entry = _desktop_entry(environment)
    return [] if entry is None else [str(entry), *_run_by(entry)]


def _is_wsl(environment: Mapping[str, str]) -> bool:
    return "WSL_DISTRO_NAME" in environment or "microsoft" in platform.release().lower()


def _is_confined(program: str, *, scripts: bool = False) -> bool:
    """Return whether a program leads to a browser that reads no files of ours.

    Args:
        program: Its name or path.
        scripts: Whether every script is taken for one that does.
    """
    found = Path(shutil.which(program) or program)
    real = Path(os.path.realpath(found))
    for path in (found, real):
        if not _CONFINED_PARTS.isdisjoint(path.parts) or _ELSEWHERE.fullmatch(path.name):
            return True
    with suppress(OSError), real.open("rb") as file:
        text = file.read(_MOST_SCRIPT)
        if text.startswith(b"#!"):
            leads = _CONFINED_SCRIPT.search(text) is not None
            return scripts or leads or str(real).endswith(_REMOTE_SCRIPT)
    return False


def _desktop_entry(environment: Mapping[str, str]) -> Path | None:
    """Return the desktop's entry of what opens pages, if it has one."""
    try:
        command = ["xdg-mime", "query", "default", _TYPE]
        said = subprocess.run(  # noqa: S603 - the line is a constant
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    name = said.stdout.decode(errors="replace").strip()
    if not name or "/" in name:
        return None
    home = Path(environment.get("HOME") or Path.home())
    data = environment.get("XDG_DATA_HOME") or str(home / ".local/share")
    shared = environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    more = [
        str(home / ".local/share/flatpak/exports/share"),
        "/var/lib/flatpak/exports/share",
        "/var/lib/snapd/desktop",
    ]
    places = (Path(place) / "applications" / name for place in (data, *shared.split(":"), *more) if place)
    return next((path for path in places if path.is_file()), None)


def _run_by(entry: Path) -> list[str]:
    """Return the programs that a desktop entry names, `env` and what it runs included."""
    parser = ConfigParser(interpolation=None, strict=False)
    with suppress(OSError, ConfigError, UnicodeDecodeError, ValueError):
        parser.read_string(entry.read_text(encoding="utf-8"))
        words = shlex.split(parser.get("Desktop Entry", "Exec", fallback=""))
        return [word for word in words if "=" not in word and not word.startswith(("-", "%"))]
    return []
