"""The session actor: the table of handlers."""

from __future__ import annotations

from typing import ClassVar

from greenroom.actors.core.erasure import EraseFrom
from greenroom.actors.core.resources import resources
from greenroom.actors.core.validation.types import StatusOfSession
from greenroom.actors.search.embedding.vector_messages import StoreVectors, TextsToEmbed
from greenroom.actors.sessions.handlers import (
    erase_person,
    events,
    handover,
    hook_turns,
    lifecycle,
    passport,
    reads,
    search,
    sharing,
    views,
    work_context,
    writes,
)
from greenroom.actors.sessions.requests import hook_messages, payloads, requests, session_context
from greenroom.actors.sessions.requests.handover import (
    ContinueSession,
    HoldSession,
    LeaveSession,
    LookAtWork,
    Move,
    ReadToContinue,
    ReopenSession,
    StartHere,
    SweepSession,
    TellEarlier,
)
from greenroom.actors.sessions.requests.session_views import ReadTranscript
from greenroom.actors.sessions.session import Session
from greenroom.runtime import Restate


class SessionActor(Session):
    """A session with the functions that handle its messages."""

    handlers: ClassVar = {
        # lifecycle
        requests.CreateSession: lifecycle.create,
        requests.UpdateSession: lifecycle.update,
        requests.RenameSession: lifecycle.rename,
        StatusOfSession: lifecycle.status,
        session_context.EndSession: lifecycle.end,
        ReopenSession: handover.reopen,
        requests.DeleteSession: lifecycle.delete,
        LeaveSession: handover.leave,
        SweepSession: handover.sweep,
        Restate: lifecycle.restate,
        EraseFrom: erase_person.erase,
        # messages and events
        requests.AddMessage: writes.add_message,
        requests.AppendEvent: writes.append_event,
        requests.AppendEvents: writes.append_events,
        requests.RemoveEvents: writes.remove_events,
        requests.GetSession: reads.read,
        requests.GetMessages: reads.get_messages,
        requests.SearchBySender: reads.search_by_sender,
        requests.SearchByTimerange: reads.search_by_timerange,
        requests.MeasureSession: reads.measure,
        requests.TakeSnapshot: reads.snapshot,
        requests.GetEvents: events.get_events,
        requests.GetNewestEvents: events.newest_events,
        requests.GetState: reads.get_state,
        ReadTranscript: views.read_transcript,
        resources.ReadResource: views.read_resource,
        # searches
        requests.SearchContext: search.search_by_words,
        requests.FindMessages: search.search,
        requests.ExplainMessages: search.explain,
        TextsToEmbed: search.find_texts,
        StoreVectors: search.store_vectors,
        # work context
        session_context.RecordContext: work_context.record,
        session_context.NoteContext: work_context.note,
        session_context.GetSessionContext: work_context.read,
        session_context.ListDecisions: work_context.list_decisions,
        TellEarlier: work_context.write_earlier,
        # hand-over between clients
        StartHere: handover.start,
        LookAtWork: handover.look_at_work,
        Move: handover.move,
        HoldSession: handover.hold,
        ContinueSession: handover.continue_session,
        ReadToContinue: handover.read_to_continue,
        # passports
        payloads.ExportHead: passport.export_head,
        payloads.ExportMessages: passport.export_messages,
        payloads.FindAttempt: passport.find_attempt,
        payloads.FindExported: passport.find_exported,
        payloads.StageMessages: passport.stage,
        payloads.DropStaged: passport.drop_staged,
        payloads.MakeRestored: passport.restore,
        # hooks
        hook_messages.KeepTurns: hook_turns.keep_turns,
        hook_messages.ReadOwnWork: hook_turns.read_own_work,
        hook_messages.LookAtKept: hook_turns.look_at_kept,
        # state that sessions share
        requests.CreateSharing: sharing.create_sharing,
        requests.AppendSharing: sharing.append_sharing,
        requests.CheckShared: sharing.check_shared,
        requests.ChangeShared: sharing.change_shared,
    }
