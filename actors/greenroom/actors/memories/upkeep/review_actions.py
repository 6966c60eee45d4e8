"""Review actions on memories: inspect, restore, merge, move."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from msgspec import UNSET

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import is_below, root_of
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.replies import paging
from greenroom.actors.core.replies.damage import read_undamaged, skip_damaged
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.memories.reading import reads
from greenroom.actors.memories.reading.browsing import to_listed
from greenroom.actors.memories.requests import replies, review
from greenroom.actors.memories.storage import indexing, links, records
from greenroom.actors.memories.storage.records import PLAIN, Entry, Version
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.views import to_version_view
from greenroom.actors.memories.upkeep import pairs
from greenroom.actors.memories.writing import ratings
from greenroom.actors.memories.writing.store_requests import (
    check_version,
    content_of,
    draft_of,
    find_named,
    save,
)
from greenroom.actors.memories.writing.writes import Draft
from greenroom.runtime import Context, Slices, pass_over

MOST_RATINGS: Final = 100
MOST_VERSIONS: Final = 200
MOST_LINKED: Final = 50
_Follow = Callable[[MemoryRepository, Context, Entry], Entry | None]
"""Returns the next memory along a link, if the caller may see it."""


def inspect(
    repository: MemoryRepository, request: review.InspectMemory, context: Context
) -> Slices[review.MemoryInspected]:
    """Return all that the caller may see of a memory."""
    yield from indexing.finish(repository, context)
    entry = _find(repository, context, request.memory_id).entry
    number = request.version or entry.version
    version = _version(repository, context, entry, number, request.memory_id)
    near = pairs.Neighbours([], [], [])
    quality = None
    if entry.deleted_at is None:
        near = yield from pairs.find_neighbours(repository, context, entry)
        quality = yield from _quality(repository, context, entry)
    return review.MemoryInspected(
        memory=(yield from to_version_view(repository, context, entry, number, version, most=None)),
        newest=entry.version,
        quality=quality,
        ratings=ratings.list_ratings(context, entry, MOST_RATINGS),
        versions=reads.newest_versions(repository, context, entry, MOST_VERSIONS),
        superseded=(yield from _follow_links(repository, context, entry, links.predecessor)),
        superseded_by=(yield from _follow_links(repository, context, entry, links.successor)),
        similar=near.similar,
        replaces=near.replaces,
        replaced_by=near.replaced_by,
        may_change=policy.may_write_namespace(context.principal, repository.namespace(entry.sub)),
    )


def restore(
    repository: MemoryRepository, request: review.RestoreMemory, context: Context
) -> Slices[replies.MemorySaved]:
    """Store a new version with the state of an older one."""
    yield from indexing.finish(repository, context)
    stored = _find(repository, context, request.memory_id)
    entry = stored.entry
    namespace = repository.namespace(entry.sub)
    policy.check_writes_namespace(context.principal, namespace)
    check_version(repository, namespace, entry.key, stored, request.expected_version)
    if request.expected_forgotten not in {None, entry.deleted_at is not None}:
        raise auth_errors.forgotten_meanwhile(
            entry.key, namespace, entry.version, is_forgotten=entry.deleted_at is not None
        )
    number = request.version or entry.version
    if number == entry.version and entry.deleted_at is None:
        raise auth_errors.invalid(
            "version", f"version: {number} is the newest, so the memory is like it; name an older one"
        )
    version = _version(repository, context, entry, number, request.memory_id)
    draft = yield from _draft_as(repository, context, entry, version)
    return (yield from save(repository, context, draft, stored, "restore_memory"))


def merge(
    repository: MemoryRepository, request: review.MergeMemories, context: Context
) -> Slices[review.MemoriesMerged]:
    """Let one memory supersede others, in a chain with all that these supersede already."""
    yield from indexing.finish(repository, context)
    into, *others = _check_merge(repository, context, request)
    below = (yield from _chain(repository, context, into))[1:]
    waiting: list[int] = []
    for number in others:
        above = [each for each in (into, *others) if each != number]
        if not (yield from _is_below(repository, context, number, above)):
            waiting.append(number)
    changed: list[review.ChangedMemory] = []
    chain = [into]
    for number in (*waiting, *below[:1]):
        if number in chain:
            continue
        last = _read_entry(repository, context, chain[-1])
        if chain[-1] == into:
            draft = yield from _merge_into(repository, context, last, others, request.content)
        else:
            version = _version(repository, context, last.entry, last.entry.version, request.memory_id)
            draft = yield from _draft_as(repository, context, last.entry, version)
            draft.unreviewed = False  # an unreviewed memory would hide nothing
        draft.supersedes, draft.releases = _read_entry(repository, context, number), False
        written = yield from save(repository, context, draft, last, "merge_memories")
        changed.append(review.ChangedMemory(memory_id=written.memory_id, version=written.version))
        chain += yield from _chain(repository, context, number)
    return review.MemoriesMerged(memory_id=request.memory_id, version=changed[0].version, changed=changed)


def move(
    repository: MemoryRepository, request: review.MoveMemory, context: Context
) -> Slices[review.MemoryMoved]:
    """Store a new version of a memory in another namespace below the root."""
    yield from indexing.finish(repository, context)
    stored = find_named(repository, context, request.memory_id, None, None)
    entry = stored.entry
    before = repository.namespace(entry.sub)
    policy.check_writes_namespace(context.principal, before)
    check_version(repository, before, entry.key, stored, request.expected_version)
    _check_target(repository, entry, request.to)
    version = _version(repository, context, entry, entry.version, request.memory_id)
    draft = yield from _draft_as(repository, context, entry, version)
    draft.sub = repository.sub(request.to)
    written = yield from save(repository, context, draft, stored, "move_memory")
    return review.MemoryMoved(
        memory_id=request.memory_id,
        key=entry.key,
        namespace=written.namespace,
        before=before,
        version=written.version,
    )


def _check_target(repository: MemoryRepository, entry: Entry, to: str) -> None:
    if root_of(to) != repository.root:
        raise auth_errors.invalid(
            "to", f"to: {to!r} is not below {repository.root!r}; store the memory there, and forget it here"
        )
    if to == repository.namespace(entry.sub):
        raise auth_errors.invalid("to", f"to: the memory is in {to!r} already")
    if entry.session_id is not None:
        raise auth_errors.invalid("to", "to: the memory belongs to a session, so it cannot move")


def _check_merge(repository: MemoryRepository, context: Context, request: review.MergeMemories) -> list[int]:
    """Check a merge before anything is staged, and return the numbers of its memories."""
    numbers: list[int] = []
    for memory_id in (request.memory_id, *request.others):
        stored = repository.find_id(context, memory_id)
        if stored is None:
            raise repository.not_found(context, memory_id, None)
        namespace = repository.namespace(stored.entry.sub)
        policy.check_writes_namespace(context.principal, namespace)
        expected = request.expected_versions.get(memory_id)
        check_version(repository, namespace, stored.entry.key, stored, expected)
        if stored.entry.number in numbers:
            raise auth_errors.invalid("others", f"others: {memory_id} is named twice; name each once")
        numbers.append(stored.entry.number)
    into = _read_entry(repository, context, numbers[0]).entry
    above = links.successor(repository, context, into)
    if above is not None:
        instead = repository.memory_id(above.number)
        raise auth_errors.invalid("memory_id", f"memory_id: {instead} supersedes it; merge into that one")
    return numbers


def _merge_into(
    repository: MemoryRepository,
    context: Context,
    stored: StoredEntry,
    others: list[int],
    content: str | None,
) -> Slices[Draft]:
    """Return the draft of an entry that also covers others: tags, importance, content."""
    version = _version(repository, context, stored.entry, stored.entry.version, "")
    draft = yield from _draft_as(repository, context, stored.entry, version)
    entries = [stored.entry, *(_read_entry(repository, context, number).entry for number in others)]
    every = [entry.details or PLAIN for entry in entries]
    tags: dict[str, str] = {}
    for tag in (tag for details in every for tag in details.tags):
        tags.setdefault(compose(tag), tag)
    draft.tags = tuple(tags.values())
    draft.importance = max(details.importance for details in every)
    draft.unreviewed = False
    new = content_of(content, UNSET)
    if new is not None:
        draft.value, draft.form = new
        draft.compress = True
    return draft


def _chain(repository: MemoryRepository, context: Context, number: int) -> Slices[list[int]]:
    """Return an entry and the live entries that it supersedes, one after the other."""
    chain = [number]
    below = links.predecessor(repository, context, _read_entry(repository, context, number).entry)
    while below is not None:
        chain.append(below.number)
        below = links.predecessor(repository, context, below)
        yield
    return chain


def _is_below(repository: MemoryRepository, context: Context, number: int, others: list[int]) -> Slices[bool]:
    """Return whether one of ``others`` supersedes an entry, directly or through other entries."""
    for each in others:
        if number in (yield from _chain(repository, context, each)):
            return True
    return False


def _draft_as(
    repository: MemoryRepository, context: Context, entry: Entry, version: Version
) -> Slices[Draft]:
    """Return a draft with the state of an entry at one of its versions."""
    then = version.details
    superseded = records.NOTHING if then is None else then.supersedes
    stored = repository.by_number(context, superseded) if superseded else None
    if stored is not None and not (
        records.is_there(stored.entry, context.now) and repository.may_see(context.principal, stored.entry)
    ):
        stored = None
    draft = yield from draft_of(repository, context, entry, version)
    draft.expires_at = version.expires_at
    if then is not None:
        draft.kind, draft.tags, draft.importance = then.kind, then.tags, then.importance
        draft.unreviewed = then.unreviewed
    draft.supersedes, draft.releases = stored, superseded is not None and stored is None
    return draft


def _find(repository: MemoryRepository, context: Context, memory_id: str) -> StoredEntry:
    stored = repository.find_id(context, memory_id, forgotten=True)
    if stored is None:
        raise repository.not_found(context, memory_id, None)
    return stored


def _version(
    repository: MemoryRepository, context: Context, entry: Entry, number: int, memory_id: str
) -> Version:
    version = None
    if number <= entry.version:  # a huge number may not fit into a key
        version = repository.version_of(context, entry, number)
    if version is None or not records.is_live(version.expires_at, context.now):
        raise auth_errors.no_memory(memory_id)
    return version


def _read_entry(repository: MemoryRepository, context: Context, number: int) -> StoredEntry:
    stored = repository.by_number(context, number)
    assert stored is not None, "it was just found"
    return stored


def _quality(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[float]:
    corpus = yield from repository.index.loaded(context)
    yield from import_in_thread("greenroom.actors.memories.reading.ranking")
    import numpy as np  # noqa: PLC0415 - loaded by now

    from greenroom.actors.memories.reading.ranking import quality_of  # noqa: PLC0415 - needs numpy, loaded by now

    row = corpus.row(entry.update)
    assert row is not None, "a live memory is in the index"
    total, _ = quality_of(corpus, np.array([row], np.intp), context.now)
    return round(float(total[0]), 4)


def _follow_links(
    repository: MemoryRepository, context: Context, entry: Entry, follow: _Follow
) -> Slices[list[review.ListedMemory]]:
    """Follow links from an entry, one after the other; return the memories, nearest first."""
    found: list[review.ListedMemory] = []
    other = follow(repository, context, entry)
    while other is not None and len(found) < MOST_LINKED:
        found.append((yield from to_listed(repository, context, other)))
        other = follow(repository, context, other)
    return found


_PLACE = Struct(">QQ")


def list_forgotten(
    repository: MemoryRepository, request: review.ListForgotten, context: Context
) -> Slices[review.ForgottenMemories]:
    """Return a page of the forgotten memories below a namespace."""
    namespace = request.namespace or repository.root
    yield from indexing.finish(repository, context)
    binding = f"forgotten {namespace}"
    before = None
    if request.cursor is not None:
        before = _PLACE.unpack(paging.decode(request.cursor, binding, _PLACE.size))
    known = yield from _load_forgotten(repository, context)
    found: list[review.KeptMemory] = []
    cursor, last = None, (0, 0)
    for number, at in sorted(known.items(), key=lambda each: each[::-1], reverse=True):
        if before is not None and (at, number) >= before:
            continue
        stored = read_undamaged(context, repository.by_number, context, number)
        if stored is None or stored.entry.deleted_at is None:  # restored or removed since
            del known[number]
        elif _is_visible(repository, context, stored.entry, namespace):
            if len(found) == request.limit:
                cursor = paging.encode(_PLACE.pack(*last), binding)
                break
            kept = yield from skip_damaged(context, _to_kept(repository, context, stored.entry))
            found += [] if kept is None else [kept]
            last = (at, number)
        yield
    return review.ForgottenMemories(namespace=namespace, memories=found, next_cursor=cursor)


def _load_forgotten(repository: MemoryRepository, context: Context) -> Slices[dict[int, int]]:
    """Return times of forgetting by entry number; some entries may no longer be forgotten."""
    if repository.forgotten is None:
        known: dict[int, int] = {}
        for _, entry in context.scan(Entry, prefix=records.ENTRIES, on_damage=pass_over):
            if entry.deleted_at is not None:
                known[entry.number] = entry.deleted_at
            yield
        repository.forgotten = known
    return repository.forgotten


def _is_visible(repository: MemoryRepository, context: Context, entry: Entry, namespace: str) -> bool:
    return (
        records.is_live(entry.expires_at, context.now)
        and is_below(repository.namespace(entry.sub), namespace)
        and repository.may_see(context.principal, entry)
    )


def _to_kept(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[review.KeptMemory]:
    details = entry.details or PLAIN
    assert details.deleted_at is not None, "it was forgotten"
    places = repository.places(entry.session_id, entry.key, entry.sub, repository.partition(entry))
    occupants = (read_undamaged(context, repository.entry_at, context, place) for place in places)
    return review.KeptMemory(
        memory=(yield from to_listed(repository, context, entry)),
        forgotten_at=to_datetime(details.deleted_at),
        forgotten_by=details.deleted_by,
        key_is_taken=any(each is not None and records.is_there(each, context.now) for each in occupants),
        may_restore=policy.may_write_namespace(context.principal, repository.namespace(entry.sub)),
    )
