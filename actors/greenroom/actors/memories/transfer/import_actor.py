"""The actor of one import: it decides, in one commit, that all namespaces take it or none.

Its key is made of who imports what how, so that the same file again finds the same actor: to go on
where an attempt stopped, to wait for one that is decided, or, when that is done, to begin anew.

Those that are decided and not yet written everywhere are listed: an export waits for them, or tells of them.
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
from greenroom.actors.core.validation.times import DAY, HOUR, SECOND
from greenroom.actors.memories.requests import transfer as requests
from greenroom.actors.memories.requests.transfer import ReadStaged
from greenroom.actors.memories.writing.import_staging import topic_of
from greenroom.actors.schemas.erasure import ErasedPart, EraseFrom
from greenroom.runtime import Actor, Context, IndexReader, Query, Restate, RuntimeClient, Slices, handles

INDEX: Final = "imports"
_UNDERWAY: Final = b"u"
PATIENCE_SECONDS: Final = 10.0
"""How long an import may come no further until nobody waits for it."""
_LOOK_SECONDS: Final = 0.1
TIMER = "next"
STAGED_FOR = 7 * DAY
"""How long an import waits to be gone on with."""
KEPT_FOR = DAY
"""How long it can be seen that an import is done."""
FIRST_PAUSE = 120 * SECOND
"""After how many microseconds roots that have not said that they are done are urged again.

Longer than supervision remembers a failure, so that what fails again is not set aside for that.
"""
LONGEST_PAUSE = HOUR
"""The pause doubles up to this."""
EXACT_ROOTS = 64
"""Roots up to which each that is done is taken off the shared row at once; of more, an eighth at a time."""
_RECORD = b"i"
_APPLIED = b"a"  # number of the root
_NUMBER_BYTES = 4


class PendingImport(msgspec.Struct, frozen=True, array_like=True):
    """An import that is decided, and the roots that have not yet written their part.

    Of very many some may have: see `import_actor.EXACT_ROOTS`.
    """

    staging: str
    roots: list[str]


class FindUnderway(Query[list[PendingImport]], frozen=True, kw_only=True):
    """Find the imports that are under way, of anybody; internal."""

    def run(self, reader: IndexReader) -> Slices[list[PendingImport]]:
        """Read the rows."""
        found: list[PendingImport] = []
        for row in reader.rows(INDEX, PendingImport, prefix=_UNDERWAY):
            found.append(row.value)
            if reader.should_yield():
                yield
        return found


def put_pending(context: Context, underway: PendingImport) -> None:
    """Stage which roots an import is still to be written to; for its actor."""
    if underway.roots:
        context.put_row(INDEX, _UNDERWAY, underway)
    else:
        context.delete_row(INDEX, _UNDERWAY)


async def wait_written(
    runtime: RuntimeClient, principal: Principal, prefix: str | None, roots: Iterable[str]
) -> list[str]:
    """Wait until the imports that an export would read a part of are written, as long as they go on.

    Args:
        runtime: Where the actors are.
        principal: Who exports: where it may write it waits also if there was nothing before.
        prefix: Below which leading segments.
        roots: Where it finds something now.

    Returns:
        The roots where one is not.
    """
    known, before = set(roots), None
    deadline = trio.current_time() + PATIENCE_SECONDS
    while True:
        now: dict[str, int] = {}
        for underway in await runtime.query(FindUnderway(), principal=principal):
            for root in underway.roots:
                is_below = prefix is None or names.is_below(root, names.root_of(prefix))
                if root in known or (is_below and policy.may_write_namespace(principal, root)):
                    asked = ReadStaged(staging=underway.staging)
                    staged = await runtime.ask(names.memory_address(root), asked, principal=principal)
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
        attempt: When it was begun; no two attempts have the same.
        applied: What came of the lines, by root, as 0.1.0 kept it; today each root has a record of its own.
        batches: How many batches each root has, once it is decided.
        pause: How long until the roots are urged again, once it is decided.
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
        """Read where it is. It is kept in memory, so that a root that is done costs one record of its own."""
        self._found = context.get(_RECORD, Import)
        self._applied: dict[str, dict[str, int]] = {}
        self._listed: int | None = None  # how many roots the shared row has, once it was written
        if self._found is not None:
            self._applied.update(self._found.applied)
            for key, counts in context.scan(dict[str, int], prefix=_APPLIED):
                self._applied[self._found.roots[int.from_bytes(key[1:])]] = counts

    @handles(requests.BeginImport)
    def begin(self, request: requests.BeginImport, context: Context) -> requests.ImportProgress:
        """Begin, or say how far it is; what is done is begun anew, and what is decided urged on."""
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
        """Let everything that is staged take effect."""
        found = self._read(context)
        if found is None or self._staging(context, found) != request.staging:
            raise auth_errors.invalid("staging", "staging: this import was given up; begin it again")
        return self._progress(context, self._decided(context, found, request.batches))

    @handles(requests.ReleaseImport)
    def release(self, told: requests.ReleaseImport, context: Context) -> None:
        """Let everything that is staged take effect, since what it belongs to has."""
        context.use_reserve()
        found = self._found
        if found is not None and self._staging(context, found) == told.staging:
            self._decided(context, found, told.batches)

    @handles(requests.ReadImport)
    def read(self, _: requests.ReadImport, context: Context) -> requests.ImportProgress | None:
        """Answer where it is."""
        found = self._read(context)
        return None if found is None else self._progress(context, found)

    @handles(requests.UrgeImport)
    def urge(self, _: requests.UrgeImport, context: Context) -> None:
        """Tell the roots again: one of them failed, or there was no room, or it is just not done."""
        context.use_reserve()
        found = self._found
        if found is not None and found.state == "decided":
            self._urge(context, found)

    @handles(Restate)
    def restate(self, _: Restate, context: Context) -> None:
        """Go on with what is decided: the row that says so may be lost, and what the roots were told."""
        self.urge(requests.UrgeImport(), context)

    @handles(requests.LinesStaged)
    def staged(self, told: requests.LinesStaged, context: Context) -> None:
        """Have lines removed that came too late to be decided about."""
        context.use_reserve()
        found = self._found
        is_wanted = (
            found is not None
            and self._staging(context, found) == told.staging
            and found.state != "done"
            and told.root not in self._applied
        )
        if not is_wanted:
            context.tell(names.memory_address(told.root), requests.DropLines(staging=told.staging))

    @handles(requests.ImportApplied)
    def applied(self, told: requests.ImportApplied, context: Context) -> None:
        """Record that a root is done."""
        context.use_reserve()
        found = self._found
        if found is None or self._staging(context, found) != told.staging or told.root in self._applied:
            return
        self._applied[told.root] = told.counts
        number = bisect_left(found.roots, told.root)
        context.put(_APPLIED + number.to_bytes(_NUMBER_BYTES), told.counts)
        left = len(found.roots) - len(self._applied)
        if self._listed is None or left <= EXACT_ROOTS or left <= self._listed * 7 // 8:
            self._note(context, found)
        if not left:
            self._put(context, msgspec.structs.replace(found, state="done"))
            context.set_timer(TIMER, context.now + KEPT_FOR, requests.GiveUpImport())
        audience = policy.own_audience(found.principal.agent_id)
        context.publish(topic_of(context.address.key), policy.ChangeLabel(audience))

    @handles(requests.GiveUpImport)
    def give_up(self, _: requests.GiveUpImport, context: Context) -> None:
        """Forget an import that was abandoned or is done."""
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
        """Forget a person's import, and what of it is not written yet."""
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
        """Stage that nothing is known of what came of the lines."""
        for key, _ in list(context.scan(msgspec.Raw, prefix=_APPLIED)):
            context.delete(key)
        self._applied = {}
        self._listed = None

    def _decided(self, context: Context, found: Import, batches: dict[str, int]) -> Import:
        if found.state != "staging":
            return found
        found = msgspec.structs.replace(found, state="decided", batches=batches)
        self._urge(context, found)
        decided = audit_record.row(found.principal, "decide_import", None, {"roots": found.roots})
        context.append(audit_record.JOURNAL, decided)
        return found

    def _urge(self, context: Context, found: Import) -> None:
        """Tell the roots to apply what they have, and see to it that they are told again.

        One that is about it already does nothing twice.
        """
        for root in found.roots:
            if root not in self._applied:
                told = requests.ApplyLines(staging=self._staging(context, found), batches=found.batches[root])
                context.tell(names.memory_address(root), told)
        self._note(context, found)
        context.set_timer(TIMER, context.now + found.pause, requests.UrgeImport())
        self._put(context, msgspec.structs.replace(found, pause=min(2 * found.pause, LONGEST_PAUSE)))

    def _note(self, context: Context, found: Import) -> None:
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
            applied=dict(self._applied),  # what is told does not change any more
        )
