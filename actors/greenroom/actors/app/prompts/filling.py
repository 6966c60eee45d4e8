"""Filling Greenroom's prompts: the task in words, and what is looked up for it, the most important first."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from greenroom.actors.app.client import prompts as schemas
from greenroom.actors.app.prompts.context import fenced
from greenroom.actors.app.prompts.gathering import Gathering

BUDGETS: Final[Mapping[str, int]] = {"brief": 2_000, "normal": 6_000, "thorough": 16_000}
"""Tokens of context, by the detail that is asked for."""
_LENGTHS: Final[Mapping[str, str]] = {
    "brief": "Keep it to the essentials.",
    "normal": "Be as long as it needs, and no longer.",
    "thorough": "Go into the details, also of what goes wrong and of rare cases.",
}
_WORD: Final = re.compile(r"[A-Za-z_]\w{2,}")
_QUERY_WORDS: Final = 40
_OUTLINE_TOKENS: Final = 1_500
_REVIEWED: Final = 3
"""Changed files whose users are looked up."""


async def fill(name: str, arguments: Any, gathering: Gathering) -> str:
    """Look up the context of a prompt, and return the task that it sets.

    Raises:
        Refusal: a path is in no workspace, or not there.
    """
    task = await _FILLING[name](arguments, gathering)
    return f"{task.strip()} {_LENGTHS[arguments.detail]}"


def budget_of(arguments: schemas.PromptArguments) -> int:
    """Return how many tokens the context may have."""
    return arguments.max_tokens or BUDGETS[arguments.detail]


def _name_of(asked: schemas.AboutCode) -> str:
    """Return how a prompt calls the code that it is about."""
    if asked.symbol and asked.path:
        return f"`{asked.symbol}` in `{asked.path}`"
    return f"`{asked.symbol or asked.path}`" if asked.symbol or asked.path else "the code"


class _Found(NamedTuple):
    """The code that a prompt is about; ``is_open`` says that there is a workspace to look in."""

    text: str
    is_open: bool


async def _subject(asked: schemas.AboutCode, gathering: Gathering) -> _Found:
    if not await gathering.opens_workspace():
        return _Found("", is_open=False)
    if asked.path is None and asked.symbol is None:
        return _Found("", is_open=True)
    return _Found(await gathering.subject(asked.path, asked.symbol), is_open=True)


async def _rest(task: str, gathering: Gathering) -> None:
    await gathering.memories(task)
    await gathering.session()


async def _explain(asked: schemas.ExplainCode, gathering: Gathering) -> str:
    snippet = asked.code_snippet
    if (await _subject(asked, gathering)).is_open:
        if asked.path is not None or asked.symbol is not None:
            await gathering.related(asked.path, asked.symbol)
        elif snippet is not None:
            await gathering.similar(snippet, "Perhaps where it is from")
        if asked.path is not None:
            await gathering.outline(asked.path, _OUTLINE_TOKENS)
    await _rest(f"explain {snippet or _name_of(asked)}", gathering)
    of_which = "" if snippet is None else f"Of {_name_of(asked)} this is meant:\n\n{fenced(snippet)}\n\n"
    return (
        f"{of_which}Explain {_name_of(asked)}: what it is for, how it does that, what it depends on and what "
        "depends on "
        "it. Name the lines that you speak of. Say what the context does not show instead of guessing."
    )


async def _find_similar(asked: schemas.FindSimilar, gathering: Gathering) -> str:
    found = await _subject(asked, gathering)
    if found.is_open and asked.path is not None and asked.symbol is None and asked.description is None:
        await gathering.like(asked.path)
    elif found.is_open:
        words = " ".join(dict.fromkeys(_WORD.findall(found.text)[:_QUERY_WORDS]))
        query = asked.description or f"{asked.symbol or ''} {words}"
        await gathering.similar(query, "Like it", without=asked.path)
    await _rest(asked.description or f"code like {_name_of(asked)}", gathering)
    what = f"what this says: {asked.description}" if asked.description else f"the same as {_name_of(asked)}"
    return (
        f"Find code in this workspace that does {what}\nFor each place in the context say whether it "
        "does, how "
        "it differs, and whether both should be one. Say so if none does."
    )


async def _refactor(asked: schemas.SuggestRefactor, gathering: Gathering) -> str:
    found = await _subject(asked, gathering)
    if found.is_open:
        await gathering.related(asked.path, asked.symbol)
        await gathering.similar(asked.symbol or asked.path or "", "Perhaps the same", without=asked.path)
    await _rest(f"refactor {_name_of(asked)} {asked.goal or ''}", gathering)
    goal = f"The goal: {asked.goal}\n" if asked.goal else ""
    return (
        f"Suggest how {_name_of(asked)} could be better without doing anything else. {goal}Give each "
        "suggestion "
        "with its reason, the code before and after, and what uses it and would have to change. The one that "
        "is worth most comes first."
    )


async def _debug(asked: schemas.DebugHelp, gathering: Gathering) -> str:
    if await gathering.opens_workspace():
        await gathering.frames(asked.problem)
        if asked.path is not None or asked.symbol is not None:
            await gathering.subject(asked.path, asked.symbol)
        await gathering.similar(asked.problem[-500:], "Perhaps involved", without=asked.path)
    await _rest(asked.problem, gathering)
    return (
        f"Help me to find the cause of this problem:\n\n{asked.problem}\n\nName the likely causes, the "
        "likeliest "
        "first, each with the lines that speak for it and how to check it. Propose a fix for the first."
    )


async def _implement(asked: schemas.ImplementFeature, gathering: Gathering) -> str:
    if await gathering.opens_workspace():
        await gathering.similar(asked.feature, "Near it")
        await gathering.outline(asked.path or "", _OUTLINE_TOKENS)
        if asked.path is not None:
            await gathering.related(asked.path, None)
    await _rest(asked.feature, gathering)
    where = f"It belongs into `{asked.path}`. " if asked.path else ""
    return (
        f"Implement this feature:\n\n{asked.feature}\n\n{where}Begin with a plan: which files change, "
        "and why. "
        "Do things the way the code in the context does them, and keep to what is remembered as decided. "
        "Then "
        "write the code and its tests."
    )


async def _review(asked: schemas.ReviewChanges, gathering: Gathering) -> str:
    changed: list[str] = []
    if await gathering.opens_workspace():
        changed = await gathering.changes(asked.path)
        for path in changed[:_REVIEWED]:
            await gathering.related(path, None)
    await _rest(f"review of {' '.join(changed[:20])} {asked.focus or ''}", gathering)
    focus = f" Look above all at this: {asked.focus}\n" if asked.focus else ""
    return (
        f"Review what changed since the last commit.{focus} Name mistakes, what is missing, and what "
        "could break "
        "elsewhere, each with its file and line and how sure you are; the gravest first. Say what is good in "
        "one sentence, and what the context does not show."
    )


def _is_test(path: str) -> bool:
    return "test" in path.lower() or "spec" in path.lower().rpartition("/")[2]


async def _tests(asked: schemas.WriteTests, gathering: Gathering) -> str:
    if (await _subject(asked, gathering)).is_open:
        users = await gathering.related(asked.path, asked.symbol)
        theirs = [each.file_path for each in users if _is_test(each.file_path)]
        stem = (asked.path or "").rpartition("/")[2].partition(".")[0]
        query = f"test {asked.symbol or stem}"
        found = await gathering.similar(query, "A test that there is", without=asked.path, only=_is_test)
        example = next(iter([*theirs, *(each.file_path for each in found)]), None)
        if example is not None:
            await gathering.file(example, "How tests are written here")
    await _rest(f"tests of {_name_of(asked)}", gathering)
    framework = f" They are run with {asked.framework}." if asked.framework else ""
    return (
        f"Write tests for {_name_of(asked)}.{framework} Write them like those in the context, and none "
        "that is "
        "there already. Begin with what is most likely to break: limits, empty and odd input, errors. A "
        "test's "
        "name says what it shows."
    )


async def _document(asked: schemas.DocumentCode, gathering: Gathering) -> str:
    if (await _subject(asked, gathering)).is_open:
        await gathering.related(asked.path, asked.symbol)
        if asked.path is not None:
            await gathering.outline(asked.path, _OUTLINE_TOKENS)
    await _rest(f"documentation of {_name_of(asked)}", gathering)
    style = f" In this form: {asked.style}\n" if asked.style else ""
    return (
        f"Write documentation for {_name_of(asked)}.{style} Say what each public part is for, what it "
        "takes and "
        "answers, which errors it raises, and show how the code that uses it does so. Say nothing that "
        "the code "
        "does not do."
    )


_FILLING: Final[Mapping[str, Callable[[Any, Gathering], Awaitable[str]]]] = {
    "explain-code": _explain,
    "find-similar": _find_similar,
    "suggest-refactor": _refactor,
    "debug-help": _debug,
    "implement-feature": _implement,
    "review-changes": _review,
    "write-tests": _tests,
    "document-code": _document,
}
