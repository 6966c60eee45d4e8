"""Which project a folder belongs to.

Each hook of a client runs this, so it imports next to nothing.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from greenroom.actors.core.git.git_files import (
    NO_REVISION,
    NotAWorkTreeError,
    Revision,
    find_main_folder,
    find_top,
    open_work_tree,
    read_revision,
)
from greenroom.actors.core.git.project_names import project_of_path


class Project(NamedTuple):
    """The project of a folder.

    Attributes:
        older: The ids by which older versions knew the folder.
        top: The work tree around the folder, or the folder itself, without links.
        revision: What is checked out there.
    """

    project_id: str
    older: tuple[str, ...]
    top: str
    revision: Revision


class PlaceOfWork(NamedTuple):
    """A folder of work, and what is checked out there."""

    folder: str
    branch: str
    commit: str


def project_elsewhere(folder: str) -> Project:
    """Return the project of a folder that is not looked at, by its name alone."""
    return Project(project_of_path(folder), (), folder, NO_REVISION)


def find_project(folder: str, *, apart: bool = False) -> Project:
    """Return the project of a folder of this machine; links in its path are resolved.

    It is the repository's, in each of its linked work trees. With ``apart``, or if a `.git` is not to be
    believed, it is the work tree's own.
    """
    if "\0" in folder or not os.path.isabs(folder):  # noqa: PTH117 - another system's path
        return project_elsewhere(folder)
    real = os.path.realpath(folder)
    top = find_top(real)
    whole, revision = top or real, NO_REVISION
    if top is not None:
        try:
            tree = open_work_tree(top)
            revision = read_revision(tree)
            whole = top if apart else find_main_folder(tree)
        except NotAWorkTreeError:
            pass
    project_id = project_of_path(whole)
    spelled = find_top(folder)
    if spelled is None or os.path.realpath(spelled) != top:  # a link led out of it
        spelled = folder
    known = (top or real, spelled, real, folder)
    older = dict.fromkeys(map(project_of_path, known))
    return Project(project_id, tuple(each for each in older if each != project_id), top or real, revision)
