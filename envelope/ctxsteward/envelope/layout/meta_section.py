"""Lay out the meta section from a profile's records, and report the records that it leaves out.

The steward writes a slice that fits. If it does not fit (another tokenizer, a lowered budget), whole records are left
out and none is reworded. That happens at once above the budget. Above the trigger it happens only after more than
`META_STABLE_COMPACTIONS` compactions of dynamic, because then the prefix is new anyway. `ChooseRecords` chooses the
records to keep: by value (the order of the profile; approved records outlast the rest), or by the application's
summarizer. Source: the layered-envelope design (meta compressed only after N > 4 compressions, a report a section).

A report has its own address and is stored with the manifests, once for each cut, however often and by however many
builders it is laid out. It names records and has none of their text, so an erasure leaves it alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxsteward.schemas import CompressionReport, Finding, Loss, Message, Ref, Summarizer, SummarizerInput
from ctxsteward.schemas.profile import MetaRecord
from ctxsteward.schemas.summary import SourceMessage
from ctxsteward.store.crypto.keyring import AddressKey, address_of
from ctxsteward.store.profiles.text import META_REF, Profile, line_writer, meta_text, record_line

from ..tokens.budgets import Budgets
from ..tokens.tokenizer import Counter
from .fragments import Fragment, text_fragment

META_STABLE_COMPACTIONS = 4
"""Meta above its trigger stays whole until dynamic was compacted more often than this."""


class ChosenRecords(NamedTuple):
    """Records that a chooser keeps; `fault` gives the reason if it failed and value decided instead."""

    ids: frozenset[str]
    policy: str
    fault: str = ""


ChooseRecords = Callable[[Sequence[MetaRecord], int, Counter], ChosenRecords]
"""Port: choose which records to show in about so many tokens (second argument). It is called only if they do not all
fit; if its choice is too long, more records are left out by value."""


def by_value(records: Sequence[MetaRecord], room_tokens: int, counter: Counter) -> ChosenRecords:
    """Return all records; the cut by value follows every choice."""
    return ChosenRecords(frozenset(record.id for record in records), "value")


def by_summarizer(summarizer: Summarizer) -> ChooseRecords:
    """Return a chooser that keeps the records which the summarizer's bullets cite, whole and as written.

    The summarizer gets the records as messages ``§1``, ``§2`` … in the order of the profile.
    """

    def choose(records: Sequence[MetaRecord], room_tokens: int, counter: Counter) -> ChosenRecords:
        source = SummarizerInput(
            messages=tuple(
                SourceMessage(ref=f"§{number}", message=Message.from_wire({"role": "user", "content": record.text}))
                for number, record in enumerate(records, 1)
            ),
            count_tokens=counter.text,
        )
        name = getattr(summarizer, "__name__", type(summarizer).__name__)
        try:
            summary = summarizer(source, budget_tokens=room_tokens)
            cited = {Ref.parse(ref).ordinal for bullet in summary.bullets for ref in bullet.citations}
            fault = "" if cited <= set(range(1, len(records) + 1)) else "it cites records that it was not shown"
        except Exception as error:  # a summarizer is the caller's code: lay the head out even if it raises
            cited, fault = set(), f"{type(error).__name__}: {error}"
        if fault:
            return by_value(records, room_tokens, counter)._replace(fault=f"{name}: {fault}")
        return ChosenRecords(frozenset(records[number - 1].id for number in cited), f"summarizer {name}")

    return choose


def as_kept(ids: frozenset[str]) -> ChooseRecords:
    """Return a chooser that keeps the records a manifest names, so that a rebuilt envelope shows the same records."""
    return lambda records, room_tokens, counter: ChosenRecords(ids, "as kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaCut:
    """Records kept and left out of meta. Tokens are the builder's."""

    policy: str
    limit_tokens: int
    pre_tokens: int
    post_tokens: int
    kept: tuple[str, ...]
    """Ids of kept records, in the order of the profile."""
    left: tuple[MetaRecord, ...]
    """Records left out, in the order of removal."""


MetaLayout = tuple[tuple[Fragment, ...], tuple[Finding, ...], MetaCut | None]
"""Fragments, findings, and the cut, or None if all records fit."""


def lay_meta(
    profile: Profile | None,
    budgets: Budgets,
    counter: Counter,
    compactions: int,
    choose: ChooseRecords,
    short_records: bool = True,
) -> MetaLayout:
    """Lay out a profile's records within their budget; without `short_records` they show ids and pointers."""
    if profile is None or not profile.meta:
        return (), (), None
    limit = budgets.meta_tokens
    if compactions > META_STABLE_COMPACTIONS:
        limit = int(limit * budgets.compact_at_fraction)
    line = line_writer(profile.meta) if short_records else record_line

    def laid(records: Sequence[MetaRecord]) -> Fragment:
        text = meta_text(profile.model_copy(update={"meta": tuple(records)}), line)
        return text_fragment("text", "meta", text, counter)

    fragment = laid(profile.meta)
    if fragment.tokens <= limit:
        return (fragment,), (), None
    pre_tokens = fragment.tokens
    lines = sum(counter.text(line(record)) for record in profile.meta)
    chosen = choose(profile.meta, max(0, limit - (pre_tokens - lines)), counter)
    left = [record for record in profile.meta if record.id not in chosen.ids]
    records = [record for record in profile.meta if record.id in chosen.ids]
    fragment = laid(records)
    while fragment.tokens > limit and records:
        # a profile lists records in order of value; records that a person approved outlast the others
        least = next((record for record in reversed(records) if not record.approved), records[-1])
        records.remove(least)
        left.append(least)
        fragment = laid(records)
    cut = MetaCut(
        policy=chosen.policy,
        limit_tokens=limit,
        pre_tokens=pre_tokens,
        post_tokens=fragment.tokens if records else 0,
        kept=tuple(record.id for record in records),
        left=tuple(left),
    )
    names = ", ".join(record.id for record in left)
    text = f"meta did not fit {limit} tokens; left out whole records: {names}"
    findings = [Finding(kind="meta_records_left_out", field="budgets.meta_tokens", text=text)]
    if chosen.fault:
        text = f"records of meta were chosen by value: the summarizer failed: {chosen.fault}"
        findings.append(Finding(kind="meta_summarizer_refused", field="summarizer", text=text))
    return (fragment,) if records else (), tuple(findings), cut


def report_of(cut: MetaCut, key: AddressKey, session: str, head_at: object) -> CompressionReport:
    """Return the published report of a cut, without its time; the same cut of the same head has the same id."""

    def address(value: object) -> str:
        return address_of(key, session, "meta_report", json.dumps(value, ensure_ascii=False).encode())

    left = [record.id for record in cut.left]
    name = address([head_at, cut.policy, cut.limit_tokens, cut.pre_tokens, cut.post_tokens, cut.kept, left])
    why = f"left out whole: meta has {cut.limit_tokens} tokens, all of it needs {cut.pre_tokens}"
    return CompressionReport(
        id=name,
        section="meta",
        pre_tokens=cut.pre_tokens,
        post_tokens=cut.post_tokens,
        losses=tuple(
            Loss(kind="fact", text=f"record {record.id} {why}", ref=META_REF + record.id) for record in cut.left
        ),
        kept_refs=tuple(META_REF + id for id in cut.kept),
        policy=cut.policy,
        source_addresses=tuple(address(record.model_dump(mode="json")) for record in cut.left),
        artifact=name,
        created_at=None,
    )
