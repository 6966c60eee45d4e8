"""The user's own prompts: Markdown files with front matter, read at every change."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import trio
from msgspec import Meta

from greenroom.actors.app.client.prompts import MAX_ARGUMENT, OwnPrompt, PromptArgument
from greenroom.actors.app.prompts.catalogue import PROMPTS
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.validation.strict_json import YAML_VALUE_ERRORS
from greenroom.actors.knowledge.ingest.files.file_content import read_bounded
from greenroom.actors.knowledge.ingest.files.watch import NotWatchedError, watch

logger = logging.getLogger(__name__)

MAX_FILE: Final = 65_536
MAX_ARGUMENTS: Final = 20
MAX_FILLED: Final = 200_000
"""The most characters of a filled prompt."""
_MAX_DEPTH: Final = 6
_FRONT: Final = re.compile(
    r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL | re.MULTILINE
)
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PLACE: Final = re.compile(r"(\\?)\{\{[ \t]*([A-Za-z0-9_-]{1,64})[ \t]*\}\}")
MAX_PROMPTS: Final = 200
UNWATCHED_SECONDS: Final = 60.0
"""If the system does not report changes, the folder is read again after this many seconds."""


class InvalidPromptError(Exception):
    """A file is not a valid prompt; the message says why."""


class _Front(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    description: Annotated[str, Meta(min_length=1, max_length=1_000)]
    name: str | None = None
    title: Annotated[str, Meta(max_length=200)] = ""
    arguments: Annotated[tuple[PromptArgument, ...], Meta(max_length=MAX_ARGUMENTS)] = ()


class PromptLibrary:
    """The prompts of a folder; made by `open_prompts`.

    Attributes:
        problems: By file name, why other files are not valid prompts.
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
    """Return the prompts of a folder, and why other files are not valid prompts."""
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


# -- one file ----------------------------------------------------------------------------------


def read_prompt(stem: str, text: str) -> OwnPrompt:
    """Parse the prompt in a file.

    Raises:
        InvalidPromptError: The file is not a valid prompt.
    """
    found = _FRONT.match(text)
    if found is None:
        raise InvalidPromptError(
            "it has no front matter: begin with a line ---, then `description: …`, then a line ---"
        )
    front = _front(found[1])
    name = front.name or stem
    if _NAME.fullmatch(name) is None:
        raise InvalidPromptError(
            f"name: {name[:80]!r} is none; it has up to 64 of a-z, 0-9, - and _, and begins with a letter "
            "or digit"
        )
    if name in PROMPTS:
        raise InvalidPromptError(f"name: {name} is one of Greenroom's own prompts; give it another name")
    body = found[2].strip()
    if not body:
        raise InvalidPromptError("there is nothing below its front matter")
    _check_arguments(front.arguments, body)
    return OwnPrompt(
        name=name,
        title=front.title or name,
        description=front.description,
        arguments=front.arguments,
        body=body,
    )


def fill_own(prompt: OwnPrompt, given: Mapping[str, str]) -> str:
    """Fill in a prompt's arguments; placeholders in their values are not expanded.

    Raises:
        Refusal: ``VALIDATION_ERROR``: an argument is missing, unknown or too long.
    """
    known = [each.name for each in prompt.arguments]
    for name, value in given.items():
        if name not in known:
            listed = ", ".join(known) or "none"
            raise auth_errors.invalid(name, f"{name[:100]}: unknown; the arguments are {listed}", known=known)
        if len(value) > MAX_ARGUMENT:
            raise auth_errors.invalid(
                name, f"{name}: it takes {MAX_ARGUMENT:,} characters and the given one has {len(value):,}"
            )
    for each in prompt.arguments:
        if each.required and not given.get(each.name, "").strip():
            raise auth_errors.invalid(each.name, f"{each.name}: it is required")
    places = [match for match in _PLACE.finditer(prompt.body) if not match[1]]
    length = len(prompt.body) + sum(len(given.get(match[2], "")) for match in places)
    if length > MAX_FILLED:
        raise auth_errors.invalid(
            "arguments",
            f"arguments: the prompt has {MAX_FILLED:,} characters at most, and {length:,} with these",
        )
    return _PLACE.sub(
        lambda match: match[0][1:] if match[1] else given.get(match[2], ""),
        prompt.body,
    )


def _front(text: str) -> _Front:
    import yaml  # noqa: PLC0415  (only users with prompts of their own wait for it)

    try:
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_DEPTH or isinstance(event, yaml.AliasEvent):
                raise InvalidPromptError("its front matter is nested too deeply, or refers to itself")
        loaded: Any = yaml.safe_load(text)
        return msgspec.convert(loaded or {}, _Front)
    except (
        yaml.YAMLError,
        ValueError,
        RecursionError,
        *YAML_VALUE_ERRORS,
    ) as error:  # msgspec's errors are ValueErrors
        reason = " ".join(str(error).split())
        raise InvalidPromptError(f"its front matter is not understood: {reason}") from None


def _check_arguments(arguments: tuple[PromptArgument, ...], body: str) -> None:
    names = [each.name for each in arguments]
    for each in arguments:
        if _PLACE.fullmatch(f"{{{{{each.name}}}}}") is None:
            raise InvalidPromptError(
                f"arguments: {each.name[:80]!r} is no name; it has up to 64 of A-Z, a-z, 0-9, - and _"
            )
        if names.count(each.name) > 1:
            raise InvalidPromptError(f"arguments: {each.name} is there twice")
        if each.completes and each.values:
            raise InvalidPromptError(f"arguments: {each.name} has values and completes; give one of both")
    for match in _PLACE.finditer(body):
        if not match[1] and match[2] not in names:
            raise InvalidPromptError(
                f"{match[0]} is the place of no argument; declare it, or write \\{match[0]} for the braces"
            )
