"""From a mailbox through a handler to a reply.

Invariants:
- A reply leaves when every work that it could have seen is on disk: its own, or else
  the cell's newest one.
- Whatever ran on state that could not be committed fails with the same error.
- A stored message (a tell, a timer) leaves the store in the commit that handles it.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import GeneratorType
from typing import TYPE_CHECKING

import outcome
import trio

from greenroom.runtime.actor.audit_buffer import Noted
from greenroom.runtime.actor.context import Context
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
from greenroom.runtime.base.supervision import Group, SetAside, restarted_kinds
from greenroom.runtime.kernel.activation import Residents
from greenroom.runtime.kernel.callbacks import Posts
from greenroom.runtime.kernel.dispatcher import Dispatcher
from greenroom.runtime.kernel.group_commit import Effects
from greenroom.runtime.kernel.idempotency import Answers, Waiting
from greenroom.runtime.kernel.mailbox import Cell, Envelope, Result, Running
from greenroom.runtime.kernel.restart_history import Failures

if TYPE_CHECKING:
    from greenroom.runtime.actor.actor import Actor
    from greenroom.runtime.actor.context import Domain
    from greenroom.runtime.actor.effects import Staged
    from greenroom.runtime.base.address import Address
    from greenroom.runtime.base.clock import Clock
    from greenroom.runtime.base.options import RuntimeOptions
    from greenroom.runtime.kernel.group_commit import Pipeline
    from greenroom.runtime.kernel.outbox import Deliveries
    from greenroom.runtime.kernel.pubsub import Bus

logger = logging.getLogger(__name__)

RETRY_AFTER_MS = 100
BUSY_SECONDS = 0.25
SUSPENDED_LIMIT = 256
"""How many handlers may stand between two slices at once; each may hold a few readers of the store."""


class Kernel:
    """Routes messages to actors, runs their handlers, restarts them, and lets replies go.

    ``pipeline``, ``deliveries`` and ``bus`` are set by the runtime before the first message.
    """

    pipeline: Pipeline
    deliveries: Deliveries
    bus: Bus

    def __init__(
        self,
        kinds: Mapping[str, type[Actor]],
        groups: Mapping[str, Group],
        domain: Domain,
        clock: Clock,
        options: RuntimeOptions,
    ) -> None:
        self._kinds = kinds
        self._handlers = {kind: actor.handlers for kind, actor in kinds.items()}
        self._groups = groups
        self._domain = domain
        self._clock = clock
        self._options = options
        self._answers = Answers(domain.store)
        self._idle: trio.Event | None = None
        self._closed = False
        self._newest: Envelope | None = None
        self.posts = Posts(self.deliver, self.abandon)
        self.residents = Residents(options, kinds, domain.veil)
        self.dispatcher = Dispatcher(clock, options.slice_seconds, self._turn, self._after_pass)
        self.failures = Failures(groups, domain.random)
        self.counts: Counter[str] = Counter()
        self.waiting = 0
        self._suspended = 0

    # -- doors -------------------------------------------------------------

    def deliver(self, address: Address, envelope: Envelope) -> None:
        """Put a message into its actor's mailbox.

        Raises:
            RuntimeClosedError, UnknownKindError, ActorSetAsideError, OverloadedError: it was not accepted.
        """
        if self._closed:
            raise RuntimeClosedError("the runtime is closing and takes no more messages")
        cell = self.residents.get(address)
        handlers = self._handlers.get(address.kind, {}) if cell is None else cell.handlers
        if type(envelope.message) not in handlers:
            raise UnknownKindError(f"no {address.kind!r} actor handles {type(envelope.message).__name__}")
        if address in self.failures.set_aside:
            raise self.failures.refusal(address)
        if cell is None:
            cell = self.residents.admit(address, handlers)
        if cell.mailbox is None:
            cell.mailbox = deque()
        elif len(cell.mailbox) >= self._options.mailbox_limit:
            self.counts["overloaded"] += 1
            raise OverloadedError(address, RETRY_AFTER_MS)
        envelope.cell = cell
        cell.mailbox.append(envelope)
        self.waiting += 1
        if not cell.ready:
            self.dispatcher.make_ready(cell)

    def is_busy(self) -> bool:
        """Return whether messages wait, or came so lately that their answers may lead to more."""
        return self.waiting > 0 or trio.current_time() - self.dispatcher.last_pass < BUSY_SECONDS

    def waiting_for(self, address: Address) -> int:
        """Return how many messages wait in an actor's mailbox."""
        cell = self.residents.get(address)
        return 0 if cell is None or cell.mailbox is None else len(cell.mailbox)

    def abandon(self, envelope: Envelope) -> None:
        """Forget who asked; a message that is not begun leaves its mailbox."""
        envelope.asker = None
        self.counts["abandoned"] += 1
        if not envelope.begun and envelope.cell is not None and envelope.cell.mailbox:
            envelope.cell.mailbox.remove(envelope)
            self.waiting -= 1
            self._notice_idle()

    def renounce(self, envelope: Envelope) -> None:
        """Abandon a relayed message, the answer to which nobody will ask for again."""
        self._answers.renounce(envelope)
        self.abandon(envelope)

    def readmit(self, address: Address) -> bool:
        """Let an actor that was set aside in again; return whether it was."""
        was_set_aside = self.failures.readmit(address)
        if was_set_aside:
            self.deliveries.redeliver()
        return was_set_aside

    async def drain(self) -> None:
        """Take no more messages, and return when those accepted are handled and on disk."""
        self._closed = True
        while not (self.waiting == 0 and self.pipeline.is_empty):
            self._idle = trio.Event()
            await self._idle.wait()

    def abort(self, error: Callable[[], GreenroomError]) -> None:
        """Take no more messages and answer whoever still waits with an error of its own."""
        self._closed = True
        self._domain.glance.close()
        self.dispatcher.clear()
        waiting = [envelope for cell in self.residents for envelope in cell.mailbox or ()]
        waiting += [cell.running.envelope for cell in self.residents if cell.running is not None]
        waiting += [envelope for work in self.pipeline.works() for envelope, _ in work.settlements]
        waiting += self._answers.repeats()
        waiting += [] if self._newest is None else [self._newest]  # its handler may have ended the program
        for envelope in waiting:
            envelope.settle(outcome.Error(error()))
        self.posts.call_back()

    # -- a turn ------------------------------------------------------------

    def _turn(self, cell: Cell) -> None:
        if cell.restart is not None:
            self._restart(cell, cell.restart)
        if cell.running is not None:
            self._advance(cell, cell.running)
        mailbox = cell.mailbox
        quantum = self._options.quantum
        slice_over = self.dispatcher.slice_over
        while mailbox and quantum and cell.running is None and not cell.paused_until:
            if self._suspended >= SUSPENDED_LIMIT:  # handlers between two slices keep what they read
                break
            quantum -= 1
            self._begin(cell, mailbox.popleft())
            if slice_over():
                break
        if not mailbox:
            cell.mailbox = None
        self.residents.touch(cell, trio.current_time())
        if cell.mailbox or cell.running is not None:
            self.dispatcher.make_ready(cell)

    def _begin(self, cell: Cell, envelope: Envelope) -> None:
        envelope.begun = True
        self._newest = envelope
        if envelope.deadline != inf and envelope.deadline <= trio.current_time():
            self.counts["expired"] += 1
            sentence = (
                "the deadline passed before the request was begun; nothing was done, it can be repeated"
            )
            self._over(envelope, outcome.Error(DeadlineExceededError(sentence)))
            return
        if envelope.idempotency is not None or envelope.relay is not None:
            earlier = self._answers.admit(envelope)
            if isinstance(earlier, Waiting):
                return
            if earlier is not None:
                self.counts["repeated"] += 1
                self._over(envelope, earlier)
                return
        self._handle(cell, envelope)

    def _handle(self, cell: Cell, envelope: Envelope) -> None:
        context = None
        try:
            actor = cell.actor or self._activate(cell)
            context = Context(self._domain, cell, envelope.principal, envelope.answer, self._clock.now())
            if envelope.row is not None and not self._still_wanted(envelope.row, envelope.timer, context):
                self._over(envelope, outcome.Value(None))
                return
            message = envelope.message
            reply = getattr(actor, cell.handlers[type(message)])(message, context)
        except Refusal as refusal:
            self._refused(cell, envelope, context, refusal)
        except Exception as error:  # noqa: BLE001  a handler may raise anything; that is the actor's failure
            self._failed(cell, envelope, error)
        else:
            if isinstance(reply, GeneratorType):
                cell.running = Running(envelope, context, reply)
                self._suspended += 1
                self._advance(cell, cell.running)
            else:
                self._finish(cell, envelope, context, outcome.Value(reply))

    def _advance(self, cell: Cell, running: Running) -> None:
        """Run a generator handler until its slice is over or it is done, unless its asker gave up."""
        envelope, context, slices = running
        if not envelope.wanted:
            self._close_running(cell, running)
            cell.actor = None  # it had begun to change
            self._over(envelope, outcome.Value(None))
            return
        try:
            next(slices)
        except StopIteration as done:
            self._not_running(cell)
            self._finish(cell, envelope, context, outcome.Value(done.value))
        except Refusal as refusal:
            self._not_running(cell)
            self._refused(cell, envelope, context, refusal)
        except Exception as error:  # noqa: BLE001  as in _handle
            self._not_running(cell)
            self._failed(cell, envelope, error)

    def _activate(self, cell: Cell) -> Actor:
        actor = self._kinds[cell.address.kind]()
        actor.activate(Context(self._domain, cell, None, None, self._clock.now()))
        self.residents.activations += 1
        cell.actor = actor
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

    def _finish(self, cell: Cell, envelope: Envelope, context: Context, result: Result) -> None:
        """Let ``result`` go when everything that it may have seen is on disk."""
        staged = context.effects
        if envelope.idempotency is not None or (
            envelope.relay is not None
            and staged is not None
            and staged.has_effects
            and not staged.dispensable
        ):
            try:
                context.stage_rows(self._answers.rows(envelope, result, context.now))
            except Exception as error:  # noqa: BLE001  what a handler returns may fail to encode in any way
                self._failed(cell, envelope, error)
                return
        self.counts["handled"] += 1
        staged = context.effects
        if staged is not None and staged.has_effects:
            number = self.pipeline.next_number()
            work = Effects(number, cell, staged)
            work.settlements.append((envelope, result))
            for key, payload in staged.own.items():
                cell.overlay[key] = (number, payload)
            cell.last_work = work
            self.pipeline.add(work)
        elif cell.last_work is not None:
            cell.last_work.settlements.append((envelope, result))
        else:
            self._over(envelope, result)

    def _refused(self, cell: Cell, envelope: Envelope, context: Context | None, refusal: Refusal) -> None:
        self.counts["refused"] += 1
        if refusal.is_denial:
            self._domain.deny(envelope.principal, cell.address, envelope.message, refusal)
        staged = None if context is None else context.effects
        brought_rows = 0 if envelope.row is None else 1
        if context is None or (staged and (staged.own or len(staged.rows) > brought_rows)):
            cell.actor = None  # it had begun to change: what it holds in memory is not to be trusted
        if envelope.stored:
            self.deliveries.bury(envelope, refusal, f"{refusal.code}: {refusal}")
        else:
            fresh = Context(self._domain, cell, None, None, self._clock.now())
            self._finish(cell, envelope, fresh, outcome.Error(refusal))

    def _failed(self, cell: Cell, envelope: Envelope, error: Exception) -> None:
        self.counts["failed"] += 1
        name = type(envelope.message).__name__
        logger.error("%s failed while handling %s and is rolled back", cell.address, name, exc_info=error)
        if envelope.stored:
            self._retry(cell, envelope, error)
        else:
            if not isinstance(error, StoreError):
                sentence = (
                    f"{cell.address} failed while handling {name}; it was rolled back and may be asked again"
                )
                failure = ActorFailedError(sentence)
                failure.__cause__ = error
                error = failure
            self._over(envelope, outcome.Error(error))
        self._supervise(cell, name)

    def _retry(self, cell: Cell, envelope: Envelope, error: Exception) -> None:
        envelope.attempts += 1
        if envelope.attempts >= self._options.delivery_attempts:
            self.deliveries.bury(envelope, error, f"{type(error).__name__}: {error}")
        else:
            self._put_back(cell, envelope)

    def _put_back(self, cell: Cell, envelope: Envelope) -> None:
        if cell.address in self.failures.set_aside:
            self._over(envelope, outcome.Error(self.failures.refusal(cell.address)))
            return
        envelope.begun = False
        cell.mailbox = cell.mailbox if cell.mailbox is not None else deque()
        cell.mailbox.appendleft(envelope)

    def _over(self, envelope: Envelope, result: Result) -> None:
        """End one message: answer its asker, and whoever repeated it meanwhile."""
        self.waiting -= 1
        if envelope.row is not None:
            self.deliveries.finished(envelope.row)
        elif envelope.told and type(result) is outcome.Error:  # the class has an ABC's slow isinstance
            self.deliveries.dead_letters += 1
        if envelope.idempotency is not None or envelope.relay is not None:
            for repeat in self._answers.settled(envelope):
                self.waiting -= 1
                repeat.settle(_copy(result))
        envelope.settle(result)
        self._notice_idle()

    # -- commits -----------------------------------------------------------

    def settle(self, works: Sequence[Effects]) -> None:
        """Take note of a finished group: on disk, or refused for lack of space."""
        failed: dict[Cell, list[Effects]] = {}
        for work in works:
            if work.error is not None:
                if type(work) is Noted:
                    self._domain.notes.returned(work)
                elif work.staged.dispensable and work.cell not in failed:
                    self.counts["dispensed_with"] += 1
                elif work.cell is not None:
                    failed.setdefault(work.cell, []).append(work)
                    continue
            if work.buried is not None:
                self.deliveries.finished(work.buried)
            if work.cell is not None:
                self._committed(work.cell, work, work.staged)
            for envelope, result in work.settlements:
                self._over(envelope, result)
        for cell, lost in failed.items():
            self._not_committed(cell, [*lost, *self.pipeline.take_back(cell)])
        self._after_pass()

    def _committed(self, cell: Cell, work: Effects, staged: Staged) -> None:
        overlay = cell.overlay
        for key in staged.own:
            if overlay[key][0] == work.number:
                del overlay[key]
        if cell.last_work is work:
            cell.last_work = None
        if staged.rows:
            self._domain.tracks.note(cell.address, staged.rows)
        for row, address, message in staged.tells:
            self.deliveries.hand_over(row, address, message)
        if staged.next_due is not None:
            self.deliveries.expect(staged.next_due)
        for topic, label in staged.publications:
            self.bus.publish(topic, label)

    def _not_committed(self, cell: Cell, works: Sequence[Effects]) -> None:
        """Fail an actor's works, which are all that ran on the state that the first of them left.

        Stored messages are handled later. Whoever asked and merely came after one of these is handled
        anew: while it waits for room, what needs none goes on.
        """
        self.counts["not_committed"] += len(works)
        error = works[0].error
        assert error is not None
        tainted = [envelope for work in works for envelope, _ in work.settlements]
        after_stored = tainted[0].stored
        if cell.running is not None:
            tainted.append(cell.running.envelope)
            self._close_running(cell, cell.running)
        cell.overlay.clear()
        cell.last_work = None
        cell.actor = None
        stored = [envelope for envelope in tainted if envelope.stored]
        for envelope in reversed(tainted):  # so that they return to the mailbox in their order
            if after_stored and not envelope.stored and envelope.wanted:
                self._put_back(cell, envelope)
            elif not envelope.stored:
                self._over(envelope, outcome.Error(error))
        if stored:
            stored += [envelope for envelope in cell.mailbox or () if envelope.stored]
            cell.mailbox = deque(envelope for envelope in cell.mailbox or () if not envelope.stored)
            self.waiting -= len(stored)
            self.deliveries.wait_for_room(cell.address, stored)
        if cell.mailbox:
            self.dispatcher.make_ready(cell)

    def _after_pass(self) -> None:
        self._domain.glance.close()
        self.pipeline.flush()  # first, so that the disk is busy while the callbacks are
        self.posts.call_back()
        self._notice_idle()

    def _notice_idle(self) -> None:
        if self._idle is not None:
            self._idle.set()

    # -- supervision -------------------------------------------------------

    def _supervise(self, cell: Cell, message_name: str) -> None:
        address, group = cell.address, self._groups[cell.address.kind]
        decision = self.failures.note(address, trio.current_time())
        cell.actor = None
        if isinstance(decision, SetAside):
            self._put_aside(cell, decision.failures)
            return
        self.counts["restarts"] += 1
        if decision.delay:
            self.dispatcher.pause(cell, decision.delay)
        elif cell.mailbox:
            self.dispatcher.make_ready(cell)
        for kind in restarted_kinds(address.kind, group):
            sibling = self.residents.get(address._replace(kind=kind))
            if sibling is not None and sibling is not cell:
                sentence = (
                    f"{sibling.address} was restarted because {address} failed while handling {message_name}"
                )
                sibling.restart = ActorFailedError(sentence)
                self.dispatcher.make_ready(sibling)

    def _restart(self, cell: Cell, reason: ActorFailedError) -> None:
        cell.restart = None
        cell.actor = None
        self.counts["restarts"] += 1
        if cell.running is not None:
            envelope = cell.running.envelope
            self._close_running(cell, cell.running)
            if envelope.stored:
                self._put_back(cell, envelope)
            else:
                self._over(envelope, outcome.Error(reason))

    def _put_aside(self, cell: Cell, failures: int) -> None:
        logger.error("%s failed %d times and is set aside", cell.address, failures)
        while cell.mailbox:
            self._over(cell.mailbox.popleft(), outcome.Error(self.failures.refusal(cell.address)))

    def _not_running(self, cell: Cell) -> None:
        cell.running = None
        self._suspended -= 1

    def _close_running(self, cell: Cell, running: Running) -> None:
        self._not_running(cell)
        try:
            running.slices.close()
        except Exception:
            logger.exception("%s failed while a handler of it was stopped", cell.address)


def _copy(result: Result) -> Result:
    """Return an outcome for one more asker; each can be unwrapped once."""
    return outcome.Value(result.value) if isinstance(result, outcome.Value) else outcome.Error(result.error)
