"""Waiting for vectors: procedures for `open_greenroom(queries=WAITS)`, which run beside the embedder.

They have no deadline: in virtual time one would be over before a thread has loaded anything.
"""

from __future__ import annotations

from typing import Final

from greenroom.runtime import Procedure, ProcedureContext


class Loaded(Procedure[bool], frozen=True, kw_only=True):
    """Wait until the embedder is there, or could not be had; vectors of words are then made with the text."""

    async def run(self, context: ProcedureContext) -> bool:
        if context.sidecar is not None:
            await context.sidecar.query("", wait=True)
        return True


class Settled(Procedure[bool], frozen=True, kw_only=True):
    """Wait until the embedder is there and all that is known of has vectors."""

    async def run(self, context: ProcedureContext) -> bool:
        if context.sidecar is not None:
            await context.sidecar.query("", wait=True)
            await context.sidecar.wait_idle()
        return True


WAITS: Final = (Loaded, Settled)
