"""Which owners a search asks: those of the namespaces where the caller may see something."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from greenroom.actors.auth import policy
from greenroom.actors.auth.namespaces import (
    agent_namespace,
    below_root,
    is_below,
    memory_address,
    root_of,
    user_namespace,
)
from greenroom.actors.memory.directory import ListNamespaces

if TYPE_CHECKING:
    from greenroom.runtime import Address, ProcedureContext


class Root(NamedTuple):
    """A namespace root: its name, and where its owner is."""

    name: str
    address: Address


async def roots_below(desk: ProcedureContext, below: str | None) -> list[Root]:
    """Return the roots to ask, in the order of their names.

    Args:
        desk: Whose principal searches.
        below: Leading segments of namespaces; None: all.
    """
    whole = below_root(below)
    # What the caller writes is asked in any case: the directory is behind what is being written.
    if whole is not None and policy.may_write_namespace(desk.principal, whole):
        found = {root_of(whole)}
    else:
        listed = await desk.query(ListNamespaces(prefix=below))
        own = (user_namespace(desk.principal), agent_namespace(desk.principal))
        found = {name for name in (*listed, *own) if _agree(name, below)}
    return [Root(name, memory_address(name)) for name in sorted(found)]


def _agree(root: str, below: str | None) -> bool:
    return below is None or is_below(root, below) or is_below(below, root)
