"""One record laid open: what it says, for whom, why it has its status, and the words it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import tables
from .steward_records import whose, why_so

if TYPE_CHECKING:
    from rich.console import Console

    from ctxsteward.schemas.recommendation import MetaRecommendation

    from .steward_place import Place
    from .steward_records import Span


def shown_in(place: Place, record: MetaRecommendation) -> int | None:
    """The version in force, where this record stands in it."""
    head = place.versions.head()
    if head is None or record.id not in {one.id for one in head.profile.meta}:
        return None
    return head.number


def document(record: MetaRecommendation, spans: Sequence[Span], shown: int | None) -> dict[str, Any]:
    return {
        "record": record.model_dump(mode="json"), "for": whose(record), "why": why_so(record),
        "in_force_in_version": shown, "spans": [span.document() for span in spans],
    }  # fmt: skip


def show(console: Console, record: MetaRecommendation, spans: Sequence[Span], shown: int | None) -> None:
    console.print(tables.shown(record.text, style="bold"), soft_wrap=True)
    table = _facts()
    for name, value in _rows(record, shown):
        table.add_row(name, tables.shown(value))
    console.print(table)
    console.print()
    for span in spans:
        one = span.evidence
        mark = "" if span.verified else "  (not what its address says)" if span.text is not None else "  (forgotten)"
        head = f"{one.session}{one.ref}  {one.role}, trust {one.trust}, {one.relation}, {one.principal}{mark}"
        console.print(tables.shown(head), soft_wrap=True)
        words = f"“{' '.join(span.text.split())}”" if span.text else "-"
        console.print(tables.shown(f"  {words}"), soft_wrap=True)


def _facts() -> Any:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    return table


def _rows(record: MetaRecommendation, shown: int | None) -> Iterator[tuple[str, str]]:
    support, validity = record.support, record.validity
    yield "id", record.id
    yield "kind", record.kind
    yield "for", whose(record)
    yield "status", f"{record.status}: {why_so(record)}"
    yield "in force", f"version {shown}" if shown else "not in the slice that everybody is shown"
    yield "about", f"{record.slot.subject} / {record.slot.attribute} ({record.slot.cardinality})"
    if record.value is not None:
        yield "value", f"{record.value}{' ' + record.unit if record.unit else ''}"
    counted = f"{support.principals} independent, {support.sessions} sessions, {support.events} events"
    yield "support", counted + (f", {support.contradicts} against" if support.contradicts else "")
    sure = record.confidence
    yield "confidence", f"{sure.score:.2f}, at least {sure.lower95:.2f} ({sure.method})"
    yield "trust", record.trust
    half_life = f"halves in {validity.half_life_days:g} days" if validity.half_life_days else "does not fade"
    yield "said", f"{support.first or 'undated'} to {support.last or 'undated'}; {half_life}"
    if record.superseded_by:
        yield "superseded by", record.superseded_by
    if record.conflicts:
        yield "conflicts with", ", ".join(record.conflicts)
    if record.review is not None:
        yield "review", f"{record.review.state} by {', '.join(record.review.who)}"
    yield "found by", f"{record.extractor.name}/{record.extractor.version}"
