"""The user's browser, and whether it can read a local file.

A sandboxed browser (Snap, Flatpak) can read few folders, and a browser on another system (Windows with WSL, a
remote editor's) has other paths. An unknown browser counts as an ordinary one.
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
"""Programs that open a file with the desktop's default program."""
_CONFINED_PARTS: Final = frozenset({"snap", "snapd", "flatpak"})
_ELSEWHERE: Final = re.compile(r"wslview|wsl-open|explorer|.*\.exe", re.IGNORECASE)
_CONFINED_SCRIPT: Final = re.compile(
    rb"/snap/|\bsnap +run\b|\bflatpak +run\b|\.exe\b|\bwslview\b|vscode|cursor-server", re.IGNORECASE
)
_REMOTE_SCRIPT: Final = "helpers/browser.sh"
"""The browser script of editors that work on a remote machine."""
_MOST_SCRIPT: Final = 1 << 16
_PATIENCE: Final = 5.0  # seconds for the desktop to name its browser
_TYPE: Final = "text/html"


class Browser:
    """The browser that opens a file."""

    def __init__(self) -> None:
        try:
            self._browser: webbrowser.BaseBrowser | None = webbrowser.get()
        except webbrowser.Error:
            self._browser = None

    def reads_files(self) -> bool:
        """Return whether there is a browser that can read this user's files."""
        if self._browser is None or Path("/.flatpak-info").exists() or "SNAP" in os.environ:
            return False
        words = [self._browser.name, *self._browser.args]
        if _CONFINED_SCRIPT.search(" ".join(words).encode(errors="replace")):
            return False
        in_wsl = "WSL_DISTRO_NAME" in os.environ or "microsoft" in platform.release().lower()
        if Path(words[0]).name in _HANDLERS:
            entry = _desktop_entry(os.environ)
            programs = [] if entry is None else [str(entry), *_run_by(entry)]
            return not in_wsl and not any(map(_is_confined, programs))
        return not _is_confined(words[0], scripts=in_wsl)

    def open_file(self, path: Path) -> bool:
        """Open a file; return whether a browser certainly opened it.

        Some browsers run in the terminal until they end.
        """
        return self._browser is not None and self._browser.open(path.as_uri())


def _is_confined(program: str, *, scripts: bool = False) -> bool:
    """Return whether a browser cannot read our files; with `scripts`, no script can read them."""
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
    """Return the desktop's entry for web pages; None if it has no entry."""
    try:
        command = ["xdg-mime", "query", "default", _TYPE]
        found = subprocess.run(  # noqa: S603 - the command is a constant
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    name = found.stdout.decode(errors="replace").strip()
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
    """Return the programs in a desktop entry, including `env` and the program that `env` runs."""
    parser = ConfigParser(interpolation=None, strict=False)
    with suppress(OSError, ConfigError, UnicodeDecodeError, ValueError):
        parser.read_string(entry.read_text(encoding="utf-8"))
        words = shlex.split(parser.get("Desktop Entry", "Exec", fallback=""))
        return [word for word in words if "=" not in word and not word.startswith(("-", "%"))]
    return []
