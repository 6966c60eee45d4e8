"""Looking for names in the text of files, where their symbols are not known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from greenroom.actors.content.documents.decode import SourceText
from greenroom.actors.content.syntax.plain_text import lines_with
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.corpus.code_asking import AskForCode
from greenroom.actors.knowledge.corpora.storage.readers import counted_reader, unread_by
from greenroom.actors.knowledge.ingest.files.file_content import read_document
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import documents_of
from greenroom.actors.orchestrations.client_session import ClientSessionState
from greenroom.actors.orchestrations.workspace_of import Workspace
from greenroom.actors.schemas.code import CodeFilters, FindCode, LineOfText

MAX_FILES: Final = 50
"""How many files are looked through; of more, those that the index says have most of the name."""
MAX_LINES: Final = 20
_MOST_OF_FILE: Final = 5
_MOST_SUFFIXES: Final = 20
_MOST_BYTES: Final = 16 << 20
_CONTAINERS: Final = frozenset({"pdf", "docx"})


async def lines_in_text(
    client: ClientSessionState,
    workspace: Workspace,
    name: str,
    *,
    is_wanted: Callable[[str], bool] = lambda _path: True,
    but: str = "",
    is_everywhere: bool = False,
) -> list[LineOfText]:
    """Return lines that have a name, in files that were not read by their syntax, or in all.

    Args:
        client: Whose call it is.
        workspace: The workspace.
        name: The name, or a path of which the last part counts.
        is_wanted: Which files are looked at.
        but: A file that is not looked at.
        is_everywhere: Whether others are looked at as well.
    """
    documents = [each for each in await documents_of(client, workspace) if each.path != but]
    paths = [
        each.path
        for each in documents
        if is_wanted(each.path) and (is_everywhere or unread_by(counted_reader(each.path, each.reader)))
    ]
    if len(paths) > MAX_FILES:
        suffixes = sorted(
            {suffix for each in paths if 0 < len(suffix := each.rpartition(".")[2]) <= _MOST_SUFFIXES}
        )
        filters = CodeFilters(file_types=suffixes if len(suffixes) <= _MOST_SUFFIXES else [])
        words = name.replace("*", " ").strip() or name
        request = FindCode(corpus=workspace.row.full_name, query=words, filters=filters, limit=MAX_FILES)
        found = await client.runtime.query(AskForCode(request=request), principal=client.principal)
        known = set(paths)
        paths = [] if found is None else [each.file_path for each in found.results if each.file_path in known]
    return await read_in_thread(_lines, workspace.row.root or "", sorted(paths), name)


def _lines(root: str, paths: Sequence[str], name: str) -> list[LineOfText]:
    found: list[LineOfText] = []
    room = _MOST_BYTES
    for path in paths:
        try:
            kind, data, _ = read_document(f"{root}/{path}")
        except (OSError, UnreadableFileError):
            continue
        room -= len(data)
        if len(found) >= MAX_LINES or room < 0:
            break
        if kind not in _CONTAINERS:
            lines = islice(lines_with(name, SourceText(data).text), _MOST_OF_FILE)
            found += (LineOfText(file_path=path, line=each.line, text=each.text) for each in lines)
    return found[:MAX_LINES]
