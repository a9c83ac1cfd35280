"""Differences: an alignment as findings, by section, reference and place, without quoting any text.

A removed run that is whole sections (or whole blocks of the dynamic section: bullets, turn context, notes, messages)
is ``missing_section``; one that cuts through a section is ``truncated``. An added system text, argument or labelled
block is ``extra_section``, any other added unit ``injected_text``. A section whose sent tokens pass both its budget and
what the envelope has, by more than the margin, is ``over_budget``: counted only from the texts that differ.

`KINDS` are the twelve classes, the cause before its symptoms: a payload of somebody else's also lacks sections and has
altered texts, so findings are sorted by this order, and the first one names the cause.
Source: the state design (auditor, twelve classes).
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, get_args

from ctxsteward.schemas import Finding

from ..envelope import Envelope
from ..render import ATTACHED, CUT, Unit
from ..tokens import FRAME_TOKENS, Counter
from .alignment import Alignment, change_of, common_prefix, folded, joined
from .requests import BLOCKS, ExpectedPart

Kind = Literal[
    "wrong_tenant",
    "wrong_session",
    "stale_version",
    "replayed_envelope",
    "over_budget",
    "extra_section",
    "injected_text",
    "altered_text",
    "missing_section",
    "truncated",
    "reordered",
    "re_encoded",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Gravest first."""

ORIGINS = frozenset(KINDS[:4])
"""Classes that say whose payload it is."""


def finding(kind: Kind, text: str, *, ref: str | None = None, field: str | None = None) -> Finding:
    """A finding of one of the twelve classes."""
    return Finding(kind=kind, ref=ref, field=field, text=text)


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, the cause first."""
    order = {kind: number for number, kind in enumerate(KINDS)}
    return tuple(sorted(dict.fromkeys(findings), key=lambda one: order[one.kind]))  # type: ignore[index]


MARGIN_FRACTION = 0.25
MIN_MARGIN_TOKENS, MAX_MARGIN_TOKENS = 64, 512
"""A section is over budget when it is so much over: a quarter of the budget, within these."""

_FENCED = re.compile(r"\A\s*<[^\s<>|]{1,64}(?: [^\n>]{0,200})?>[^\n]*\n.*</[^\s<>|]{1,64}[^\n>]*>\s*\Z", re.DOTALL)
_TORN = re.compile(r"\n<[^\n]*")
"""What is left of the next opening line where a prompt ends within it."""
_LABELLED = re.compile(r"\A\s*(?:<[^\n]*>|#{1,6} |\[[^\n\]]*\]|---|[^\n]{1,80}:[ \t]*\n)")


class RequestDifference:
    """Findings of one alignment."""

    def __init__(self, parts: Sequence[ExpectedPart], sent: Sequence[Unit], alignment: Alignment) -> None:
        self.parts, self.sent, self.alignment = parts, sent, alignment
        self.truncated: set[int] = set()
        """Expected indexes whose text is cut."""
        self.recoded: set[int] = set()
        """Expected indexes that only came in other bytes."""

    def findings(self) -> list[Finding]:
        """All of them, in the order of the request within each class of change."""
        found = [self._changed(index, other) for index, other in sorted(self.alignment.changed)]
        found += [self._recast(*run) for run in self.alignment.recast]
        for run in _runs(self.alignment.removed):
            found += self._removed(run)
        for run in _runs(self.alignment.added):
            found += self._added(run)
        found += self._moved()
        return found or list(self._boundaries())

    def section_of(self, other: int) -> str:
        """The section that a sent unit stands in."""
        unit, matched = self.sent[other], self.alignment.matched
        if other in matched:
            return self.parts[matched[other]].place.section
        if unit.channel != "head":
            return unit.channel
        before = (i for i in range(other - 1, -1, -1) if i in matched and self.sent[i].channel == "head")
        after = (i for i in range(other + 1, len(self.sent)) if i in matched and self.sent[i].channel == "head")
        near = next(before, next(after, None))
        return "system" if near is None else self.parts[matched[near]].place.section

    # -- by kind of change ---------------------------------------------------------------------------------------

    def _changed(self, index: int, other: int) -> Finding:
        part, unit = self.parts[index], self.sent[other]
        expected, place = part.unit, part.place
        same_frame = _frame(expected) == _frame(unit)
        if expected.text == unit.text and unit.frame.endswith(CUT):
            kind: Kind = "truncated"
            what = "the request ends with it, and not as it should"
        elif expected.text == unit.text:
            kind = "re_encoded" if same_frame else "altered_text"
            what = "its role, type, ids or fields differ; the text is the same"
        else:
            kind = change_of(expected.text, unit.text)
            if unit.frame.endswith(CUT) and _TORN.fullmatch(unit.text.removeprefix(expected.text)):
                kind = "truncated"
            at = common_prefix(expected.text, unit.text) + 1
            what = f"differs from character {at:,} on ({len(expected.text):,} expected, {len(unit.text):,} sent)"
            if not same_frame:
                kind = "altered_text" if kind == "re_encoded" else kind
                what += "; its role, type, ids or fields differ too"
        if kind == "truncated":
            self.truncated.add(index)
        if kind == "re_encoded":
            self.recoded.add(index)
        return finding(kind, f"{_named(place.section, place.block)}: {what}", ref=place.ref, field=unit.path)

    def _recast(self, removed: list[int], added: list[int]) -> Finding:
        place = self.parts[removed[0]].place
        expected, sent = joined(self.parts[i].unit for i in removed), joined(self.sent[i] for i in added)
        kind = change_of(expected, sent)
        if kind == "truncated":
            self.truncated.update(removed)
        at = common_prefix(expected, sent) + 1
        what = f"{len(removed)} pieces came as {len(added)}; they differ from character {at:,} on"
        text = f"{_named(place.section, place.block)}: {what}"
        return finding(kind, text, ref=place.ref, field=self.sent[added[0]].path)

    def _removed(self, run: list[int]) -> Iterator[Finding]:
        regions = dict.fromkeys(self.parts[index].place.region for index in run)
        lost = Tally(self.parts[index].place.region for index in run)
        whole = Tally(part.place.region for part in self.parts)
        cut = any(index in self.truncated for index in (run[0] - 1, run[-1] + 1))
        frames = [self.parts[index].unit.frame for index in run]
        if cut or all(frame.startswith("end ") for frame in frames) or any(lost[r] < whole[r] for r in regions):
            first, last = self.parts[run[0]], self.parts[run[-1]]
            refs = [ref for ref in (first.place.ref, last.place.ref) if ref]
            through = f", to {refs[-1]}" if len(refs) == 2 and refs[0] != refs[1] else ""
            text = f"{_named(*first.place.region)}: {len(run)} pieces are not there{through}"
            yield finding("truncated", text, ref=refs[0] if refs else None, field=first.unit.path)
            return
        for section, block in regions:
            part = next(self.parts[i] for i in run if self.parts[i].place.region == (section, block))
            text = f"{_named(section, block)}: not there at all ({lost[section, block]} pieces)"
            yield finding("missing_section", text, ref=part.place.ref, field=part.unit.path)

    def _added(self, run: list[int]) -> Iterator[Finding]:
        kinds = [self._kind_of_added(self.sent[other]) for other in run]
        for kind in dict.fromkeys(kinds):
            members = [other for other, one in zip(run, kinds, strict=True) if one == kind]
            section = self.section_of(members[0])
            what = "white space between sections differs" if kind == "re_encoded" else f"{len(members)} pieces too many"
            yield finding(kind, f"{_named(section)}: {what}", field=self.sent[members[0]].path)

    def _kind_of_added(self, unit: Unit) -> Kind:
        if unit.channel == "argument":
            return "extra_section"
        if not unit.text.strip() and unit.frame in (ATTACHED, "preamble", "head"):
            return "re_encoded"
        if unit.channel == "tools":
            return "injected_text" if any(part.place.section == "tools" for part in self.parts) else "extra_section"
        if unit.frame == ATTACHED:
            return "injected_text"
        if unit.frame == "head":
            again = any(part.unit.text == unit.text for part in self.parts)
            return "extra_section" if again or _LABELLED.match(unit.text) else "injected_text"
        if unit.frame == "preamble":
            return "injected_text"
        block = unit.frame.split(" ")[1:2]
        if unit.channel == "head" or block in [[name] for name in BLOCKS] or _FENCED.match(unit.text):
            return "extra_section"
        return "injected_text"

    def _moved(self) -> Iterator[Finding]:
        sections: dict[str, list[tuple[int, int]]] = {}
        for index, other in self.alignment.moved:
            sections.setdefault(self.parts[index].place.section, []).append((index, other))
        for section, moves in sections.items():
            index, other = min(moves)
            text = f"{_named(section)}: {len(moves)} pieces stand in another order"
            yield finding("reordered", text, ref=self.parts[index].place.ref, field=self.sent[other].path)

    def _boundaries(self) -> Iterator[Finding]:
        for part, unit in zip(self.parts, self.sent, strict=False):
            if part.unit.opens != unit.opens:
                text = f"{_named(*part.place.region)}: messages begin and end elsewhere; the pieces are the same"
                yield finding("re_encoded", text, ref=part.place.ref, field=unit.path)
                return

    # -- budgets -------------------------------------------------------------------------------------------------

    def over_budget(self, envelope: Envelope, counter: Counter) -> Iterator[Finding]:
        """Sections that were sent with more than they may hold; escapes and the like apart. After `findings`."""
        more: Tally[str] = Tally()
        changed = [pair for pair in self.alignment.changed if pair[0] not in self.recoded]
        for other in (*self.alignment.added, *(other for _, other in changed)):
            more[self.section_of(other)] += counter.text(self.sent[other].text) + FRAME_TOKENS
        for index in (*self.alignment.removed, *(index for index, _ in changed)):
            part = self.parts[index]
            more[part.place.section] -= counter.text(part.unit.text) + FRAME_TOKENS
        for name, section in envelope.sections.items():
            margin = min(max(MIN_MARGIN_TOKENS, int(section.budget_tokens * MARGIN_FRACTION)), MAX_MARGIN_TOKENS)
            sent = section.tokens + more[name]
            if sent > max(section.tokens, section.budget_tokens) + margin:
                text = f"{name}: {sent:,} tokens sent, {section.tokens:,} expected, budget {section.budget_tokens:,}"
                yield finding("over_budget", text, field=name)


def _frame(unit: Unit) -> str:
    """What must be the same about a unit but for its text, in one Unicode form."""
    return "head" if unit.frame == ATTACHED else folded(unit.frame.removesuffix(CUT))


def _named(section: str, block: str = "") -> str:
    return f"{section}, {block}" if block else section


def _runs(indexes: Iterable[int]) -> list[list[int]]:
    """Stretches of neighbours."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs
