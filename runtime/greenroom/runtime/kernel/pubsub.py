"""Publish committed changes of topics to their subscribers.

A publication names a topic that changed, with a label. Each subscriber's own function decides by the label
whether to accept it. A refused publication neither wakes the subscriber nor starts a window.

Memory does not grow with the number of changes: waiting publications of a topic are a set of labels, and an
untaken change is one flag a topic (`Debounce`). The subscribers of a topic are notified in slices. Topics
take turns, and while requests are pending there is a pause after each slice. So a topic with thousands of
subscribers delays neither writers nor other topics.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, Final, Protocol, Self

import trio

from greenroom.runtime.base.debounce import Debounce
from greenroom.runtime.base.errors import RuntimeClosedError
from greenroom.runtime.base.statistics import BusStatistics

logger = logging.getLogger(__name__)

Accepts = Callable[[Any], bool]

WINDOW_SECONDS = 0.1


class _Anybody:
    """The label of a change that every subscriber of the topic accepts."""


ANYBODY: Final = _Anybody()
SLICE_WOKEN = 10
"""The most subscribers that one slice may wake."""
SLICE_NOTIFIED = 512
"""The most subscribers that one slice may notify."""
SLICE_PASSES = 3
"""The number of event loop passes until the woken tasks and their output are done."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.001, 0.005
"""Bounds, in seconds, of the pause after a slice; the pause leaves the event loop to requests."""


class Subscriber:
    """A receiver of changes of topics, a context manager made by `Runtime.subscriber`.

    Only one task at a time may wait for a subscriber. A topic is delivered once, however often it changed
    before it was taken. There is no replay: read again what changed.

        with runtime.subscriber() as subscriber:
            subscriber.add("news")
            async for topic in subscriber:
                ...
    """

    __slots__ = ("_bus", "_closed", "_debounce", "_scope", "_task", "_topics")

    def __init__(self, bus: Bus, window: float) -> None:
        self._bus = bus
        self._closed = False
        self._debounce = Debounce(window)
        self._topics: dict[str, Accepts] = {}
        self._task: trio.lowlevel.Task | None = None
        self._scope: trio.CancelScope | None = None

    def __len__(self) -> int:
        return len(self._topics)

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    @property
    def topics(self) -> list[str]:
        """The topics to which the subscriber is subscribed."""
        return list(self._topics)

    def add(self, topic: str, accepts: Accepts = lambda _: True) -> None:
        """Subscribe to changes of ``topic``, which need not exist; a second call replaces ``accepts``.

        ``accepts`` returns whether to accept a publication with a label. It must be quick; an exception
        counts as False.

        Raises:
            RuntimeClosedError: the subscriber or the runtime is closed.
        """
        if self._closed:
            raise _closed_error()
        self._topics[topic] = accepts
        self._bus.join(topic, self)

    def remove(self, topic: str) -> bool:
        """Unsubscribe from ``topic``, also from untaken changes; return whether it was subscribed."""
        if self._topics.pop(topic, None) is None:
            return False
        self._debounce.forget(topic)
        self._bus.leave(topic, self)
        return True

    async def wait_heard(self) -> None:
        """Wait until no later change is missed, also if another process owns the store."""
        if self._bus.wait_heard is not None:
            await self._bus.wait_heard()

    async def next(self) -> str:
        """Wait for a change and return its topic.

        Raises:
            RuntimeClosedError: the subscriber or the runtime is closed.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        has_waited = False
        while True:
            if self._closed:
                raise _closed_error()
            topic = self._debounce.take(trio.current_time())
            if topic is not None:
                self._bus.told += 1
                if not has_waited:
                    await trio.lowlevel.cancel_shielded_checkpoint()
                return topic
            has_waited = True
            with trio.CancelScope(deadline=self._debounce.due()) as self._scope:
                self._task = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._unpark)

    def close(self) -> None:
        """Unsubscribe from every topic, and wake the waiting task; a second call does nothing."""
        if not self._closed:
            self._closed = True
            for topic in list(self._topics):
                self.remove(topic)
            self._bus.forget(self)
            self._wake()

    def notify(self, topic: str, labels: Iterable[Hashable], now: float) -> bool:
        """Receive publications of ``topic`` at ``now``; return whether the waiting task woke."""
        accepts = self._topics.get(topic)
        if accepts is None or not any(_is_accepted(accepts, label) for label in labels):
            return False
        due = self._debounce.change(topic, now)
        if self._task is None:
            return False
        if due <= now:
            self._wake()
            return True
        assert self._scope is not None, "the waiting task has set it"
        self._scope.deadline = min(self._scope.deadline, due)
        return False

    def _wake(self) -> None:
        if self._task is not None:
            task, self._task = self._task, None
            trio.lowlevel.reschedule(task)

    def _unpark(self, _: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        try:
            return await self.next()
        except RuntimeClosedError:
            raise StopAsyncIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Listener(Protocol):
    """A receiver of publications: a `Subscriber`, or another process."""

    def notify(self, topic: str, labels: Iterable[Hashable], now: float) -> bool:
        """Receive publications of ``topic`` at ``now``; return whether a task woke."""


class Fanout:
    """One round through the subscribers of a topic.

    ``labels`` were published before it began, the ``later`` ones since. Until it begins, ``left`` is None.
    """

    __slots__ = ("labels", "later", "left", "topic")

    def __init__(self, topic: str, labels: dict[Hashable, None]) -> None:
        self.topic = topic
        self.labels = labels
        self.left: list[Listener] | None = None
        self.later: dict[Hashable, None] = {}


class Bus:
    """The topics with subscribers, and the task that notifies the subscribers.

    Invariant: a topic has at most one pass, with one turn in the queue.

    Attributes:
        on_interest: Called with each topic that gets its first listener (true) or loses its last one (false).
        wait_heard: Waits until the owner of the store knows all topics, if that is another process.
    """

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        self.is_busy = is_busy
        self.on_interest: Callable[[str, bool], None] | None = None
        self.wait_heard: Callable[[], Awaitable[None]] | None = None
        self._topics: dict[str, dict[Listener, None]] = {}
        self._subscribers: dict[Subscriber, None] = {}
        self._passes: dict[str, Fanout] = {}
        self._turns: deque[Fanout] = deque()
        self._waiting = trio.lowlevel.ParkingLot()  # the task of `run` waits here while no turn is due
        self.published = 0
        self.told = 0

    def subscriber(self, window: float) -> Subscriber:
        """Return a new subscriber without topics."""
        subscriber = Subscriber(self, window)
        self._subscribers[subscriber] = None
        return subscriber

    @property
    def topics(self) -> list[str]:
        """The topics with subscribers."""
        return list(self._topics)

    def has_subscribers(self, topic: str) -> bool:
        """Return whether a topic has a subscriber, in this process or an attached one."""
        return topic in self._topics

    def join(self, topic: str, listener: Listener) -> None:
        """Subscribe a listener to a topic."""
        listeners = self._topics.get(topic)
        if listeners is None:
            listeners = self._topics[topic] = {}
            if self.on_interest is not None:
                self.on_interest(topic, True)
        listeners[listener] = None

    def leave(self, topic: str, listener: Listener) -> None:
        """Unsubscribe a listener from a topic."""
        listeners = self._topics[topic]
        del listeners[listener]
        if not listeners:
            del self._topics[topic]
            if self.on_interest is not None:
                self.on_interest(topic, False)
            unwanted = self._passes.pop(topic, None)
            if unwanted is not None:
                self._turns.remove(unwanted)

    def forget(self, subscriber: Subscriber) -> None:
        """Drop a subscriber that has left its topics."""
        self._subscribers.pop(subscriber, None)

    def publish(self, topic: str, label: Hashable) -> None:
        """Queue a committed publication; subscribers are notified later."""
        self.published += 1
        if topic not in self._topics:
            return
        under_way = self._passes.get(topic)
        if under_way is None:
            under_way = self._passes[topic] = Fanout(topic, {})
            self._turns.append(under_way)
        labels = under_way.labels if under_way.left is None else under_way.later
        labels[label] = None
        self._waiting.unpark_all()

    def close(self) -> None:
        """End every subscriber."""
        for subscriber in list(self._subscribers):
            subscriber.close()

    async def run(self) -> None:
        """Notify subscribers, forever."""
        while True:
            if not self._turns:
                await self._waiting.park()
            began = trio.current_time()
            if self._slice():
                await trio.lowlevel.checkpoint()
                continue
            for _ in range(SLICE_PASSES):
                await trio.lowlevel.checkpoint()
            if self.is_busy():
                await trio.sleep(pause_after(trio.current_time() - began))

    def statistics(self) -> BusStatistics:
        """Return the statistics of subscriptions."""
        return BusStatistics(
            subscribers=len(self._subscribers),
            subscriptions=sum(len(listeners) for listeners in self._topics.values()),
            topics=len(self._topics),
            waiting=len(self._turns),
            published=self.published,
            told=self.told,
        )

    def _slice(self) -> bool:
        """Notify some subscribers, one of each topic in turn; return whether all are done."""
        notified = woken = 0
        now = trio.current_time()
        while self._turns and notified < SLICE_NOTIFIED and woken < SLICE_WOKEN:
            current = self._turns.popleft()
            if current.left is None:
                current.left = list(self._topics[current.topic])
            notified += 1
            woken += current.left.pop().notify(current.topic, current.labels, now)
            if current.left:
                self._turns.append(current)
            elif current.later:
                current.labels, current.later, current.left = current.later, {}, None
                self._turns.append(current)
            else:
                del self._passes[current.topic]
        return not self._turns


def pause_after(seconds: float) -> float:
    """Return the pause, in seconds, after a slice that took ``seconds``."""
    return min(max(2 * seconds, SHORTEST_PAUSE), LONGEST_PAUSE)


def _is_accepted(accepts: Accepts, label: Hashable) -> bool:
    if label is ANYBODY:
        return True
    try:
        return accepts(label)
    except Exception:
        logger.exception("a subscriber could not judge a label")
        return False


def _closed_error() -> RuntimeClosedError:
    return RuntimeClosedError("the subscriber or the runtime is closed; no more changes arrive")
