"""Programs in whose environment packages are missing, are of other versions, or have a grammar that kills."""

from __future__ import annotations

from pathlib import Path

# Hides packages as if they were not installed, and says other versions of some.
_CUSTOMIZED = """
import importlib.metadata, os, sys

hidden = tuple(os.environ.get("HIDDEN_PACKAGES", "").split())
versions = dict(each.split("=") for each in os.environ.get("PACKAGE_VERSIONS", "").split())
version = importlib.metadata.version

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if hidden and name.startswith(hidden):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Finder)
importlib.metadata.version = lambda name: versions.get(name) or version(name)
"""


def environment(home: Path, *, hidden: str = "", versions: str = "") -> dict[str, str]:
    """Return the variables of a program.

    Args:
        home: A folder for what Python is told.
        hidden: How the names of modules begin that are not there, between spaces.
        versions: Versions of packages, such as ``pypdf=99.1``, between spaces.
    """
    folder = home / "customized"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_CUSTOMIZED)
    return {"PYTHONPATH": str(folder), "HIDDEN_PACKAGES": hidden, "PACKAGE_VERSIONS": versions}


def deadly_grammar(home: Path, package: str, body: str) -> None:
    """Have a grammar do something when it is loaded."""
    (home / "customized" / f"{package}.py").write_text(f"def language():\n    {body}\n")
