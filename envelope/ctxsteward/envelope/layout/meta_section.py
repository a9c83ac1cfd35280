"""The meta section of an envelope: which of a profile's records it shows, and the report of those it does not.

The steward writes the slice to fit. Where it does not fit all the same (another tokenizer, a lowered budget), whole
records stay out and none is reworded: at once over the budget, and over the trigger only once dynamic has been
compacted more than `META_STABLE_COMPACTIONS` times, because then the prefix is new anyway. Which ones stay is asked of
a `ChooseRecords`: by value (the order of the profile; what a person approved outlasts the rest), or a summarizer of the
application's. Source: the layered-envelope design (meta compressed only after N > 4 compressions, a report a section).

A report goes by an address of its own and is kept beside the manifests, once for each cut, however often and by
however many builders it is laid out. It names records and holds none of their text, so nothing of it has to be erased.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
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
"""Meta over its trigger is left alone until dynamic was compacted more often than this."""


class ChosenRecords(NamedTuple):
    """Records that stay, as their chooser wants them; `fault` says why it could not be asked."""

    ids: frozenset[str]
    policy: str
    fault: str = ""


ChooseRecords = Callable[[Sequence[MetaRecord], int, Counter], ChosenRecords]
"""Which of these records to show in about so many tokens. It is asked only where not all of them fit, and what it
leaves too long is cut by value."""


def by_value(records: Sequence[MetaRecord], room_tokens: int, counter: Counter) -> ChosenRecords:
    """All of them: the cut by value comes after every choice."""
    return ChosenRecords(frozenset(record.id for record in records), "value")


BY_VALUE: ChooseRecords = by_value


@dataclass(frozen=True, slots=True)
class SummarizerChoice:
    """A summarizer chooses: the records that its bullets cite stay, each whole and as it was written.

    It is given the records as messages ``§1``, ``§2`` … in the order of the profile.
    """

    summarizer: Summarizer

    def __call__(self, records: Sequence[MetaRecord], room_tokens: int, counter: Counter) -> ChosenRecords:
        source = SummarizerInput(
            messages=tuple(
                SourceMessage(ref=f"§{number}", message=Message.from_wire({"role": "user", "content": record.text}))
                for number, record in enumerate(records, 1)
            ),
            count_tokens=counter.text,
        )
        name = getattr(self.summarizer, "__name__", type(self.summarizer).__name__)
        try:
            summary = self.summarizer(source, budget_tokens=room_tokens)
            cited = {Ref.parse(ref).ordinal for bullet in summary.bullets for ref in bullet.citations}
            fault = "" if cited <= set(range(1, len(records) + 1)) else "it cites records that it was not shown"
        except Exception as error:  # a summarizer is the caller's code: whatever it raises, the head is laid out
            cited, fault = set(), f"{type(error).__name__}: {error}"
        if fault:
            return by_value(records, room_tokens, counter)._replace(fault=f"{name}: {fault}")
        return ChosenRecords(frozenset(records[number - 1].id for number in cited), f"summarizer {name}")


@dataclass(frozen=True, slots=True)
class ManifestChoice:
    """Those that a manifest names: a rebuilt envelope shows what the envelope showed."""

    ids: frozenset[str]

    def __call__(self, records: Sequence[MetaRecord], room_tokens: int, counter: Counter) -> ChosenRecords:
        return ChosenRecords(self.ids, "as kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaCut:
    """Meta, made smaller. Tokens are the builder's."""

    policy: str
    limit_tokens: int
    pre_tokens: int
    post_tokens: int
    kept: tuple[str, ...]
    """Ids, in the order of the profile."""
    left: tuple[MetaRecord, ...]
    """In the order in which they went."""


MetaLayout = tuple[tuple[Fragment, ...], tuple[Finding, ...], MetaCut | None]
"""Fragments, findings, and what was left out; None: nothing."""


def lay_meta(
    profile: Profile | None,
    budgets: Budgets,
    counter: Counter,
    compactions: int,
    choose: ChooseRecords,
    short_records: bool = True,
) -> MetaLayout:
    """Lay out the records of a profile within their budget; not `short_records`: with ids and pointers."""
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
        # a profile has them in order of value; those that a person approved outlast the others
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
    return (fragment,) if records else (), tuple(_findings(cut, chosen.fault)), cut


def _findings(cut: MetaCut, fault: str) -> Iterator[Finding]:
    left = ", ".join(record.id for record in cut.left)
    text = f"meta did not fit {cut.limit_tokens} tokens; left out whole records: {left}"
    yield Finding(kind="meta_records_left_out", field="budgets.meta_tokens", text=text)
    if fault:
        text = f"records of meta were chosen by value: the summarizer failed: {fault}"
        yield Finding(kind="meta_summarizer_refused", field="summarizer", text=text)


def report_of(cut: MetaCut, key: AddressKey, session: str, head_at: object) -> CompressionReport:
    """The published view of a cut, without its time; the same cut of the same head has the same id."""

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
