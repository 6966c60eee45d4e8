"""Find names in the text of files without known symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

import trio

from greenroom.actors.content.documents.decode import SourceText
from greenroom.actors.content.documents.kinds import CONTAINERS
from greenroom.actors.content.syntax.plain_text import TextLine, lines_with
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.knowledge.corpora.requests.code_requests import CodeFilters, FindCode
from greenroom.actors.knowledge.corpora.requests.code_symbols import LineOfText
from greenroom.actors.knowledge.corpora.storage.readers import reader_to_count, unread_by
from greenroom.actors.knowledge.ingest.files.file_content import read_document
from greenroom.actors.knowledge.ingest.parsing.masking import open_masking
from greenroom.actors.knowledge.workspaces.tools.semantic_search import AskForCode
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import list_files
from greenroom.actors.knowledge.workspaces.tools.workspace_of import CodeClient, Workspace

MAX_FILES: Final = 50
"""Maximum number of files that are searched; if there are more, the index chooses the best."""
MAX_LINES: Final = 20
SECONDS: Final = 20.0
"""A search is cut after this time."""
_MOST_OF_FILE: Final = 5
_MOST_SUFFIXES: Final = 20
_MOST_BYTES: Final = 16 << 20
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")


async def find_in_text(
    client: CodeClient,
    workspace: Workspace,
    name: str,
    *,
    is_wanted: Callable[[str], bool] = lambda _path: True,
    but: str = "",
    is_everywhere: bool = False,
) -> list[LineOfText]:
    """Return lines that contain the last part of a name.

    It searches wanted files without known symbols; with ``is_everywhere``, all wanted files except ``but``.
    """
    documents = [each for each in await list_files(client, workspace) if each.path != but]
    paths = [
        each.path
        for each in documents
        if is_wanted(each.path) and (is_everywhere or unread_by(reader_to_count(each.path, each.reader)))
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
    return await _search_files(workspace.row.root or "", sorted(paths), name)


async def _search_files(root: str, paths: Sequence[str], name: str) -> list[LineOfText]:
    found: list[LineOfText] = []
    room = _MOST_BYTES
    with trio.move_on_after(SECONDS):
        async with open_masking() as masking:
            for path in paths:
                try:
                    data = await read_in_thread(_read_having, f"{root}/{path}", name)
                    room -= len(data)
                    if len(found) >= MAX_LINES or room < 0:
                        break
                    shown = (await masking.find_marks(data)).put_into(data)
                except (OSError, UnreadableFileError):
                    continue
                lines = await read_in_thread(_find_first, name, shown)
                found += (LineOfText(file_path=path, line=each.line, text=each.text) for each in lines)
    return found[:MAX_LINES]


def _read_having(path: str, name: str) -> bytes:
    """Return a file's bytes; empty if the file does not contain the name."""
    kind, data, _ = read_document(path)
    literal = max(name.rpartition(".")[2].split("*"), key=len)
    is_there = literal.encode() in data or not literal.isascii() or data.startswith(_WIDE)
    is_wanted = kind not in CONTAINERS and is_there and any(lines_with(name, SourceText(data).text))
    return data if is_wanted else b""


def _find_first(name: str, data: bytes) -> list[TextLine]:
    return list(islice(lines_with(name, SourceText(data).text), _MOST_OF_FILE))
