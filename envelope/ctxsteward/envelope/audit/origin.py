"""Whose payload it is, where it is not the expected envelope's: another tenant's, session's, version's, or older.

Told by the seal that travelled with it; by other envelopes the caller knows (head and dynamic part are compared apart:
a service that caches its system prompt sends a stale head over current messages); by the nonce in its fences; and by
there being nothing in common. Findings name no tenant and no session: those can be anybody's names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ctxsteward.schemas import Finding
from ctxsteward.store.crypto.keyring import Keys

from ..envelope import Envelope, Provider, is_authentic
from ..layout.composition import BULLETS_LABEL, CONTEXT_LABEL, NOTES_LABEL
from ..render import read_units
from ..render.units import Unit
from .alignment import LIKE_ENOUGH, Alignment, change_of, likeness
from .differences import KINDS, Kind, finding
from .requests import ExpectedPart, SentRequest, head_texts

MIN_STRANGERS = 3
"""So many dynamic pieces on both sides, none of them alike, are another session's."""

FAMILIAR_FRACTION = 0.2
"""Of another session's pieces, hardly more than this look like ours ("ok", "thank you")."""

_LABELS = "|".join(re.escape(label) for label in (BULLETS_LABEL, CONTEXT_LABEL, NOTES_LABEL))
_FENCE = re.compile(rf"^<([^\s<>]{{4,64}}) (?:{_LABELS}|tool result §|(?:system|developer) message §)", re.MULTILINE)
_PROMPT_END = "end "


class _Names(NamedTuple):
    """What tells envelopes apart."""

    tenant: str
    session: str
    profile_version: str | None
    address: str


def seal_findings(request: SentRequest, expected: Envelope, keys: Keys | None) -> Iterator[Finding]:
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
    kind = _kind(_Names(seal.tenant, seal.session, seal.profile_version, seal.address), expected)
    if kind is not None:
        field = {"wrong_tenant": "tenant", "wrong_session": "session", "stale_version": "profile_version"}
        text = f"the seal is that of {_WHOSE[kind]} (log position {seal.position}, expected {expected.position})"
        yield finding(kind, text, field=f"seal.{field.get(kind, 'address')}")


def known_findings(
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
    found: list[Finding] = []
    for other in known:
        kind = _kind(_Names(other.tenant, other.session, other.profile_version, other.address), expected)
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
            found = [finding(kind, text, field="head" if part == "head" else "dynamic")]
    return found


def stranger_findings(
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


def _kind(other: _Names, expected: Envelope) -> Kind | None:
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
