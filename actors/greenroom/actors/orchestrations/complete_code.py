"""Completing paths and symbols of the workspace that the client works in."""

from __future__ import annotations

from typing import ClassVar

from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.handlers.completion import CompleteNames
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.workspace_of import CodeOrchestration, begin, roots_of
from greenroom.actors.schemas.completion import Begun, NameCompletion, NameKind


class CompleteCode(CodeOrchestration[NameCompletion], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Complete a path or a symbol of the workspace; not a tool.

    Attributes:
        kind: Which of both.
        value: What is typed so far.
        path: The file whose symbols are meant; empty for all.
    """

    writes: ClassVar[bool] = False

    kind: NameKind
    value: Begun = ""
    path: Begun = ""

    async def carry_out(self, client: ClientSessionState) -> NameCompletion:
        """Look through what is indexed so far.

        Raises:
            Refusal: ``VALIDATION_ERROR``: there is no workspace.
        """
        row = (await begin(client, (await roots_of(client))[0])).row
        request = CompleteNames(corpus=row.full_name, kind=self.kind, value=self.value, path=self.path)
        return await client.runtime.query(request, principal=client.principal)
