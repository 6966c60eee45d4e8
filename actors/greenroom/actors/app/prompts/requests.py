"""What clients ask about prompts: which there are, one of them filled, an argument completed."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from greenroom.actors.app.client.prompts import OwnPrompt, Prompt, PromptFilled, PromptList
from greenroom.actors.app.prompts.catalogue import PROMPTS, listed, read_arguments
from greenroom.actors.app.prompts.context import put_together
from greenroom.actors.app.prompts.filling import budget_of, fill
from greenroom.actors.app.prompts.gathering import Gathering
from greenroom.actors.app.prompts.own import fill_own
from greenroom.actors.core.audit import actor as audit_actor
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import scopes
from greenroom.actors.core.replies import paging
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState
from greenroom.actors.orchestrations.complete_code import CompleteCode
from greenroom.actors.orchestrations.workspace_of import CodeOrchestration
from greenroom.actors.schemas.completion import MAX_VALUES, NameCompletion
from greenroom.runtime import Refusal

PAGE: Final = 50
MAX_ARGUMENTS: Final = 50
MAX_PATH: Final = 4_096
_CURSOR: Final = "prompts"

PromptName = Annotated[str, Meta(max_length=200)]
_Arguments = Annotated[dict[str, str], Meta(max_length=MAX_ARGUMENTS)]


class ListPrompts(ClientOrchestration[PromptList], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the prompts: Greenroom's, then the user's own in the order of their names.

    Attributes:
        older: Whether Greenroom's are listed with the older names of their arguments.
    """

    writes: ClassVar[bool] = False

    cursor: str | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = PAGE
    older: bool = False

    async def carry_out(self, client: ClientSessionState) -> PromptList:
        """Answer a page.

        Raises:
            Refusal: ``VALIDATION_ERROR``: the cursor is none.
        """
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


class GetPrompt(CodeOrchestration[PromptFilled], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Fill a prompt."""

    writes: ClassVar[bool] = False

    name: PromptName
    arguments: _Arguments = msgspec.field(default_factory=dict)

    async def carry_out(self, client: ClientSessionState) -> PromptFilled:
        """Look up what it is filled with.

        Raises:
            Refusal: ``VALIDATION_ERROR``: there is no such prompt, or it takes no such arguments.
        """
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
        audit_actor.tell(
            client.runtime,
            "get_prompt",
            principal=client.principal,
            session=client.session_id,
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


class CompletePrompt(
    CodeOrchestration[NameCompletion], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Complete an argument of a prompt; what is unknown has no values."""

    writes: ClassVar[bool] = False

    prompt: PromptName
    argument: PromptName
    value: Annotated[str, Meta(max_length=4_096)] = ""
    arguments: _Arguments = msgspec.field(default_factory=dict)

    async def carry_out(self, client: ClientSessionState) -> NameCompletion:
        """Answer the values that it may have, or paths or symbols of the workspace."""
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
            return await asked.carry_out(client)
        except Refusal:  # there is no workspace, or none that may be read
            return NameCompletion(values=[], has_more=False)


def _own(client: ClientSessionState) -> Sequence[OwnPrompt]:
    return () if client.prompts is None else client.prompts.prompts


def _all(client: ClientSessionState) -> list[Prompt]:
    return [*listed(), *_own(client)]


def _unknown(name: str, client: ClientSessionState) -> Refusal:
    near = difflib.get_close_matches(name[:100], [each.name for each in _all(client)], n=2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return auth_errors.invalid("name", f"name: there is no prompt {name[:100]!r}{hint}")
