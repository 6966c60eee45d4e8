"""The kernel: a message's way from the mailbox through its handler to the reply.

Invariants:
- A reply leaves when every commit unit that it could have seen is on disk: its own, else the actor's newest.
- Requests that ran on state that could not be committed fail with the same error.
- A stored message (a tell, a timer) leaves the store in the commit that handles it.
- A read runs before its actor's turn only if `_may_read` allows it, so it overtakes no message.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import GeneratorType
from typing import Any

import outcome
import trio

from greenroom.runtime.actor.actor import Actor
from greenroom.runtime.actor.context import Context
from greenroom.runtime.actor.effects import Effects
from greenroom.runtime.actor.services import RuntimeServices
from greenroom.runtime.base import errors
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.clock import Clock
from greenroom.runtime.base.options import CURRENT, RuntimeOptions
from greenroom.runtime.base.supervision import Group, Quarantine, RestartHistory, restarted_kinds
from greenroom.runtime.kernel.activation import ActivationCache
from greenroom.runtime.kernel.callbacks import CallbackQueue
from greenroom.runtime.kernel.commit_queue import BufferedEntriesUnit, GroupCommit
from greenroom.runtime.kernel.dispatcher import Dispatcher
from greenroom.runtime.kernel.idempotency import Admission, IdempotencyTable
from greenroom.runtime.kernel.mailbox import Activation, CommitUnit, Envelope, Result, Running
from greenroom.runtime.kernel.outbox import Outbox
from greenroom.runtime.kernel.pubsub import Bus

logger = logging.getLogger(__name__)

RETRY_AFTER_MS = 100
BUSY_SECONDS = 0.25
MARKED_EVERY = 1.0
"""An actor that only reads is marked as used once in this many seconds."""
SUSPENDED_LIMIT = 256
"""The most handlers that may be suspended at once; each may hold snapshots of the store."""


class Kernel:
    """Route messages to actors, run and restart actors, and release replies.

    The runtime sets ``commits``, ``outbox``, ``bus`` and ``check_open`` (which raises why the runtime has
    ended) before the first message.
    """

    commits: GroupCommit
    outbox: Outbox
    bus: Bus
    check_open: Callable[[], None]

    def __init__(
        self,
        kinds: Mapping[str, type[Actor]],
        groups: Mapping[str, Group],
        services: RuntimeServices,
        clock: Clock,
        options: RuntimeOptions,
    ) -> None:
        self._kinds = kinds
        self._handlers = {kind: actor.handlers for kind, actor in kinds.items()}
        self._groups = groups
        self._services = services
        self._clock = clock
        self._options = options
        self._idempotency = IdempotencyTable(services.store)
        self._idle: trio.Event | None = None
        self._closed = False
        self._newest: Envelope | None = None
        self.callbacks = CallbackQueue(self.deliver, self.cancel)
        self.residents = ActivationCache(options, kinds, services.blinder)
        self.dispatcher = Dispatcher(
            clock, options.slice_seconds, self._turn, self._after_pass, services.settings
        )
        self.restart_history = RestartHistory(groups, services.random)
        self.counts: Counter[str] = Counter()
        self.waiting = 0
        self._suspended = 0
        self._reads_left = options.quantum
        self._reads_began = 0.0
        self._reads_end = inf

    # -- requests ----------------------------------------------------------

    def deliver(self, address: Address, envelope: Envelope) -> None:
        """Put a message into its actor's mailbox, or raise why it was not accepted."""
        if self._closed:
            self.check_open()
            raise errors.RuntimeClosedError("the runtime is closing and takes no more messages")
        activation = self.residents.get(address)
        handlers = self._handlers.get(address.kind, {}) if activation is None else activation.handlers
        if type(envelope.message) not in handlers:
            raise errors.UnknownKindError(
                f"no {address.kind!r} actor handles {type(envelope.message).__name__}"
            )
        if address in self.restart_history.quarantined:
            raise self.restart_history.quarantine_error(address)
        if activation is None:
            activation = self.residents.add(address, handlers)
        if activation.mailbox is not None and len(activation.mailbox) >= self._options.mailbox_limit:
            self.counts["overloaded"] += 1
            raise errors.OverloadedError(address, RETRY_AFTER_MS)
        envelope.activation = activation
        self.waiting += 1
        if envelope.message.only_reads:
            now = trio.current_time()
            if self._may_read(activation, envelope, now):
                self._read(activation, envelope, now)
                return
        if activation.mailbox is None:
            activation.mailbox = deque()
        activation.mailbox.append(envelope)
        if not activation.ready:
            self.dispatcher.make_ready(activation)

    def _may_read(self, activation: Activation, envelope: Envelope, now: float) -> bool:
        """Return whether to handle a posted read now, before its actor's turn.

        The actor is idle, so the read overtakes no message and sees only what is on disk. Between two passes
        at most a turn's quantum of reads is handled, for one slice; the others wait.
        """
        return (
            activation.actor is not None
            and activation.is_idle
            and envelope.caller is not None
            and envelope.idempotency is None
            and envelope.relay_key is None
            and envelope.deadline > now
            and self._reads_left > 0
            and self._clock.perf() < self._reads_end
            and self._suspended < SUSPENDED_LIMIT
        )

    def _read(self, activation: Activation, envelope: Envelope, now: float) -> None:
        """Handle a read now; its callback runs in the next pass."""
        if self._reads_end == inf:  # the first read since a pass
            self._reads_began = self._clock.perf()
            self._reads_end = self._reads_began + self._options.slice_seconds
        self._reads_left -= 1
        self.dispatcher.request_pass()
        token = CURRENT.set(self.dispatcher.settings)
        envelope.begun = True
        try:
            self._handle(activation, envelope)
        except BaseException:  # the handler ends the program; the message is not accepted
            activation.actor = None
            self.waiting -= 1
            raise
        finally:
            CURRENT.reset(token)
        if activation.running is not None:
            self.dispatcher.make_ready(activation)
        if now - activation.last_used >= MARKED_EVERY:
            self.residents.mark_used(activation, now)
        self.dispatcher.end_slice(self._reads_began)

    def is_busy(self) -> bool:
        """Return whether messages are waiting, or came so recently that more may follow."""
        return self.waiting > 0 or trio.current_time() - self.dispatcher.last_pass < BUSY_SECONDS

    def waiting_for(self, address: Address) -> int:
        """Return how many messages wait in an actor's mailbox."""
        activation = self.residents.get(address)
        return 0 if activation is None or activation.mailbox is None else len(activation.mailbox)

    def find_uncommitted(self, address: Address, key: bytes) -> tuple[int, bytes | None] | None:
        """Return an actor's uncommitted record at a full key, from its overlay."""
        activation = self.residents.get(address)
        return None if activation is None else activation.overlay.get(key)

    def cancel(self, envelope: Envelope) -> None:
        """Drop the caller; a message that was not begun leaves its mailbox."""
        envelope.caller = None
        self.counts["abandoned"] += 1
        if not envelope.begun and envelope.activation is not None and envelope.activation.mailbox:
            envelope.activation.mailbox.remove(envelope)
            self.waiting -= 1
            if self._idle is not None:
                self._idle.set()

    def forget_reply(self, envelope: Envelope) -> None:
        """Cancel a relayed message that its relay will not repeat."""
        self._idempotency.forget(envelope)
        self.cancel(envelope)

    def readmit(self, address: Address) -> bool:
        """Readmit an actor from quarantine; return whether it was in quarantine."""
        was_quarantined = self.restart_history.readmit(address)
        if was_quarantined:
            self.outbox.rescan()
        return was_quarantined

    async def drain(self) -> None:
        """Accept no more messages; return when the accepted ones are handled and on disk."""
        self._closed = True
        while not (self.waiting == 0 and self.commits.is_empty):
            self._idle = trio.Event()
            await self._idle.wait()

    def abort(self, error: Callable[[], errors.GreenroomError]) -> None:
        """Accept no more messages, and fail every waiting request."""
        self._closed = True
        self._services.cached_snapshot.close()
        self.dispatcher.stop()
        waiting = [envelope for activation in self.residents for envelope in activation.mailbox or ()]
        waiting += [
            activation.running.envelope for activation in self.residents if activation.running is not None
        ]
        waiting += [envelope for unit in self.commits.units() for envelope, _ in unit.replies]
        waiting += self._idempotency.repeats()
        waiting += [] if self._newest is None else [self._newest]  # its handler may have ended the program
        for envelope in waiting:
            envelope.complete(outcome.Error(error()))
        self.callbacks.run_callbacks()

    # -- a turn ------------------------------------------------------------

    def _turn(self, activation: Activation) -> None:
        if activation.restart is not None:
            self._restart(activation, activation.restart)
        if activation.running is not None:
            self._advance(activation, activation.running)
        mailbox = activation.mailbox
        quantum = self._options.quantum
        should_yield = self.dispatcher.should_yield
        while mailbox and quantum and activation.running is None and not activation.paused_until:
            if self._suspended >= SUSPENDED_LIMIT:  # suspended handlers hold snapshots
                break
            quantum -= 1
            self._begin(activation, mailbox.popleft())
            if should_yield():
                break
        if not mailbox:
            activation.mailbox = None
        self.residents.mark_used(activation, trio.current_time())
        if activation.mailbox or activation.running is not None:
            self.dispatcher.make_ready(activation)

    def _begin(self, activation: Activation, envelope: Envelope) -> None:
        envelope.begun = True
        self._newest = envelope
        if envelope.deadline != inf and envelope.deadline <= trio.current_time():
            self.counts["expired"] += 1
            sentence = (
                "the deadline passed before the request was begun; nothing was done, it can be repeated"
            )
            self._complete(envelope, outcome.Error(errors.DeadlineExceededError(sentence)))
            return
        if envelope.idempotency is not None or envelope.relay_key is not None:
            earlier = self._idempotency.admit(envelope)
            if earlier is Admission.REPEAT:
                return
            if earlier is not Admission.FIRST:
                self.counts["repeated"] += 1
                self._complete(envelope, earlier)
                return
        self._handle(activation, envelope)

    def _handle(self, activation: Activation, envelope: Envelope) -> None:
        context = None
        activation.is_handling = True
        try:
            actor = activation.actor or self._activate(activation)
            context = Context(
                self._services,
                activation,
                envelope.principal,
                envelope.precheck_answer,
                self._clock.now(),
                envelope.deadline,
            )
            if envelope.outbox_key is not None and not self._still_wanted(
                envelope.outbox_key, envelope.timer, context
            ):
                self._complete(envelope, outcome.Value(None))
                return
            message = envelope.message
            reply = activation.handlers[type(message)](actor, message, context)
        except errors.Refusal as refusal:
            self._end_refused(activation, envelope, context, refusal)
        except Exception as error:  # noqa: BLE001  a handler may raise anything; that is the actor's failure
            self._end_failed(activation, envelope, error)
        else:
            if isinstance(reply, GeneratorType):
                activation.running = Running(envelope, context, reply)
                self._suspended += 1
                self._advance(activation, activation.running)
            elif context.damage:
                self._reply(activation, envelope, context, reply)
            else:
                self._finish(activation, envelope, context, outcome.Value(reply))
        finally:
            activation.is_handling = False

    def _advance(self, activation: Activation, running: Running) -> None:
        """Run a generator handler for a slice, unless its caller cancelled it."""
        envelope, context, slices = running
        if not envelope.needs_handling:
            self._close_running(activation, running)
            activation.actor = None  # its state may be half changed
            self._complete(envelope, outcome.Value(None))
            return
        activation.is_handling = True
        try:
            self.dispatcher.resume(slices)
        except StopIteration as done:
            self._clear_running(activation)
            self._reply(activation, envelope, context, done.value)
        except errors.Refusal as refusal:
            self._clear_running(activation)
            self._end_refused(activation, envelope, context, refusal)
        except Exception as error:  # noqa: BLE001  as in _handle
            self._clear_running(activation)
            self._end_failed(activation, envelope, error)
        finally:
            activation.is_handling = False

    def _activate(self, activation: Activation) -> Actor:
        actor = self._kinds[activation.address.kind]()
        actor.activate(Context(self._services, activation, None, None, self._clock.now()))
        self.residents.activations += 1
        activation.actor = actor
        return actor

    def _still_wanted(self, row: bytes, timer: str | None, context: Context) -> bool:
        """Stage the removal of a stored message's row, unless its timer has changed."""
        if timer is None:
            context.stage_rows({row: None})
            context.keep_effects()
            return True
        try:
            if context.timer_row(timer) != row:
                return False
        except errors.RecordDamagedError:  # a cancelled timer would have lost its stored row, too
            context.stage_rows({row: None})
        context.cancel_timer(timer)
        context.keep_effects()
        return True

    # -- the end of a message ---------------------------------------------

    def _reply(self, activation: Activation, envelope: Envelope, context: Context, reply: Any) -> None:
        """Finish a message with its reply, which names skipped damage; else fail with the damage."""
        if context.damage:
            assert activation.actor is not None, "it has just replied"
            try:
                reply = activation.actor.name_damage(reply, context)
            except Exception as error:  # noqa: BLE001  as in _handle
                self._end_failed(activation, envelope, error)
                return
        self._finish(activation, envelope, context, outcome.Value(reply))

    def _finish(self, activation: Activation, envelope: Envelope, context: Context, result: Result) -> None:
        """Release ``result`` when everything that it may have seen is on disk."""
        has_repeats = envelope.idempotency is not None or envelope.relay_key is not None
        if has_repeats and not self._stage_answer(activation, envelope, context, result):
            return
        self.counts["handled"] += 1
        effects = context.effects
        if effects is not None and effects.has_effects:
            number = self.commits.next_number()
            unit = CommitUnit(number, activation, effects)
            unit.replies.append((envelope, result))
            for key, payload in effects.own.items():
                activation.overlay[key] = (number, payload)
            activation.last_unit = unit
            self.commits.add(unit)
        elif activation.last_unit is not None:
            activation.last_unit.replies.append((envelope, result))
        else:
            self._complete(envelope, result)

    def _stage_answer(
        self, activation: Activation, envelope: Envelope, context: Context, result: Result
    ) -> bool:
        """Stage the reply for repeats; return False if it cannot be encoded.

        The reply to a relayed message is only stored if the message has effects.
        """
        effects = context.effects
        if envelope.idempotency is None and (
            effects is None or not effects.has_effects or effects.dispensable
        ):
            return True
        try:
            context.stage_rows(self._idempotency.rows(envelope, result, context.now))
        except Exception as error:  # noqa: BLE001  encoding a handler's result may raise anything
            self._end_failed(activation, envelope, error)
            return False
        return True

    def _end_refused(
        self, activation: Activation, envelope: Envelope, context: Context | None, refusal: errors.Refusal
    ) -> None:
        self.counts["refused"] += 1
        if refusal.is_denial:
            self._services.record_denial(envelope.principal, activation.address, envelope.message, refusal)
        effects = None if context is None else context.effects
        brought_rows = 0 if envelope.outbox_key is None else 1
        if effects and (effects.own or len(effects.rows) > brought_rows):
            activation.actor = None  # its state in memory may be half changed
        if envelope.is_durable:
            self.outbox.dead_letter(envelope, refusal, f"{refusal.code}: {refusal}")
        else:
            fresh = Context(self._services, activation, None, None, self._clock.now())
            self._finish(activation, envelope, fresh, outcome.Error(refusal))

    def _end_failed(self, activation: Activation, envelope: Envelope, error: Exception) -> None:
        self.counts["failed"] += 1
        name = type(envelope.message).__name__
        if isinstance(error, errors.RecordDamagedError):
            self._end_damaged(activation, envelope, error)
            return
        logger.error(
            "%s failed while handling %s and is rolled back", activation.address, name, exc_info=error
        )
        if envelope.is_durable:
            self._retry(activation, envelope, error)
        else:
            if not isinstance(error, errors.StoreError):
                sentence = (
                    f"{activation.address} failed while handling {name}; it was rolled back and can be "
                    "repeated"
                )
                failure = errors.ActorFailedError(sentence)
                failure.__cause__ = error
                error = failure
            self._complete(envelope, outcome.Error(error))
        self._supervise(activation, name)

    def _end_damaged(
        self, activation: Activation, envelope: Envelope, error: errors.RecordDamagedError
    ) -> None:
        """End a message that needs a damaged record; the actor goes on."""
        name = type(envelope.message).__name__
        logger.error("%s met a damaged record while handling %s: %s", activation.address, name, error)
        activation.actor = None  # its state may be half changed
        if envelope.is_durable:
            self.outbox.dead_letter(envelope, error, f"{type(error).__name__}: {error}")
        else:
            self._complete(envelope, outcome.Error(error))

    def _retry(self, activation: Activation, envelope: Envelope, error: Exception) -> None:
        envelope.failures += 1
        if envelope.failures >= self._options.delivery_attempts:
            self.outbox.dead_letter(envelope, error, f"{type(error).__name__}: {error}")
        else:
            self._put_back(activation, envelope)

    def _put_back(self, activation: Activation, envelope: Envelope) -> None:
        if activation.address in self.restart_history.quarantined:
            self._complete(envelope, outcome.Error(self.restart_history.quarantine_error(activation.address)))
            return
        envelope.begun = False
        activation.mailbox = activation.mailbox if activation.mailbox is not None else deque()
        activation.mailbox.appendleft(envelope)

    def _complete(self, envelope: Envelope, result: Result) -> None:
        """End one message: send the result to its caller, and to repeats."""
        self.waiting -= 1
        if envelope.outbox_key is not None:
            self.outbox.forget(envelope.outbox_key)
        elif envelope.one_way and type(result) is outcome.Error:  # isinstance would use a slow ABC
            self.outbox.dead_letters += 1
        if envelope.idempotency is not None or envelope.relay_key is not None:
            for repeat in self._idempotency.finish(envelope):
                self.waiting -= 1
                repeat.complete(_copy(result))
        envelope.complete(result)
        if self._idle is not None:
            self._idle.set()

    # -- commits -----------------------------------------------------------

    def finish_group(self, units: Sequence[CommitUnit]) -> None:
        """Complete the units of a finished group: on disk, or refused for lack of space."""
        lost: dict[Activation, list[CommitUnit]] = {}
        for unit in units:
            if unit.error is not None and self._is_lost(unit, lost):
                assert unit.activation is not None
                lost.setdefault(unit.activation, []).append(unit)
                continue
            if unit.dead_lettered is not None:
                self.outbox.forget(unit.dead_lettered)
            if unit.activation is not None:
                self._apply_commit(unit.activation, unit, unit.effects)
            for envelope, result in unit.replies:
                self._complete(envelope, result)
        for activation, failed in lost.items():
            self._undo_commits(activation, [*failed, *self.commits.withdraw(activation)])
        self._after_pass()

    def _is_lost(self, unit: CommitUnit, lost: Mapping[Activation, list[CommitUnit]]) -> bool:
        """Return whether a failed unit makes its actor's state invalid; count dispensable units."""
        if type(unit) is BufferedEntriesUnit:
            self._services.journal_buffer.count_lost(unit.buffered)
            return False
        if unit.effects.dispensable and unit.activation not in lost:
            self.counts["dispensed_with"] += 1
            return False
        return unit.activation is not None

    def _apply_commit(self, activation: Activation, unit: CommitUnit, effects: Effects) -> None:
        overlay = activation.overlay
        for key in effects.own:
            if overlay[key][0] == unit.number:
                del overlay[key]
        if activation.last_unit is unit:
            activation.last_unit = None
        for row, address, message in effects.tells:
            self.outbox.dispatch(row, address, message)
        if effects.next_due is not None:
            self.outbox.add_timer(effects.next_due)
        for topic, label in effects.publications:
            self.bus.publish(topic, label)

    def _undo_commits(self, activation: Activation, units: Sequence[CommitUnit]) -> None:
        """Undo an actor's commit units: the failed unit, and all that followed it."""
        self.counts["not_committed"] += len(units)
        error = units[0].error
        assert error is not None
        ran = [envelope for unit in units for envelope, _ in unit.replies]
        if activation.running is not None:
            ran.append(activation.running.envelope)
            self._close_running(activation, activation.running)
        activation.overlay.clear()
        activation.last_unit = None
        activation.actor = None
        stored = [envelope for envelope in ran if envelope.is_durable]
        # If a stored message failed first, the requests after it are handled again: they may need no room.
        requests = [envelope for envelope in ran if not envelope.is_durable]
        again = [each for each in requests if ran[0].is_durable and each.needs_handling]
        failed = [each for each in requests if not (ran[0].is_durable and each.needs_handling)]
        for envelope in reversed(again):  # reversed, so that they keep their order in the mailbox
            self._put_back(activation, envelope)
        for envelope in failed:
            self._complete(envelope, outcome.Error(error))
        if stored:
            self._return_stored(activation, stored)
        if activation.mailbox:
            self.dispatcher.make_ready(activation)

    def _return_stored(self, activation: Activation, stored: list[Envelope]) -> None:
        """Return stored messages to the outbox, and the ones in the mailbox, in order."""
        waiting = activation.mailbox or ()
        stored = stored + [envelope for envelope in waiting if envelope.is_durable]
        activation.mailbox = deque(envelope for envelope in waiting if not envelope.is_durable)
        self.waiting -= len(stored)
        self.outbox.back_off(activation.address, stored)

    def _after_pass(self) -> None:
        self._reads_left = self._options.quantum
        self._reads_end = inf
        self._services.cached_snapshot.close()
        if self.commits.collected:
            self.commits.flush()  # first, so that the disk works during the callbacks
        self.callbacks.run_callbacks()
        if self._idle is not None:
            self._idle.set()

    # -- supervision -------------------------------------------------------

    def _supervise(self, activation: Activation, message_name: str) -> None:
        address, group = activation.address, self._groups[activation.address.kind]
        decision = self.restart_history.record(address, trio.current_time())
        activation.actor = None
        if isinstance(decision, Quarantine):
            self._quarantine(activation, decision.failures)
            return
        self.counts["restarts"] += 1
        if decision.delay:
            self.dispatcher.pause(activation, decision.delay)
        elif activation.mailbox:
            self.dispatcher.make_ready(activation)
        for kind in restarted_kinds(address.kind, group):
            sibling = self.residents.get(address._replace(kind=kind))
            if sibling is not None and sibling is not activation:
                sentence = (
                    f"{sibling.address} was restarted because {address} failed while handling {message_name}"
                )
                sibling.restart = errors.ActorFailedError(sentence)
                self.dispatcher.make_ready(sibling)

    def _restart(self, activation: Activation, reason: errors.ActorFailedError) -> None:
        activation.restart = None
        activation.actor = None
        self.counts["restarts"] += 1
        if activation.running is not None:
            envelope = activation.running.envelope
            self._close_running(activation, activation.running)
            if envelope.is_durable:
                self._put_back(activation, envelope)
            else:
                self._complete(envelope, outcome.Error(reason))

    def _quarantine(self, activation: Activation, failures: int) -> None:
        logger.error("%s failed %d times and is set aside", activation.address, failures)
        while activation.mailbox:
            self._complete(
                activation.mailbox.popleft(),
                outcome.Error(self.restart_history.quarantine_error(activation.address)),
            )

    def _clear_running(self, activation: Activation) -> None:
        activation.running = None
        self._suspended -= 1

    def _close_running(self, activation: Activation, running: Running) -> None:
        self._clear_running(activation)
        try:
            running.slices.close()
        except Exception:
            logger.exception("%s failed while a handler of it was stopped", activation.address)


def _copy(result: Result) -> Result:
    """Return a copy for one more caller, because an outcome can be unwrapped only once."""
    return outcome.Value(result.value) if isinstance(result, outcome.Value) else outcome.Error(result.error)
