"""Which owners a search asks: those of the namespaces where the caller may see something."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import trio

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
from greenroom.actors.recall.choose_roots import ChooseRoots, Chosen
from greenroom.actors.recall.scatter_gather import Root, ask_each
from greenroom.actors.schemas.keyvalue import SummarizeRoot
from greenroom.runtime import ActorQuarantinedError, OverloadedError

if TYPE_CHECKING:
    from greenroom.runtime import ProcedureContext

UNKNOWN = 16
"""Roots that are asked although it is not known what there is; of more of them that is made known first."""

SUMMARIZING = 0.5
"""Of the caller's own time: what remains is for the search itself."""


class Roots(NamedTuple):
    """Whom to ask.

    Attributes:
        ordered: The roots; where they were chosen those first that fit best.
        chosen_from: How many can match beside those asked anyway; None: all that may be seen are here.
        anyway: How many of the first are asked whatever they have.
        unknown: How many others may have something of which nothing is known.
    """

    ordered: list[Root]
    chosen_from: int | None = None
    anyway: int = 0
    unknown: int = 0


async def roots_below(context: ProcedureContext, below: str | None) -> list[Root]:
    """Return all roots, in the order of their names.

    Args:
        context: Whose principal searches.
        below: Leading segments of namespaces; None: all.
    """
    found = _own(context, below)
    if found is None:
        found = {*await context.query(ListNamespaces(prefix=below)), *_also(context, below)}
    return _in_order(found)


async def roots_for(context: ProcedureContext, wanted: ChooseRoots) -> Roots:
    """Return the roots to ask for what is wanted: all of them, or the best if there are too many."""
    found = _own(context, wanted.below)
    if found is not None:
        return Roots(_in_order(found))
    chosen = await context.query(wanted)
    told = chosen.unknown
    if len(chosen.unknown) > UNKNOWN:
        told = []  # of what fails now the next search tells again
        unknown = [Root(name, memory_address(name)) for name in chosen.unknown]
        await _summarized(context, unknown)
        chosen = await context.query(wanted)
    also = _also(context, wanted.below)
    if chosen.chosen_from is None:
        return Roots(_in_order({*chosen.roots, *also}))
    for name in told:
        with suppress(OverloadedError, ActorQuarantinedError):  # likewise
            context.tell(memory_address(name), SummarizeRoot())
    return _chosen(chosen, chosen.chosen_from, also)


async def _summarized(context: ProcedureContext, unknown: list[Root]) -> None:
    """Have it made known what there is, as far as there is time and room; the search tells of the rest."""
    now = trio.current_time()
    with trio.move_on_at(now + SUMMARIZING * (trio.current_effective_deadline() - now)):
        await ask_each(context, unknown, SummarizeRoot())


def _chosen(chosen: Chosen, count: int, also: list[str]) -> Roots:
    unknown = chosen.unknown[:UNKNOWN]
    anyway = dict.fromkeys([*also, *unknown])
    ordered = dict.fromkeys([*anyway, *chosen.roots])
    return Roots(
        [Root(name, memory_address(name)) for name in ordered],
        count - sum(name in anyway for name in chosen.roots),
        len(anyway),
        len(chosen.unknown) - len(unknown),
    )


def _own(context: ProcedureContext, below: str | None) -> set[str] | None:
    """Return the one root that the caller writes, if it is all that is searched.

    It is asked in any case: the directory is behind what is being written.
    """
    whole = below_root(below)
    if whole is not None and policy.may_write_namespace(context.principal, whole):
        return {root_of(whole)}
    return None


def _also(context: ProcedureContext, below: str | None) -> list[str]:
    """Return the caller's own roots, which are asked in any case, likewise."""
    own = (user_namespace(context.principal), agent_namespace(context.principal))
    return [name for name in own if _agree(name, below)]


def _in_order(found: set[str]) -> list[Root]:
    return [Root(name, memory_address(name)) for name in sorted(found)]


def _agree(root: str, below: str | None) -> bool:
    return below is None or is_below(root, below) or is_below(below, root)
