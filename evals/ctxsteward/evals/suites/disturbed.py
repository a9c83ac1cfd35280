"""What comes of a disturbed log: opened cold, it gives the undisturbed envelope, or one that is rightly another.

Whatever happens, what an intruder wrote is never shown, originals that nobody touched resolve to their bytes, those
that are gone do not resolve, and both providers would take the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxsteward.envelope import Envelope, Session, Store, rebuild, telemetry
from ctxsteward.envelope.fragments import Fragment
from ctxsteward.envelope.render.text import fragment_spans
from ctxsteward.schemas import Damaged, ReferenceNotFound, Wire
from ctxsteward.schemas.message import encode_wire

from ..validity import anthropic_faults, openai_faults
from .disturbing import PLANTED, Fault, Touched, World
from .setup import Setup

FLAGS = frozenset(("original_damaged", "record_damaged", "record_skipped", "compaction_regenerated", "rebuilt_differs"))
"""Findings that say that something stored was not what it was."""


def misses() -> dict[str, float]:
    return {labels[0]: count for labels, count in telemetry.board().numbers("context.cache_miss").items()}


def shows(envelope: Envelope, ordinals: frozenset[int]) -> bool:
    return any(
        not ordinals.isdisjoint(fragment.refs) for fragment in envelope.dynamic.fragments if fragment.kind == "group"
    )


def opened_cold(
    world: World, before: Envelope, said: Sequence[Wire], setup: Setup, fault: Fault, touched: Touched
) -> tuple[str, bool]:
    """What is wrong with the disturbed session, and whether it is so wrong that nobody dealt with it."""
    with world.store() as cold:
        again = _past(cold, before)
        session = cold.session(before.session, tenant=before.tenant)
        envelope = setup.builder().build(session)
        shown = [envelope.render(provider) for provider in ("openai-chat", "anthropic", "text")]
        if PLANTED in f"{shown} {again and again.render('text')}":
            return "what an intruder wrote is shown", True
        faults = [*openai_faults(shown[0]), *anthropic_faults(shown[1]), *_unresolved(session, said, touched)]
        if faults:
            return "; ".join(faults[:3]), True
        return _differs(before, envelope, fault, touched), False


def _past(cold: Store, before: Envelope) -> Envelope | None:
    """The envelope that was built before, from its manifest; None where it cannot be had, and that is said."""
    try:
        return rebuild(cold, before.address, tenant=before.tenant)
    except (Damaged, ReferenceNotFound):
        return None


def _unresolved(session: Session, said: Sequence[Wire], touched: Touched) -> Iterator[str]:
    for ordinal, wire in enumerate(said, 1):
        try:
            same = encode_wire(session.resolve(ordinal)) == encode_wire(wire)
        except Damaged:
            if ordinal not in touched.ordinals:
                yield f"§{ordinal} does not resolve, though nobody touched it"
            continue
        if not same:
            yield f"§{ordinal} resolves to other bytes"
        elif ordinal in touched.ordinals:
            yield f"§{ordinal} resolves, though its record is gone"


def _differs(before: Envelope, again: Envelope, fault: Fault, touched: Touched) -> str:
    """How the envelope differs from the undisturbed one in a way it must not."""
    kinds = {finding.kind for finding in again.findings}
    same = all(again.render(provider) == before.render(provider) for provider in ("openai-chat", "anthropic"))
    match fault.outcome:
        case "same":
            return "" if same and not kinds & FLAGS else f"the bytes are others; findings: {sorted(kinds)}"
        case "remade" if again.metrics["degraded"]:
            return f"nothing is gone, and yet it is degraded: {sorted(kinds)}"
        case "flagged" if not same and not kinds & FLAGS and (not touched.ordinals or shows(before, touched.ordinals)):
            return f"nothing says what is gone: {sorted(kinds)}"
        case _:
            return _body(before, again, touched.ordinals)


def _body(before: Envelope, again: Envelope, gone: frozenset[int]) -> str:
    """Messages that both show must read the same; the live turn must be there."""
    nonces = before.nonce.encode(), again.nonce.encode()
    old = {fragment.refs: fragment for fragment in before.dynamic.strip.fragments}
    new = {fragment.refs: fragment for fragment in again.dynamic.strip.fragments}
    for refs in old.keys() & new.keys():
        if gone.isdisjoint(refs) and _text(old[refs]).replace(nonces[0], b"") != _text(new[refs]).replace(
            nonces[1], b""
        ):
            return f"§{refs[0]} is shown otherwise"
    missing = [refs for refs in _live(before) if refs not in new and gone.isdisjoint(refs)]
    return f"of the live turn §{missing[0][0]} is not shown" if missing else ""


def _text(fragment: Fragment) -> bytes:
    return "\n".join(f"{span.label}: {span.text}" for span in fragment_spans(fragment)).encode()


def _live(envelope: Envelope) -> list[tuple[int, ...]]:
    return [fragment.refs for fragment in envelope.dynamic.live]
