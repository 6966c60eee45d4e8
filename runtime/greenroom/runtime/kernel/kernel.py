"""From a mailbox through a handler to a reply.

Invariants:
- A reply leaves when every work that it could have seen is on disk: its own, or else
  the activation's newest one.
- Whatever ran on state that could not be committed fails with the same error.
- A stored message (a tell, a timer) leaves the store in the commit that handles it.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import GeneratorType

import outcome
import trio

from greenroom.runtime.actor.actor import Actor
from greenroom.runtime.actor.context import Context
from greenroom.runtime.actor.effects import Effects
from greenroom.runtime.actor.services import RuntimeServices
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.clock import Clock
from greenroom.runtime.base.errors import (
    ActorFailedError,
    DeadlineExceededError,
    GreenroomError,
    OverloadedError,
    Refusal,
    RuntimeClosedError,
    StoreError,
    UnknownKindError,
)
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.base.supervision import Group, Quarantine, restarted_kinds
from greenroom.runtime.kernel.activation import ActivationCache
from greenroom.runtime.kernel.callbacks import CallbackQueue
from greenroom.runtime.kernel.dispatcher import Dispatcher
from greenroom.runtime.kernel.group_commit import BufferedEntriesUnit, GroupCommit
from greenroom.runtime.kernel.idempotency import Admission, IdempotencyTable
from greenroom.runtime.kernel.mailbox import Activation, CommitUnit, Envelope, Result, Running
from greenroom.runtime.kernel.outbox import Outbox
from greenroom.runtime.kernel.pubsub import Bus
from greenroom.runtime.kernel.restart_history import RestartHistory

logger = logging.getLogger(__name__)

RETRY_AFTER_MS = 100
BUSY_SECONDS = 0.25
SUSPENDED_LIMIT = 256
"""How many handlers may stand between two slices at once; each may hold a few readers of the store."""


@dataclass(frozen=True, slots=True)
class Tainted:
    """The messages that ran on a state which could not be committed, oldest first.

    Attributes:
        stored: Tells and timers, which are handled later.
        returned: What was asked and merely came after one of these; it is handled anew: while that one waits
            for room, what needs none goes on.
        failed: What else was asked, which fails with the error.
    """

    stored: list[Envelope]
    returned: list[Envelope]
    failed: list[Envelope]

    @classmethod
    def by_fate(cls, envelopes: Sequence[Envelope]) -> Tainted:
        """Return them sorted by what becomes of them."""
        tainted = cls([], [], [])
        for envelope in envelopes:
            if envelope.is_durable:
                tainted.stored.append(envelope)
            elif envelopes[0].is_durable and envelope.needs_handling:
                tainted.returned.append(envelope)
            else:
                tainted.failed.append(envelope)
        return tainted


class Kernel:
    """Routes messages to actors, runs their handlers, restarts them, and lets replies go.

    ``commits``, ``outbox`` and ``bus`` are set by the runtime before the first message.
    """

    commits: GroupCommit
    outbox: Outbox
    bus: Bus

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

    # -- doors -------------------------------------------------------------

    def deliver(self, address: Address, envelope: Envelope) -> None:
        """Put a message into its actor's mailbox.

        Raises:
            RuntimeClosedError, UnknownKindError, ActorQuarantinedError, OverloadedError: it was not accepted.
        """
        if self._closed:
            raise RuntimeClosedError("the runtime is closing and takes no more messages")
        activation = self.residents.get(address)
        handlers = self._handlers.get(address.kind, {}) if activation is None else activation.handlers
        if type(envelope.message) not in handlers:
            raise UnknownKindError(f"no {address.kind!r} actor handles {type(envelope.message).__name__}")
        if address in self.restart_history.quarantined:
            raise self.restart_history.quarantine_error(address)
        if activation is None:
            activation = self.residents.add(address, handlers)
        if activation.mailbox is None:
            activation.mailbox = deque()
        elif len(activation.mailbox) >= self._options.mailbox_limit:
            self.counts["overloaded"] += 1
            raise OverloadedError(address, RETRY_AFTER_MS)
        envelope.activation = activation
        activation.mailbox.append(envelope)
        self.waiting += 1
        if not activation.ready:
            self.dispatcher.make_ready(activation)

    def is_busy(self) -> bool:
        """Return whether messages wait, or came so lately that their answers may lead to more."""
        return self.waiting > 0 or trio.current_time() - self.dispatcher.last_pass < BUSY_SECONDS

    def waiting_for(self, address: Address) -> int:
        """Return how many messages wait in an actor's mailbox."""
        activation = self.residents.get(address)
        return 0 if activation is None or activation.mailbox is None else len(activation.mailbox)

    def uncommitted(self, address: Address, key: bytes) -> tuple[int, bytes | None] | None:
        """Return what is on its way to disk of an actor's record at a full key, as its overlay has it."""
        activation = self.residents.get(address)
        return None if activation is None else activation.overlay.get(key)

    def cancel(self, envelope: Envelope) -> None:
        """Forget who asked; a message that is not begun leaves its mailbox."""
        envelope.asker = None
        self.counts["abandoned"] += 1
        if not envelope.begun and envelope.activation is not None and envelope.activation.mailbox:
            envelope.activation.mailbox.remove(envelope)
            self.waiting -= 1
            self._notice_idle()

    def forget_reply(self, envelope: Envelope) -> None:
        """Abandon a relayed message, the answer to which nobody will ask for again."""
        self._idempotency.forget(envelope)
        self.cancel(envelope)

    def readmit(self, address: Address) -> bool:
        """Let an actor that was set aside in again; return whether it was."""
        was_set_aside = self.restart_history.readmit(address)
        if was_set_aside:
            self.outbox.rescan()
        return was_set_aside

    async def drain(self) -> None:
        """Take no more messages, and return when those accepted are handled and on disk."""
        self._closed = True
        while not (self.waiting == 0 and self.commits.is_empty):
            self._idle = trio.Event()
            await self._idle.wait()

    def abort(self, error: Callable[[], GreenroomError]) -> None:
        """Take no more messages and answer whoever still waits with an error of its own."""
        self._closed = True
        self._services.cached_snapshot.close()
        self.dispatcher.clear()
        waiting = [envelope for activation in self.residents for envelope in activation.mailbox or ()]
        waiting += [
            activation.running.envelope for activation in self.residents if activation.running is not None
        ]
        waiting += [envelope for work in self.commits.units() for envelope, _ in work.settlements]
        waiting += self._idempotency.repeats()
        waiting += [] if self._newest is None else [self._newest]  # its handler may have ended the program
        for envelope in waiting:
            envelope.settle(outcome.Error(error()))
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
            if self._suspended >= SUSPENDED_LIMIT:  # handlers between two slices keep what they read
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
            self._complete(envelope, outcome.Error(DeadlineExceededError(sentence)))
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
            reply = getattr(actor, activation.handlers[type(message)])(message, context)
        except Refusal as refusal:
            self._refused(activation, envelope, context, refusal)
        except Exception as error:  # noqa: BLE001  a handler may raise anything; that is the actor's failure
            self._failed(activation, envelope, error)
        else:
            if isinstance(reply, GeneratorType):
                activation.running = Running(envelope, context, reply)
                self._suspended += 1
                self._advance(activation, activation.running)
            else:
                self._finish(activation, envelope, context, outcome.Value(reply))

    def _advance(self, activation: Activation, running: Running) -> None:
        """Run a generator handler until its slice is over or it is done, unless its asker gave up."""
        envelope, context, slices = running
        if not envelope.needs_handling:
            self._close_running(activation, running)
            activation.actor = None  # it had begun to change
            self._complete(envelope, outcome.Value(None))
            return
        try:
            next(slices)
        except StopIteration as done:
            self._not_running(activation)
            self._finish(activation, envelope, context, outcome.Value(done.value))
        except Refusal as refusal:
            self._not_running(activation)
            self._refused(activation, envelope, context, refusal)
        except Exception as error:  # noqa: BLE001  as in _handle
            self._not_running(activation)
            self._failed(activation, envelope, error)

    def _activate(self, activation: Activation) -> Actor:
        actor = self._kinds[activation.address.kind]()
        actor.activate(Context(self._services, activation, None, None, self._clock.now()))
        self.residents.activations += 1
        activation.actor = actor
        return actor

    def _still_wanted(self, row: bytes, timer: str | None, context: Context) -> bool:
        """Stage the end of a stored message's row, unless its timer was cancelled or set anew meanwhile."""
        if timer is None:
            context.stage_rows({row: None})
            return True
        if context.timer_row(timer) != row:
            return False
        context.cancel_timer(timer)
        return True

    # -- how a message ends ------------------------------------------------

    def _finish(self, activation: Activation, envelope: Envelope, context: Context, result: Result) -> None:
        """Let ``result`` go when everything that it may have seen is on disk."""
        has_repeats = envelope.idempotency is not None or envelope.relay_key is not None
        if has_repeats and not self._stage_answer(activation, envelope, context, result):
            return
        self.counts["handled"] += 1
        effects = context.effects
        if effects is not None and effects.has_effects:
            number = self.commits.next_number()
            work = CommitUnit(number, activation, effects)
            work.settlements.append((envelope, result))
            for key, payload in effects.own.items():
                activation.overlay[key] = (number, payload)
            activation.last_work = work
            self.commits.add(work)
        elif activation.last_work is not None:
            activation.last_work.settlements.append((envelope, result))
        else:
            self._complete(envelope, result)

    def _stage_answer(
        self, activation: Activation, envelope: Envelope, context: Context, result: Result
    ) -> bool:
        """Stage what repeats are answered with; return whether the message did not fail by that.

        Of what another process relays only that is stored which has effects to commit.
        """
        effects = context.effects
        if envelope.idempotency is None and (
            effects is None or not effects.has_effects or effects.dispensable
        ):
            return True
        try:
            context.stage_rows(self._idempotency.rows(envelope, result, context.now))
        except Exception as error:  # noqa: BLE001  what a handler returns may fail to encode in any way
            self._failed(activation, envelope, error)
            return False
        return True

    def _refused(
        self, activation: Activation, envelope: Envelope, context: Context | None, refusal: Refusal
    ) -> None:
        self.counts["refused"] += 1
        if refusal.is_denial:
            self._services.record_denial(envelope.principal, activation.address, envelope.message, refusal)
        effects = None if context is None else context.effects
        brought_rows = 0 if envelope.outbox_key is None else 1
        if context is None or (effects and (effects.own or len(effects.rows) > brought_rows)):
            activation.actor = None  # it had begun to change: what it holds in memory is not to be trusted
        if envelope.is_durable:
            self.outbox.dead_letter(envelope, refusal, f"{refusal.code}: {refusal}")
        else:
            fresh = Context(self._services, activation, None, None, self._clock.now())
            self._finish(activation, envelope, fresh, outcome.Error(refusal))

    def _failed(self, activation: Activation, envelope: Envelope, error: Exception) -> None:
        self.counts["failed"] += 1
        name = type(envelope.message).__name__
        logger.error(
            "%s failed while handling %s and is rolled back", activation.address, name, exc_info=error
        )
        if envelope.is_durable:
            self._retry(activation, envelope, error)
        else:
            if not isinstance(error, StoreError):
                sentence = (
                    f"{activation.address} failed while handling {name}; it was rolled back and may be asked "
                    "again"
                )
                failure = ActorFailedError(sentence)
                failure.__cause__ = error
                error = failure
            self._complete(envelope, outcome.Error(error))
        self._supervise(activation, name)

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
        """End one message: answer its asker, and whoever repeated it meanwhile."""
        self.waiting -= 1
        if envelope.outbox_key is not None:
            self.outbox.forget(envelope.outbox_key)
        elif envelope.one_way and type(result) is outcome.Error:  # the class has an ABC's slow isinstance
            self.outbox.dead_letters += 1
        if envelope.idempotency is not None or envelope.relay_key is not None:
            for repeat in self._idempotency.finish(envelope):
                self.waiting -= 1
                repeat.settle(_copy(result))
        envelope.settle(result)
        self._notice_idle()

    # -- commits -----------------------------------------------------------

    def settle(self, works: Sequence[CommitUnit]) -> None:
        """Complete the units of a finished group: on disk, or refused for lack of space."""
        lost: dict[Activation, list[CommitUnit]] = {}
        for work in works:
            if work.error is not None and self._is_lost(work, lost):
                assert work.activation is not None
                lost.setdefault(work.activation, []).append(work)
                continue
            if work.buried is not None:
                self.outbox.forget(work.buried)
            if work.activation is not None:
                self._committed(work.activation, work, work.effects)
            for envelope, result in work.settlements:
                self._complete(envelope, result)
        for activation, units in lost.items():
            self._not_committed(activation, [*units, *self.commits.withdraw(activation)])
        self._after_pass()

    def _is_lost(self, work: CommitUnit, lost: Mapping[Activation, list[CommitUnit]]) -> bool:
        """Return whether an actor's state is lost with a unit without room; count what is done without."""
        if type(work) is BufferedEntriesUnit:
            self._services.journal_buffer.count_lost(work.noted)
            return False
        if work.effects.dispensable and work.activation not in lost:
            self.counts["dispensed_with"] += 1
            return False
        return work.activation is not None

    def _committed(self, activation: Activation, work: CommitUnit, effects: Effects) -> None:
        overlay = activation.overlay
        for key in effects.own:
            if overlay[key][0] == work.number:
                del overlay[key]
        if activation.last_work is work:
            activation.last_work = None
        if effects.rows:
            self._services.row_changes.note(activation.address, effects.rows)
        for row, address, message in effects.tells:
            self.outbox.dispatch(row, address, message)
        if effects.next_due is not None:
            self.outbox.add_timer(effects.next_due)
        for topic, label in effects.publications:
            self.bus.publish(topic, label)

    def _not_committed(self, activation: Activation, works: Sequence[CommitUnit]) -> None:
        """Undo an actor's works, which are all that ran on the state that the first of them left."""
        self.counts["not_committed"] += len(works)
        error = works[0].error
        assert error is not None
        ran = [envelope for work in works for envelope, _ in work.settlements]
        if activation.running is not None:
            ran.append(activation.running.envelope)
            self._close_running(activation, activation.running)
        activation.overlay.clear()
        activation.last_work = None
        activation.actor = None
        tainted = Tainted.by_fate(ran)
        for envelope in reversed(tainted.returned):  # so that they return to the mailbox in their order
            self._put_back(activation, envelope)
        for envelope in tainted.failed:
            self._complete(envelope, outcome.Error(error))
        if tainted.stored:
            self._return_stored(activation, tainted.stored)
        if activation.mailbox:
            self.dispatcher.make_ready(activation)

    def _return_stored(self, activation: Activation, stored: list[Envelope]) -> None:
        """Give stored messages back to the outbox, and those in the mailbox with them: their order stays."""
        waiting = activation.mailbox or ()
        stored = stored + [envelope for envelope in waiting if envelope.is_durable]
        activation.mailbox = deque(envelope for envelope in waiting if not envelope.is_durable)
        self.waiting -= len(stored)
        self.outbox.back_off(activation.address, stored)

    def _after_pass(self) -> None:
        self._services.cached_snapshot.close()
        self.commits.flush()  # first, so that the disk is busy while the callbacks are
        self.callbacks.run_callbacks()
        self._notice_idle()

    def _notice_idle(self) -> None:
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
                sibling.restart = ActorFailedError(sentence)
                self.dispatcher.make_ready(sibling)

    def _restart(self, activation: Activation, reason: ActorFailedError) -> None:
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

    def _not_running(self, activation: Activation) -> None:
        activation.running = None
        self._suspended -= 1

    def _close_running(self, activation: Activation, running: Running) -> None:
        self._not_running(activation)
        try:
            running.slices.close()
        except Exception:
            logger.exception("%s failed while a handler of it was stopped", activation.address)


def _copy(result: Result) -> Result:
    """Return an outcome for one more asker; each can be unwrapped once."""
    return outcome.Value(result.value) if isinstance(result, outcome.Value) else outcome.Error(result.error)
