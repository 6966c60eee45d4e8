"""The tool `ingest_documents`: put files, or texts of the caller, into a corpus."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.corpora import DEFAULT_CORPUS
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.client import report_progress
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.actors.knowledge.corpora.requests.ingestion import DocumentsIngested
from greenroom.actors.knowledge.ingest.files.places import CLIENT_FOLDERS, FilesClient, check_place
from greenroom.runtime import Procedure

MAX_NAMED: Final = 20
"""At most this many left-out files are named in a reply; it only counts the rest."""
_NAME: Final = r"^(?![\\/])(?!(.*/)?\.\.?(/|$))[^\x00-\x1f\x7f]*(?!\n)$"


class DocumentText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document that is sent as text."""

    path: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1_000,
            pattern=_NAME,
            description="what to call it; its ending tells its kind",
            extra={"takes": "a relative path such as notes/plan.md"},
        ),
    ]
    text: Annotated[str, Meta(min_length=1, max_length=4_194_304)]


@operation(
    "ingest_documents",
    scope="knowledge:write",
    tool=ToolText(
        title="Add documents",
        description="Index files, folders or a text: add or load them into a collection, to make "
        "them searchable and ask about them. Again, it takes in only pages that "
        "changed; when complete is false, call it again. Says what it left out and why.",
        overwrites=True,
        repeatable=True,
        weight=1,
    ),
)
class IngestDocuments(Procedure[DocumentsIngested], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Put changed files or texts into a corpus, and remove deleted files' documents.

    A document from a text stays until ``remove`` names it; a document from a file is removed with the file.
    """

    runs = "here"
    paths: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=4_096)]],
        Meta(max_length=100, description="files and folders, PDFs too, of the server's machine, from / on"),
    ] = msgspec.field(default_factory=list)
    texts: Annotated[list[DocumentText], Meta(max_length=1_000, description="instead of paths")] = (
        msgspec.field(default_factory=list)
    )
    remove: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=4_096)]],
        Meta(max_length=1_000, description="paths of documents to take out"),
    ] = msgspec.field(default_factory=list)
    corpus: Annotated[CorpusName, Meta(description="the collection; made if there is none")] = DEFAULT_CORPUS

    @property
    def needs_folders(self) -> bool:
        """Whether the server must query the client for its folders."""
        return bool(self.paths)

    async def run(self, client: FilesClient) -> DocumentsIngested:
        """Ingest the files or the texts, and remove documents."""
        from greenroom.actors.knowledge.ingest.run import Text, open_ingestion  # noqa: PLC0415  only ingestion needs it

        if bool(self.paths) == bool(self.texts or self.remove):
            raise auth_errors.invalid("paths", "paths: give paths, or texts or remove, one of them")
        reach = client.files.reach
        if reach.takes_client_folders:
            reach = reach._replace(roots=(*(reach.roots or ()), *CLIENT_FOLDERS.get()))
        roots = await run_in_thread(lambda: [check_place(path, reach) for path in self.paths])
        async with open_ingestion(
            client.runtime,
            client.principal,
            self.corpus,
            make=bool(self.paths or self.texts),
            closed=reach.closed,
            within=reach.roots or (),
            progress=_report,
            charge=client.charge_bytes if self.paths else None,
        ) as ingestion:
            if roots:
                done = await ingestion.files(roots)
            else:
                texts = [Text(each.path, each.text) for each in self.texts]
                done = await ingestion.texts(texts, self.remove)
        return msgspec.structs.replace(done, named=done.named[:MAX_NAMED])


def _report(done: int, total: int) -> None:
    report_progress(done, max(done, total), f"{done:,} of {total:,} files")
