"""Complete paths and symbols of the client's workspace."""

from __future__ import annotations

from greenroom.actors.core.auth.scopes import RESOURCES
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.handlers.completion import (
    Begun,
    CompleteNames,
    NameCompletion,
    NameKind,
)
from greenroom.actors.knowledge.workspaces.tools.workspace_of import (
    CodeClient,
    CodeProcedure,
    find_roots,
    start_index,
)


class CompleteCode(CodeProcedure[NameCompletion], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Complete a path or a symbol of the workspace; not a tool."""

    kind: NameKind
    value: Begun = ""
    path: Begun = ""

    async def run(self, client: CodeClient) -> NameCompletion:
        """Search the current index."""
        client.check_scope("this resource", RESOURCES["workspace"])
        row = (await start_index(client, (await find_roots(client))[0])).row
        request = CompleteNames(corpus=row.full_name, kind=self.kind, value=self.value, path=self.path)
        return await client.runtime.query(request, principal=client.principal)
