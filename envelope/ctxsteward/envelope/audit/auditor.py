"""The auditor: an expected envelope against what was really sent.

A payload whose context is byte for byte the expected one costs one rendering and one comparison. Otherwise both are
taken apart into units (`render`), aligned (`alignment`) and every difference becomes a finding of one of the twelve
classes (`differences.KINDS`), the cause first. Not differences: cache marks, the order of JSON keys, JSON escapes,
arguments of the request that are not context. Findings quote nothing: they go to logs.

Where somebody listens, OpenTelemetry is told (see `instruments`):

    audit.findings   counter; label `kind`: one of `KINDS`   differences between an envelope and what was sent
    audit.count      counter; label `outcome`: same | differs

Raises `InputError` where what was sent is no request. Source: the state design (auditor).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from ctxsteward.schemas import Finding, Wire
from ctxsteward.store.crypto.keyring import Keys

from ..envelope import Envelope, Provider
from ..instruments import Board, Instrument
from ..render import FORMATS, read_units
from ..render.units import Unit, canonical, context_of
from ..tokens.tokenizer import Counter
from .alignment import Alignment, align
from .differences import KINDS, ORIGINS, RequestDifference, finding, ranked
from .origin import known_findings, seal_findings, stranger_findings
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


class _Comparison(NamedTuple):
    """One reading of the request."""

    provider: Provider
    parts: list[ExpectedPart]
    sent: list[Unit]
    alignment: Alignment


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
    found = _differences(expected, sent, provider, seal, keys, known, counter)
    audited(found)
    return found


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
    sealed = list(seal_findings(request, expected, keys))
    if _is_the_same(expected, request):
        return ranked(sealed)
    compared = _compare(expected, request)
    difference = RequestDifference(compared.parts, compared.sent, compared.alignment)
    found = difference.findings()
    if not found and _units_are_the_same(compared):
        return ranked(sealed)
    others = list(known)
    origins = [*sealed, *known_findings(expected, compared.parts, compared.sent, compared.provider, others)]
    if not any(one.kind in ORIGINS for one in origins):
        origins += stranger_findings(expected, compared.parts, compared.sent, compared.alignment, others)
    found += difference.over_budget(expected, counter or expected.dynamic.strip.counter)
    if not found:
        found = [finding("altered_text", "the request differs in its form", field=compared.provider)]
    return ranked([*origins, *found])


def _is_the_same(expected: Envelope, request: SentRequest) -> bool:
    """Whether the context is exactly a rendering of this envelope, with or without its cache marks."""
    sent = canonical(request.context)
    for provider in request.providers:
        marks = (True, False) if FORMATS[provider].has_marks else (False,)
        if any(canonical(context_of(expected.render(provider, cache=cache))) == sent for cache in marks):
            return True
    return False


def _units_are_the_same(compared: _Comparison) -> bool:
    return [part.unit.key for part in compared.parts] == [unit.key for unit in compared.sent]


def _compare(expected: Envelope, request: SentRequest) -> _Comparison:
    """Take both apart; where the provider is in doubt, the reading that has more in common counts."""
    readings = [_reading(expected, request.payload, provider) for provider in request.providers]
    provider, parts, sent = max(readings, key=_in_common)
    return _Comparison(provider, parts, sent, align([part.unit for part in parts], sent))


def _reading(expected: Envelope, payload: Wire, provider: Provider) -> tuple[Provider, list[ExpectedPart], list[Unit]]:
    parts = expected_parts(expected, provider, expected.render(provider, cache=False))
    sent = read_units(payload, provider, heads=head_texts(expected), nonce=expected.nonce)
    return provider, parts, sent


def _in_common(reading: tuple[Provider, list[ExpectedPart], list[Unit]]) -> tuple[int, int]:
    _, parts, sent = reading
    keys = {part.unit.key for part in parts}
    texts = {part.unit.text for part in parts}
    return sum(unit.key in keys for unit in sent), sum(unit.text in texts for unit in sent)
