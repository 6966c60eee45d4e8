"""The user's own prompts, Markdown files with front matter; no I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from greenroom.actors.app.client.prompts import MAX_ARGUMENT, OwnPrompt, PromptArgument
from greenroom.actors.app.prompts.catalogue import PROMPTS
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.validation.strict_json import YAML_VALUE_ERRORS

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


class InvalidPromptError(Exception):
    """A file is no prompt; the message says why."""


class _Front(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The front matter of a prompt."""

    description: Annotated[str, Meta(min_length=1, max_length=1_000)]
    name: str | None = None
    title: Annotated[str, Meta(max_length=200)] = ""
    arguments: Annotated[tuple[PromptArgument, ...], Meta(max_length=MAX_ARGUMENTS)] = ()


def read_prompt(stem: str, text: str) -> OwnPrompt:
    """Parse the prompt in a file.

    Raises:
        InvalidPromptError: The file is no prompt.
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
    ) as error:  # msgspec's are ValueErrors
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
