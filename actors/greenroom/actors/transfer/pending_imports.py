"""Imports that are decided and not yet written everywhere: an export waits for them, or tells of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import trio

from greenroom.actors.auth import namespaces as names
from greenroom.actors.auth import policy
from greenroom.actors.auth.principal import Principal
from greenroom.actors.schemas.transfer import ReadStaged
from greenroom.runtime import Context, IndexReader, Query, RuntimeClient, Slices

INDEX: Final = "imports"
_UNDERWAY: Final = b"u"
PATIENCE_SECONDS: Final = 10.0
"""How long an import may come no further until nobody waits for it."""
_LOOK_SECONDS: Final = 0.1


class PendingImport(msgspec.Struct, frozen=True, array_like=True):
    """An import that is decided, and the roots that have not yet written their part.

    Of very many some may have: see `import_actor.EXACT_ROOTS`.
    """

    staging: str
    roots: list[str]


class FindUnderway(Query[list[PendingImport]], frozen=True, kw_only=True):
    """Find the imports that are under way, of anybody; internal."""

    def run(self, reader: IndexReader) -> Slices[list[PendingImport]]:
        """Read the rows."""
        found: list[PendingImport] = []
        for row in reader.rows(INDEX, PendingImport, prefix=_UNDERWAY):
            found.append(row.value)
            if reader.should_yield():
                yield
        return found


def put_pending(context: Context, underway: PendingImport) -> None:
    """Stage which roots an import is still to be written to; for its actor."""
    if underway.roots:
        context.put_row(INDEX, _UNDERWAY, underway)
    else:
        context.delete_row(INDEX, _UNDERWAY)


async def wait_written(
    runtime: RuntimeClient, principal: Principal, prefix: str | None, roots: Iterable[str]
) -> list[str]:
    """Wait until the imports that an export would read a part of are written, as long as they go on.

    Args:
        runtime: Where the actors are.
        principal: Who exports: where it may write it waits also if there was nothing before.
        prefix: Below which leading segments.
        roots: Where it finds something now.

    Returns:
        The roots where one is not.
    """
    known, before = set(roots), None
    deadline = trio.current_time() + PATIENCE_SECONDS
    while True:
        now: dict[str, int] = {}
        for underway in await runtime.query(FindUnderway(), principal=principal):
            for root in underway.roots:
                if root in known or (_is_in(root, prefix) and policy.may_write_namespace(principal, root)):
                    asked = ReadStaged(staging=underway.staging)
                    staged = await runtime.ask(names.memory_address(root), asked, principal=principal)
                    now[root] = now.get(root, 0) + staged.applied
        if not now:
            return []
        if now != before:
            before, deadline = now, trio.current_time() + PATIENCE_SECONDS
        elif trio.current_time() >= deadline:
            return sorted(now)
        await trio.sleep(_LOOK_SECONDS)


def _is_in(root: str, prefix: str | None) -> bool:
    return prefix is None or names.is_below(root, names.root_of(prefix))
