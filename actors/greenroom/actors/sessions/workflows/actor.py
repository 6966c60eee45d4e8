"""The workflow actor: the steps of one user in one project.

Its key is the owner, a slash and the project. It caches the timeline from its first message on, and the
patterns until the next step.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import segment
from greenroom.actors.core.auth.scopes import SESSIONS
from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.actors.core.resources.resource_uris import pattern_of_uri, project_topic, workflow_uri
from greenroom.actors.core.resources.resources import ReadResource, ResourceInfo
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.sessions.workflows import records, requests
from greenroom.actors.sessions.workflows.patterns import Match, Pattern, match_patterns, mine
from greenroom.actors.sessions.workflows.prediction import Prediction, predict
from greenroom.actors.sessions.workflows.records import PatternRow, StoredCheckpoint, StoredStep, WorkflowRow
from greenroom.actors.sessions.workflows.requests import PatternResource
from greenroom.actors.sessions.workflows.shapes import Shape, Word, build_shape
from greenroom.actors.sessions.workflows.timeline import MOST_CONTEXT, MOST_STEPS, Step, Timeline
from greenroom.runtime import (
    Actor,
    Context,
    IndexReader,
    Procedure,
    Refusal,
    Restate,
    Slices,
    handles,
    pass_over,
)

INDEX: Final = "workflows"
ROW: Final = b"w"
LISTED: Final = 20
"""Patterns in listings."""
LEAST_BETWEEN_LISTINGS: Final = 20
"""Patterns are mined and listed again after this many steps, or a tenth of all steps if that is more."""
_ERASED_AT_ONCE: Final = 1_000
_WORDS: Final = "greenroom/workflow/word"
_WORD_BYTES: Final = 8
_DIGITS: Final = 4


class WorkflowActor(Actor):
    """The steps of one owner and project."""

    kind = requests.KIND
    names = staticmethod(records.names_in)

    def __init__(self) -> None:
        self._timeline: Timeline | None = None
        self._patterns: list[Pattern] | None = None
        self._unlisted = 0

    def activate(self, context: Context) -> None:  # noqa: ARG002 - the first message reads the store, in slices
        """Drop the cached timeline and patterns."""
        self._timeline = self._patterns = None
        self._unlisted = 0

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        steps = 0 if self._timeline is None else self._timeline.resident_bytes()
        return self.size + steps + 1_000 * len(self._patterns or ())

    @handles(requests.RecordStep)
    def record(self, request: requests.RecordStep, context: Context) -> Slices[requests.StepRecorded]:
        """Record a step that a client reports."""
        _check(context)
        timeline = yield from self._load(context)
        shape = self._shape(context, timeline, request.command, passed=request.passed)
        step = Step(
            timeline.newest + 1,
            shape.text,
            session=request.thread,
            passed=request.passed,
            at=context.now,
            duration_ms=request.duration_ms,
            words=[_digest(context, word) for word in shape.words],
        )
        yield from self._add(context, timeline, step, request.project_id)
        audit_record.record(context, request.audit_action, request.session_id, passed=request.passed)
        return requests.StepRecorded(
            command=step.command,
            project_id=request.project_id,
            steps=len(timeline),
            recorded_at=to_datetime(context.now),
        )

    @handles(requests.NoteStep)
    def note(self, request: requests.NoteStep, context: Context) -> Slices[None]:
        """Record a finished tool call; a tool's name needs no shape."""
        _check(context)
        timeline = yield from self._load(context)
        step = Step(
            timeline.newest + 1,
            request.tool,
            session=request.thread,
            passed=request.passed,
            at=context.now,
            duration_ms=request.duration_ms,
        )
        yield from self._add(context, timeline, step, request.project_id)

    @handles(requests.FindPatterns)
    def find(self, request: requests.FindPatterns, context: Context) -> Slices[requests.PatternsFound]:
        """Return the patterns that continue a context."""
        _check(context)
        timeline = yield from self._load(context)
        after = self._shapes(context, timeline, request.context)
        patterns = yield from self._mine(context, timeline)
        found = match_patterns(patterns, after, request.limit)
        audit_record.record_read(context, context.principal, request.audit_action, None, results=len(found))
        return requests.PatternsFound(
            patterns=[_view(context, match) for match in found],
            total_found=len(found),
            context=after,
            steps=len(timeline),
        )

    @handles(requests.SuggestActions)
    def suggest(
        self, request: requests.SuggestActions, context: Context
    ) -> Slices[requests.ActionsSuggested]:
        """Return likely next commands."""
        _check(context)
        timeline = yield from self._load(context)
        if request.context is None:
            after = timeline.last_of(request.thread)
        else:
            after = self._shapes(context, timeline, request.context)
        found = yield from predict(timeline, after, context.now)
        suggestions = [_action(timeline, each, after) for each in found[: request.limit]]
        audit_record.record_read(
            context, context.principal, request.audit_action, None, results=len(suggestions)
        )
        return requests.ActionsSuggested(suggestions=suggestions, context=after, steps=len(timeline))

    @handles(requests.KeepCheckpoint)
    def keep(self, request: requests.KeepCheckpoint, context: Context) -> Slices[requests.CheckpointKept]:
        """Save a checkpoint, or restore one."""
        _check(context)
        key = records.checkpoint_key(request.name)
        stored = context.get(key, StoredCheckpoint)
        if request.state is None:
            if stored is None:
                raise _checkpoint_not_found(context, request.name)
            audit_record.record_read(context, context.principal, request.audit_action, stored.session)
            return _checkpoint_reply("restored", request.name, stored)
        if (size := len(bytes(request.state))) > requests.MAX_STATE_BYTES:
            raise auth_errors.too_large("state", size, requests.MAX_STATE_BYTES)
        most = requests.MOST_CHECKPOINTS
        if stored is None and sum(1 for _ in context.keys(records.CHECKPOINTS)) >= most:
            raise Refusal(
                "QUOTA_EXCEEDED",
                f"there are {most} checkpoints, which is the limit; use an existing name",
                limit=most,
            )
        timeline = yield from self._load(context)
        steps = timeline.last_of(request.thread)
        agent = context.principal.agent_id
        stored = StoredCheckpoint(bytes(request.state), context.now, agent, request.session_id, steps)
        context.put(key, stored)
        if not timeline:
            self._list(context, [])
        audit_record.record(context, request.audit_action, request.session_id, bytes=size)
        return _checkpoint_reply("saved", request.name, stored)

    @handles(ReadResource)
    def read(self, request: ReadResource, context: Context) -> Slices[PatternResource]:
        """Return one pattern, if the caller may see it."""
        named = pattern_of_uri(request.uri)
        if named is None or not policy.may_see_workflows(context.principal, context.address.key):
            raise auth_errors.denial(auth_errors.resource_not_found(request.uri))
        timeline = yield from self._load(context)
        patterns = yield from self._mine(context, timeline)
        found = next((pattern for pattern in patterns if pattern.id == named[1]), None)
        if found is None:
            raise auth_errors.resource_not_found(request.uri)
        audit_record.record_resource_read(context, occurrences=found.times)
        done = len(found.commands) - 1
        view = _view(context, Match(found, done, found.chances[done - 1]))
        info = ResourceInfo(
            uri=request.uri, reader=context.principal.agent_id, last_updated=to_datetime(found.last_seen)
        )
        return PatternResource(pattern=view, resource_info=info)

    @handles(Restate)
    def restate(self, _restate: Restate, context: Context) -> Slices[None]:
        """Write the index row again."""
        context.use_reserve()
        timeline = yield from self._load(context)
        self._list(context, (yield from self._mine(context, timeline)))

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Erase a person's steps and checkpoints."""
        if not request.person.has_root(context.address.key.partition("/")[0]):
            return ErasedPart(counts={})
        keys = [key for key, _ in context.scan(msgspec.Raw, on_damage=pass_over)]
        left = 0 if request.dry_run else max(0, len(keys) - context.most_rows(_ERASED_AT_ONCE))
        keys = keys[: len(keys) - left]
        counts = {
            "workflow_steps": sum(key.startswith(records.STEPS) for key in keys),
            "workflow_checkpoints": sum(key.startswith(records.CHECKPOINTS) for key in keys),
        }
        if keys and not request.dry_run:
            context.use_reserve()
            if not left:
                context.delete_row(INDEX, ROW)
            for key in keys:
                context.delete(key)
                yield
            self._timeline = self._patterns = None
        found = {kind: count for kind, count in counts.items() if count}
        return ErasedPart(counts=found, remaining=left > 0)

    def _load(self, context: Context) -> Slices[Timeline]:
        if self._timeline is None:
            timeline = Timeline()
            for key, record in context.scan(StoredStep, prefix=records.STEPS):
                timeline.add(records.from_record(key, record))
                yield
            self._timeline = timeline
        return self._timeline

    def _mine(self, context: Context, timeline: Timeline) -> Slices[list[Pattern]]:
        if self._patterns is None:
            self._patterns = yield from mine(timeline, context.now)
        return self._patterns

    def _add(self, context: Context, timeline: Timeline, step: Step, project_id: str | None) -> Slices[None]:
        is_first = not timeline
        context.put(records.step_key(step.number), records.to_record(step))
        timeline.add(step)
        self._patterns = None
        while len(timeline) > MOST_STEPS:
            context.delete(records.step_key(timeline.forget_oldest().number))
        self._unlisted += 1
        if self._unlisted >= max(LEAST_BETWEEN_LISTINGS, len(timeline) // 10):
            self._unlisted = 0
            patterns = yield from self._mine(context, timeline)
            label = policy.workflow_label(context.principal, project_id)
            for row in self._list(context, patterns):
                context.publish(workflow_uri(context.address.key.partition("/")[2], row.id), label)
            if project_id is not None:
                context.publish(project_topic(segment(project_id), SESSIONS), label)
        elif is_first:
            self._list(context, [])

    def _list(self, context: Context, patterns: list[Pattern]) -> list[PatternRow]:
        rows = [
            PatternRow(match.pattern.id, list(match.pattern.commands), match.pattern.last_seen)
            for match in match_patterns(patterns, (), LISTED)
        ]
        owner, _, project = context.address.key.partition("/")
        context.put_row(INDEX, ROW, WorkflowRow(owner, project, rows))
        return rows

    def _shape(self, context: Context, timeline: Timeline, command: str, *, passed: bool = True) -> Shape:
        def is_frequent(word: Word) -> bool:
            return timeline.is_frequent(_digest(context, word))

        return build_shape(command, is_frequent, passed=passed)

    def _shapes(self, context: Context, timeline: Timeline, commands: list[str]) -> list[str]:
        return [self._shape(context, timeline, command).text for command in commands[-MOST_CONTEXT:]]


class VisiblePatterns(Procedure[list[tuple[WorkflowRow, PatternRow]]], frozen=True, kw_only=True):
    """List the visible patterns, ordered by project; internal."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> Slices[list[tuple[WorkflowRow, PatternRow]]]:
        """Read all rows."""
        found: list[tuple[WorkflowRow, PatternRow]] = []
        for row in reader.rows(INDEX, WorkflowRow):
            if policy.may_see_workflows(reader.principal, row.address.key):
                found += [(row.value, pattern) for pattern in row.value.patterns]
            yield
        return sorted(found, key=lambda each: each[0].project)


def _digest(context: Context, word: Word) -> bytes:
    """Return the keyed digest of a word, which hides the word."""
    key = context.derive(_WORDS)
    return hmac.digest(key, "\0".join(word).encode(), hashlib.sha256)[:_WORD_BYTES]


def _check(context: Context) -> None:
    """Refuse a sender who may not see the steps."""
    if not policy.may_see_workflows(context.principal, context.address.key):
        raise auth_errors.permission_denied("project_id", "project_id: these are another user's steps")


def _checkpoint_not_found(context: Context, name: str) -> Refusal:
    """Return the refusal for an unknown checkpoint, with the known names."""
    there = [key[1:].decode() for key, _ in context.scan(msgspec.Raw, prefix=records.CHECKPOINTS)]
    known = ", ".join(there[:10]) if there else "none yet"
    return Refusal(
        "CHECKPOINT_NOT_FOUND",
        f"there is no checkpoint {name!r} here; there are: {known}. To save one, give its state",
        name=name,
    )


def _checkpoint_reply(outcome: str, name: str, stored: StoredCheckpoint) -> requests.CheckpointKept:
    return requests.CheckpointKept(
        outcome="saved" if outcome == "saved" else "restored",
        name=name,
        state=msgspec.Raw(stored.state),
        steps=stored.steps,
        session_id=stored.session,
        saved_at=to_datetime(stored.at),
        saved_by=stored.agent,
    )


def _view(context: Context, match: Match) -> requests.WorkflowPattern:
    pattern = match.pattern
    project = context.address.key.partition("/")[2]
    return requests.WorkflowPattern(
        pattern_id=f"{project}.{pattern.id}" if project else pattern.id,
        commands=list(pattern.commands),
        done=match.done,
        confidence=round(match.confidence, _DIGITS),
        success_rate=round(pattern.success_rate, _DIGITS),
        average_duration_ms=None if pattern.duration_ms is None else round(pattern.duration_ms, 3),
        occurrences=pattern.times,
        last_seen=to_datetime(pattern.last_seen),
    )


def _action(timeline: Timeline, found: Prediction, after: list[str]) -> requests.NextAction:
    steps = timeline.of(found.command)
    durations = [step.duration_ms for step in steps if step.duration_ms is not None]
    return requests.NextAction(
        command=found.command,
        confidence=round(found.probability, _DIGITS),
        success_rate=round(timeline.success_rate(found.command), _DIGITS),
        average_duration_ms=round(sum(durations) / len(durations), 3) if durations else None,
        last_seen=to_datetime(steps[-1].at),
        after=after[len(after) - found.order :],
    )
