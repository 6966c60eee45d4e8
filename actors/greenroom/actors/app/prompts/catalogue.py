"""The prompts of Greenroom: purpose, arguments and listing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, get_args, get_type_hints

import msgspec
from msgspec import NODEFAULT

from greenroom.actors.app.client import prompts as schemas
from greenroom.actors.app.client.prompts import Prompt, PromptArgument, PromptArguments
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.validation.parse import parse_request
from greenroom.actors.core.validation.types import UNLISTED
from greenroom.actors.core.validation.validation_messages import parts_of, quote_value

_DIGITS: Final = 9
OLDER_ARGUMENTS: Final[Mapping[str, str]] = {"file_path": "path", "detail_level": "detail"}
"""The current name of each older argument name. Older names are always accepted, and listed on demand."""
_OLDER_DETAILS: Final[Mapping[str, str]] = {"brief": "brief", "detailed": "normal", "expert": "thorough"}


class Declared(msgspec.Struct, frozen=True):
    """A prompt of Greenroom's own."""

    title: str
    description: str
    arguments: type[PromptArguments]


PROMPTS: Final[Mapping[str, Declared]] = {
    "explain-code": Declared(
        "Explain code", "Explain what a file or a symbol does, and how it is used.", schemas.ExplainCode
    ),
    "find-similar": Declared(
        "Find similar code",
        "Find code that does what a piece of code, or a description, says.",
        schemas.FindSimilar,
    ),
    "suggest-refactor": Declared(
        "Suggest a refactoring",
        "Suggest how code could be better, with what a change would touch.",
        schemas.SuggestRefactor,
    ),
    "debug-help": Declared(
        "Help to debug", "Find the cause of an error, with the code that its trace names.", schemas.DebugHelp
    ),
    "implement-feature": Declared(
        "Implement a feature",
        "Plan and write a feature the way the project does things.",
        schemas.ImplementFeature,
    ),
    "review-changes": Declared(
        "Review changes", "Review what changed since the last commit.", schemas.ReviewChanges
    ),
    "write-tests": Declared(
        "Write tests", "Write tests for code, like the tests that there are.", schemas.WriteTests
    ),
    "document-code": Declared(
        "Document code", "Write documentation for code, by what it does.", schemas.DocumentCode
    ),
}
"""The prompts by name, in listing order."""


@cache
def listed(*, older: bool = False) -> tuple[Prompt, ...]:
    """Return the prompts as listed, with current or older names of arguments."""
    return tuple(
        Prompt(
            name=name,
            title=declared.title,
            description=declared.description,
            arguments=_arguments(declared.arguments, older=older),
        )
        for name, declared in PROMPTS.items()
    )


def read_arguments(declared: Declared, given: Mapping[str, str]) -> Any:
    """Parse a prompt's arguments; empty arguments count as absent.

    Raises:
        Refusal: ``VALIDATION_ERROR``: an argument is unknown, missing, or breaks a limit.
    """
    hints = get_type_hints(declared.arguments, include_extras=True)
    raw = {
        name: _number(name, value) if name in hints and parts_of(hints[name])[0] is int else value
        for name, value in _by_todays_names(given, hints).items()
    }
    arguments = parse_request(declared.arguments, msgspec.json.encode(raw))
    needs_one = ("path", "symbol", "description") if "description" in hints else ("path", "symbol")
    is_about_code = issubclass(declared.arguments, schemas.AboutCode) and "problem" not in hints
    if (
        is_about_code
        and "code_snippet" not in raw
        and all(getattr(arguments, name) is None for name in needs_one)
    ):
        names = " or ".join(needs_one)
        raise auth_errors.invalid("path", f"path: give {names}: it must be known which code is meant")
    return arguments


def _by_todays_names(given: Mapping[str, str], hints: Mapping[str, Any]) -> dict[str, str]:
    """Return the non-empty arguments by current names."""
    named: dict[str, str] = {}
    for name, value in given.items():
        if not value.strip():
            continue
        today = OLDER_ARGUMENTS.get(name, name)
        if today not in hints:
            today = name
        if today in named:
            sentence = f"{today}: it is given twice, by this name and by an older one; give one of them"
            raise auth_errors.invalid(today, sentence)
        if name == "detail_level" and value not in get_args(parts_of(hints[today])[0]):
            if value not in _OLDER_DETAILS:
                sentence = f"{name}: it takes {', '.join(_OLDER_DETAILS)}, and got {value[:100]!r}"
                raise auth_errors.invalid(name, sentence)
            value = _OLDER_DETAILS[value]  # noqa: PLW2901  (it is the same detail)
        named[today] = value
    return named


def _number(name: str, text: str) -> int:
    """Parse a number: the protocol's arguments are all texts."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        sentence = f"{name}: it takes a whole number and got {quote_value(msgspec.json.encode(text))}"
        raise auth_errors.invalid(name, sentence)
    return int(text)


def _arguments(struct: type[PromptArguments], *, older: bool) -> tuple[PromptArgument, ...]:
    hints = get_type_hints(struct, include_extras=True)
    shared = PromptArguments.__struct_fields__
    older_names = {today: name for name, today in OLDER_ARGUMENTS.items()} if older else {}
    found = []
    for field in sorted(msgspec.structs.fields(struct), key=lambda each: each.name in shared):
        base, meta = parts_of(hints[field.name])
        if meta.extra_json_schema == UNLISTED and not older:
            continue
        extra = meta.extra or {}
        values = tuple(get_args(base)) if field.name == "detail" else ()
        description = meta.description or ""
        if older and values:
            values = tuple(_OLDER_DETAILS)
            description = f"how much of it: {', '.join(values)}"
        found.append(
            PromptArgument(
                name=older_names.get(field.name, field.name),
                description=description,
                required=field.default is NODEFAULT and field.default_factory is NODEFAULT,
                completes=extra.get("completes"),
                values=values,
            )
        )
    return tuple(found)
