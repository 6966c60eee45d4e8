"""List the lines of a reply in which a mark replaces a secret."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from greenroom.actors.content.secrets.detect import LEFT_OUT_BEGINS
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.code_requests import NOT_TO_BE_WRITTEN, CodeReply
from greenroom.actors.knowledge.corpora.requests.code_symbols import LineOfText
from greenroom.actors.knowledge.corpora.requests.corpus_requests import ListDocuments
from greenroom.actors.knowledge.corpora.storage.records import MOST_MASKED
from greenroom.actors.knowledge.workspaces.tools.workspace_of import CodeClient, Workspace

R = TypeVar("R", bound=CodeReply)


class Shown(NamedTuple):
    """A part of a file that a reply shows.

    If it is only a part of these lines, it has their first marks, as a signature does.
    """

    path: str
    lines: Sequence[int]
    text: str
    is_part: bool = False


def describe_lines(lines: Iterable[LineOfText]) -> list[Shown]:
    """Describe single lines that a reply shows."""
    return [Shown(each.file_path, [each.line], each.text) for each in lines]


async def add_masked(client: CodeClient, workspace: Workspace, reply: R, shown: Iterable[Shown]) -> R:
    """Add the masked lines to a reply, or all shown if they are unknown."""
    lines: dict[str, None] = {}
    known: dict[str, list[int]] = {}
    for each in shown:
        if LEFT_OUT_BEGINS not in each.text:
            continue
        first, last = each.lines[0], each.lines[-1]
        if first == last:
            marked = [first]
        else:
            if each.path not in known:
                request = ListDocuments(corpus=workspace.row.full_name, path=each.path)
                found = (await client.ask(corpus_address(workspace.row), request)).documents
                known[each.path] = found[0].masked if found else []
            all_known = known[each.path]
            marked = [line for line in all_known if first <= line <= last]
            if each.is_part:
                marked = marked[: each.text.count(LEFT_OUT_BEGINS)]
            if not marked or (len(all_known) == MOST_MASKED and not each.is_part and last > all_known[-1]):
                lines[f"{each.path}:{first}-{last}"] = None
        lines.update(dict.fromkeys(f"{each.path}:{line}" for line in marked))
    if not lines:
        return reply
    return msgspec.structs.replace(reply, masked=list(lines), note=NOT_TO_BE_WRITTEN)
