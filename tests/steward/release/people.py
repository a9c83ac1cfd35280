"""Three people with tokens, and a small profile, for the tests of what needs people."""

from __future__ import annotations

import hashlib
from functools import cache

from ctxsteward.schemas.profile import MetaRecord, ProfileDocument, ProfileEntry
from ctxsteward.steward.release.actors import Actor, Actors, KeySigner, token_signer

SALT = "5a" * 16
WHEN = "2026-11-22T04:00:00+00:00"
LATER = "2026-12-22T04:00:00+00:00"
TOKENS = {name: f"{name}-has-a-long-token-{name}" for name in ("ada", "ben", "cleo", "otto", "eve")}


@cache
def signer(name: str) -> KeySigner:
    return token_signer(TOKENS[name], SALT)


@cache
def actors() -> Actors:
    """Ada, Ben and Cleo review; Otto operates; Eve is unknown."""
    people: dict[str, Actor] = {
        name: Actor(roles=("reviewer",), key=signer(name).key) for name in ("ada", "ben", "cleo")
    }
    return Actors(salt=SALT, actors=people | {"otto": Actor(roles=("operator",), key=signer("otto").key)})


def record(name: str, text: str, *, approved: bool = False, source: str = "s-1§1") -> MetaRecord:
    """One that a night has harvested: its id is 16 hex digits."""
    id_ = hashlib.sha256(name.encode()).hexdigest()[:16]
    return MetaRecord(id=id_, text=text, sources=(source,), approved=approved)


FIRST = ProfileDocument(
    name="support",
    persona=(ProfileEntry(id="voice", text="You are a calm and exact assistant of a small bookshop."),),
    policies=(
        ProfileEntry(
            id="refunds", text="Refund unread books within 30 days of delivery.", value=30, unit="days", locked=True
        ),
        ProfileEntry(id="legal", text="Do not give legal, medical or tax advice."),
        ProfileEntry(id="sources", text="Cite the product page for every statement about stock or price."),
    ),
    rails=(ProfileEntry(id="privacy", text="Do not reveal personal data of one customer to another.", locked=True),),
    surface=(ProfileEntry(id="length", text="Write at most 120 words per answer."),),
    meta=(record("brief", "Wants the result first, then the reasons."),),
)


def rewritten(block: str, id: str, text: str, document: ProfileDocument = FIRST) -> ProfileDocument:
    entries = tuple(e.model_copy(update={"text": text}) if e.id == id else e for e in getattr(document, block))
    return document.model_copy(update={block: entries})


FACT = FIRST.model_copy(
    update={"meta": (*FIRST.meta, record("euro", "Wants prices in euro, with cents.", source="s-2§7"))}
)
"""Nobody is needed."""
WORDING = rewritten("policies", "sources", "Always cite the product page for every statement about stock or price.")
"""One person."""
LOCKED = rewritten("policies", "refunds", "Unread books are refunded within 30 days of delivery.")
"""Two people: locked."""
TURNED = rewritten("policies", "legal", "Always give legal, medical or tax advice.")
"""Two people: a BLOCK."""
WRITTEN = FIRST.model_copy(
    update={"meta": (MetaRecord(id="hours", text="The shop is open until eight.", sources=("s-2§1",)), *FIRST.meta)}
)
"""One person: a record that somebody wrote."""
SPEAKS = FIRST.model_copy(
    update={"meta": (record("brief", "Wants the result first, then the reasons.", approved=True),)}
)
"""One person: a record that is to speak in the operator's name."""
