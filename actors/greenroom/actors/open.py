"""Opening a runtime with everything that sessions and memory need."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from greenroom.actors.audit import record as audit_record
from greenroom.actors.audit.actor import LOG, AuditActor, NoteDeed
from greenroom.actors.audit.query import CheckAudit, CheckpointAudit, GetAuditLog, ReadAuditLog
from greenroom.actors.auth.errors import MAX_VALUE_BYTES
from greenroom.actors.auth.policy import Heard
from greenroom.actors.auth.principal import Principal
from greenroom.actors.base.paths import default_secrets
from greenroom.actors.base.times import DAY
from greenroom.actors.embedding import rows as embedding
from greenroom.actors.embedding.choice import EmbedderChoice, read_choice
from greenroom.actors.embedding.loader import check_choice
from greenroom.actors.embedding.model_registry import EmbedderActor
from greenroom.actors.embedding.progress import GetEmbedding
from greenroom.actors.embedding.service import open_embedding
from greenroom.actors.keys.actor import KEEPER, KEY_PREFIX, KeysActor
from greenroom.actors.keys.repair import revoked
from greenroom.actors.memory import _gist as gists
from greenroom.actors.memory import directory as namespaces
from greenroom.actors.memory.actor import MemoryActor
from greenroom.actors.passport.actor import PassportActor
from greenroom.actors.passport.offers import FindOffers
from greenroom.actors.recall._choosing import ChooseRoots
from greenroom.actors.recall.evaluate import TrySearch
from greenroom.actors.recall.index_verification import AllNamespaces, Imitations, VerifyMemories
from greenroom.actors.recall.key_places import PlacesOfKey
from greenroom.actors.recall.memory_search import MemorySearch
from greenroom.actors.recall.recall_context import RecallContext
from greenroom.actors.recall.retrieve_memory import RetrieveMemory
from greenroom.actors.resources.listing import CompleteResource, ListResources
from greenroom.actors.session import directory_rows as directory
from greenroom.actors.session import migrations as moves
from greenroom.actors.session.directory import ListSessions
from greenroom.actors.session.handover import HandedSession
from greenroom.actors.text.analyze import use_languages
from greenroom.actors.transfer import pending_imports as underway
from greenroom.actors.transfer.export_actor import ExportActor
from greenroom.actors.transfer.import_actor import ImportActor
from greenroom.actors.transfer.import_run import UnembeddedRoots
from greenroom.runtime import (
    Address,
    EncryptInfo,
    Index,
    RepairInfo,
    Restate,
    RuntimeOptions,
    encrypt,
    open_shared_runtime,
    repair,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from greenroom.runtime import (
        Actor,
        Clock,
        Committer,
        Encryption,
        Group,
        Losses,
        Procedure,
        Query,
        RecordCodec,
        SharedRuntime,
    )

CONTENT_LIMIT = 10_000
AUDIT_DAYS = 90

KINDS: Final = (MemoryActor, EmbedderActor, ImportActor, ExportActor, AuditActor, KeysActor, PassportActor)
"""All actors but those of sessions, which are configured."""


def shared_indexes(audit_days: int) -> list[Index]:
    """Return the shared indexes; audit rows from before there was a journal are kept so many days."""
    return [
        Index(directory.INDEX, names=directory.names_in),
        Index(moves.INDEX, names=moves.names_in),
        Index(namespaces.INDEX, names=namespaces.names_in),
        Index(gists.INDEX, names=gists.names_in),
        Index(underway.INDEX),
        Index(embedding.INDEX),
        Index(embedding.SPACES),
        Index(audit_record.INDEX, ttl=audit_days * DAY),
    ]


@asynccontextmanager
async def open_greenroom(
    path: str | Path,
    *,
    content_limit: int = CONTENT_LIMIT,
    audit_days: int = AUDIT_DAYS,
    audit_bytes: int | None = None,
    embedder: str | EmbedderChoice = "static",
    languages: Sequence[str] = ("english",),
    actors: Iterable[type[Actor]] = (),
    indexes: Iterable[Index] = (),
    queries: Iterable[type[Query[Any] | Procedure[Any]]] = (),
    groups: Iterable[Group] = (),
    options: RuntimeOptions | None = None,
    clock: Clock | None = None,
    committer: Committer | None = None,
    codec: RecordCodec | None = None,
    secrets: str | Path | None = None,
    encryption: Encryption | None = None,
    may: Literal["create", "own", "attach"] = "create",
) -> AsyncIterator[SharedRuntime]:
    """Open a runtime with shared sessions and agent memory, inside an ``async with`` block.

    Ask it through an `Agent`. Several processes may have the same folder open: one owns it, the others
    relay to it, and when it ends another one takes over; `SharedRuntime.role` says which this one is.

    Args:
        path: The folder of the data.
        content_limit: The most characters that a message may have, up to 1,048,576.
        audit_days: How long audit records are kept, in days.
        audit_bytes: How many bytes of them are kept, the newest ones; None for all.
        embedder: Who makes vectors of memories: ``static`` for word vectors that ship with this program,
            ``onnx:DIR`` for a sentence-transformers export, an `EmbedderChoice` for an endpoint, or ``none``.
            That of the process that owns the folder counts.
        languages: Snowball's names of the languages whose words are reduced to their stems, for all that
            this process has open. After another choice an index is made anew when it is wanted.
        actors: Actor classes of one's own besides.
        indexes: Shared indexes of one's own besides.
        queries: Queries and procedures of one's own besides.
        groups: As in `open_runtime`.
        options: As in `open_runtime`.
        clock: As in `open_runtime`.
        committer: As in `open_runtime`.
        codec: As in `open_runtime`.
        secrets: The folder of the store's secret, from which the keys of the audit log, of API keys and of
            passports follow; made there at first need. None for where it is: in the folder of the data, or
            where the command keeps it unless told otherwise. A new one is then made in the folder of the
            data, where it protects from nobody who can read that.
        encryption: As in `open_runtime`.
        may: As in `open_shared_runtime`: how far this process may go.

    Raises:
        ValueError: a limit is out of range, or there is no such embedder or language.
        EmbedderError: what the embedder needs is not there, as far as that can be told without loading it.
        StoreError: as `open_shared_runtime`.
    """
    if not 1 <= content_limit <= MAX_VALUE_BYTES:
        raise ValueError(f"content_limit is {content_limit} and must be between 1 and {MAX_VALUE_BYTES}")
    if audit_days < 1:
        raise ValueError(f"audit_days is {audit_days} and must be at least 1")
    if audit_bytes is not None and audit_bytes < 1:
        raise ValueError(f"audit_bytes is {audit_bytes} and must be at least 1")
    choice = read_choice(embedder) if isinstance(embedder, str) else embedder
    check_choice(choice)
    use_languages(languages)
    configured = type("SessionActor", (HandedSession,), {"content_limit": content_limit})
    async with open_shared_runtime(
        path,
        principal_type=Principal,
        label_type=Heard,
        actors=[configured, *KINDS, *actors],
        indexes=[*shared_indexes(audit_days), *indexes],
        queries=[
            ListSessions,
            ListResources,
            CompleteResource,
            namespaces.ListNamespaces,
            namespaces.NewRoots,
            namespaces.RootOfMemory,
            ChooseRoots,
            MemorySearch,
            RetrieveMemory,
            RecallContext,
            PlacesOfKey,
            GetEmbedding,
            TrySearch,
            FindOffers,
            UnembeddedRoots,
            underway.FindUnderway,
            AllNamespaces,
            Imitations,
            VerifyMemories,
            GetAuditLog,
            ReadAuditLog,
            CheckAudit,
            CheckpointAudit,
            *queries,
        ],
        groups=groups,
        options=options,
        clock=clock,
        committer=committer,
        codec=codec,
        companion=partial(open_embedding, choice=choice),
        secrets=[Path(path), default_secrets()] if secrets is None else Path(secrets),
        journals=[audit_record.journal(ttl=audit_days * DAY, max_bytes=audit_bytes)],
        encryption=encryption,
        may=may,
    ) as runtime:
        yield runtime


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
        StoreError, UnknownKindError: as `greenroom.runtime.encrypt`.
    """
    return encrypt(
        Path(path),
        encryption,
        actors=[HandedSession, *KINDS, *actors],
        indexes=[*shared_indexes(AUDIT_DAYS), *indexes],
        options=options,
    )


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
        mends={KEEPER: partial(revoked, key=KEY_PREFIX, now=now)},
        restating=[each.kind for each in (HandedSession, *KINDS) if Restate in each.handlers],
        tell=tell,
    )
