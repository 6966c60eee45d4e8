"""The actor of one import, which decides in one commit for all namespaces.

The actor's key is made from the principal, the source and the options. So the same import finds the same
actor: it continues an attempt that stopped, waits for a decided one, or begins anew. An export waits for
decided imports that are not yet written everywhere, or reports them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, Literal

import msgspec
import trio

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.actors.core.validation.times import DAY, HOUR, SECOND
from greenroom.actors.memories.requests import transfer as requests
from greenroom.actors.memories.requests.transfer import ReadStaged
from greenroom.actors.memories.writing.import_staging import topic_of
from greenroom.runtime import Actor, Context, IndexReader, Procedure, Restate, RuntimeClient, Slices, handles

INDEX: Final = "imports"
_UNDERWAY: Final = b"u"
PATIENCE_SECONDS: Final = 10.0
"""How long an export waits for an import without progress."""
_LOOK_SECONDS: Final = 0.1
TIMER = "next"
STAGED_FOR = 7 * DAY
"""How long an unfinished import can be continued."""
KEPT_FOR = DAY
"""How long a finished import can be seen."""
FIRST_PAUSE = 120 * SECOND
"""The microseconds until unfinished roots get the message to apply again.

Supervision forgets a failure sooner than this, so that a second failure does not quarantine the actor.
"""
LONGEST_PAUSE = HOUR
"""The pause doubles up to this."""
EXACT_ROOTS = 64
"""With at most this many roots, each finished root is removed from the shared row at once; with more, an
eighth of the roots at a time."""
_RECORD = b"i"
_APPLIED = b"a"  # number of the root
_NUMBER_BYTES = 4


class PendingImport(msgspec.Struct, frozen=True, array_like=True):
    """A decided import, and the roots that have not yet written their part.

    With very many roots, some of these may be done: see `EXACT_ROOTS`.
    """

    staging: str
    roots: list[str]


class FindUnderway(Procedure[list[PendingImport]], frozen=True, kw_only=True):
    """Find the imports in progress, of all principals; internal."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> Slices[list[PendingImport]]:
        """Read the rows."""
        found: list[PendingImport] = []
        for row in reader.rows(INDEX, PendingImport, prefix=_UNDERWAY):
            found.append(row.value)
            yield
        return found


def put_pending(context: Context, underway: PendingImport) -> None:
    """Stage the row of the roots to which an import must still be written."""
    if underway.roots:
        context.put_row(INDEX, _UNDERWAY, underway)
    else:
        context.delete_row(INDEX, _UNDERWAY)


async def wait_written(
    runtime: RuntimeClient, principal: Principal, prefix: str | None, roots: Iterable[str]
) -> list[str]:
    """Wait until imports that affect an export are written, while they make progress.

    Args:
        runtime: The client of the runtime.
        principal: The exporting principal; it also waits for new roots that it may write.
        prefix: The leading segments of the export.
        roots: The roots that have memories now.

    Returns:
        The roots with an import that makes no progress.
    """
    known, before = set(roots), None
    deadline = trio.current_time() + PATIENCE_SECONDS
    while True:
        now: dict[str, int] = {}
        for underway in await runtime.query(FindUnderway(), principal=principal):
            for root in underway.roots:
                is_below = prefix is None or names.is_below(root, names.root_of(prefix))
                if root in known or (is_below and policy.may_write_namespace(principal, root)):
                    read = ReadStaged(staging=underway.staging)
                    staged = await runtime.ask(names.memory_address(root), read, principal=principal)
                    now[root] = now.get(root, 0) + staged.applied
        if not now:
            return []
        if now != before:
            before, deadline = now, trio.current_time() + PATIENCE_SECONDS
        elif trio.current_time() >= deadline:
            return sorted(now)
        await trio.sleep(_LOOK_SECONDS)


class Import(msgspec.Struct, frozen=True, array_like=True):
    """The state of an import.

    Attributes:
        attempt: When it was begun; unique for each attempt.
        applied: The results by root, as version 0.1.0 stored them; now each root has a record of its own.
        batches: The number of batches of each root, after the decision.
        pause: The pause until the next message to the roots.
    """

    principal: Principal
    state: Literal["staging", "decided", "done"]
    attempt: int
    roots: list[str]
    applied: dict[str, dict[str, int]] = {}
    batches: dict[str, int] = {}
    pause: int = FIRST_PAUSE


class ImportActor(Actor):
    """One import, addressed by its id."""

    kind = requests.IMPORT

    def activate(self, context: Context) -> None:
        """Read the state once, so that a finished root costs only one record."""
        self._found = context.get(_RECORD, Import)
        self._applied: dict[str, dict[str, int]] = {}
        self._listed: int | None = None  # the number of roots in the shared row, once it was written
        if self._found is not None:
            self._applied.update(self._found.applied)
            for key, counts in context.scan(dict[str, int], prefix=_APPLIED):
                self._applied[self._found.roots[int.from_bytes(key[1:])]] = counts

    @handles(requests.BeginImport)
    def begin(self, request: requests.BeginImport, context: Context) -> requests.ImportProgress:
        """Begin, or return the progress of an import that is not done."""
        found = self._read(context)
        if found is None or found.state == "done":
            for root in request.roots:
                policy.check_writes_namespace(context.principal, root)
            attempt = context.now if found is None else max(context.now, found.attempt + 1)
            self._forget(context)
            found = Import(context.principal, "staging", attempt, request.roots)
            self._put(context, found)
        if found.state == "staging":
            context.set_timer(TIMER, context.now + STAGED_FOR, requests.GiveUpImport())
        elif found.state == "decided":
            self._urge(context, found)
        return self._progress(context, found)

    @handles(requests.DecideImport)
    def decide(self, request: requests.DecideImport, context: Context) -> requests.ImportProgress:
        """Decide that everything staged takes effect."""
        found = self._read(context)
        if found is None or self._staging(context, found) != request.staging:
            raise auth_errors.invalid("staging", "staging: this import was given up; begin it again")
        return self._progress(context, self._decide(context, found, request.batches))

    @handles(requests.ReleaseImport)
    def release(self, request: requests.ReleaseImport, context: Context) -> None:
        """Decide that everything staged takes effect, because another actor has decided so."""
        context.use_reserve()
        found = self._found
        if found is not None and self._staging(context, found) == request.staging:
            self._decide(context, found, request.batches)

    @handles(requests.ReadImport)
    def read(self, _: requests.ReadImport, context: Context) -> requests.ImportProgress | None:
        """Return the progress."""
        found = self._read(context)
        return None if found is None else self._progress(context, found)

    @handles(requests.UrgeImport)
    def urge(self, _: requests.UrgeImport, context: Context) -> None:
        """Tell the roots again to apply, since some are not done."""
        context.use_reserve()
        found = self._found
        if found is not None and found.state == "decided":
            self._urge(context, found)

    @handles(Restate)
    def restate(self, _: Restate, context: Context) -> None:
        """Continue a decided import, since its shared row and its messages may be lost."""
        self.urge(requests.UrgeImport(), context)

    @handles(requests.LinesStaged)
    def drop_late(self, request: requests.LinesStaged, context: Context) -> None:
        """Tell a root to drop lines that were staged after the decision."""
        context.use_reserve()
        found = self._found
        is_wanted = (
            found is not None
            and self._staging(context, found) == request.staging
            and found.state != "done"
            and request.root not in self._applied
        )
        if not is_wanted:
            context.tell(names.memory_address(request.root), requests.DropLines(staging=request.staging))

    @handles(requests.ImportApplied)
    def record_applied(self, request: requests.ImportApplied, context: Context) -> None:
        """Record that a root is done."""
        context.use_reserve()
        found, root = self._found, request.root
        if found is None or self._staging(context, found) != request.staging or root in self._applied:
            return
        self._applied[root] = request.counts
        number = bisect_left(found.roots, root)
        context.put(_APPLIED + number.to_bytes(_NUMBER_BYTES), request.counts)
        left = len(found.roots) - len(self._applied)
        if self._listed is None or left <= EXACT_ROOTS or left <= self._listed * 7 // 8:
            self._list_pending(context, found)
        if not left:
            self._put(context, msgspec.structs.replace(found, state="done"))
            context.set_timer(TIMER, context.now + KEPT_FOR, requests.GiveUpImport())
        audience = policy.own_audience(found.principal.agent_id)
        context.publish(topic_of(context.address.key), policy.ChangeLabel(audience))

    @handles(requests.GiveUpImport)
    def give_up(self, _: requests.GiveUpImport, context: Context) -> None:
        """Forget an abandoned or finished import."""
        context.use_reserve()
        found = self._found if context.principal is None else self._read(context)
        if found is not None and found.state != "decided":
            self._give_up(context, found)

    def _give_up(self, context: Context, found: Import) -> None:
        if found.state == "staging":
            for root in found.roots:
                dropped = requests.DropLines(staging=self._staging(context, found))
                context.tell(names.memory_address(root), dropped)
        self._forget(context)
        context.delete(_RECORD)
        self._found = None
        context.cancel_timer(TIMER)

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> ErasedPart:
        """Erase a person's import, with the lines that are not written yet."""
        found = self._found
        if found is None or not request.person.has_principal(found.principal):
            return ErasedPart(counts={})
        if not request.dry_run:
            context.use_reserve()
            put_pending(context, PendingImport(self._staging(context, found), []))
            self._give_up(context, msgspec.structs.replace(found, state="staging"))
        return ErasedPart(counts={"imports": 1})

    def _put(self, context: Context, found: Import) -> None:
        context.put(_RECORD, found)
        self._found = found

    def _forget(self, context: Context) -> None:
        """Stage the removal of all results."""
        for key, _ in list(context.scan(msgspec.Raw, prefix=_APPLIED)):
            context.delete(key)
        self._applied = {}
        self._listed = None

    def _decide(self, context: Context, found: Import, batches: dict[str, int]) -> Import:
        if found.state != "staging":
            return found
        found = msgspec.structs.replace(found, state="decided", batches=batches)
        self._urge(context, found)
        decided = audit_record.row(found.principal, "decide_import", None, {"roots": found.roots})
        context.append(audit_record.JOURNAL, decided)
        return found

    def _urge(self, context: Context, found: Import) -> None:
        """Tell the roots to apply their lines (none does so twice); schedule the next tell."""
        for root in found.roots:
            if root not in self._applied:
                staging = self._staging(context, found)
                apply = requests.ApplyLines(staging=staging, batches=found.batches[root])
                context.tell(names.memory_address(root), apply)
        self._list_pending(context, found)
        context.set_timer(TIMER, context.now + found.pause, requests.UrgeImport())
        self._put(context, msgspec.structs.replace(found, pause=min(2 * found.pause, LONGEST_PAUSE)))

    def _list_pending(self, context: Context, found: Import) -> None:
        left = [root for root in found.roots if root not in self._applied]
        self._listed = len(left)
        put_pending(context, PendingImport(self._staging(context, found), left))

    def _read(self, context: Context) -> Import | None:
        found = self._found
        if found is not None and found.principal.identity != context.principal.identity:
            raise auth_errors.permission_denied("import", "import: this is another's")
        return found

    @staticmethod
    def _staging(context: Context, found: Import) -> str:
        return f"{context.address.key}.{found.attempt}"

    def _progress(self, context: Context, found: Import) -> requests.ImportProgress:
        return requests.ImportProgress(
            state=found.state,
            staging=self._staging(context, found),
            roots=found.roots,
            applied=dict(self._applied),  # a copy, because a reply must not change
        )
