"""Fill Greenroom's prompts: the task in words, and its context, the most important first."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from greenroom.actors.app.client import prompts as schemas
from greenroom.actors.app.prompts.context import fenced
from greenroom.actors.app.prompts.gathering import Gathering

BUDGETS: Final[Mapping[str, int]] = {"brief": 2_000, "normal": 6_000, "thorough": 16_000}
"""The token budget of the context, by detail."""
_LENGTHS: Final[Mapping[str, str]] = {
    "brief": "Keep it to the essentials.",
    "normal": "Be as long as it needs, and no longer.",
    "thorough": "Go into the details, also of what goes wrong and of rare cases.",
}
_WORD: Final = re.compile(r"[A-Za-z_]\w{2,}")
_QUERY_WORDS: Final = 40
_OUTLINE_TOKENS: Final = 1_500
_REVIEWED: Final = 3
"""For at most this many changed files, the code that uses them is looked up."""


async def fill(name: str, arguments: Any, gathering: Gathering) -> str:
    """Look up the context of a prompt, and return its task.

    Raises:
        Refusal: A path is in no workspace, or does not exist.
    """
    task = await _FILLING[name](arguments, gathering)
    return f"{task.strip()} {_LENGTHS[arguments.detail]}"


def budget_of(arguments: schemas.PromptArguments) -> int:
    """Return the token budget of the context."""
    return arguments.max_tokens or BUDGETS[arguments.detail]


def _name_of(args: schemas.AboutCode) -> str:
    """Return how a prompt names its code."""
    if args.symbol and args.path:
        return f"`{args.symbol}` in `{args.path}`"
    return f"`{args.symbol or args.path}`" if args.symbol or args.path else "the code"


async def _subject(args: schemas.AboutCode, gathering: Gathering) -> str | None:
    """Return the code of a prompt; None without a readable workspace."""
    if not await gathering.opens_workspace():
        return None
    if args.path is None and args.symbol is None:
        return ""
    return await gathering.subject(args.path, args.symbol)


async def _rest(task: str, gathering: Gathering) -> None:
    await gathering.memories(task)
    await gathering.session()


async def _explain(args: schemas.ExplainCode, gathering: Gathering) -> str:
    snippet = args.code_snippet
    if await _subject(args, gathering) is not None:
        if args.path is not None or args.symbol is not None:
            await gathering.related(args.path, args.symbol)
        elif snippet is not None:
            await gathering.similar(snippet, "Perhaps where it is from")
        if args.path is not None:
            await gathering.outline(args.path, _OUTLINE_TOKENS)
    await _rest(f"explain {snippet or _name_of(args)}", gathering)
    of_which = "" if snippet is None else f"Of {_name_of(args)} this is meant:\n\n{fenced(snippet)}\n\n"
    return (
        f"{of_which}Explain {_name_of(args)}: what it is for, how it does that, what it depends on and what "
        "depends on it. Name the lines that you speak of. Say what the context does not show instead of "
        "guessing."
    )


async def _find_similar(args: schemas.FindSimilar, gathering: Gathering) -> str:
    code = await _subject(args, gathering)
    if code is not None and args.path is not None and args.symbol is None and args.description is None:
        await gathering.like(args.path)
    elif code is not None:
        words = " ".join(dict.fromkeys(_WORD.findall(code)[:_QUERY_WORDS]))
        query = args.description or f"{args.symbol or ''} {words}"
        await gathering.similar(query, "Like it", without=args.path)
    await _rest(args.description or f"code like {_name_of(args)}", gathering)
    what = f"what this says: {args.description}" if args.description else f"the same as {_name_of(args)}"
    return (
        f"Find code in this workspace that does {what}\nFor each place in the context say whether it does, "
        "how it differs, and whether both should be one. Say so if none does."
    )


async def _refactor(args: schemas.SuggestRefactor, gathering: Gathering) -> str:
    if await _subject(args, gathering) is not None:
        await gathering.related(args.path, args.symbol)
        await gathering.similar(args.symbol or args.path or "", "Perhaps the same", without=args.path)
    await _rest(f"refactor {_name_of(args)} {args.goal or ''}", gathering)
    goal = f"The goal: {args.goal}\n" if args.goal else ""
    return (
        f"Suggest how {_name_of(args)} could be better without doing anything else. {goal}Give each "
        "suggestion with its reason, the code before and after, and what uses it and would have to change. "
        "The one that is worth most comes first."
    )


async def _debug(args: schemas.DebugHelp, gathering: Gathering) -> str:
    if await gathering.opens_workspace():
        await gathering.frames(args.problem)
        if args.path is not None or args.symbol is not None:
            await gathering.subject(args.path, args.symbol)
        await gathering.similar(args.problem[-500:], "Perhaps involved", without=args.path)
    await _rest(args.problem, gathering)
    return (
        f"Help me to find the cause of this problem:\n\n{args.problem}\n\nName the likely causes, the "
        "likeliest first, each with the lines that speak for it and how to check it. Propose a fix for the "
        "first."
    )


async def _implement(args: schemas.ImplementFeature, gathering: Gathering) -> str:
    if await gathering.opens_workspace():
        await gathering.similar(args.feature, "Near it")
        await gathering.outline(args.path or "", _OUTLINE_TOKENS)
        if args.path is not None:
            await gathering.related(args.path, None)
    await _rest(args.feature, gathering)
    where = f"It belongs into `{args.path}`. " if args.path else ""
    return (
        f"Implement this feature:\n\n{args.feature}\n\n{where}Begin with a plan: which files change, and "
        "why. Do things the way the code in the context does them, and keep to what is remembered as "
        "decided. Then write the code and its tests."
    )


async def _review(args: schemas.ReviewChanges, gathering: Gathering) -> str:
    changed: list[str] = []
    if await gathering.opens_workspace():
        changed = await gathering.changes(args.path)
        for path in changed[:_REVIEWED]:
            await gathering.related(path, None)
    await _rest(f"review of {' '.join(changed[:20])} {args.focus or ''}", gathering)
    focus = f" Look above all at this: {args.focus}\n" if args.focus else ""
    return (
        f"Review what changed since the last commit.{focus} Name mistakes, what is missing, and what could "
        "break elsewhere, each with its file and line and how sure you are; the gravest first. Say what is "
        "good in one sentence, and what the context does not show."
    )


def _is_test(path: str) -> bool:
    return "test" in path.lower() or "spec" in path.lower().rpartition("/")[2]


async def _tests(args: schemas.WriteTests, gathering: Gathering) -> str:
    if await _subject(args, gathering) is not None:
        users = await gathering.related(args.path, args.symbol)
        theirs = [each.file_path for each in users if _is_test(each.file_path)]
        stem = (args.path or "").rpartition("/")[2].partition(".")[0]
        query = f"test {args.symbol or stem}"
        found = await gathering.similar(query, "A test that there is", without=args.path, only=_is_test)
        example = next(iter([*theirs, *(each.file_path for each in found)]), None)
        if example is not None:
            await gathering.file(example, "How tests are written here")
    await _rest(f"tests of {_name_of(args)}", gathering)
    framework = f" They are run with {args.framework}." if args.framework else ""
    return (
        f"Write tests for {_name_of(args)}.{framework} Write them like those in the context, and none that "
        "is there already. Begin with what is most likely to break: limits, empty and odd input, errors. A "
        "test's name says what it shows."
    )


async def _document(args: schemas.DocumentCode, gathering: Gathering) -> str:
    if await _subject(args, gathering) is not None:
        await gathering.related(args.path, args.symbol)
        if args.path is not None:
            await gathering.outline(args.path, _OUTLINE_TOKENS)
    await _rest(f"documentation of {_name_of(args)}", gathering)
    style = f" In this form: {args.style}\n" if args.style else ""
    return (
        f"Write documentation for {_name_of(args)}.{style} Say what each public part is for, what it takes "
        "and answers, which errors it raises, and show how the code that uses it does so. Say nothing that "
        "the code does not do."
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
