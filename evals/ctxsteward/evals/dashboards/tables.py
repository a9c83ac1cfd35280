"""Tables of the guide: every instrument, every alert, as Markdown between a page's markers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ctxsteward.envelope import telemetry as builds
from ctxsteward.envelope.audit import telemetry as audits
from ctxsteward.envelope.instruments import Instrument
from ctxsteward.schemas import InputError
from ctxsteward.steward import telemetry as nights

from .. import telemetry as evals
from .rules import ALERTS, RECORDINGS

INSTRUMENTS: tuple[Instrument, ...] = tuple(
    chain(
        builds.INSTRUMENTS, (builds.BUILD_DURATION, builds.SELECTION_DURATION), audits.INSTRUMENTS, nights.INSTRUMENTS,
        evals.INSTRUMENTS,
    )
)  # fmt: skip
SUFFIXES = {"counter": "_total", "gauge": "", "histogram": "_seconds_bucket"}
MOST_VALUES = 4
"""Of a label, written out."""


def prometheus_name(one: Instrument) -> str:
    """What it is called where Prometheus scrapes it.

    >>> prometheus_name(builds.BUILD_DURATION)
    'context_build_duration_seconds_bucket'
    """
    return one.name.replace(".", "_") + SUFFIXES[one.kind]


def instruments() -> Iterator[str]:
    """One row each."""
    yield "| instrument | in Prometheus | labels | what it says |"
    yield "|---|---|---|---|"
    for one in INSTRUMENTS:
        labels = "; ".join(f"`{name}`: {_values(values)}" for name, values in one.labels.items())
        yield f"| `{one.name}` | `{prometheus_name(one)}` | {labels} | {one.about} |"


def rules() -> Iterator[str]:
    """One row each, recorded series first."""
    yield "| rule | when | what to do |"
    yield "|---|---|---|"
    for rule in RECORDINGS:
        yield f"| `{rule.name}` | recorded | |"
    for alert in ALERTS:
        for_ = "" if alert.lasting == "0m" else f", for {alert.lasting}"
        yield f"| `{alert.name}` | {alert.summary} ({alert.limit}{for_}; {alert.severity}) | {alert.todo} |"


def with_tables(text: str) -> str:
    """The page with its tables anew; raises `InputError` where a marker is missing."""
    for name, rows in (("instruments", instruments()), ("rules", rules())):
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        if not 0 <= text.find(begin) < text.find(end):
            raise InputError(f"the page has no {begin.strip()} followed by {end}; write them where the table belongs")
        text = text[: text.index(begin)] + begin + "\n".join(rows) + "\n" + text[text.index(end) :]
    return text


def _values(values: tuple[str, ...] | int) -> str:
    if isinstance(values, int):
        return f"at most {values}"
    more = f" and {len(values) - MOST_VALUES} more" if len(values) > MOST_VALUES + 1 else ""
    return ", ".join(values[:MOST_VALUES] if more else values) + more
