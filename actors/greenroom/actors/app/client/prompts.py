"""Prompts: their declarations, requests and replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from greenroom.actors.core.validation.types import UNLISTED
from greenroom.actors.knowledge.corpora.handlers.completion import NameKind

MAX_ARGUMENT = 20_000
"""The most characters of one argument."""

Detail = Annotated[
    Literal["brief", "normal", "thorough"],
    Meta(description="how much of it: brief, normal or thorough; how much context is looked up, too"),
]
ContextTokens = Annotated[
    int, Meta(ge=500, le=50_000, description="how long the context may be, in tokens, instead of detail's")
]


def _text(description: str, longest: int = MAX_ARGUMENT, **more: Any) -> Meta:
    """Return the limits and the description of an argument, which is not empty."""
    return Meta(min_length=1, max_length=longest, description=description, **more)


PromptPath = Annotated[str, _text("file, below the workspace's folder", 4_096, extra={"completes": "path"})]
PromptFolder = Annotated[
    str, _text("file or folder, below the workspace's", 4_096, extra={"completes": "path"})
]
PromptSymbol = Annotated[
    str,
    _text("function, class or other symbol, such as Class.method", 200, extra={"completes": "symbol"}),
]


class PromptArgument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An argument of a prompt, always a text.

    Attributes:
        completes: The kind of names in the workspace that complete it.
        values: Fixed values that complete it instead.
    """

    name: str
    description: str = ""
    required: bool = False
    completes: NameKind | None = None
    values: tuple[str, ...] = ()


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt as listed."""

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]


class OwnPrompt(Prompt, frozen=True, kw_only=True):
    """A prompt of the user's own.

    Attributes:
        body: Its text, with placeholders such as ``{{name}}`` for the arguments.
    """

    body: str


class PromptSource(Protocol):
    """A source of the user's own prompts."""

    @property
    def prompts(self) -> Sequence[OwnPrompt]:
        """The current prompts, by name."""


class PromptList(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ListPrompts`."""

    prompts: list[Prompt]
    next_cursor: str | None


class PromptFilled(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `GetPrompt`.

    Attributes:
        text: The user's message to the model.
        sources: The source of each piece of context.
        missing: What could not be found, and why.
        tokens: An estimate of the context's size.
    """

    description: str
    text: str
    sources: list[str]
    missing: list[str]
    tokens: int


# -- the arguments of each prompt ----------------------------------------------------------------------


class PromptArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of every prompt of Greenroom."""

    detail: Detail = "normal"
    max_tokens: ContextTokens | None = None


class AboutCode(PromptArguments, frozen=True, kw_only=True):
    """The arguments of a prompt about code: a file, a symbol, or both."""

    path: PromptPath | None = None
    symbol: PromptSymbol | None = None


class ExplainCode(AboutCode, frozen=True, kw_only=True):
    """Arguments of ``explain-code``; ``code_snippet`` is listed only for its older system."""

    code_snippet: Annotated[str, _text("the code itself", extra_json_schema=UNLISTED)] | None = None


class FindSimilar(AboutCode, frozen=True, kw_only=True):
    """Arguments of ``find-similar``."""

    description: Annotated[str, _text("what the code does, in words")] | None = None


class SuggestRefactor(AboutCode, frozen=True, kw_only=True):
    """Arguments of ``suggest-refactor``."""

    goal: Annotated[str, _text("what is to become better")] | None = None


class DebugHelp(AboutCode, frozen=True, kw_only=True):
    """Arguments of ``debug-help``."""

    problem: Annotated[str, _text("what goes wrong, with the error and its trace")]


class ImplementFeature(PromptArguments, frozen=True, kw_only=True):
    """Arguments of ``implement-feature``."""

    feature: Annotated[str, _text("what is wanted")]
    path: PromptFolder | None = None


class ReviewChanges(PromptArguments, frozen=True, kw_only=True):
    """Arguments of ``review-changes``."""

    path: PromptFolder | None = None
    focus: Annotated[str, _text("what to look at above all")] | None = None


class WriteTests(AboutCode, frozen=True, kw_only=True):
    """Arguments of ``write-tests``."""

    framework: Annotated[str, _text("with what they are run, such as pytest")] | None = None


class DocumentCode(AboutCode, frozen=True, kw_only=True):
    """Arguments of ``document-code``."""

    style: Annotated[str, _text("form and readers, such as Google docstrings")] | None = None
