"""The tool that puts documents into a corpus: files that the caller may name, or texts of its own."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from greenroom.actors.base.orchestration import report_progress
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.actors.knowledge.corpora.requests.ingestion import DocumentsIngested
from greenroom.actors.knowledge.ingest.files.places import CLIENT_FOLDERS, Reach, checked_place
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState
from greenroom.actors.schemas.corpus_words import DEFAULT_CORPUS

MAX_NAMED: Final = 20
"""Files that are left out and named in an answer; the rest is counted."""
_NAME: Final = r"^(?![\\/])(?!(.*/)?\.\.?(/|$))[^\x00-\x1f\x7f]*(?!\n)$"


class DocumentText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document that is sent as a text."""

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


class IngestDocuments(
    ClientOrchestration[DocumentsIngested], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Put files or texts into a corpus; of files only what changed, and what is gone is removed.

    What came as a text stays until ``remove`` names it; what came from a file goes with that.
    """

    writes: ClassVar[bool] = True

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
        """Whether the client is to be asked for its folders."""
        return bool(self.paths)

    async def carry_out(self, client: ClientSessionState) -> DocumentsIngested:
        """Ingest the files, or the texts, and remove what is to be removed.

        Raises:
            Refusal: ``VALIDATION_ERROR`` or ``PERMISSION_DENIED``: a path may not be read, and nothing was.
                ``CORPUS_NOT_FOUND``, ``QUOTA_EXCEEDED``: what was put in before is there.
        """
        from greenroom.actors.knowledge.ingest.run import Text, open_ingestion  # noqa: PLC0415  only who ingests waits for it

        if bool(self.paths) == bool(self.texts or self.remove):
            raise auth_errors.invalid("paths", "paths: give paths, or texts or remove, one of them")
        reach = client.reach
        if reach.takes_client_folders:
            reach = reach._replace(roots=(*(reach.roots or ()), *CLIENT_FOLDERS.get()))
        roots = await run_in_thread(_checked, self.paths, reach)
        async with open_ingestion(
            client.runtime,
            client.principal,
            self.corpus,
            make=bool(self.paths or self.texts),
            closed=reach.closed,
            progress=_told,
            charge=client.charge_bytes if self.paths else None,
        ) as ingestion:
            if roots:
                done = await ingestion.files(roots)
            else:
                texts = [Text(each.path, each.text) for each in self.texts]
                done = await ingestion.texts(texts, self.remove)
        return msgspec.structs.replace(done, named=done.named[:MAX_NAMED])


def _checked(paths: list[str], reach: Reach) -> list[str]:
    return [checked_place(path, reach) for path in paths]


def _told(done: int, total: int) -> None:
    report_progress(done, max(done, total), f"{done:,} of {total:,} files")
