"""Stage the lines of imports; write them batch by batch once the import is decided.

The lines are in the records ``j staging``: the header, ``j staging number`` for each batch, and
``j staging p`` for lines that wait for the memory that they supersede. A batch is deleted in the commit that
writes its memories, so after a crash the import continues at the same place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
from msgspec import UnsetType

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.zstd import compress_bytes, decompress_bytes
from greenroom.actors.core.validation.times import to_microseconds
from greenroom.actors.memories.requests import transfer as requests
from greenroom.actors.memories.requests.import_lines import decode_line, metadata_of
from greenroom.actors.memories.requests.transfer import MemoryLine, OnConflict, Outcome
from greenroom.actors.memories.storage import embedding, indexing, records
from greenroom.actors.memories.storage.records import PLAIN, Entry, VersionTimes
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.writing.writes import Draft, write
from greenroom.runtime import Context, Refusal, Slices

STAGED = b"j"
_TAG_BYTES = 16
HEAD_BYTES = len(STAGED) + _TAG_BYTES
"""The bytes of each key that identify the import; they are the whole key of the header."""
WAITING = b"p"
TURN_ROWS = 6_000
TURN_BYTES = 2 << 20
"""One turn stages about so many rows and bytes of lines, unless a principal waits for the actor.

Entries are ordered by digests, so each commit writes most of their pages: few commits write less.
"""
_LEVEL = 1
_Batched: Any = bytes | list[bytes]
_decode_lines = msgspec.msgpack.Decoder(list[bytes]).decode
_MIDDLE = 1 << 40
_DROPPED_AT_ONCE = 200
_MOST_IN_VAIN = 5_000
WRITTEN: frozenset[str] = frozenset({"created", "versioned", "overwritten"})
"""Outcomes of lines that were written."""
_OF_CONFLICT: dict[OnConflict, Outcome] = {
    "skip": "skipped",
    "overwrite": "overwritten",
    "version": "versioned",
}


class ImportHeader(msgspec.Struct, frozen=True, array_like=True):
    """The state of one import's lines for this root.

    Attributes:
        staged: The number of staged batches.
        applied: The number of written batches.
        counts: The number of lines by outcome.
        waiting: The number of lines that wait for another line.
        first: The position of the first waiting line.
        passed: How many waiting lines were tried in vain since the last one was written.
        vain: The number of all tries of waiting lines that were in vain.
        digest: The digest of all staged lines.
    """

    root: str
    principal: Principal
    on_conflict: OnConflict
    staged: int = 0
    applied: int = 0
    counts: dict[str, int] = {}
    waiting: int = 0
    first: int = _MIDDLE
    passed: int = 0
    vain: int = 0
    digest: bytes = b""


class _Judged(NamedTuple):
    """A line with the existing entry and the outcome."""

    draft: Draft
    stored: StoredEntry | None
    outcome: Outcome


def digest_with(digest: bytes, lines: Iterable[msgspec.Raw]) -> bytes:
    """Return the digest of all earlier batches and a further batch."""
    return blake2b(digest + b"\n".join(map(bytes, lines)), digest_size=_TAG_BYTES).digest()


def topic_of(import_id: str) -> str:
    """Return the topic of an import's progress."""
    return f"import:{import_id}"


# -- before the decision -------------------------------------------------------


def stage(repository: MemoryRepository, request: requests.StageLines, context: Context) -> requests.Staged:
    """Stage a batch, but no batch twice; refuse if the import takes no more lines."""
    known: requests.ImportProgress | None = context.precheck_answer
    if known is None or (known.staging, known.state) != (request.staging, "staging"):
        raise Refusal(
            requests.NOT_STAGING, "this import is decided, or was given up; it accepts no more lines"
        )
    head = _head(context, request.staging) or ImportHeader(
        request.root, context.principal, request.on_conflict
    )
    if head.principal.identity != context.principal.identity:
        raise auth_errors.permission_denied("staging", "staging: this import belongs to someone else")
    policy.check_writes_namespace(context.principal, request.root)
    repository.check_root(request.root)
    if request.number == head.staged:
        if request.number == 0:  # another request may have decided or finished the import since the query
            notice = requests.LinesStaged(staging=request.staging, root=request.root)
            context.tell(requests.import_address(request.staging), notice)
        context.put(_batch_key(request.staging, request.number), _pack(request.lines))
        digest = digest_with(head.digest, request.lines)
        head = msgspec.structs.replace(head, staged=head.staged + 1, digest=digest)
        context.put(_head_key(request.staging), head)
    elif request.number > head.staged:
        raise auth_errors.invalid("number", f"number: batch {head.staged} comes before {request.number}")
    return requests.Staged(batches=head.staged, applied=head.applied)


def read_staged(_: MemoryRepository, request: requests.ReadStaged, context: Context) -> requests.Staged:
    """Return the number of staged and applied batches; exports use it to wait for imports."""
    head = _head(context, request.staging)
    if head is None:
        return requests.Staged(batches=0, applied=0)
    digest = head.digest if head.principal.identity == context.principal.identity else b""
    return requests.Staged(batches=head.staged, applied=head.applied, digest=digest)


def try_lines(
    repository: MemoryRepository, request: requests.TryLines, context: Context
) -> Slices[dict[str, int]]:
    """Count the outcomes of lines without writing them; raises as `MemoryRepository.check_root`."""
    policy.check_writes_namespace(context.principal, request.root)
    repository.check_root(request.root)
    head = ImportHeader(request.root, context.principal, request.on_conflict)
    counts: dict[str, int] = Counter()
    for raw in request.lines:
        judged = yield from _judge(repository, context, head, decode_line(raw))
        counts[judged.outcome] += 1
        yield
    return dict(counts)


def drop(_: MemoryRepository, request: requests.DropLines, context: Context) -> Slices[None]:
    """Delete the staged lines of an abandoned import."""
    context.use_reserve()
    prefix = _head_key(request.staging)
    most = context.most_rows(_DROPPED_AT_ONCE)
    for dropped, (key, _raw) in enumerate(context.scan(msgspec.Raw, prefix=prefix)):
        if dropped == most:
            context.tell(context.address, request)
            return
        context.delete(key)
        yield


# -- after it --------------------------------------------------------------------


def apply(repository: MemoryRepository, request: requests.ApplyLines, context: Context) -> Slices[None]:
    """Write a batch and continue with the next; report the end after the last."""
    head = _head(context, request.staging)
    if head is None:  # the import is finished
        return
    yield from indexing.finish(repository, context)
    batch = _Batch(repository, context, request.staging, head)
    if head.applied < request.batches:
        yield from batch.write_staged(request.batches)
    else:
        yield from batch.write_waiting()
    is_first, head = head.applied == 0, batch.head
    if head.applied < request.batches or head.waiting:
        context.put(_head_key(request.staging), head)
        context.tell(context.address, request)
        if is_first:  # a second message, so that one batch is handled while another is written to disk
            context.tell(context.address, request)
    else:
        _finish(context, request.staging, head)
    audience = policy.own_audience(head.principal.agent_id)
    context.publish(topic_of(requests.import_address(request.staging).key), policy.ChangeLabel(audience))


class _Batch:
    """A writer of some lines.

    Attributes:
        head: The header, which the writer changes.
    """

    def __init__(
        self, repository: MemoryRepository, context: Context, staging: str, head: ImportHeader
    ) -> None:
        self._repository = repository
        self._context = context
        self._staging = staging
        self.head = head
        self._written: list[tuple[int, str]] = []

    def write_staged(self, batches: int) -> Slices[None]:
        """Write the next staged batches, up to the number ``batches``; one at least."""
        size = 0
        while self.head.applied < batches:
            key = _batch_key(self._staging, self.head.applied)
            for raw in _read_batch(self._context, key):
                size += len(raw)
                yield from self._write_line(raw, wait=True)
                yield
            self._context.delete(key)
            self._set(applied=self.head.applied + 1)
            yield from self._embed()
            yield from self._repository.index.compact_on(self._context)
            is_awaited = self._context.has_callers(besides=requests.ReadStaged)  # as the importer sends it
            most = self._context.most_rows(TURN_ROWS)  # fewer in a store that is nearly full
            if self._context.count_rows() >= most or size >= TURN_BYTES or is_awaited:
                break

    def write_waiting(self) -> Slices[None]:
        """Write some waiting lines, last key first: the order of chains of supersessions.

        A line that still waits moves behind the others. Once all lines were tried in vain, one is written
        without its link, so that others may find it. After too many tries in vain, all are written so.
        """
        prefix = _head_key(self._staging) + WAITING
        for turn, (key, raw) in enumerate(self._context.scan(bytes, prefix=prefix, reverse=True)):
            if turn == _DROPPED_AT_ONCE:
                break
            self._context.delete(key)
            is_last_resort = self.head.passed >= self.head.waiting
            before = self.head.waiting - 1
            self._set(waiting=before)
            yield from self._write_line(raw, wait=not is_last_resort)
            if self.head.waiting > before:
                self._set(passed=self.head.passed + 1, vain=self.head.vain + 1)
            elif self.head.vain < _MOST_IN_VAIN:
                self._set(passed=0)
            yield
        yield from self._embed()

    def _embed(self) -> Slices[None]:
        """Stage the vectors of what was written, a few at once, or queue it."""
        yield from embedding.embed_or_queue(self._repository, self._context, self._written)
        self._written.clear()

    def _set(self, **changes: int) -> None:
        self.head = msgspec.structs.replace(self.head, **changes)

    def _write_line(self, raw: bytes, *, wait: bool) -> Slices[None]:
        """Write a line, or let it wait for the memory that it supersedes."""
        line = decode_line(raw)
        judged = yield from _judge(self._repository, self._context, self.head, line)
        draft = judged.draft
        if line.supersedes is not None and judged.outcome in WRITTEN:
            draft.supersedes = _find_superseded(self._repository, self._context, draft, line.supersedes)
            if draft.supersedes is None and wait:
                first = self.head.first - 1
                self._context.put(_head_key(self._staging) + WAITING + first.to_bytes(8), raw)
                self._set(waiting=self.head.waiting + 1, first=first)
                return
        outcome = judged.outcome
        if outcome in WRITTEN:
            outcome = yield from self._write(judged)
        if outcome in WRITTEN:
            text = embedding.text_to_embed(draft.value, draft.form, draft.author or "")
            self._written.append((self._repository.counter, text))
        self.head.counts[outcome] = self.head.counts.get(outcome, 0) + 1

    def _write(self, judged: _Judged) -> Slices[Outcome]:
        """Write a line; a refused supersession is dropped."""
        draft, stored, outcome = judged
        if stored is not None and draft.created_at is not None:
            entry = msgspec.structs.replace(stored.entry, created_at=draft.created_at)
            stored = StoredEntry(stored.record_key, entry)
        try:
            self._repository.ensure_root(self._context, self.head.root)
            written = yield from write(self._repository, self._context, draft, stored)
        except Refusal:
            if draft.supersedes is None:
                return "refused"
            draft.supersedes = None
            return (yield from self._write(judged))
        if outcome == "overwritten":
            yield from _forget_history(self._context, written.entry)
        return outcome


def _forget_history(context: Context, entry: Entry) -> Slices[None]:
    prefix = records.versions_prefix(entry.number)
    newest = records.version_key(entry.number, entry.version)
    for key, ends in context.scan(VersionTimes, prefix=prefix):
        if key == newest:
            break
        context.delete(key)
        if ends.expires_at is not None:
            version = int.from_bytes(key[-8:])
            context.delete(records.expiry_key(ends.expires_at, entry.number, version))
        yield


def _finish(context: Context, staging: str, head: ImportHeader) -> None:
    context.delete(_head_key(staging))
    details = {"namespace": head.root, "on_conflict": head.on_conflict, "counts": head.counts}
    context.append(audit_record.JOURNAL, audit_record.row(head.principal, "import_memories", None, details))
    applied = requests.ImportApplied(staging=staging, root=head.root, counts=head.counts)
    context.tell(requests.import_address(staging), applied)


# -- a line ------------------------------------------------------------------------


def _judge(
    repository: MemoryRepository, context: Context, head: ImportHeader, line: MemoryLine
) -> Slices[_Judged]:
    draft = _draft(head.principal, line)
    stored = _find_existing(repository, context, draft)
    if stored is not None:
        draft.key = stored.entry.key
    if stored is not None and line.created_by is None and head.on_conflict != "overwrite":
        draft.author, draft.reattributes = repository.author(stored.entry), False
    outcome: Outcome
    if not records.is_live(draft.expires_at, context.now):
        outcome = "expired"
    elif stored is None:
        outcome = "created"
    elif head.on_conflict != "skip" and (yield from _is_same(repository, context, line, draft, stored)):
        outcome = "unchanged"
    else:
        outcome = _OF_CONFLICT[head.on_conflict]
    return _Judged(draft, stored, outcome)


def _draft(principal: Principal, line: MemoryLine) -> Draft:
    namespace = line.namespace
    assert namespace is not None, "staged lines have a namespace"
    author = line.created_by or principal.agent_id
    created = None if line.created_at is None else to_microseconds(line.created_at)
    updated = created if line.updated_at is None else to_microseconds(line.updated_at)
    if line.content is not None:
        value, form = line.content.encode(), records.TEXT
    else:
        assert not isinstance(line.value, UnsetType), "a line has a content or a value"
        value, form = bytes(line.value), records.JSON
    return Draft(
        key=line.key,
        value=value,
        form=form,
        compress=True,
        partition=policy.memory_partition(principal, namespace, line.scope),
        sub=namespace[len(names.root_of(namespace)) + 1 :],
        session_id=line.session_id,
        metadata=metadata_of(line),
        expires_at=None if line.expires_at is None else to_microseconds(line.expires_at),
        kind=line.kind,
        tags=tuple(line.tags),
        importance=line.importance,
        author=author,
        by=author,
        imported=None if line.imported is None else line.imported.created_by,
        reattributes=True,
        conversation=line.conversation_id,
        position=line.position,
        created_at=created,
        updated_at=updated,
        unreviewed=line.unreviewed,
    )


def _find_existing(repository: MemoryRepository, context: Context, draft: Draft) -> StoredEntry | None:
    """Return the live entry with the draft's key (and partition, if owners share the root)."""
    there = [
        StoredEntry(where, entry)
        for where in repository.places(draft.session_id, draft.key, draft.sub, draft.partition)
        if (entry := context.get(where, Entry)) is not None and records.is_there(entry, context.now)
    ]
    return next((each for each in there if each.entry.key == draft.key), there[0] if there else None)


def _find_superseded(
    repository: MemoryRepository, context: Context, draft: Draft, key: str
) -> StoredEntry | None:
    """Return the memory of this key that the draft supersedes."""
    for stored in repository.entries_of_key(context, records.entry_keys(draft.session_id, key, draft.sub)):
        partition = repository.partition(stored.entry)
        is_own = (partition.user, partition.agent) == (draft.partition.user, draft.partition.agent)
        if is_own and records.is_there(stored.entry, context.now):
            return stored
    return None


def _is_same(
    repository: MemoryRepository, context: Context, line: MemoryLine, draft: Draft, stored: StoredEntry
) -> Slices[bool]:
    """Return whether a line would not change an entry."""
    entry = stored.entry
    details = entry.details or PLAIN
    alike = (
        details.form & records.TEXT == draft.form & records.TEXT
        and entry.value_size == len(draft.value)
        and entry.expires_at == draft.expires_at
        and repository.partition(entry) == draft.partition
        and (
            line.created_by is None
            or (repository.author(entry), details.imported) == (draft.author, draft.imported)
        )
        and (details.kind, details.tags, details.importance) == (draft.kind, draft.tags, draft.importance)
        and draft.unreviewed in {None, details.unreviewed}
        and (details.conversation, details.position) == (draft.conversation, draft.position)
        and draft.created_at in {None, entry.created_at}
        and draft.updated_at in {None, entry.updated_at}
    )
    if not alike:
        return False
    value, version = yield from repository.value(context, entry)
    if line.created_by is None and draft.imported is not None:
        then = version.details
        named = {repository.author(entry), details.imported} | (
            set() if then is None else {then.author, then.imported}
        )
        if draft.imported not in named:  # the source names an author that is not stored yet
            return False
    return value == draft.value and version.metadata == draft.metadata


# -- records -------------------------------------------------------------------------


def _head(context: Context, staging: str) -> ImportHeader | None:
    return context.get(_head_key(staging), ImportHeader)


def _head_key(staging: str) -> bytes:
    return STAGED + blake2b(staging.encode(), digest_size=_TAG_BYTES).digest()


def _batch_key(staging: str, number: int) -> bytes:
    return _head_key(staging) + number.to_bytes(8)


def _pack(lines: list[msgspec.Raw]) -> bytes:
    """Return a batch of lines, which is written and deleted soon, in few bytes."""
    return compress_bytes(msgspec.msgpack.encode([bytes(line) for line in lines]), _LEVEL)


def _read_batch(context: Context, key: bytes) -> list[bytes]:
    """Return the lines of a batch; older programs stored them as they were."""
    found = context.get(key, _Batched)
    return _decode_lines(decompress_bytes(found)) if isinstance(found, bytes) else found or []
