"""Idempotent requests: a repeat gets the reply to the first request.

The reply is stored in the commit of its effects, so a crash leaves both or neither. A repeat that arrives
during the first request waits for its reply.

The same holds for relayed messages, without a key of the client: an attached process sends unanswered
messages again when its connection or the owner ends. Only replies of messages with effects are stored, until
the relay confirms them.
"""

from __future__ import annotations

import hashlib
from enum import Enum

import msgspec
import outcome

from greenroom.runtime.actor.message import EncodedReply, decode_reply, encode_reply, reply_type
from greenroom.runtime.base import errors
from greenroom.runtime.kernel.mailbox import Envelope, Idempotency, Result
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.environment import INDEXES
from greenroom.runtime.lmdb.write_batch import Changes
from greenroom.runtime.store.store import Store

TAG_BYTES = 16


class Admission(Enum):
    """The treatment of a request without a stored reply."""

    FIRST = "handle it"
    REPEAT = "wait for the reply to the first request"


class IdempotencyTable:
    """Look up repeats and stage first replies."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._under_way: dict[bytes, tuple[Envelope, list[Envelope]]] = {}

    def admit(self, envelope: Envelope) -> Result | Admission:
        """Return the stored reply if the request is a repeat; otherwise, how to treat it."""
        tag, request = self._tag_of(envelope), envelope.idempotency
        first, repeats = self._under_way.get(tag, (None, []))
        if first is envelope:
            return Admission.FIRST  # it is handled again
        if first is not None:
            if first.idempotency != request:
                assert request is not None, "a relayed message and a keyed one have tags of other lengths"
                return outcome.Error(_conflict(request))
            repeats.append(envelope)
            return Admission.REPEAT
        try:
            answer = self._answer_to_relayed(envelope) if request is None else self._answer(envelope, tag)
        except errors.GreenroomError as error:
            return outcome.Error(error)
        if answer is None:
            self._under_way[tag] = (envelope, [])
            return Admission.FIRST
        return answer

    def _answer(self, envelope: Envelope, tag: bytes) -> Result | None:
        request = envelope.idempotency
        assert request is not None
        payload = self._store.get(INDEXES, keys.ANSWERS + tag)
        if payload is None:
            return None
        answer = keys.decode(payload, keys.StoredAnswer)
        if answer.fingerprint != request.fingerprint:
            return outcome.Error(_conflict(request))
        return _outcome(answer, envelope)

    def _answer_to_relayed(self, envelope: Envelope) -> Result | None:
        assert envelope.relay_key is not None
        payload = self._store.get(INDEXES, envelope.relay_key) if envelope.is_retry else None
        if payload is None:
            return None
        answer = keys.decode(payload, keys.RelayedAnswer)
        envelope.encoded = EncodedReply(answer.body, answer.variant)
        return outcome.Value(decode_reply(type(envelope.message), envelope.encoded))

    def rows(self, envelope: Envelope, result: Result, now: int) -> Changes:
        """Return the rows that store ``result`` as the first reply, at ``now`` (microseconds)."""
        request = envelope.idempotency
        if request is None:
            assert envelope.relay_key is not None
            if isinstance(result, outcome.Error):
                return {}  # without effects a repeat does no harm
            envelope.encoded = encode_reply(type(envelope.message), result.value)
            reply = keys.RelayedAnswer(now, *envelope.encoded)
            return {envelope.relay_key: keys.encode(reply)}
        tag = self._tag(request)
        if isinstance(result, outcome.Error):
            refusal = result.error
            assert isinstance(refusal, errors.Refusal)
            details = keys.encode_json(refusal.details)
            answer = keys.StoredAnswer(request.fingerprint, details, refusal.code, refusal.sentence)
        else:
            answer = keys.StoredAnswer(request.fingerprint, keys.encode_json(result.value))
        when = keys.index_prefix(keys.ANSWER_TIMES) + keys.sortable(now.to_bytes(8)) + tag
        return {keys.ANSWERS + tag: keys.encode(answer), when: b""}

    def finish(self, envelope: Envelope) -> list[Envelope]:
        """Remove ``envelope``, which has ended; return the repeats that wait for its reply."""
        tag = self._tag_of(envelope)
        first, repeats = self._under_way.get(tag, (None, []))
        if first is not envelope:
            return []
        del self._under_way[tag]
        return repeats

    def forget(self, envelope: Envelope) -> None:
        """Store no reply for a pending relayed message: its relay will not repeat it."""
        row, envelope.relay_key = envelope.relay_key, None
        if row is not None and self._under_way.get(row, (None,))[0] is envelope:
            del self._under_way[row]

    def repeats(self) -> list[Envelope]:
        """Return all repeats that wait."""
        return [repeat for _, repeats in self._under_way.values() for repeat in repeats]

    def _tag_of(self, envelope: Envelope) -> bytes:
        tag = envelope.relay_key if envelope.idempotency is None else self._tag(envelope.idempotency)
        assert tag is not None
        return tag

    def _tag(self, request: Idempotency) -> bytes:
        name = f"{request.scope}\0{request.key}".encode()
        tag = hashlib.blake2b(name, digest_size=TAG_BYTES).digest()
        return tag if self._store.blinder is None else self._store.blinder.tag(tag)


def expired_answer(time_key: bytes) -> bytes:
    """Return the key of the reply that the time index has at ``time_key``."""
    return keys.ANSWERS + time_key[-TAG_BYTES:]


def _conflict(request: Idempotency) -> errors.IdempotencyConflictError:
    return errors.IdempotencyConflictError(
        f"the idempotency key {request.key!r} was used before with other arguments; "
        "use a new key for a new request"
    )


def _outcome(answer: keys.StoredAnswer, envelope: Envelope) -> Result:
    if answer.refusal:
        return outcome.Error(
            errors.Refusal(answer.refusal, answer.sentence, **msgspec.json.decode(answer.body))
        )
    try:
        return outcome.Value(msgspec.json.decode(answer.body, type=reply_type(type(envelope.message))))
    except (msgspec.DecodeError, TypeError) as error:
        failure = errors.ActorFailedError(f"the first reply no longer fits the request: {error}")
        failure.__cause__ = error
        return outcome.Error(failure)
