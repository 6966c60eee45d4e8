"""What came of a load, added up: percentiles as HdrHistogram keeps them, to a thousandth of each value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]  # it has no hints

from bench.harness import percentile
from bench.load.plan import LoadPlan
from bench.load.worker import Second

PERCENTS: Final = (50, 75, 90, 99, 99.9, 99.99)
_LONGEST: Final = 3_600_000_000  # µs
_FIGURES: Final = 3


class Times:
    """Many times, of which the percentiles are wanted."""

    def __init__(self) -> None:
        self._histogram = HdrHistogram(1, _LONGEST, _FIGURES)

    def add(self, microseconds: Sequence[int]) -> None:
        """Take more of them."""
        for each in microseconds:
            self._histogram.record_value(min(max(each, 1), _LONGEST))

    def percentile(self, percent: float) -> float:
        """Return the ms that so many percent do not exceed; 0 if there are no times."""
        return float(self._histogram.get_value_at_percentile(percent)) / 1e3

    def summary(self) -> dict[str, float]:
        """Return how many there are, their mean, percentiles and the longest, in ms."""
        if not self._histogram.get_total_count():
            return {"count": 0}
        return {
            "count": self._histogram.get_total_count(),
            "mean": self._histogram.get_mean_value() / 1e3,
            **{f"p{percent:g}": self.percentile(percent) for percent in PERCENTS},
            "max": self._histogram.get_max_value() / 1e3,
        }

    def encoded(self) -> str:
        """Return the histogram as the tools of HdrHistogram read it (V2, compressed, base64; µs)."""
        text: bytes = self._histogram.encode()
        return text.decode()


class Sample(NamedTuple):
    """What the watched processes together hold and have computed: RssAnon in MB, and seconds."""

    memory: float
    processor: float


class Outcome:
    """A load's totals.

    Attributes:
        sent: Calls sent.
        right: Calls with a right answer.
        errors: What went wrong, and how often.
        samples: What the system knows of the watched processes, at the begin and second by second.
    """

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self._all = Times()
        self._late = Times()
        self._tasks = {task.name: Times() for task in plan.tasks}
        self.sent = 0
        self.right = 0
        self.errors: Counter[str] = Counter()
        self.samples: list[Sample] = []

    def add(self, second: Second) -> None:
        """Take what came of a second."""
        self.sent += second.sent
        self.errors.update(second.errors)
        for times, latencies in zip(self._tasks.values(), second.latencies, strict=True):
            times.add(latencies)
            self._all.add(latencies)
        self.right += second.right
        self._late.add(second.late)

    @property
    def processor(self) -> float | None:
        """The µs that the watched processes computed for a right answer."""
        if not self.samples or not self.right:
            return None
        return (self.samples[-1].processor - self.samples[0].processor) * 1e6 / self.right

    def percentile(self, percent: float) -> float:
        """Return the ms that so many percent of all calls do not exceed."""
        return self._all.percentile(percent)

    def document(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return {
            "clients": self._plan.clients,
            "era": self._plan.era,
            "rate": self._plan.rate,
            "seconds": self._plan.seconds,
            "mix": {task.name: task.weight for task in self._plan.tasks},
            "sent": self.sent,
            "right": self.right,
            "errors": dict(self.errors.most_common()),
            "answers_per_second": self.right / self._plan.seconds,
            "latency_ms": {
                "all": self._all.summary(),
                **{name: times.summary() for name, times in self._tasks.items()},
            },
            "sent_late_ms": self._late.summary(),
            "rss_anon_mb": [sample.memory for sample in self.samples],
            "processor_us_per_call": self.processor,
            "hdr_histogram": self._all.encoded(),
        }


def merged(seconds: Sequence[Second]) -> Second:
    """Return what came of the same second at several workers."""
    errors: Counter[str] = Counter()
    for second in seconds:
        errors.update(second.errors)
    return Second(
        sum(second.sent for second in seconds),
        sum(second.right for second in seconds),
        sum(second.open for second in seconds),
        dict(errors),
        [list(chain(*parts)) for parts in zip(*(second.latencies for second in seconds), strict=True)],
        [each for second in seconds for each in second.late],
        all(second.over for second in seconds),
    )


def live_line(number: int, second: Second, samples: Sequence[Sample]) -> str:
    """Return a second for people, with what was sampled at its begin and its end if anything was."""
    times = [each / 1e3 for latencies in second.latencies for each in latencies]
    parts = [f"{number:>4} s", f"{second.sent:>7,}/s", f"open {second.open:>5,}"]
    if times:
        shown = [f"{percentile(times, percent):.2f}" for percent in (50, 90, 99)]
        parts.append(f"ms p50 {shown[0]} p90 {shown[1]} p99 {shown[2]} max {max(times):.2f}")
    if samples:
        computed = samples[-1].processor - samples[0].processor
        parts.append(f"CPU {computed * 100:.0f} %  RssAnon {samples[-1].memory:.1f} MB")
    if second.errors:
        parts.append(
            f"WRONG {sum(second.errors.values()):,}: {max(second.errors, key=second.errors.__getitem__)}"
        )
    return "  ".join(parts)
