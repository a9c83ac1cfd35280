"""Whether the standing rules of an envelope stand in the request that was really sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxsteward.schemas import Finding
from ctxsteward.schemas.message import Wire

from ..envelope import Envelope, Provider
from ..render.parts import expected_parts, head_texts
from ..render.request import read_units
from ..render.rules import RulePlace, has_lines, rules_among
from ..render.units import ATTACHED, CUT, Unit
from .alignment import align, folded
from .requests import read_sent


def audit_rules(expected: Envelope, sent: object, *, provider: str | None = None) -> tuple[Finding, ...]:
    """Return a finding for each standing rule that an envelope shows and the request that was sent does not.

    `sent` is as in `audit`, which tells every other difference. A rule that stands in several places must be intact in
    each: a weakened copy contradicts it.
    """
    request = read_sent(sent, provider=provider)
    results = [_changed_rules(expected, request.payload, name) for name in request.providers]
    # where the provider is in doubt, the reading that has more in common counts
    return max(results, key=lambda result: result[0])[1]


def _changed_rules(expected: Envelope, payload: Wire, provider: Provider) -> tuple[int, tuple[Finding, ...]]:
    parts = expected_parts(expected, provider, expected.render(provider, cache=False))
    sent = read_units(payload, provider, heads=head_texts(expected), nonce=expected.nonce)
    alignment = align([part.unit for part in parts], sent)
    whole = [_with_attached(sent, other) for other in range(len(sent))]
    units: dict[int, list[Unit]] = {}
    for other, index in alignment.matched.items():
        units.setdefault(index, []).append(whole[other])
    for removed, added in alignment.recast:
        units |= {index: [whole[other] for other in added] for index in removed}
    findings = [
        Finding(
            kind="rule_not_sent",
            ref=rule.ref if rule.ref.startswith("§") else None,
            field=place.path,
            text=f"the rule {rule.id} ({rule.ref}) stands in the envelope's {place.section} and is missing from, or "
            "differs in, the request that was sent; send what `render` returned",
        )
        for rule, places in rules_among(parts, expected.standing, provider, expected.nonce).rules
        for place in places
        if not any(_is_intact(place, parts[place.part].unit, unit) for unit in units.get(place.part, ()))
    ]
    return sum(parts[index].unit.key == unit.key for index, all in units.items() for unit in all), tuple(findings)


def _with_attached(sent: Sequence[Unit], index: int) -> Unit:
    """Return a unit with the texts that hang on it in a head that is one text."""
    unit = sent[index]
    before = sent[index - 1].text if index and sent[index - 1].frame == ATTACHED else ""
    after = sent[index + 1].text if index + 1 < len(sent) and sent[index + 1].frame == ATTACHED else ""
    return replace(unit, text=f"{before}{unit.text}{after}") if before or after else unit


def _is_intact(place: RulePlace, expected: Unit, sent: Unit) -> bool:
    """Whether the lines of a rule stand in a unit that was sent, in the same role."""
    if expected.key == sent.key or (expected.channel == sent.channel and folded(expected.text) == folded(sent.text)):
        return True
    frames = (expected.frame.removesuffix(CUT), sent.frame.removesuffix(CUT).replace(ATTACHED, "head"))
    return expected.channel == sent.channel and frames[0] == frames[1] and has_lines(sent.text, place.lines)
