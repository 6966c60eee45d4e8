"""Explain code searches: the signals of each file, and why a file is not found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import trio
from msgspec import Meta

from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies.results_explained import (
    NOTHING,
    ResultExplained,
    ResultsExplained,
    ResultsOfMode,
    WhyThatResult,
    explain_place,
    list_mode,
    meanings_of,
    signal_parts,
)
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import code_requests
from greenroom.actors.knowledge.corpora.requests.corpus_requests import QueryText
from greenroom.actors.knowledge.workspaces.tools.semantic_search import LATE, search_workspace
from greenroom.actors.knowledge.workspaces.tools.workspace_of import CodeClient, CodeProcedure, read_progress
from greenroom.actors.search.ranking.weights import CODE_SIGNALS, CODE_WEIGHTS

PLACES: Final = 50
"""At most this many files have a known place in the results."""
_UNKNOWN: Final = "it is not in the index: there is no such file below the folder, or it is left out"


@operation(
    "explain_code",
    scope="code:read",
)
class ExplainCode(CodeProcedure[ResultsExplained], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Explain what a search of code finds and why, and a missing file.

    It searches as the tool `search_code_semantic` does.
    """

    query: QueryText
    scope: code_requests.Folder = ""
    limit: code_requests.FilesWanted = 10
    about: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=4_096,
                description="a file's path below the workspace's folder: say why it is found or not, too",
            ),
        ]
        | None
    ) = None

    async def run(self, client: CodeClient) -> ResultsExplained:
        """Search the current index."""
        began = trio.current_time()
        request = code_requests.FindCode(
            corpus="",
            query=self.query,
            limit=PLACES,
            about=self.about or "",
            excerpt_bytes=code_requests.LONG_EXCERPT_BYTES,
        )
        _, workspace, found = await search_workspace(client, self.scope, request)
        progress = await read_progress(client, workspace, LATE if found is None else "")
        fresh = progress.freshness
        files = [] if found is None else list(zip(found.results, found.parts, strict=True))
        corpus = workspace.row.full_name
        mode = list_mode(
            "semantic",
            [_make_result(corpus, file, parts, place) for place, (file, parts) in enumerate(files, 1)],
            self.limit,
            total=0 if found is None else found.total,
            seconds=trio.current_time() - began,
            how=f"{fresh.indexed:,} files of {workspace.row.root} are indexed ({fresh.state})",
            partial=progress.missing or None,
        )
        about = [] if self.about is None or found is None else [_explain(corpus, mode, found)]
        return ResultsExplained(
            query=self.query,
            modes=[mode],
            corrected={} if found is None else found.corrected,
            unknown=found.unknown if found is not None and progress.is_whole else [],
            about=about,
            meanings=meanings_of([mode], about, CODE_SIGNALS),
        )


def _explain(corpus: str, mode: ResultsOfMode, found: code_requests.FoundCode) -> WhyThatResult:
    if found.about is None:
        return explain_place(mode, None, _UNKNOWN)
    file, ranked = found.about
    is_better = f"{len(mode.places)} others are better"
    why_not = f"{NOTHING}, or is below another folder" if ranked.place is None else is_better
    return explain_place(mode, _make_result(corpus, file, ranked.parts, None), why_not)


def _make_result(
    corpus: str, file: code_requests.CodeFile, parts: Mapping[str, float], place: int | None
) -> ResultExplained:
    return ResultExplained(
        id=file.file_path,
        title=f"{file.file_path}:{file.line_range[0]}",
        text=file.excerpt,
        place=place,
        score=file.relevance_score,
        signals=signal_parts(parts, CODE_WEIGHTS),
        corpus=corpus,
        path=file.file_path,
    )
