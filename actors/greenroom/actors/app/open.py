"""Open a runtime with everything that sessions and memory need."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, Unpack

from greenroom.actors.app.administration.erase import FindTraces
from greenroom.actors.app.administration.index_verification import AllNamespaces, Imitations, VerifyMemories
from greenroom.actors.app.administration.people import FindPeople
from greenroom.actors.app.administration.server_stats import TakeFormerFormat
from greenroom.actors.app.options import CheckedOptions, GreenroomOptions, check_greenroom_options
from greenroom.actors.app.requests import READS
from greenroom.actors.app.resources.project import ReadProject
from greenroom.actors.app.savings.actor import SavingsActor
from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.audit.actor import LOG, AuditActor, NoteDeed
from greenroom.actors.core.audit.query import CheckAudit, CheckpointAudit, ReadAuditLog
from greenroom.actors.core.audit.record import AuditRow
from greenroom.actors.core.auth.policy import ChangeLabel
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.default_folders import default_secrets_folder
from greenroom.actors.core.defaults import AUDIT_DAYS
from greenroom.actors.core.erasure import ERASURES, ErasureActor, Person, redact
from greenroom.actors.core.keys.actor import KEY_PREFIX, KEYS_ADDRESS, KeysActor, revoke_all
from greenroom.actors.core.presence.actor import PresenceActor
from greenroom.actors.core.validation.times import DAY
from greenroom.actors.hooks.actor import HookActor
from greenroom.actors.hooks.events import AnswerHook, TakeHookEvent, store_settings
from greenroom.actors.hooks.provenance import WhyGiven
from greenroom.actors.knowledge.corpora.actor import CorpusActor
from greenroom.actors.knowledge.corpora.handlers.completion import CompleteNames
from greenroom.actors.knowledge.corpora.handlers.resource import ReadCorpusResource
from greenroom.actors.knowledge.corpora.requests import catalogue
from greenroom.actors.knowledge.corpora.requests.catalogue import CatalogueActor
from greenroom.actors.knowledge.corpora.storage.chunk_ids import IdPrefixActor, give_prefixes
from greenroom.actors.knowledge.corpora.storage.records import MASKED_INDEX
from greenroom.actors.knowledge.corpora.tools.listing import ReadPage
from greenroom.actors.knowledge.corpora.tools.query_service import ReadPassages, SearchCorpora
from greenroom.actors.knowledge.workspaces.tools.semantic_search import AskForCode
from greenroom.actors.memories.actor import MemoryActor
from greenroom.actors.memories.preferences.actor import PreferencesActor
from greenroom.actors.memories.recall.emptiness import WhyNoneListed
from greenroom.actors.memories.recall.evaluate import TrySearch
from greenroom.actors.memories.recall.key_resolution import PlacesOfKey
from greenroom.actors.memories.storage import directory as namespaces
from greenroom.actors.memories.transfer import import_actor
from greenroom.actors.memories.transfer.export_actor import ExportActor
from greenroom.actors.memories.transfer.import_actor import ImportActor
from greenroom.actors.memories.transfer.import_run import UnembeddedRoots
from greenroom.actors.memories.writing import repair as memory_repair
from greenroom.actors.search.embedding import rows as embedding
from greenroom.actors.search.embedding.embedder import EmbedderChoice
from greenroom.actors.search.embedding.embedder_loader import check_choice
from greenroom.actors.search.embedding.embedding_service import EmbeddingService, GetEmbedding, open_embedding
from greenroom.actors.search.embedding.rows import EmbedderActor
from greenroom.actors.sessions.actor import SessionActor
from greenroom.actors.sessions.graph_checkpoints import records as threads
from greenroom.actors.sessions.graph_checkpoints.actor import CheckpointsActor
from greenroom.actors.sessions.handlers import repair as session_repair
from greenroom.actors.sessions.passports import issued
from greenroom.actors.sessions.passports.actor import PassportActor
from greenroom.actors.sessions.passports.resume import FindKept, FindOffers
from greenroom.actors.sessions.search.context_search import SearchSession
from greenroom.actors.sessions.storage import directory, migrations
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
    SessionActor,
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
"""All actors."""


REPAIR_RULES: Final = {
    MemoryActor.kind: memory_repair.RULE,
    SessionActor.kind: session_repair.RULE,
}
"""For each kind of actor, the rule by which a repair keeps sound entries.

A repair sets actors of other kinds aside whole, or mends them.
"""


def shared_indexes(audit_days: int) -> list[Index]:
    """Return the shared indexes.

    Audit rows from before the journal existed expire after ``audit_days``.
    """
    return [
        Index(directory.INDEX, names=directory.names_in),
        Index(migrations.INDEX, names=migrations.names_in),
        Index(issued.INDEX, names=issued.names_in),
        Index(namespaces.INDEX, names=namespaces.names_in),
        Index(namespaces.SUMMARIES, names=namespaces.names_in_summary),
        Index(catalogue.INDEX, names=catalogue.row_names),
        Index(MASKED_INDEX),
        Index(workflow.INDEX),
        Index(threads.INDEX, names=threads.row_names),
        Index(import_actor.INDEX),
        Index(embedding.INDEX),
        Index(embedding.SPACES),
        Index(audit_record.INDEX, ttl=audit_days * DAY),
    ]


def open_greenroom(
    path: str | Path, **options: Unpack[GreenroomOptions]
) -> AbstractAsyncContextManager[SharedRuntime]:
    """Open a runtime with shared sessions and agent memory, in an ``async with`` block.

    Send requests through an `Agent`. Of several processes on a folder one owns it, the others are attached;
    when the owner ends, another takes over. `SharedRuntime.role` is the role of this process.

    Raises:
        TypeError: An option is unknown or of a wrong type, or two set the same thing; before anything is
            opened.
        ValueError: A value is not allowed; also before, but for an unknown language.
        EmbedderError: The embedder lacks something, and this is noticed without loading it.
        StoreError: As `open_shared_runtime`.
    """
    return open_checked(path, check_greenroom_options("open_greenroom", options))


@asynccontextmanager
async def open_checked(path: str | Path, options: CheckedOptions) -> AsyncIterator[SharedRuntime]:
    """Open a runtime as `open_greenroom` does, with checked options."""
    check_choice(options.embedder)
    settings = store_settings(
        options.languages,
        options.content_limit,
        options.tiers,
        options.extractor,
        reviewed_only=options.reviewed_only,
    )
    async with open_shared_runtime(
        path,
        principal_type=Principal,
        label_type=ChangeLabel,
        actors=[*KINDS, *options.actors],
        indexes=[*shared_indexes(options.audit_days), *options.indexes],
        queries=[
            *READS,
            directory.SessionsOfProgram,
            namespaces.ListNamespaces,
            namespaces.NewRoots,
            namespaces.RootOfMemory,
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
            ReadAuditLog,
            CheckAudit,
            CheckpointAudit,
            FindPeople,
            TakeFormerFormat,
            directory.CountSessions,
            catalogue.VisibleCorpora,
            FindTraces,
            FindProject,
            threads.ListThreads,
            catalogue.FindCorpus,
            SearchCorpora,
            ReadPassages,
            ReadPage,
            AskForCode,
            ReadCorpusResource,
            CompleteNames,
            ReadProject,
            AnswerHook,
            TakeHookEvent,
            WhyGiven,
            *options.queries,
        ],
        sidecar=partial(_beside, choice=options.embedder),
        secrets=_secret_places(path, options.secrets),
        new_secret=options.new_secret,
        journals=[audit_record.journal(ttl=options.audit_days * DAY, max_bytes=options.audit_bytes)],
        may=options.may,
        settings=settings,
        **options.common,
    ) as runtime:
        yield runtime


@asynccontextmanager
async def _beside(runtime: Runtime, choice: EmbedderChoice) -> AsyncIterator[EmbeddingService]:
    """Migrate an older store, and run the embedding service."""
    await give_prefixes(runtime, renew=runtime.has_gone_back)
    if runtime.lost_secret:
        await runtime.ask(LOG, NoteDeed(action="replace_secret", details={"lost": runtime.lost_secret}))
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
    """Encrypt an unencrypted store by rewriting it, while no process uses it. Blocks.

    Raises:
        StoreError, ConfigurationError: As `greenroom.runtime.encrypt`.
    """
    return encrypt(
        Path(path),
        encryption,
        actors=[*KINDS, *actors],
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
    """Rewrite an unused store without any data of erased persons. Blocks.

    The audit log then no longer names them. Dead letters, and cached answers for repeated requests, are
    dropped for everyone, because the store does not record which persons they are about.

    Raises:
        StoreError: As `greenroom.runtime.expunge`.
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
        redact=redact,
        options=options,
    )


def _secret_places(path: str | Path, secrets: str | Path | None) -> list[Path]:
    return [Path(path), default_secrets_folder()] if secrets is None else [Path(secrets)]


def repair_greenroom(
    path: str | Path, destination: str | Path, *, encryption: Encryption | None = None, now: int
) -> RepairInfo:
    """Write the sound records of a damaged, unused store into a new file. Blocks.

    Of damaged memories and sessions it keeps each entry that no lost record could contradict. It sets other
    damaged actors aside whole, and revokes all API keys if some may be lost. The reply names every loss.

    Args:
        path: The folder of the data; it is not changed.
        destination: A file that does not exist.
        encryption: The encryption with the key of an encrypted store.
        now: The time in microseconds since 1970, at which keys are revoked.

    Raises:
        StoreError: As `greenroom.runtime.repair`.
    """

    def tell(losses: Losses) -> tuple[Address, NoteDeed]:
        return LOG, NoteDeed(action="repair_store", details={"repaired_at": now, **losses._asdict()})

    return repair(
        Path(path),
        Path(destination),
        encryption=encryption,
        mends={KEYS_ADDRESS: partial(revoke_all, key=KEY_PREFIX, now=now)},
        rules=REPAIR_RULES,
        restating=[each.kind for each in KINDS if Restate in each.handlers],
        tell=tell,
    )
