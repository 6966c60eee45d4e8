"""Requests about prompts: list them, fill one, complete an argument."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from greenroom.actors.app.client.context import ClientContext
from greenroom.actors.app.client.prompts import OwnPrompt, Prompt, PromptFilled, PromptList
from greenroom.actors.app.prompts.catalogue import PROMPTS, listed, read_arguments
from greenroom.actors.app.prompts.context import put_together
from greenroom.actors.app.prompts.filling import budget_of, fill
from greenroom.actors.app.prompts.gathering import Gathering
from greenroom.actors.app.prompts.library import fill_own
from greenroom.actors.core.audit import actor as audit_actor
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import scopes
from greenroom.actors.core.replies import paging
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.handlers.completion import MAX_VALUES, NameCompletion
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import CompleteCode
from greenroom.actors.knowledge.workspaces.tools.workspace_of import CodeProcedure
from greenroom.runtime import Procedure, Refusal

PAGE: Final = 50
MAX_ARGUMENTS: Final = 50
MAX_PATH: Final = 4_096
_CURSOR: Final = "prompts"

PromptName = Annotated[str, Meta(max_length=200)]
_Arguments = Annotated[dict[str, str], Meta(max_length=MAX_ARGUMENTS)]


class ListPrompts(Procedure[PromptList], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the prompts: Greenroom's, then the user's own by name.

    Attributes:
        older: Whether Greenroom's prompts are listed with older names of their arguments.
    """

    runs = "here"

    cursor: str | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = PAGE
    older: bool = False

    async def run(self, client: ClientContext) -> PromptList:
        """Answer a page."""
        ours = listed(older=self.older)
        prompts = [*ours, *_own(client)]
        if self.cursor is not None:
            last = paging.decode(self.cursor, _CURSOR).decode(errors="replace")
            own = [each for each in _own(client) if each.name > last]
            names = [each.name for each in ours]
            prompts = [*ours[names.index(last) + 1 :], *_own(client)] if last in names else list(own)
        page = prompts[: self.limit]
        is_last = len(prompts) <= self.limit
        return PromptList(
            prompts=page,
            next_cursor=None if is_last else paging.encode(page[-1].name.encode(), _CURSOR),
        )


class GetPrompt(CodeProcedure[PromptFilled], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Fill a prompt."""

    name: PromptName
    arguments: _Arguments = msgspec.field(default_factory=dict)

    async def run(self, client: ClientContext) -> PromptFilled:
        """Look up the prompt's context."""
        own = next((each for each in _own(client) if each.name == self.name), None)
        if own is not None:
            text = fill_own(own, self.arguments)
            return PromptFilled(description=own.description, text=text, sources=[], missing=[], tokens=0)
        if self.name not in PROMPTS:
            raise _unknown(self.name, client)
        declared = PROMPTS[self.name]
        arguments = read_arguments(declared, self.arguments)
        gathering = Gathering(client)
        task = await fill(self.name, arguments, gathering)
        context = put_together(gathering.pieces, gathering.missing, budget_of(arguments))
        audit_actor.record_action(
            client.runtime,
            "get_prompt",
            principal=client.principal,
            session=client.session.session_id,
            prompt=self.name,
            code=context.kinds.count("code"),
            memories=context.kinds.count("memory"),
            sessions=context.kinds.count("session"),
        )
        return PromptFilled(
            description=declared.description,
            text=f"{task}\n\n{context.text}".rstrip(),
            sources=context.sources,
            missing=context.missing,
            tokens=paging.estimate_tokens(context.text),
        )


class CompletePrompt(CodeProcedure[NameCompletion], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Complete an argument of a prompt; an unknown argument has no values."""

    prompt: PromptName
    argument: PromptName
    value: Annotated[str, Meta(max_length=4_096)] = ""
    arguments: _Arguments = msgspec.field(default_factory=dict)

    async def run(self, client: ClientContext) -> NameCompletion:
        """Return its possible values, or paths or symbols of the workspace."""
        named = [
            argument
            for prompt in (*_all(client), *listed(older=True))
            for argument in prompt.arguments
            if (prompt.name, argument.name) == (self.prompt, self.argument)
        ]
        argument = next(iter(named), None)
        if argument is None or not scopes.contexts_of(client.principal.scopes):
            return NameCompletion(values=[], has_more=False)
        if argument.values:
            values = [each for each in argument.values if each.lower().startswith(self.value.lower())]
            return NameCompletion(values=values[:MAX_VALUES], has_more=len(values) > MAX_VALUES)
        if argument.completes is None or not scopes.allows(client.principal.scopes, scopes.CODE):
            return NameCompletion(values=[], has_more=False)
        path = self.arguments.get("path", self.arguments.get("file_path", ""))
        path = path if argument.completes == "symbol" else ""
        try:
            asked = CompleteCode(kind=argument.completes, value=self.value, path=path[:MAX_PATH])
            return await asked.run(client)
        except Refusal:  # there is no readable workspace
            return NameCompletion(values=[], has_more=False)


def _own(client: ClientContext) -> Sequence[OwnPrompt]:
    return () if client.prompts is None else client.prompts.prompts


def _all(client: ClientContext) -> list[Prompt]:
    return [*listed(), *_own(client)]


def _unknown(name: str, client: ClientContext) -> Refusal:
    near = difflib.get_close_matches(name[:100], [each.name for each in _all(client)], n=2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return auth_errors.invalid("name", f"name: there is no prompt {name[:100]!r}{hint}")
