"""Asking the owners that were chosen: the best first, and on as long as it changes what comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from greenroom.actors.recall.scatter_gather import Gathered, ask_each, merged

if TYPE_CHECKING:
    from greenroom.actors.recall.roots import Roots
    from greenroom.actors.schemas.memories import FindMemories
    from greenroom.actors.schemas.memory_replies import RootSearchResult
    from greenroom.runtime import ProcedureContext

ROUND = 4
"""How many of those that were chosen are asked before it is looked what came of it: each may have to wake."""
FIRST = 16
"""How many at most in the first round; as many as there are to be hits, if these are fewer."""


class Answered(NamedTuple):
    """What the owners that were asked said.

    Attributes:
        answers: Theirs.
        asked: How many were asked.
        is_minimum: Whether others may have something that matches.
        partial: What is to be said of others that might have had better; None: nothing.
    """

    answers: Gathered[RootSearchResult]
    asked: int
    is_minimum: bool = False
    partial: str | None = None


async def ask_in_rounds(context: ProcedureContext, roots: Roots, message: FindMemories) -> Answered:
    """Ask all owners; those that were chosen until a full answer keeps its first half through a round.

    Raises:
        GreenroomError: as `ask_each`.
    """
    if roots.chosen_from is None:
        return Answered(await ask_each(context, roots.ordered, message), len(roots.ordered))
    answers: Gathered[RootSearchResult] = Gathered([], [], None)
    count, middle, is_full, is_settled = 0, 0.0, False, False
    half = (message.limit + 1) // 2
    while count < len(roots.ordered) and not is_settled:
        end = count + ROUND if count else roots.anyway + max(ROUND, min(message.limit, FIRST))
        this_round = roots.ordered[count:end]
        more = await ask_each(context, this_round, message)
        answers = Gathered(
            answers.found + more.found, answers.failed + more.failed, answers.error or more.error
        )
        hits = merged(answers.found)[: message.limit]
        score = hits[half - 1].score if len(hits) >= half else 0.0
        is_settled = is_full and score == middle
        is_full = len(hits) == message.limit
        count, middle = count + len(this_round), score
    left = roots.chosen_from - (count - roots.anyway)
    return Answered(
        answers,
        count,
        is_minimum=left > 0 or roots.unknown > 0,
        partial=_what_is_missing(roots, count, left if not is_settled else 0),
    )


def _what_is_missing(roots: Roots, asked: int, left: int) -> str | None:
    if left <= 0 and not roots.unknown:
        return None
    return (
        f"of more namespaces than one search asks the {asked} that fit best were searched; "
        f"{max(0, left) + roots.unknown} others may have more: name a namespace, or ask with rarer words"
    )
