"""A folder of the user's own prompts, read at the start and at every change."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio

from greenroom.actors.app.client.prompts import OwnPrompt
from greenroom.actors.app.prompts.own import MAX_FILE, InvalidPromptError, read_prompt
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.knowledge.ingest.files.file_content import read_bounded
from greenroom.actors.knowledge.ingest.files.watch import NotWatchedError, watch

logger = logging.getLogger(__name__)

MAX_PROMPTS: Final = 200
UNWATCHED_SECONDS: Final = 60.0
"""The interval of reading the folder if the system does not report changes, in seconds."""


class PromptLibrary:
    """The prompts of a folder; made by `open_prompts`.

    Args:
        folder: The folder, which need not exist yet.

    Attributes:
        prompts: The current prompts, by name.
        problems: Why other files are no prompts, by file name.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        self.prompts: tuple[OwnPrompt, ...] = ()
        self.problems: dict[str, str] = {}

    async def read(self) -> bool:
        """Read the folder; return whether its prompts have changed."""
        prompts, problems = await read_in_thread(_read, self.folder)
        for name, problem in problems.items():
            if self.problems.get(name) != problem:
                logger.warning("%s is no prompt: %s", f"{self.folder}/{name}", problem)
        is_new = prompts != self.prompts
        self.prompts, self.problems = prompts, problems
        return is_new

    async def watch(self, on_change: Callable[[], None]) -> None:
        """Read the folder again at every change, until cancelled."""
        while True:
            try:
                async with watch([self.folder]) as changes:
                    while os.path.isdir(self.folder):  # noqa: PTH112, ASYNC240  (one look, at a local folder)
                        if await self.read():
                            on_change()
                        await changes.next()
            except NotWatchedError as error:
                logger.debug("%s is read at intervals: %s", self.folder, error)
            if await self.read():
                on_change()
            await trio.sleep(UNWATCHED_SECONDS)


async def open_prompts(folder: str) -> PromptLibrary:
    """Return the current prompts of a folder; faults of files are logged."""
    library = PromptLibrary(folder)
    await library.read()
    return library


def _read(folder: str) -> tuple[tuple[OwnPrompt, ...], dict[str, str]]:
    """Return the prompts of a folder, and why other files are no prompts."""
    found: dict[str, OwnPrompt] = {}
    problems: dict[str, str] = {}
    try:
        files = sorted(
            each for each in Path(folder).iterdir() if each.suffix == ".md" and each.name[0] != "."
        )
    except OSError as error:
        return (), {"": f"the folder cannot be read: {error.strerror}"}
    for file in files:
        try:
            prompt = read_prompt(file.stem, read_bounded(os.path.realpath(file), MAX_FILE).decode())
        except (InvalidPromptError, UnreadableFileError) as error:
            problems[file.name] = str(error)
        except OSError as error:
            problems[file.name] = f"it cannot be read: {error.strerror}"
        except UnicodeDecodeError as error:
            problems[file.name] = f"it is no UTF-8 at byte {error.start}"
        else:
            if prompt.name in found:
                problems[file.name] = f"another file has a prompt {prompt.name}"
            elif len(found) == MAX_PROMPTS:
                problems[file.name] = f"there are {MAX_PROMPTS} prompts already"
            else:
                found[prompt.name] = prompt
    return tuple(found[name] for name in sorted(found)), problems
