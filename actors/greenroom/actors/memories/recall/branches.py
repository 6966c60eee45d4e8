"""Tell which memories were noted on another branch, not merged into the present one.

It decides the order of memories and a mark, never who may see them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.core.git.git_files import (
    COMMIT,
    MEMBER,
    NO_REVISION,
    NotAWorkTreeError,
    Revision,
    find_top,
    has_branch,
    open_work_tree,
)
from greenroom.actors.core.git.guarded_git import find_unmerged
from greenroom.actors.core.git.projects import PlaceOfWork
from greenroom.actors.memories.requests.replies import FoundMemory

_MOST_KNOWN: Final = 10_000
_MOST_COMMITS: Final = 200
_known: dict[tuple[str, str, str], bool] = {}
"""By folder, head and commit: whether the commit is in the head's history, or not in the repository.

What git cannot tell is not, until the head moves, so that not every prompt waits for it.
"""
logger = logging.getLogger(__name__)


class _Noted(msgspec.Struct, frozen=True):
    git: dict[str, str] = msgspec.field(name=MEMBER, default_factory=dict)


async def set_apart_branches(work: PlaceOfWork, hits: Sequence[FoundMemory]) -> list[FoundMemory]:
    """Return the hits, those of another branch last; these name the branch in ``of_branch``.

    A hit is of another branch while the branch exists here and its commit is not in the present history.
    """
    if not work.commit:
        return list(hits)
    noted = list(map(_revision_of, hits))
    others = {each for each in noted if each.commit and each.branch not in {"", work.branch}}
    apart = await _not_here(work, others) if others else set()
    named = [
        msgspec.structs.replace(hit, of_branch=revision.branch) if revision in apart else hit
        for hit, revision in zip(hits, noted, strict=True)
    ]
    return sorted(named, key=lambda hit: hit.of_branch != "")


def _revision_of(hit: FoundMemory) -> Revision:
    """Return the revision in a memory's metadata, which any writer may have given."""
    if hit.memory.metadata is msgspec.UNSET:
        return NO_REVISION
    try:
        noted = msgspec.json.decode(hit.memory.metadata, type=_Noted).git
    except msgspec.MsgspecError:
        return NO_REVISION
    branch, commit = noted.get("branch", ""), noted.get("commit", "")
    return Revision(branch, commit) if COMMIT.fullmatch(commit) else NO_REVISION


async def _not_here(work: PlaceOfWork, others: Iterable[Revision]) -> set[Revision]:
    """Return the revisions of branches that exist in a folder's repository and are not merged."""
    folder = await read_in_thread(os.path.realpath, work.folder)
    present = sorted(await read_in_thread(_of_branches, folder, others))[:_MOST_COMMITS]
    known = {each.commit: _known.get((folder, work.commit, each.commit)) for each in present}
    asked = [commit for commit, is_here in known.items() if is_here is None]
    try:
        unmerged = await find_unmerged(folder, work.commit, asked) if asked else set()
    except NotAWorkTreeError as error:  # by their names alone they are of other branches
        logger.debug("no history of %s: %s", folder, error)
        unmerged = set(asked)
    if len(_known) > _MOST_KNOWN:
        _known.clear()
    for commit in asked:
        known[commit] = _known[folder, work.commit, commit] = commit not in unmerged
    return {each for each in present if not known[each.commit]}


def _of_branches(folder: str, others: Iterable[Revision]) -> list[Revision]:
    top = find_top(folder)
    if top is None:
        return []
    try:
        tree = open_work_tree(top)
    except NotAWorkTreeError:
        return []
    return [each for each in others if has_branch(tree, each.branch)]
