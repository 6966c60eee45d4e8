"""Homes in which real clients are installed, and what `greenroom setup` and they do there."""

from __future__ import annotations

import subprocess
from pathlib import Path

from conformance import node
from harness import clean_environment
from support.forking import forked_program

_NOWHERE = "http://127.0.0.1:9"
"""The proxy that clients are told of, so that nothing of theirs leaves this machine."""


class ClientHome:
    """The home folder of somebody who has some clients.

    Args:
        folder: Where it is.
        clients: Names of `node.CLIENTS`, by the commands that they have on the path.
        environment: More variables.
    """

    def __init__(self, folder: Path, clients: dict[str, str] | None = None, **environment: str) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        for name, client in (clients or {}).items():
            quoted = " ".join(f"'{part}'" for part in node.command(client))
            (programs / name).write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
            (programs / name).chmod(0o700)
        self.environment = clean_environment(
            folder,
            PATH=f"{programs}:/usr/bin:/bin",
            HTTPS_PROXY=_NOWHERE,
            HTTP_PROXY=_NOWHERE,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            **environment,
        )

    def setup(self, *arguments: str) -> str:
        """Run `greenroom setup`, which must succeed; return what it printed."""
        return self.run(*forked_program(), "setup", *arguments)

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
