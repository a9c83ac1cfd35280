"""Transcripts and observations by hand, for tests of what comes after the harvest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxsteward.envelope import Store, open_store
from ctxsteward.schemas.recommendation import MetaRecommendation, Slot
from ctxsteward.steward.artifacts.artifact import Artifact, build_artifact
from ctxsteward.steward.night.chain import Night, NightChain
from ctxsteward.steward.observations.observation import MessageSpan, Observation
from ctxsteward.steward.observations.transcript import ReplayedTranscript, ReplayedUtterance
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects

TENANT, AGENT = "acme", "support"
EXTRACTOR = "harvest/1"


def memory_store() -> Store:
    return open_store("memory:")


def chain_of(store: Store, *finished: Night) -> NightChain:
    """The chain of these nights, the oldest first."""
    nights, link = NightChain(store, TENANT, AGENT), None
    for one in finished:
        link = nights.append(link, one, epoch=1)
    return nights


def same_keys_store(keys: Any = None) -> Store:
    """A store in memory whose keys are another's: addresses agree."""
    return Store(MemoryJournal(), MemoryObjects(), keys or memory_keys(), uri="memory:")


def said(text: str, *, ordinal: int = 1, principal: str | None = "ann", **fields: Any) -> ReplayedUtterance:
    fields = {"role": "user", "trust": "user", "ts": None, **fields}
    return ReplayedUtterance(ordinal=ordinal, ref=f"§{ordinal}", text=text, principal=principal, **fields)


def replayed(session: str, *utterances: ReplayedUtterance, **fields: Any) -> ReplayedTranscript:
    principal = fields.pop("principal", utterances[0].principal if utterances else None)
    fields = {"source": f"{session}.json", "format": "openai", "digest": f"digest of {session}", **fields}
    return ReplayedTranscript(session=session, principal=principal, utterances=utterances, **fields)


def claim(utterance: ReplayedUtterance, **fields: Any) -> Observation:
    """A claim that is all of what somebody said, word for word."""
    slot = fields.pop("slot", ("user", "note", "many"))
    if isinstance(slot, tuple):
        slot = Slot(subject=slot[0], attribute=slot[1], cardinality=slot[2])
    given = {
        "kind": "preference",
        "text": utterance.text,
        "slot": slot,
        "places": (MessageSpan(utterance.ref, 0, len(utterance.text.encode())),),
        "strength": "strict",
        "score": 0.8,
        "reach": "shared",
        "principal": utterance.principal,
        "ts": utterance.ts,
        "extractor": "preferences/1",
    }
    return Observation(**{**given, **fields})


def artifact(
    store: Store, session: str, texts: Sequence[str], *, principal: str | None = "ann", **fields: Any
) -> Artifact:
    """One transcript in which one person says these things, each a claim."""
    spoken = {name: fields.pop(name) for name in ("role", "trust", "ts") if name in fields}
    whole = {name: fields.pop(name) for name in ("shown", "digest", "project", "source") if name in fields}
    revision = fields.pop("revision", 0)
    utterances = [said(text, ordinal=at, principal=principal, **spoken) for at, text in enumerate(texts, 1)]
    transcript = replayed(session, *utterances, principal=principal, **whole)
    claims = [claim(utterance, **fields) for utterance in utterances]
    key = store.keys.address_key(TENANT)
    (first, *rest) = build_artifact(transcript, claims, extractor=EXTRACTOR, key=key, revision=revision)
    assert not rest
    return first


def evidence(session: str = "s-1", ref: str = "§1", **more: Any) -> dict[str, Any]:
    return {
        "source": "store",
        "session": session,
        "ref": ref,
        "span": (0, 4),
        "span_address": "a" * 64,
        "role": "user",
        "trust": "user",
        "principal": "u",
        **more,
    }


def recommendation(id: str = "r-1", text: str = "Wants the result first.", **more: Any) -> MetaRecommendation:
    """An active preference of the tenant; `more` overrides fields, nested ones as dictionaries."""
    fields: dict[str, Any] = {
        "id": id,
        "kind": "preference",
        "scope": {"tenant": TENANT, "agent": AGENT},
        "text": text,
        "slot": {"subject": "user", "attribute": id},
        "trust": "user",
        "status": "active",
        "run": "n1",
        "tokens": 9,
        "support": {"events": 3, "sessions": 3, "principals": 3, "last": "2026-11-22T04:00:00+00:00"},
        "confidence": {"score": 0.9, "lower95": 0.7, "method": "wilson"},
        "extractor": {"name": "x", "version": "1"},
        "evidence": [evidence()],
    }
    return MetaRecommendation.model_validate(fields | more)
