"""The auditor: an expected envelope against what was really sent.

A payload whose context is byte for byte the expected one costs one rendering and one comparison. Otherwise both are
taken apart into units (`render`), aligned (`alignment`) and every difference becomes a finding of one of the twelve
classes (`KINDS`), the cause first. Not differences: cache marks, the order of JSON keys, JSON escapes, and arguments
that an envelope says nothing about (model, temperature, limits), which `not_governed` lists. An argument that adds
context or tools, or changes how the model sees them (tool choice, a schema for the answer), is a difference unless the
caller says that it was meant (`arguments`). Findings quote nothing: they go to logs.

Whose payload it is, where it is not the expected envelope's (another tenant's, session's, version's, or older), is told
by the seal that travelled with it; by other envelopes the caller knows (head and dynamic part are compared apart: a
service that caches its system prompt sends a stale head over current messages); by the nonce in its fences; and by
there being nothing in common. Findings name no tenant and no session: their ids may be names of people.

Where the process has loaded OpenTelemetry, it counts (see `instruments`):

    audit.findings   counter; label `kind`: one of `KINDS`   differences between an envelope and what was sent
    audit.count      counter; label `outcome`: same | differs

Raises `InputError` where what was sent is no request. Source: the state design (auditor).

Differences: an alignment as findings, by section, reference and place, without quoting any text.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, get_args

from ctxsteward.schemas import Finding
from ctxsteward.schemas.documents import SealDocument
from ctxsteward.schemas.message import Wire
from ctxsteward.store.crypto.keyring import Keys

from ..envelope import Envelope, Provider, is_authentic, seal_key_fault
from ..instruments import Board, Instrument
from ..layout.composition import BULLETS_LABEL, CONTEXT_LABEL, NOTES_LABEL
from ..render.parts import BLOCKS, ExpectedPart, expected_parts, head_texts
from ..render.request import FORMATS, read_units
from ..render.units import ATTACHED, CUT, Unit, canonical, context_of, governed_arguments
from ..tokens.tokenizer import FRAME_TOKENS, Counter
from .alignment import LIKE_ENOUGH, Alignment, align, change_of, common_prefix, folded, joined, likeness
from .requests import SentRequest, read_sent

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

SEAL_KEY_WRONG: Literal["seal_key_wrong"] = "seal_key_wrong"
"""No class of difference: nothing is known against the request, and its seal cannot be checked."""

INSTRUMENTS = (
    Instrument(
        name="audit.findings",
        kind="counter",
        unit="1",
        about="Differences between an envelope and what was sent, by class.",
        labels={"kind": (*KINDS, SEAL_KEY_WRONG)},
    ),
    Instrument(
        name="audit.count",
        kind="counter",
        unit="1",
        about="Requests that were audited.",
        labels={"outcome": ("same", "differs")},
    ),
)


@cache
def board() -> Board:
    """This process's numbers."""
    return Board(INSTRUMENTS)


def audited(findings: Sequence[Finding]) -> None:
    """Count an audit and what it found."""
    counts = [("audit.count", 1.0, ("differs" if findings else "same",))]
    board().tell([*counts, *(("audit.findings", 1.0, (finding.kind,)) for finding in findings)])


def audit(
    expected: Envelope,
    sent: object,
    *,
    provider: str | None = None,
    seal: object = None,
    keys: Keys | None = None,
    known: Iterable[Envelope] = (),
    counter: Counter | None = None,
    arguments: Mapping[str, object] | None = None,
) -> tuple[Finding, ...]:
    """Every difference between the envelope and the request, classified, the cause first; empty where there is none.

    `sent` is a request's arguments, or what `sealed_request` makes. With `keys` a seal is verified, and missed where a
    logged request has none; without them it is taken at its word. `known` are other envelopes to recognize (earlier
    ones, other sessions'); they are read only where something differs. `counter` defaults to the envelope's own.
    `arguments` are those that the application itself sends beside the envelope: a ``tool_choice``, a
    ``response_format``.
    """
    findings = _differences(expected, sent, provider, seal, keys, known, counter, arguments or {})
    audited(findings)
    return findings


def _differences(
    expected: Envelope,
    sent: object,
    provider: str | None,
    seal: object,
    keys: Keys | None,
    known: Iterable[Envelope],
    counter: Counter | None,
    arguments: Mapping[str, object],
) -> tuple[Finding, ...]:
    request, changed = _without_meant(read_sent(sent, provider=provider, seal=seal), arguments)
    sealed = [*_seal_findings(request, expected, keys), *changed]
    if _is_the_same(expected, request):
        return ranked(sealed)
    # where the provider is in doubt, the reading that has more in common counts
    readings = [_reading(expected, request.payload, provider) for provider in request.providers]
    provider, parts, units = max(readings, key=_in_common)
    alignment = align([part.unit for part in parts], units)
    difference = RequestDifference(parts, units, alignment)
    findings = difference.findings()
    if not findings and [part.unit.key for part in parts] == [unit.key for unit in units]:
        return ranked(sealed)
    others = list(known)
    origins = [*sealed, *_known_findings(expected, parts, units, provider, others)]
    if not any(origin.kind in ORIGINS for origin in origins):
        origins += _stranger_findings(expected, parts, units, alignment, others)
    findings += difference.over_budget(expected, counter or expected.dynamic.strip.counter)
    if not findings:
        findings = [finding("altered_text", "the request differs in its form", field=provider)]
    return ranked([*origins, *findings])


def _without_meant(request: SentRequest, arguments: Mapping[str, object]) -> tuple[SentRequest, list[Finding]]:
    """The request without the arguments that were meant to be sent beside the envelope, and those that were not sent.

    What an envelope renders itself (messages, system, tools) cannot be meant otherwise.
    """
    of_calls = governed_arguments()["call"]
    meant = {name: value for name, value in context_of(dict(arguments)).items() if name in of_calls}
    if not meant:
        return request, []
    found: list[Finding] = []
    payload = {name: value for name, value in request.context.items() if name not in meant}
    for name, value in meant.items():
        if name not in request.context:
            found.append(
                finding("missing_section", f"the argument {name} was meant to be sent, and was not", field=name)
            )
        elif canonical(request.context[name]) != canonical(value):
            found.append(finding("altered_text", f"the argument {name} is another one than was meant", field=name))
    return replace(request, payload=payload, context=payload), found


def _is_the_same(expected: Envelope, request: SentRequest) -> bool:
    """Whether the context is exactly a rendering of this envelope, with or without its cache marks."""
    sent = canonical(request.context)
    for provider in request.providers:
        marks = (True, False) if FORMATS[provider].has_marks else (False,)
        if any(canonical(context_of(expected.render(provider, cache=cache))) == sent for cache in marks):
            return True
    return False


def _reading(expected: Envelope, payload: Wire, provider: Provider) -> tuple[Provider, list[ExpectedPart], list[Unit]]:
    parts = expected_parts(expected, provider, expected.render(provider, cache=False))
    sent = read_units(payload, provider, heads=head_texts(expected), nonce=expected.nonce)
    return provider, parts, sent


def _in_common(reading: tuple[Provider, list[ExpectedPart], list[Unit]]) -> tuple[int, int]:
    _, parts, sent = reading
    keys = {part.unit.key for part in parts}
    texts = {part.unit.text for part in parts}
    return sum(unit.key in keys for unit in sent), sum(unit.text in texts for unit in sent)


# -- whose payload it is -------------------------------------------------------------------------------------------

MIN_STRANGERS = 3
"""So many dynamic pieces on both sides, none of them alike, are another session's."""

FAMILIAR_FRACTION = 0.2
"""Of another session's pieces, hardly more than this look like ours ("ok", "thank you")."""

_LABELS = "|".join(re.escape(label) for label in (BULLETS_LABEL, CONTEXT_LABEL, NOTES_LABEL))
_FENCE = re.compile(rf"^<([^\s<>]{{4,64}}) (?:{_LABELS}|tool result §|(?:system|developer) message §)", re.MULTILINE)
_PROMPT_END = "end "


def _seal_findings(request: SentRequest, expected: Envelope, keys: Keys | None) -> Iterator[Finding]:
    """What the seal says about the payload beside it; a seal that does not verify is believed in nothing."""
    seal = request.seal
    if seal is None:
        if request.logged and keys is not None and expected.seal is not None:
            text = "the request was logged without the seal that its envelope was built with"
            yield finding("altered_text", text, field="seal")
        return
    fault = seal_key_fault(keys, seal) if keys is not None and seal.tenant == expected.tenant else None
    if fault is not None:
        text = "the seal key is not the one this envelope was sealed with, so that its seal cannot be checked"
        yield finding(SEAL_KEY_WRONG, f"{text}: {fault}", field="seal.key_id")
        return
    if seal.tenant == expected.tenant and keys is not None and not is_authentic(keys, seal):
        text = "the seal does not verify under the tenant's key that it names: it was changed, or made by somebody else"
        yield finding("altered_text", text, field="seal.mac")
        return
    kind = _kind(seal, expected)
    if kind is not None:
        field = {"wrong_tenant": "tenant", "wrong_session": "session", "stale_version": "profile_version"}
        text = f"the seal is that of {_WHOSE[kind]} (log position {seal.position}, expected {expected.position})"
        yield finding(kind, text, field=f"seal.{field.get(kind, 'address')}")


def _known_findings(
    expected: Envelope,
    parts: Sequence[ExpectedPart],
    sent: Sequence[Unit],
    provider: Provider,
    known: Iterable[Envelope],
) -> list[Finding]:
    """Another envelope whose rendering this is, whole or in one half; the nearest one where several fit."""
    head, dynamic = _halves(sent)
    own_head, own_dynamic = _halves([part.unit for part in parts])
    best: tuple[bool, int] | None = None
    nearest: list[Finding] = []
    for other in known:
        kind = _kind(other, expected)
        if kind is None:
            continue
        payload = other.render(provider, cache=False)
        its_head, its_dynamic = _halves(read_units(payload, provider, heads=head_texts(other), nonce=other.nonce))
        same_head = its_head == head != own_head and bool(head)
        same_dynamic = its_dynamic == dynamic != own_dynamic and bool(dynamic)
        if same_head and not same_dynamic and kind == "replayed_envelope":
            kind = "stale_version"
        if same_dynamic and head == own_head and kind == "stale_version":
            kind = "replayed_envelope"
        whole = its_head == head and its_dynamic == dynamic
        order = (not whole, -KINDS.index(kind))
        if (same_head or same_dynamic) and (best is None or order < best):
            best = order
            part = "whole" if whole else "head" if same_head else "dynamic part"
            text = f"its {part} is that of {_WHOSE[kind]}: {other.address[:16]}…"
            nearest = [finding(kind, text, field="head" if part == "head" else "dynamic")]
    return nearest


def _stranger_findings(
    expected: Envelope,
    parts: Sequence[ExpectedPart],
    sent: Sequence[Unit],
    alignment: Alignment,
    known: Iterable[Envelope],
) -> Iterator[Finding]:
    """Signs of another session that no envelope explains: its nonce, or nothing in common."""
    unlike = {other for index, other in alignment.changed if not _alike(parts[index].unit, sent[other])}
    kept = sum(sent[other].channel == "dynamic" for other in alignment.matched if other not in unlike)
    dynamic = sum(part.unit.channel == "dynamic" for part in parts)
    came = sum(unit.channel == "dynamic" for unit in sent)
    new = [unit for index, unit in enumerate(sent) if index not in alignment.matched]
    new += [sent[other] for _, other in alignment.changed]
    theirs = {nonce for unit in new for nonce in _nonces(unit)} - {expected.nonce}
    ours = any(expected.nonce in _nonces(unit) for unit in sent)
    fenced = any(expected.nonce in _nonces(part.unit) for part in parts)
    text = ""
    if theirs & {other.nonce for other in known if other.session != expected.session}:
        text = "a fence carries the nonce of another session"
    elif theirs and not ours and (fenced or kept * 2 <= dynamic):
        text = "its fences carry another session's nonce"
    elif min(dynamic, came) >= MIN_STRANGERS and kept <= min(dynamic, came) * FAMILIAR_FRACTION:
        text = "hardly a message of the session is in it"
    if text:
        yield finding("wrong_session", text, field="dynamic")


_WHOSE = {
    "wrong_tenant": "an envelope of another tenant",
    "wrong_session": "an envelope of another session",
    "stale_version": "an envelope under another profile version or head",
    "replayed_envelope": "another envelope of this session",
}


def _kind(other: Envelope | SealDocument, expected: Envelope) -> Kind | None:
    if other.tenant != expected.tenant:
        return "wrong_tenant"
    if other.session != expected.session:
        return "wrong_session"
    if other.profile_version != expected.profile_version:
        return "stale_version"
    return None if other.address == expected.address else "replayed_envelope"


def _halves(units: Sequence[Unit]) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]:
    """Head with tools, and the dynamic part."""
    return (
        [unit.key for unit in units if unit.channel != "dynamic"],
        [unit.key for unit in units if unit.channel == "dynamic"],
    )


def _alike(expected: Unit, sent: Unit) -> bool:
    changed = change_of(expected.text, sent.text) if expected.text != sent.text else "re_encoded"
    return changed != "altered_text" or likeness(expected.text, sent.text) >= LIKE_ENOUGH


def _nonces(unit: Unit) -> set[str]:
    """Of its whole fences: one that opens and does not close was altered."""
    if unit.frame.startswith(_PROMPT_END):
        return {unit.frame.removeprefix(_PROMPT_END)}
    return {nonce.rstrip("~") for nonce in _FENCE.findall(unit.text) if f"</{nonce}" in unit.text}


# -- differences -----------------------------------------------------------------------------------------------------


ORIGINS = frozenset(KINDS[:4])
"""Classes that say whose payload it is."""


def finding(
    kind: Kind | Literal["seal_key_wrong"], text: str, *, ref: str | None = None, field: str | None = None
) -> Finding:
    """A finding of one of the twelve classes, or about the seal key."""
    return Finding(kind=kind, ref=ref, field=field, text=text)


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, the cause first."""
    order: dict[str, int] = {kind: number for number, kind in enumerate((*KINDS, SEAL_KEY_WRONG))}
    return tuple(sorted(dict.fromkeys(findings), key=lambda one: order[one.kind]))


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
        self.parts: Sequence[ExpectedPart] = parts
        self.sent: Sequence[Unit] = sent
        self.alignment: Alignment = alignment
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
            return self.parts[matched[other]].section
        if unit.channel != "head":
            return unit.channel
        before = (i for i in range(other - 1, -1, -1) if i in matched and self.sent[i].channel == "head")
        after = (i for i in range(other + 1, len(self.sent)) if i in matched and self.sent[i].channel == "head")
        near = next(before, next(after, None))
        return "system" if near is None else self.parts[matched[near]].section

    # -- by kind of change ---------------------------------------------------------------------------------------

    def _changed(self, index: int, other: int) -> Finding:
        part, unit = self.parts[index], self.sent[other]
        expected = part.unit
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
        return finding(kind, f"{_named(*part.region)}: {what}", ref=part.ref, field=unit.path)

    def _recast(self, removed: list[int], added: list[int]) -> Finding:
        part = self.parts[removed[0]]
        expected, sent = joined(self.parts[i].unit for i in removed), joined(self.sent[i] for i in added)
        kind = change_of(expected, sent)
        if kind == "truncated":
            self.truncated.update(removed)
        at = common_prefix(expected, sent) + 1
        what = f"{len(removed)} pieces came as {len(added)}; they differ from character {at:,} on"
        text = f"{_named(*part.region)}: {what}"
        return finding(kind, text, ref=part.ref, field=self.sent[added[0]].path)

    def _removed(self, run: list[int]) -> Iterator[Finding]:
        regions = dict.fromkeys(self.parts[index].region for index in run)
        lost = Tally(self.parts[index].region for index in run)
        whole = Tally(part.region for part in self.parts)
        cut = any(index in self.truncated for index in (run[0] - 1, run[-1] + 1))
        frames = [self.parts[index].unit.frame for index in run]
        if cut or all(frame.startswith("end ") for frame in frames) or any(lost[r] < whole[r] for r in regions):
            first, last = self.parts[run[0]], self.parts[run[-1]]
            refs = [ref for ref in (first.ref, last.ref) if ref]
            through = f", to {refs[-1]}" if len(refs) == 2 and refs[0] != refs[1] else ""
            text = f"{_named(*first.region)}: {len(run)} pieces are not there{through}"
            yield finding("truncated", text, ref=refs[0] if refs else None, field=first.unit.path)
            return
        for section, block in regions:
            part = next(self.parts[i] for i in run if self.parts[i].region == (section, block))
            text = f"{_named(section, block)}: not there at all ({lost[section, block]} pieces)"
            yield finding("missing_section", text, ref=part.ref, field=part.unit.path)

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
            return "injected_text" if any(part.section == "tools" for part in self.parts) else "extra_section"
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
            sections.setdefault(self.parts[index].section, []).append((index, other))
        for section, moves in sections.items():
            index, other = min(moves)
            text = f"{_named(section)}: {len(moves)} pieces stand in another order"
            yield finding("reordered", text, ref=self.parts[index].ref, field=self.sent[other].path)

    def _boundaries(self) -> Iterator[Finding]:
        for part, unit in zip(self.parts, self.sent, strict=False):
            if part.unit.opens != unit.opens:
                text = f"{_named(*part.region)}: messages begin and end elsewhere; the pieces are the same"
                yield finding("re_encoded", text, ref=part.ref, field=unit.path)
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
            more[part.section] -= counter.text(part.unit.text) + FRAME_TOKENS
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
