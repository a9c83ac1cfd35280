"""Instruments whose labels cannot grow: running numbers of this process, which OpenTelemetry reads when it collects.

A `Board` keeps its numbers itself and offers them as observable instruments, so telling costs an addition and no SDK
is in the way of a build. A label's values are a closed list, or a largest number of them; whatever else is told counts
as ``other``, so no session, tenant or text can become a series. What can be counted with a closed list stands at 0 from
the beginning: a rate has something to be a rate of before the first event.

The OpenTelemetry API is used once the process has loaded it (whoever sets up an SDK has), and never loaded here.

Source: OpenTelemetry metrics API (asynchronous instruments); the Prometheus project's advice on instrumentation
(no missing metrics, no unbounded labels).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Literal

from ctxsteward.store import process_forks as forking

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

METER = "ctxsteward"
OTHER = "other"
API = "opentelemetry.metrics"

Labels = tuple[str, ...]
Measurement = tuple[str, float, Labels]
"""Name of an instrument, a number, values of its labels in their order."""
Values = tuple[str, ...] | int
"""What a label may say: these, or at most so many different ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """One metric."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    """A board keeps counters and gauges; a histogram is OpenTelemetry's own."""
    unit: str
    """UCUM: ``1``, ``{token}``."""
    about: str
    labels: Mapping[str, Values]


class Board:
    """Numbers of some instruments; threads may share it."""

    def __init__(self, instruments: Iterable[Instrument], before: Callable[[], None] | None = None) -> None:
        """`before` is called when somebody collects."""
        self._before = before
        self.instruments = {one.name: one for one in instruments}
        self._numbers: dict[str, dict[Labels, float]] = {
            one.name: dict.fromkeys(_series(one), 0) if one.kind == "counter" else {}
            for one in self.instruments.values()
        }
        self._lock = forking.lock()
        self._offered = False

    def add(self, name: str, number: float = 1, *labels: str) -> None:
        """Count."""
        self.tell(((name, number, labels),))

    def tell(self, counts: Iterable[Measurement], gauges: Iterable[Measurement] = ()) -> None:
        """Count several things and say what several gauges stand at, in one go."""
        with self._lock:
            for name, number, labels in counts:
                row = self._numbers[name]
                if labels not in row:
                    labels = self._allowed(name, labels)
                row[labels] = row.get(labels, 0) + number
            for name, value, labels in gauges:
                row = self._numbers[name]
                row[labels if labels in row else self._allowed(name, labels)] = value
        if not self._offered and API in sys.modules:
            self.offer()

    def set(self, name: str, value: float, *labels: str) -> None:
        """Say what a gauge stands at."""
        self.tell((), ((name, value, labels),))

    def offer(self) -> None:
        """Make the instruments known to OpenTelemetry, whose API is loaded for it; once is enough."""
        from opentelemetry.metrics import get_meter

        with self._lock:
            if self._offered:
                return
            self._offered = True
        meter = get_meter(METER)
        for one in self.instruments.values():
            make = meter.create_observable_counter if one.kind == "counter" else meter.create_observable_gauge
            make(one.name, [self._callback(one)], unit=one.unit, description=one.about)

    def numbers(self, name: str) -> dict[Labels, float]:
        """What an instrument stands at, by the values of its labels."""
        with self._lock:
            return dict(self._numbers[name])

    def _allowed(self, name: str, labels: Labels) -> Labels:
        """These labels, with ``other`` for what they may not say."""
        asked = self.instruments[name].labels
        if len(labels) != len(asked):
            raise ValueError(f"{name} has the labels {', '.join(asked) or 'none'}; got {len(labels)} values")
        taken = self._numbers[name]
        return tuple(
            value if _may_say(value, values, {row[at] for row in taken} if isinstance(values, int) else ()) else OTHER
            for at, (value, values) in enumerate(zip(labels, asked.values(), strict=True))
        )

    def _callback(self, one: Instrument) -> Callable[[CallbackOptions], Iterator[Observation]]:
        def observe(options: CallbackOptions) -> Iterator[Observation]:
            from opentelemetry.metrics import Observation

            if self._before is not None:
                self._before()
            for labels, number in self.numbers(one.name).items():
                yield Observation(number, dict(zip(one.labels, labels, strict=True)))

        return observe


def _may_say(value: str, values: Values, seen: Sequence[str] | set[str]) -> bool:
    if isinstance(values, int):
        return value in seen or len(seen) < values
    return value in values


def _series(one: Instrument) -> list[Labels]:
    """Every series that there can be; none where a label is not a closed list."""
    if any(isinstance(values, int) for values in one.labels.values()):
        return []
    return list(product(*(values for values in one.labels.values() if not isinstance(values, int))))
