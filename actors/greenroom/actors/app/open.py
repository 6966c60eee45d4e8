"""Opening a runtime with everything that sessions and memory need."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, Unpack

from greenroom.actors.app.administration.erase import FindTraces
from greenroom.actors.app.administration.index_verification import AllNamespaces, Imitations, VerifyMemories
from greenroom.actors.app.administration.people import FindPeople
from greenroom.actors.app.map.entity_mentions import FindEntity
from greenroom.actors.app.map.request import MemoryMap
from greenroom.actors.app.options import AUDIT_DAYS, CheckedOptions, GreenroomOptions, check_greenroom_options
from greenroom.actors.app.resources.listing import CompleteResource, ListResources
from greenroom.actors.app.resources.project import ReadProject
from greenroom.actors.app.savings.actor import SavingsActor
from greenroom.actors.audit.erasures import ERASURES, ErasureActor, redacted
from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.audit.actor import LOG, AuditActor, NoteDeed
from greenroom.actors.core.audit.export import ExportAuditLog
from greenroom.actors.core.audit.query import (
    CheckAudit,
    CheckpointAudit,
    GetAuditLog,
    GetAuditState,
    ReadAuditLog,
    VerifyAudit,
)
from greenroom.actors.core.audit.record import AuditRow
from greenroom.actors.core.auth.person import Person
from greenroom.actors.core.auth.policy import ChangeLabel
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.default_folders import default_secrets
from greenroom.actors.core.keys.actor import KEY_PREFIX, KEYS_ADDRESS, KeysActor, revoked
from greenroom.actors.core.presence.actor import PresenceActor
from greenroom.actors.core.validation.times import DAY
from greenroom.actors.corpus.actor import CorpusActor
from greenroom.actors.corpus.code_asking import AskForCode
from greenroom.actors.corpus.listing import BrowseCorpora, CorpusEntities, ReadPage
from greenroom.actors.corpus.workspace_listing import ListWorkspaces, WorkspaceFiles
from greenroom.actors.hooks.actor import HookActor
from greenroom.actors.hooks.answer_event import AnswerHook
from greenroom.actors.hooks.ingest_event import TakeHookEvent
from greenroom.actors.hooks.offering import FindKept
from greenroom.actors.hooks.provenance import ListTold, WhyGiven
from greenroom.actors.hooks.store_settings import store_settings
from greenroom.actors.knowledge.corpora.handlers.completion import CompleteNames
from greenroom.actors.knowledge.corpora.handlers.resource import ReadCorpusResource
from greenroom.actors.knowledge.corpora.requests import catalogue
from greenroom.actors.knowledge.corpora.requests.catalogue import CatalogueActor
from greenroom.actors.knowledge.corpora.storage.chunk_ids import IdPrefixActor, give_prefixes
from greenroom.actors.knowledge.corpora.tools.entity_tools import FindVendorInfo, SuggestEntities
from greenroom.actors.knowledge.corpora.tools.explain_documents import ExplainDocuments
from greenroom.actors.knowledge.corpora.tools.query_service import ListCorpora, ReadPassages, SearchCorpora
from greenroom.actors.memories.actor import MemoryActor
from greenroom.actors.memories.preferences.actor import PreferencesActor
from greenroom.actors.memories.recall.emptiness import WhyNoneListed
from greenroom.actors.memories.recall.evaluate import TrySearch
from greenroom.actors.memories.recall.explain import ExplainSearch
from greenroom.actors.memories.recall.key_resolution import PlacesOfKey
from greenroom.actors.memories.recall.memory_search import MemorySearch, RecallContext, RetrieveMemory
from greenroom.actors.memories.recall.roots import ChooseRoots
from greenroom.actors.memories.storage import directory as namespaces
from greenroom.actors.memories.storage import root_summary
from greenroom.actors.memories.transfer import import_actor
from greenroom.actors.memories.transfer.export_actor import ExportActor
from greenroom.actors.memories.transfer.import_actor import ImportActor
from greenroom.actors.memories.transfer.import_run import UnembeddedRoots
from greenroom.actors.search.embedding import rows as embedding
from greenroom.actors.search.embedding.embedder import EmbedderChoice
from greenroom.actors.search.embedding.embedder_loader import check_choice
from greenroom.actors.search.embedding.embedding_service import EmbeddingService, GetEmbedding, open_embedding
from greenroom.actors.search.embedding.rows import EmbedderActor
from greenroom.actors.sessions import migrations
from greenroom.actors.sessions.checkpoints import directory as threads
from greenroom.actors.sessions.checkpoints.actor import CheckpointsActor
from greenroom.actors.sessions.erasure import ErasableSession
from greenroom.actors.sessions.handlers.find_sessions import FindSessions
from greenroom.actors.sessions.passports import issued
from greenroom.actors.sessions.passports.actor import PassportActor
from greenroom.actors.sessions.passports.offers import FindOffers
from greenroom.actors.sessions.search.context_search import ExplainSessionSearch, SearchSession
from greenroom.actors.sessions.storage import directory
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.actors.sessions.workflows import actor as workflow
from greenroom.actors.sessions.workflows.actor import WorkflowActor
from greenroom.actors.sessions.workflows.tools import FindProject
from greenroom.runtime import (
    Actor,
    Address,
    EncryptInfo,
    Encryption,
    ExpungeInfo,
    Index,
    Losses,
    RepairInfo,
    Restate,
    Runtime,
    RuntimeOptions,
    SharedRuntime,
    encrypt,
    expunge,
    open_shared_runtime,
    repair,
)

KINDS: Final = (
    MemoryActor,
    EmbedderActor,
    ImportActor,
    ExportActor,
    AuditActor,
    ErasureActor,
    KeysActor,
    PassportActor,
    PreferencesActor,
    CatalogueActor,
    CorpusActor,
    IdPrefixActor,
    SavingsActor,
    WorkflowActor,
    HookActor,
    CheckpointsActor,
    PresenceActor,
)
"""All actors but those of sessions, which are configured."""


def shared_indexes(audit_days: int) -> list[Index]:
    """Return the shared indexes; audit rows from before there was a journal are kept so many days."""
    return [
        Index(directory.INDEX, names=directory.names_in),
        Index(migrations.INDEX, names=migrations.names_in),
        Index(issued.INDEX, names=issued.names_in),
        Index(namespaces.INDEX, names=namespaces.names_in),
        Index(root_summary.INDEX, names=root_summary.names_in),
        Index(catalogue.INDEX, names=catalogue.row_names),
        Index(workflow.INDEX),
        Index(threads.INDEX, names=threads.names_in),
        Index(import_actor.INDEX),
        Index(embedding.INDEX),
        Index(embedding.SPACES),
        Index(audit_record.INDEX, ttl=audit_days * DAY),
    ]


def open_greenroom(
    path: str | Path, **options: Unpack[GreenroomOptions]
) -> AbstractAsyncContextManager[SharedRuntime]:
    """Open a runtime with shared sessions and agent memory, inside an ``async with`` block.

    Ask it through an `Agent`. Several processes may have the same folder open: one owns it, the others
    relay to it, and when it ends another one takes over; `SharedRuntime.role` says which this one is.

    Args:
        path: The folder of the data.
        options: What it is opened with; see `GreenroomOptions`.

    Raises:
        TypeError: there is no such option, two decide the same, or one is of a wrong type. The call itself
            raises this, before anything is opened or made.
        ValueError: a value is not allowed; likewise, but for a language that does not exist.
        EmbedderError: what the embedder needs is not there, as far as that can be told without loading it.
        StoreError: as `open_shared_runtime`.
    """
    return open_checked(path, check_greenroom_options("open_greenroom", options))


@asynccontextmanager
async def open_checked(path: str | Path, options: CheckedOptions) -> AsyncIterator[SharedRuntime]:
    """Open a runtime as `open_greenroom` does, with options that were checked."""
    check_choice(options.embedder)
    settings = store_settings(options.languages, options.extractor)
    own = {"content_limit": options.content_limit, "tiers": options.tiers}
    async with open_shared_runtime(
        path,
        principal_type=Principal,
        label_type=ChangeLabel,
        actors=[type("SessionActor", (ErasableSession,), own), *KINDS, *options.actors],
        indexes=[*shared_indexes(options.audit_days), *options.indexes],
        queries=[
            ListSessions,
            FindSessions,
            issued.ListPassports,
            directory.SessionsOfProgram,
            ListResources,
            CompleteResource,
            namespaces.ListNamespaces,
            namespaces.BrowseNamespaces,
            namespaces.NewRoots,
            namespaces.RootOfMemory,
            ChooseRoots,
            MemorySearch,
            RetrieveMemory,
            MemoryMap,
            RecallContext,
            WhyNoneListed,
            PlacesOfKey,
            GetEmbedding,
            TrySearch,
            FindKept,
            FindOffers,
            SearchSession,
            UnembeddedRoots,
            import_actor.FindUnderway,
            AllNamespaces,
            Imitations,
            VerifyMemories,
            GetAuditLog,
            ReadAuditLog,
            ExportAuditLog,
            CheckAudit,
            CheckpointAudit,
            GetAuditState,
            VerifyAudit,
            FindPeople,
            directory.CountSessions,
            catalogue.VisibleCorpora,
            FindTraces,
            FindProject,
            threads.ListThreads,
            catalogue.FindCorpus,
            SearchCorpora,
            ReadPassages,
            ListCorpora,
            BrowseCorpora,
            CorpusEntities,
            ListWorkspaces,
            ReadPage,
            WorkspaceFiles,
            AskForCode,
            FindVendorInfo,
            FindEntity,
            SuggestEntities,
            ReadCorpusResource,
            CompleteNames,
            ReadProject,
            AnswerHook,
            TakeHookEvent,
            ListTold,
            ExplainSearch,
            ExplainDocuments,
            ExplainSessionSearch,
            WhyGiven,
            *options.queries,
        ],
        sidecar=partial(_beside, choice=options.embedder),
        secrets=_secret_places(path, options.secrets),
        journals=[audit_record.journal(ttl=options.audit_days * DAY, max_bytes=options.audit_bytes)],
        may=options.may,
        settings=settings,
        **options.common,
    ) as runtime:
        yield runtime


@asynccontextmanager
async def _beside(runtime: Runtime, choice: EmbedderChoice) -> AsyncIterator[EmbeddingService]:
    """Bring an older store up to date, and run the embedding service."""
    await give_prefixes(runtime, renew=runtime.has_gone_back)
    async with open_embedding(runtime, choice) as embedding_service:
        yield embedding_service


def encrypt_greenroom(
    path: str | Path,
    encryption: Encryption,
    *,
    actors: Iterable[type[Actor]] = (),
    indexes: Iterable[Index] = (),
    options: RuntimeOptions | None = None,
) -> EncryptInfo:
    """Encrypt a store that is in the clear, by rewriting it, while no process uses it. It blocks.

    Args:
        path: The folder of the data.
        encryption: Has the key.
        actors: Actor classes of one's own that have records in it.
        indexes: Shared indexes of one's own that have rows in it.
        options: Limits of the new file.

    Raises:
        StoreError, ConfigurationError: as `greenroom.runtime.encrypt`.
    """
    return encrypt(
        Path(path),
        encryption,
        actors=[ErasableSession, *KINDS, *actors],
        indexes=[*shared_indexes(AUDIT_DAYS), *indexes],
        options=options,
    )


def finish_erasing(
    path: str | Path,
    *,
    secrets: str | Path | None = None,
    encryption: Encryption | None = None,
    options: RuntimeOptions | None = None,
) -> ExpungeInfo:
    """Rewrite a store that no process uses, so that nothing of erased persons is in its file; it blocks.

    The audit log does not name them any more. Answers that were kept for requests that are repeated, and
    messages that could not be delivered, are gone, whoever they are of: nobody can tell.

    Args:
        path: The folder of the data.
        secrets: As in `open_greenroom`.
        encryption: Has the key of a store that is encrypted.
        options: Limits of the store.

    Raises:
        StoreError: as `greenroom.runtime.expunge`.
    """
    return expunge(
        Path(path),
        encryption=encryption,
        secrets=_secret_places(path, secrets),
        journal=audit_record.JOURNAL,
        index=audit_record.INDEX,
        of=AuditRow,
        about=ERASURES,
        says=Person,
        redact=redacted,
        options=options,
    )


def _secret_places(path: str | Path, secrets: str | Path | None) -> list[Path]:
    return [Path(path), default_secrets()] if secrets is None else [Path(secrets)]


def repair_greenroom(
    path: str | Path, destination: str | Path, *, encryption: Encryption | None = None, now: int
) -> RepairInfo:
    """Write what is sound of a damaged store that no process uses into a new file, which `restore` takes.

    What may lack something is set aside whole, and says so; of the API keys all are revoked then. It blocks.

    Args:
        path: The folder of the data; it is left as it is.
        destination: A file that does not exist.
        encryption: Has the key of a store that is encrypted.
        now: The time in microseconds since 1970, at which keys are revoked.

    Raises:
        StoreError: as `greenroom.runtime.repair`.
    """

    def tell(losses: Losses) -> tuple[Address, NoteDeed]:
        return LOG, NoteDeed(action="repair_store", details={"repaired_at": now, **losses._asdict()})

    return repair(
        Path(path),
        Path(destination),
        encryption=encryption,
        mends={KEYS_ADDRESS: partial(revoked, key=KEY_PREFIX, now=now)},
        restating=[each.kind for each in (ErasableSession, *KINDS) if Restate in each.handlers],
        tell=tell,
    )
