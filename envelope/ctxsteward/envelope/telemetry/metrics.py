"""What the request path tells OpenTelemetry. Nothing is told where nobody listens, nothing of it is loaded here.

    context.tokens_by_section      gauge        section              of the last build
    context.section_budget         gauge        section              of the last build
    context.section_utilization    gauge, 0..   section              tokens / budget of the last build
    context.section_tokens         counter      section              of all builds: a rate of it is a mean
    context.prompt_tokens          counter                           of all builds, head, tools and priming included
    context.prefix_tokens          counter                           of them, unchanged since the build before
    context.prefix_break           counter      section              see `churn`; section: also ``tools``
    context.overflow               counter      section              builds in which it was over its budget
    context.guard                  counter      level: 80 | 90       builds at or over this share of the window, in %
    context.degraded               counter                           builds in which something was truly gone
    context.compress.count         counter      section              compactions
    context.compress.refused       counter                           that were due and not made
    context.compress.tokens_saved  counter      section
    context.losses                 counter      kind: `LossKind`
    context.cache_miss             counter      reason: `REASONS`
    schema_violation.count         counter      what: transcript | record (a night's) | document (written or read)
    context.build.duration         histogram, s outcome: built | compacted | failed
    context.selection.duration     histogram, s                      where something was selected

A *miss* is a stored envelope, summary or record that is missing, unreadable or stale and had to be regenerated, fetched
elsewhere or done without. The window is the model's without the output reserve. No session, tenant, model or text is
ever a label: see `instruments`. `spans` tells one span and one log record a build, `audit.telemetry` of audits.

Source: the layered-envelope design (observability); OpenTelemetry metrics API.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from ctxsteward.schemas import LossKind
from ctxsteward.schemas.violations import violations

from ..instruments import API, METER, Board, Instrument, Labels, Measurement
from ..tokens.budgets import SECTIONS
from .prefix_breaks import PLACES, PrefixBreak

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram

    from ..envelope import Envelope

Reason = Literal["original", "compaction", "record", "restored", "envelope", "manifest"]
REASONS: tuple[Reason, ...] = get_args(Reason)
GUARDS = ((0.8, "80"), (0.9, "90"))
BUILD_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Bounds of the histograms' buckets."""
BATCH = 64
"""Durations wait for a collection, at most so many."""
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
    _counter("context.degraded", "Builds in which something stored was truly gone."),
    _counter("context.compress.count", "Compactions.", section=SECTIONS),
    _counter("context.compress.refused", "Compactions that were due and not made."),
    _counter("context.compress.tokens_saved", "Tokens that compactions took away.", TOKENS, section=SECTIONS),
    _counter("context.losses", "What compactions lost, by kind.", kind=get_args(LossKind)),
    _counter("context.cache_miss", "Stored things missing, unreadable or stale.", reason=REASONS),
    _counter(
        "schema_violation.count",
        "Transcripts, records and published documents refused by schema.",
        what=("transcript", "record", "document"),
    ),
)

BUILD_DURATION = Instrument(
    name="context.build.duration", kind="histogram", unit="s", about="What a build took, selection left out.",
    labels={"outcome": get_args(Outcome)},
)  # fmt: skip
SELECTION_DURATION = Instrument(
    name="context.selection.duration", kind="histogram", unit="s", about="What choosing what is recalled took.",
    labels={},
)  # fmt: skip

_NONE: Labels = ()
_SECTION: dict[str, Labels] = {name: (name,) for name in PLACES}


@cache
def board() -> Board:
    """This process's numbers."""
    return Board(INSTRUMENTS, before=_collected)


def cache_miss(reason: Reason) -> None:
    """Count a stored thing that could not be used."""
    board().add("context.cache_miss", 1, reason)


def built(envelope: Envelope, churned: PrefixBreak, window_tokens: int | None) -> None:
    """Count a build; `window_tokens` is what the model has for a prompt, None where that is not known."""
    prompt = envelope.tokens
    counts: list[Measurement] = [("context.prompt_tokens", prompt, _NONE)]
    counts.append(("context.prefix_tokens", churned.prefix_tokens, _NONE))
    gauges: list[Measurement] = []
    for name, section in envelope.sections.items():
        label, tokens, budget = _SECTION[name], section.tokens, section.budget_tokens
        counts.append(("context.section_tokens", tokens, label))
        gauges.append(("context.tokens_by_section", tokens, label))
        gauges.append(("context.section_budget", budget, label))
        gauges.append(("context.section_utilization", tokens / (budget or 1), label))
        if tokens > budget:
            counts.append(("context.overflow", 1, label))
    if churned.broke_in:
        counts.append(("context.prefix_break", 1, _SECTION[churned.broke_in]))
    if envelope.reports or envelope.findings:
        counts += _happened(envelope)
    if window_tokens:
        counts += [("context.guard", 1, (level,)) for share, level in GUARDS if prompt >= share * window_tokens]
    board().tell(counts, gauges)


def lasted(outcome: Outcome, build_seconds: float, selection_seconds: float = 0.0) -> None:
    """Take down what a build took, where somebody listens."""
    if API not in sys.modules:
        return
    waiting = _durations()
    waiting.append((outcome, build_seconds, selection_seconds))
    if len(waiting) >= BATCH:
        _record()


@cache
def _durations() -> deque[tuple[Outcome, float, float]]:
    """Not yet recorded: in a row they cost a fraction of what each costs amid other work."""
    return deque()


def _collected() -> None:
    """Bring up to date what a collection is about to read."""
    _record()
    refused = sum(violations().values())
    counted = board().numbers("schema_violation.count")[("document",)]
    board().add("schema_violation.count", max(0, refused - counted), "document")


def _record() -> None:
    """Record the durations that wait."""
    waiting = _durations()
    while waiting:
        try:
            outcome, build_seconds, selection_seconds = waiting.popleft()
        except IndexError:  # another thread was quicker
            return
        _histograms().build.record(build_seconds, _OUTCOMES[outcome])
        if selection_seconds:
            _histograms().selection.record(selection_seconds)


def _happened(envelope: Envelope) -> Iterator[Measurement]:
    for report in envelope.reports:
        section = (report.section,)
        yield "context.compress.count", 1, section
        yield "context.compress.tokens_saved", max(0, report.pre_tokens - report.post_tokens), section
        for loss in report.losses:
            yield "context.losses", 1, (loss.kind,)
    for found in envelope.findings:
        if found.kind == "compaction_refused":
            yield "context.compress.refused", 1, _NONE
    if envelope.metrics["degraded"]:
        yield "context.degraded", 1, _NONE


_OUTCOMES: dict[Outcome, dict[str, str]] = {name: {"outcome": name} for name in get_args(Outcome)}


class _BuildTiming(NamedTuple):
    build: Histogram
    selection: Histogram


@cache
def _histograms() -> _BuildTiming:
    from opentelemetry.metrics import get_meter

    meter = get_meter(METER)
    build, selection = (
        meter.create_histogram(one.name, one.unit, one.about, explicit_bucket_boundaries_advisory=BUILD_SECONDS)
        for one in (BUILD_DURATION, SELECTION_DURATION)
    )
    return _BuildTiming(build, selection)
