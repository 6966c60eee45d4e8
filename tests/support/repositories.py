"""Git repositories with linked work trees, and folders that only claim to be such."""

from __future__ import annotations

import subprocess
from pathlib import Path

ME = (*("-c", "user.name=Ann"), *("-c", "user.email=ann@example.org"), *("-c", "protocol.file.allow=always"))


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder; return what it prints."""
    done = subprocess.run(["git", *ME, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, name: str) -> str:
    """Commit a new file; return the commit."""
    (folder / name).write_text(f"{name}\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", name)
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path) -> Path:
    """Make a repository with a commit on the branch `main`."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first.py")
    return folder.resolve()


def linked(shop: Path, folder: Path, branch: str = "feature") -> Path:
    """Add a linked work tree with a branch of its own."""
    git(shop, "worktree", "add", "-q", str(folder), "-b", branch)
    return folder.resolve()
