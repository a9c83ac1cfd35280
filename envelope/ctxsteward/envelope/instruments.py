"""Counters and gauges that OpenTelemetry reads when it collects (`Board`), and the instruments of the request path.

A `Board` keeps its numbers itself and offers them as observable instruments, so counting costs one addition and a build
never waits for an SDK. A label has a closed list of values or a largest number of them. Any other value counts as
``other``, so no session, tenant, model or text can become a series. A counter with closed labels starts at 0 in every
series, so that a rate exists before the first event.

The OpenTelemetry API is used once the process has loaded it, as the set-up of an SDK does. It is never loaded here.

`board()` has the counters and gauges of the request path, all in `INSTRUMENTS`; the site's reference shows them as a
table. A rate of `context.section_tokens` is a mean. `telemetry.spans` explains `context.prefix_break`.
`context.cache_miss` counts stored envelopes, summaries and records that are missing, unreadable or stale and had to be
regenerated, fetched elsewhere or skipped. There are two histograms: `context.build.duration` (by `outcome`) and
`context.selection.duration`, recorded for builds that selected something.

Sources: OpenTelemetry metrics API (asynchronous instruments); the Prometheus project's advice on instrumentation (no
missing metrics, no unbounded labels); the layered-envelope design (observability).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Literal, get_args

from ctxsteward.schemas.errors import violations
from ctxsteward.schemas.summary import LossKind
from ctxsteward.store import process_forks as forking

from .tokens.budgets import SECTIONS

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Histogram, Observation

METER = "ctxsteward"
OTHER = "other"
API = "opentelemetry.metrics"

Labels = tuple[str, ...]
Measurement = tuple[str, float, Labels]
"""Name of an instrument, a number, and the values of its labels in order."""
Values = tuple[str, ...] | int
"""Allowed values of a label: a closed list, or the largest number of different values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """Description of one metric."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    """Kind of the metric. A board keeps counters and gauges; OpenTelemetry keeps histograms."""
    unit: str
    """UCUM unit, such as ``1`` or ``{token}``."""
    about: str
    labels: Mapping[str, Values]


class Board:
    """Current numbers of some instruments; safe to share between threads."""

    def __init__(self, instruments: Iterable[Instrument], before: Callable[[], None] | None = None) -> None:
        """Make a board; `before` is called at each collection, before numbers are read."""
        self._before = before
        self.instruments: dict[str, Instrument] = {instrument.name: instrument for instrument in instruments}
        self._numbers: dict[str, dict[Labels, float]] = {
            instrument.name: dict.fromkeys(_series(instrument), 0) if instrument.kind == "counter" else {}
            for instrument in self.instruments.values()
        }
        self._lock = forking.lock()
        self._offered = False

    def add(self, name: str, number: float = 1, *labels: str) -> None:
        """Add a number to a counter."""
        self.tell(((name, number, labels),))

    def tell(self, counts: Iterable[Measurement], gauges: Iterable[Measurement] = ()) -> None:
        """Add to several counters and set several gauges, in one step."""
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
        """Set a gauge."""
        self.tell((), ((name, value, labels),))

    def offer(self) -> None:
        """Register the instruments with OpenTelemetry once; later calls do nothing. This loads its API."""
        from opentelemetry.metrics import get_meter

        with self._lock:
            if self._offered:
                return
            self._offered = True
        meter = get_meter(METER)
        for instrument in self.instruments.values():
            make = meter.create_observable_counter if instrument.kind == "counter" else meter.create_observable_gauge
            make(instrument.name, [self._callback(instrument)], unit=instrument.unit, description=instrument.about)

    def numbers(self, name: str) -> dict[Labels, float]:
        """Return an instrument's current numbers by the values of its labels."""
        with self._lock:
            return dict(self._numbers[name])

    def _allowed(self, name: str, labels: Labels) -> Labels:
        """Return these labels with ``other`` in place of values that are not allowed."""
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
    """Return every possible series of an instrument, or an empty list if a label is not a closed list."""
    if any(isinstance(values, int) for values in one.labels.values()):
        return []
    return list(product(*(values for values in one.labels.values() if not isinstance(values, int))))


# -- the request path ---------------------------------------------------------------------------------------------

PLACES = ("tools", *SECTIONS)
"""Sections in which a prefix can break, in the order of the prompt."""
Reason = Literal["original", "compaction", "record", "restored", "envelope", "manifest"]
REASONS: tuple[Reason, ...] = get_args(Reason)
SPEAKERS = ("user", "assistant", "tool")
"""Roles of messages that the operator did not write."""
GUARDS = ((0.8, "80"), (0.9, "90"))
BUILD_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Bounds of the histograms' buckets, in seconds."""
BATCH = 64
"""Most durations that wait for a collection."""
Outcome = Literal["built", "compacted", "failed"]

TOKENS = "{token}"
_BY_SECTION = {"section": SECTIONS}


def _counter(name: str, about: str, unit: str = "1", **labels: tuple[str, ...]) -> Instrument:
    return Instrument(name=name, kind="counter", unit=unit, about=about, labels=labels)


def _gauge(name: str, about: str, unit: str = "1") -> Instrument:
    return Instrument(name=name, kind="gauge", unit=unit, about=about, labels=_BY_SECTION)


INSTRUMENTS = (
    _gauge("context.tokens_by_section", "Tokens of each section in the last build.", TOKENS),
    _gauge("context.section_budget", "Budget of each section in the last build.", TOKENS),
    _gauge("context.section_utilization", "Share of its budget that each section took in the last build."),
    _counter("context.section_tokens", "Tokens of each section over all builds.", TOKENS, section=SECTIONS),
    _counter("context.prompt_tokens", "Estimated prompt tokens over all builds.", TOKENS),
    _counter("context.prefix_tokens", "Prompt tokens unchanged since the session's build before.", TOKENS),
    _counter("context.prefix_break", "Builds whose stable prefix changed, by where.", section=PLACES),
    _counter("context.overflow", "Builds in which a section was over its budget.", section=SECTIONS),
    _counter("context.guard", "Builds at or over this percentage of the window.", level=tuple(n for _, n in GUARDS)),
    _counter("context.rules_missing", "Standing rules that a build's request did not show."),
    _counter("context.degraded", "Builds in which something stored was truly gone."),
    _counter("context.compress.count", "Compactions.", section=SECTIONS),
    _counter("context.compress.refused", "Compactions that were due and not made."),
    _counter("context.compress.tokens_saved", "Tokens that compactions took away.", TOKENS, section=SECTIONS),
    _counter("context.compress.tokens_rewritten", "Unchanged tokens that compactions had written anew.", TOKENS),
    _counter("context.losses", "What compactions lost, by kind.", kind=get_args(LossKind)),
    _counter("context.cache_miss", "Stored things missing, unreadable or stale.", reason=REASONS),
    _counter("context.rewrite_attempts", "Untrusted messages that name controls of the context.", role=SPEAKERS),
    _counter(
        "schema_violation.count",
        "Transcripts, records and published documents refused by schema.",
        what=("transcript", "record", "document"),
    ),
)

BUILD_DURATION = Instrument(
    name="context.build.duration",
    kind="histogram",
    unit="s",
    about="What a build took, selection left out.",
    labels={"outcome": get_args(Outcome)},
)
SELECTION_DURATION = Instrument(
    name="context.selection.duration",
    kind="histogram",
    unit="s",
    about="What choosing what is recalled took.",
    labels={},
)


@cache
def board() -> Board:
    """Return the board of this process."""
    return Board(INSTRUMENTS, before=_collected)


def cache_miss(reason: Reason) -> None:
    """Count a stored object that could not be used."""
    board().add("context.cache_miss", 1, reason)


def rewrite_attempt(role: str) -> None:
    """Count an untrusted message that names controls of the context."""
    board().add("context.rewrite_attempts", 1, role)


def lasted(outcome: Outcome, build_seconds: float, selection_seconds: float = 0.0) -> None:
    """Queue a build's durations for the next collection; do nothing until OpenTelemetry is loaded."""
    if API not in sys.modules:
        return
    waiting = _durations()
    waiting.append((outcome, build_seconds, selection_seconds))
    if len(waiting) >= BATCH:
        _record()


@cache
def _durations() -> deque[tuple[Outcome, float, float]]:
    """Return the queue of durations. Recording them together costs a fraction of recording each amid other work."""
    return deque()


def _collected() -> None:
    """Update the numbers that a collection is about to read."""
    _record()
    refused = sum(violations().values())
    counted = board().numbers("schema_violation.count")[("document",)]
    board().add("schema_violation.count", max(0, refused - counted), "document")


def _record() -> None:
    """Record the queued durations."""
    waiting, (builds, selections) = _durations(), _histograms()
    while waiting:
        try:
            outcome, build_seconds, selection_seconds = waiting.popleft()
        except IndexError:  # another thread was quicker
            return
        builds.record(build_seconds, {"outcome": outcome})
        if selection_seconds:
            selections.record(selection_seconds)


@cache
def _histograms() -> tuple[Histogram, Histogram]:
    """Return the histograms of build and selection durations."""
    from opentelemetry.metrics import get_meter

    meter = get_meter(METER)
    build, selection = (
        meter.create_histogram(
            instrument.name, instrument.unit, instrument.about, explicit_bucket_boundaries_advisory=BUILD_SECONDS
        )
        for instrument in (BUILD_DURATION, SELECTION_DURATION)
    )
    return build, selection
