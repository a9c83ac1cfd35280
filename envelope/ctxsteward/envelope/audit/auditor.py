"""The auditor: an expected envelope against what was really sent.

A payload whose context is byte for byte the expected one costs one rendering and one comparison. Otherwise both are
taken apart into units (`render`), aligned (`alignment`) and every difference becomes a finding of one of the twelve
classes (`differences.KINDS`), the cause first. Not differences: cache marks, the order of JSON keys, JSON escapes,
arguments of the request that are not context. Findings quote nothing: they go to logs.

Whose payload it is, where it is not the expected envelope's (another tenant's, session's, version's, or older), is told
by the seal that travelled with it; by other envelopes the caller knows (head and dynamic part are compared apart: a
service that caches its system prompt sends a stale head over current messages); by the nonce in its fences; and by
there being nothing in common. Findings name no tenant and no session: their ids may be names of people.

Where the process has loaded OpenTelemetry, it counts (see `instruments`):

    audit.findings   counter; label `kind`: one of `KINDS`   differences between an envelope and what was sent
    audit.count      counter; label `outcome`: same | differs

Raises `InputError` where what was sent is no request. Source: the state design (auditor).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from ctxsteward.schemas import Finding, SealDocument, Wire
from ctxsteward.store import Keys

from ..envelope import Envelope, Provider, is_authentic
from ..instruments import Board, Instrument
from ..layout import BULLETS_LABEL, CONTEXT_LABEL, NOTES_LABEL
from ..render import FORMATS, Unit, canonical, context_of, read_units
from ..tokens import Counter
from .alignment import LIKE_ENOUGH, Alignment, align, change_of, likeness
from .differences import KINDS, ORIGINS, Kind, RequestDifference, finding, ranked
from .requests import ExpectedPart, SentRequest, expected_parts, head_texts, read_sent

INSTRUMENTS = (
    Instrument(name="audit.findings", kind="counter", unit="1",
               about="Differences between an envelope and what was sent, by class.", labels={"kind": KINDS}),
    Instrument(name="audit.count", kind="counter", unit="1",
               about="Requests that were audited.", labels={"outcome": ("same", "differs")}),
)  # fmt: skip


@cache
def board() -> Board:
    """This process's numbers."""
    return Board(INSTRUMENTS)


def audited(findings: Sequence[Finding]) -> None:
    """Count an audit and what it found."""
    counts = [("audit.count", 1.0, ("differs" if findings else "same",))]
    board().tell([*counts, *(("audit.findings", 1.0, (found.kind,)) for found in findings)])


def audit(
    expected: Envelope,
    sent: object,
    *,
    provider: str | None = None,
    seal: object = None,
    keys: Keys | None = None,
    known: Iterable[Envelope] = (),
    counter: Counter | None = None,
) -> tuple[Finding, ...]:
    """Every difference between the envelope and the request, classified, the cause first; empty where there is none.

    `sent` is a request's arguments, or what `sealed_request` makes. With `keys` a seal is verified, and missed where a
    logged request has none; without them it is taken at its word. `known` are other envelopes to recognize (earlier
    ones, other sessions'); they are read only where something differs. `counter` defaults to the envelope's own.
    """
    findings = _differences(expected, sent, provider, seal, keys, known, counter)
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
) -> tuple[Finding, ...]:
    request = read_sent(sent, provider=provider, seal=seal)
    sealed = list(_seal_findings(request, expected, keys))
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
