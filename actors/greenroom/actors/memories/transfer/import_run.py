"""The run of an import: check and stage everything, decide, wait until written.

Nothing is staged before all lines are checked, and nothing takes effect before all are staged. The process
may die at any moment: a new run with the same source continues. In files of other programs, the lines that
cannot be imported are left out, and the others are one import.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from hashlib import blake2b, sha256
from typing import Any, Final, Literal, NamedTuple

import msgspec
import trio

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.audit.actor import record_action
from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth.policy import ChangeLabel, may_hear
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.memories.requests import transfer as requests
from greenroom.actors.memories.requests.import_lines import (
    CheckedLine,
    LineError,
    check_line,
    check_namespace,
)
from greenroom.actors.memories.requests.transfer import OnConflict
from greenroom.actors.memories.storage.directory import NewRoots
from greenroom.actors.memories.storage.quota import charge_roots
from greenroom.actors.memories.transfer.import_actor import EXACT_ROOTS
from greenroom.actors.memories.transfer.normalize import Remark, SourceError, SourceLine
from greenroom.actors.memories.transfer.sources import Source
from greenroom.actors.memories.transfer.survey import CHECKED_AT_ONCE, MOST_PROBLEMS, Survey
from greenroom.actors.memories.writing.import_staging import WRITTEN, digest_with, topic_of
from greenroom.actors.search.embedding.embedding_service import GetEmbedding
from greenroom.actors.search.embedding.rows import INDEX, WAITING, Waiting
from greenroom.runtime import (
    ActorFailedError,
    Address,
    IndexReader,
    Procedure,
    Refusal,
    RuntimeClient,
    Slices,
    StoreError,
)

Stage = Literal["checking", "staging", "importing", "embedding"]
Progress = Callable[[Stage, int, int], None]
"""Called with the stage, the amount done, and the total."""

BATCH_LINES: Final = 200
BATCH_BYTES: Final = 262_144
"""A batch is written in one turn of its actor, so its size limits how long others wait."""
LOOK_SECONDS: Final = 5.0
EMBEDDING_LOOK_SECONDS: Final = 0.2
_BATCHING: Final = b"200 262144"
"""The rules of batching are part of an import's id, so a program with other rules begins anew."""


class ImportRefusedError(Exception):
    """Lines cannot be imported, so nothing was imported.

    Attributes:
        problems: The first problems, each with its place.
        more: Whether there may be more problems.
    """

    def __init__(self, problems: list[LineError], *, more: bool) -> None:
        super().__init__("; ".join(f"{problem.place}: {problem.sentence}" for problem in problems))
        self.problems = problems
        self.more = more


class Imported(NamedTuple):
    """The result of an import.

    Attributes:
        lines: The number of memories in the source.
        counts: The number of memories by outcome.
        namespaces: The number of memories by namespace.
        digest: The SHA-256 of the lines.
        resumed: Whether it continued an earlier attempt.
        embedded: Whether all have vectors; None if it did not wait for vectors, or no vectors are wanted.
        left_out: The first `MOST_NAMED` records that cannot be imported, if the others were.
        remarks: The first `MOST_NAMED` warnings about imported lines.
    """

    lines: int
    counts: dict[str, int]
    namespaces: dict[str, int]
    digest: str
    resumed: bool
    embedded: bool | None
    left_out: list[LineError]
    left_out_count: int
    remarks: list[Remark]


class UnembeddedRoots(Procedure[int], frozen=True, kw_only=True):
    """Count the given roots with memories that wait for vectors; internal."""

    runs = "snapshot"

    roots: list[str]

    def run(self, reader: IndexReader) -> Slices[int]:
        """Read the rows of waiting actors."""
        wanted = {names.memory_address(root) for root in self.roots}
        count = 0
        for row in reader.rows(INDEX, Waiting, prefix=WAITING):
            count += row.address in wanted
            yield
        return count


class Importer:
    """One import.

    Args:
        runtime: The client of the runtime.
        principal: The importing principal, who owns the imported memories.
        source: The source.
        namespace: The namespace of lines that name none; None for the user's own.
        on_conflict: What to do if a key exists.
        is_strict: Whether one line that cannot be imported refuses the whole source, as always in JSON Lines.
        progress: Called with the progress.

    Raises:
        Refusal: ``namespace`` is not a namespace.
    """

    def __init__(
        self,
        runtime: RuntimeClient,
        principal: Principal,
        source: Source,
        *,
        namespace: str | None = None,
        on_conflict: OnConflict = "skip",
        is_strict: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self._runtime = runtime
        self._principal = principal
        self._source = source
        self._namespace = check_namespace(namespace or names.user_namespace(principal))
        self._on_conflict: OnConflict = on_conflict
        self._is_strict = is_strict or source.is_own
        self._progress = progress or (lambda _stage, _done, _total: None)

    async def run(self, *, dry_run: bool = False, wait_embedded: bool = True) -> Imported:
        """Import all lines that can be imported, or nothing.

        Args:
            dry_run: Only count the outcomes.
            wait_embedded: Whether to wait until all imported memories have vectors.

        Raises:
            ImportRefusedError: Lines cannot be imported, and the source is imported whole or not at all.
            SourceError: The source has another format.
            Refusal: An actor refuses a namespace, or lacks space.
            GreenroomError: As `RuntimeClient.ask`.
        """
        survey = await self._check()
        digest = survey.digest.hexdigest()
        if dry_run or not survey.lines:
            counts = await self._try(survey) if survey.lines else {}
            return _to_result(survey, counts, digest, resumed=False, embedded=None)
        await self._charge(survey)
        address = Address(requests.IMPORT, self._import_id(survey))
        begun = await self._ask(address, requests.BeginImport(roots=sorted(survey.roots)))
        resumed = begun.state != "staging"
        if begun.state == "staging":
            begun, batches, resumed = await self._stage_whole(survey, address, begun)
            if begun.state == "staging":
                await self._ask(address, requests.DecideImport(staging=begun.staging, batches=batches))
        applied = await self._wait_applied(survey.roots, address)
        assert applied is not None, "a decided import stays until long after it is done"
        counts = dict(sum(map(Counter, applied.applied.values()), Counter[str]()))
        embedded = await self._wait_embedded(survey) if wait_embedded and counts.keys() & WRITTEN else None
        return _to_result(survey, counts, digest, resumed=resumed, embedded=embedded)

    async def stage(self) -> requests.ReleaseImport | None:
        """Check and stage everything, and leave the decision to another actor; raises as `run`.

        Returns:
            The message to send to the import's actor, in the commit that decides; None without lines.
        """
        survey = await self._check()
        if not survey.lines:
            return None
        await self._charge(survey)
        address = Address(requests.IMPORT, self._import_id(survey))
        begun = await self._ask(address, requests.BeginImport(roots=sorted(survey.roots)))
        batches: dict[str, int] = {}
        if begun.state == "staging":
            begun, batches, _ = await self._stage_whole(survey, address, begun)
        return requests.ReleaseImport(staging=begun.staging, batches=batches)

    async def wait_written(self, staging: str) -> None:
        """Wait until a decided import is written; raises as `run`."""
        address = requests.import_address(staging)
        begun: requests.ImportProgress | None = await self._ask(address, requests.ReadImport())
        if begun is not None:
            await self._wait_applied(dict.fromkeys(begun.roots, BATCH_LINES), address, staging)

    # -- checking ----------------------------------------------------------

    async def _check(self) -> Survey:
        """Read everything once, so that no line is refused later."""
        survey = Survey(self._principal, self._namespace, is_strict=self._is_strict)
        items = self._source.read()
        passed: int | None = 0
        while passed is not None and len(survey.problems) < MOST_PROBLEMS:
            self._progress("checking", passed, self._source.size)
            passed = await trio.to_thread.run_sync(survey.check, items)
        if survey.denied is not None:
            denied = audit_record.details_of(survey.denied)
            record_action(
                self._runtime, "import_memories", principal=self._principal, outcome="denied", **denied
            )
        if survey.problems:
            raise ImportRefusedError(survey.problems, more=passed is not None)
        self._progress("checking", self._source.size, self._source.size)
        survey.end()
        return survey

    async def _charge(self, survey: Survey) -> None:
        """Charge the quota for new namespaces; if there are too many, name their first lines."""
        try:
            await charge_roots(self._runtime, self._principal, survey.roots)
        except Refusal as refusal:
            if refusal.code != "QUOTA_EXCEEDED":
                raise
            fresh = set(await self._runtime.query(NewRoots(roots=list(survey.roots))))
            over = [root for root in survey.roots if root in fresh][-refusal.details["asked"] :]
            room = max(0, refusal.details["limit"] - refusal.details["used"])
            some = over[room : room + MOST_PROBLEMS]
            problems = [LineError(survey.places[root], refusal.sentence, "namespace") for root in some]
            raise ImportRefusedError(problems, more=len(over) - room > len(some)) from refusal

    def _import_id(self, survey: Survey) -> str:
        identity = msgspec.json.encode(self._principal.identity, order="deterministic")
        parts = (identity, survey.digest.digest(), self._on_conflict.encode(), _BATCHING)
        return blake2b(b"\0".join(parts), digest_size=16).hexdigest()

    # -- staging -------------------------------------------------------------

    async def _stage_whole(
        self, survey: Survey, address: Address, begun: requests.ImportProgress
    ) -> tuple[requests.ImportProgress, dict[str, int], bool]:
        """Stage everything, unless a parallel import of the same source was decided meanwhile.

        Returns:
            The progress, the batches by root, and whether it continued an earlier attempt.
        """
        try:
            batches, resumed = await self._stage_missing(survey, begun)
        except SourceError:  # the staged lines do not belong to this id
            await self._ask(address, requests.GiveUpImport())
            raise
        except Refusal as refusal:
            found = await self._ask(address, requests.ReadImport())
            if refusal.code != requests.NOT_STAGING or found is None or found.state == "staging":
                raise
            return found, {}, True
        return begun, batches, resumed

    async def _stage_missing(
        self, survey: Survey, begun: requests.ImportProgress
    ) -> tuple[dict[str, int], bool]:
        """Stage the missing batches; return the number of batches by root, and whether some existed."""
        there: dict[str, requests.Staged] = {}
        for root in begun.roots:
            read = requests.ReadStaged(staging=begun.staging)
            there[root] = await self._ask(names.memory_address(root), read)
        batches = dict.fromkeys(begun.roots, 0)
        digests = dict.fromkeys(begun.roots, b"")
        done = 0
        async with aclosing(self._batches(survey)) as pieces:
            async for root, lines in pieces:
                number = batches[root]
                batches[root] += 1
                if number < there[root].batches:
                    digests[root] = digest_with(digests[root], lines)
                else:
                    staged = requests.StageLines(
                        staging=begun.staging,
                        root=root,
                        number=number,
                        on_conflict=self._on_conflict,
                        lines=lines,
                    )
                    await self._ask(names.memory_address(root), staged)
                done += len(lines)
                self._progress("staging", done, survey.lines)
        if any(digests[root] != found.digest for root, found in there.items()):
            raise SourceError(
                "an earlier attempt at this import had staged other lines, since its source changed while it "
                "was read; they are removed and nothing was imported, begin again"
            )
        return batches, any(found.batches for found in there.values())

    async def _batches(self, survey: Survey) -> AsyncGenerator[tuple[str, list[msgspec.Raw]], None]:
        """Yield the lines again, always in the same batches, each of one root."""
        lines = survey.sound_lines(self._source.read())
        buffers: dict[str, list[msgspec.Raw]] = {}
        sizes: dict[str, int] = {}
        digest = sha256()
        while checked := await trio.to_thread.run_sync(self._read_some, lines):
            for line in checked:
                digest.update(line.raw)
                digest.update(b"\n")
                buffer = buffers.setdefault(line.root, [])
                size = sizes.get(line.root, 0)
                if buffer and (len(buffer) == BATCH_LINES or size + len(line.raw) > BATCH_BYTES):
                    yield line.root, buffer
                    buffer = buffers[line.root] = []
                    size = 0
                buffer.append(msgspec.Raw(line.raw))
                sizes[line.root] = size + len(line.raw)
        if digest.digest() != survey.digest.digest():
            raise SourceError("the source changed while it was read; nothing was imported, begin again")
        for root, buffer in buffers.items():
            yield root, buffer

    def _read_some(self, lines: Iterator[SourceLine]) -> list[CheckedLine]:
        try:
            return [
                check_line(made.raw, self._namespace, self._principal)
                for made in itertools.islice(lines, CHECKED_AT_ONCE)
            ]
        except Refusal as refusal:
            raise SourceError(f"the source changed while it was read: {refusal.sentence}") from None

    async def _try(self, survey: Survey) -> dict[str, int]:
        counts: Counter[str] = Counter()
        done = 0
        async with aclosing(self._batches(survey)) as pieces:
            async for root, lines in pieces:
                tried = requests.TryLines(root=root, on_conflict=self._on_conflict, lines=lines)
                counts.update(await self._ask(names.memory_address(root), tried))
                done += len(lines)
                self._progress("importing", done, survey.lines)
        return dict(counts)

    # -- waiting -------------------------------------------------------------

    async def _wait_applied(
        self, roots: Mapping[str, int], address: Address, staging: str | None = None
    ) -> requests.ImportProgress | None:
        """Wait until every root has written its part; None if the attempt is over.

        Raises:
            ActorFailedError: A root cannot write its part; the import stays decided.
        """
        lost, before = self._lost_messages(), -1
        with self._runtime.subscriber() as changes:
            changes.add(
                topic_of(address.key),
                lambda label: isinstance(label, ChangeLabel) and may_hear(self._principal, label),
            )
            while True:
                found: requests.ImportProgress | None = await self._ask(address, requests.ReadImport())
                if found is None or staging not in {None, found.staging}:  # a finished import may begin anew
                    return None
                if found.state == "done":
                    self._progress("importing", sum(roots.values()), sum(roots.values()))
                    return found
                done = await self._count_written(roots, found)
                self._progress("importing", done, sum(roots.values()))
                with trio.move_on_after(LOOK_SECONDS) as patience:  # a publication may be lost
                    await changes.next()
                if patience.cancelled_caught and done == before and self._lost_messages() > lost:
                    raise ActorFailedError(
                        "a namespace failed while it wrote its part, as the log says; it tries again in two "
                        "minutes, then ever more seldom, and when the same is imported again"
                    )
                before = done

    async def _count_written(self, roots: Mapping[str, int], found: requests.ImportProgress) -> int:
        """Return the number of written lines; with many roots, count only finished roots."""
        done = sum(lines for root, lines in roots.items() if root in found.applied)
        if len(roots) - len(found.applied) > EXACT_ROOTS:
            return done
        for root in roots.keys() - found.applied.keys():
            lines = roots[root]
            staged = await self._ask(names.memory_address(root), requests.ReadStaged(staging=found.staging))
            done += lines * staged.applied // max(1, staged.batches)
        return done

    def _lost_messages(self) -> int:
        """Return the number of dead letters, as far as known here."""
        try:
            return self._runtime.statistics().messages.dead_letters
        except StoreError:  # there is no connection to the owner yet
            return 0

    async def _wait_embedded(self, survey: Survey) -> bool | None:
        """Wait until no memory of these roots lacks vectors; return False if the embedder fails."""
        most = 0
        roots = sorted(survey.roots)
        while True:
            found = await self._runtime.query(GetEmbedding(), principal=self._principal)
            if found.state == "off":
                return None
            waiting = await self._runtime.query(UnembeddedRoots(roots=roots), principal=self._principal)
            most = max(most, found.texts_waiting)
            self._progress("embedding", most - found.texts_waiting if waiting else most, most)
            if not waiting:
                return True
            if found.state == "failing":
                return False
            await trio.sleep(EMBEDDING_LOOK_SECONDS)

    async def _ask(self, address: Address, message: Any) -> Any:
        return await self._runtime.ask(address, message, principal=self._principal)


def _to_result(
    survey: Survey, counts: dict[str, int], digest: str, *, resumed: bool, embedded: bool | None
) -> Imported:
    return Imported(
        survey.lines,
        counts,
        dict(survey.namespaces),
        digest,
        resumed,
        embedded,
        survey.left_out,
        survey.left_out_count,
        survey.remarks,
    )
