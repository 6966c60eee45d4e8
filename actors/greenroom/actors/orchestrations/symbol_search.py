"""The tool that finds where symbols of the workspace are defined, and where their names are used."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from greenroom.actors.corpus.catalogue import corpus_address
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.workspace_of import CodeOrchestration, freshness_of, opened, roots_of
from greenroom.actors.schemas import code as schemas


class SymbolSearch(CodeOrchestration[schemas.SymbolsFound], frozen=True, kw_only=True):
    """Find definitions and references of a symbol of the workspace by its name."""

    writes: ClassVar[bool] = False

    symbol: schemas.SymbolName
    kind: schemas.SymbolKind | None = None
    limit: schemas.SymbolLimit = 20

    async def carry_out(self, client: ClientSessionState) -> schemas.SymbolsFound:
        """Look through what is indexed so far.

        Raises:
            Refusal: ``VALIDATION_ERROR``: there is no workspace.
        """
        workspace = await opened(client, (await roots_of(client))[0])
        request = schemas.FindSymbols(
            corpus=workspace.row.full_name, symbol=self.symbol, kind=self.kind, limit=self.limit
        )
        found = await client.ask(corpus_address(workspace.row), request)
        return schemas.SymbolsFound(
            **msgspec.structs.asdict(found),
            workspace=workspace.row.root or "",
            freshness=await freshness_of(client, workspace),
        )
