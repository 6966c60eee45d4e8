"""Homes in which real clients are installed, and what `greenroom setup` and they do there."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from conformance import node
from harness import clean_environment
from support.forking import forked_program

_NOWHERE = "http://127.0.0.1:9"
"""The proxy that clients are told of, so that nothing of theirs leaves this machine."""


def entry_in(path: Path, key: str = "mcpServers") -> dict[str, Any]:
    """Return how a file says that the server is started."""
    text = path.read_text()
    found: dict[str, Any] = (tomllib.loads(text) if path.suffix == ".toml" else json.loads(text))[key]
    entry: dict[str, Any] = found["greenroom"]
    return entry


def unhurried(path: Path) -> None:
    """Allow the hooks in a client's file a minute: a busy machine is no failure."""
    text = re.sub(r'( hook [^"]+)"', r'\1 --limit 60"', path.read_text())
    path.write_text(re.sub(r'"timeout": \d+', '"timeout": 60', text))


class ClientHome:
    """The home folder of somebody who has some clients.

    Args:
        folder: Where it is.
        clients: Names of `node.CLIENTS`, by the commands that they have on the path.
        work: The folder that the clients work in; one below `folder` if None.
        environment: More variables.
    """

    def __init__(
        self,
        folder: Path,
        clients: dict[str, str] | None = None,
        work: Path | None = None,
        /,
        **environment: str,
    ) -> None:
        self.folder = folder
        self.work = work or folder / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        programs = folder / "bin"
        programs.mkdir(parents=True)
        for name, client in (clients or {}).items():
            quoted = " ".join(f"'{part}'" for part in node.command(client))
            (programs / name).write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
            (programs / name).chmod(0o700)
        self.environment = clean_environment(
            folder,
            PATH=f"{programs}:/usr/bin:/bin",
            HTTPS_PROXY=_NOWHERE,
            HTTP_PROXY=_NOWHERE,
            NO_PROXY="127.0.0.1",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            **environment,
        )

    def setup(self, *arguments: str) -> str:
        """Run `greenroom setup`, which must succeed; return what it printed."""
        return self.run(*forked_program(), "setup", *arguments)

    def command_in(self, file: str, key: str = "mcpServers") -> list[str]:
        """Return what starts the server, as a file says below the folder."""
        entry = entry_in(self.folder / file, key)
        return [entry["command"], *entry["args"]]

    def run(self, *command: str) -> str:
        """Run a command, which must succeed; return what it printed."""
        done = subprocess.run(
            command,
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr
