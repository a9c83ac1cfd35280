"""A small desk: two agents' shelves, facts about people, a store whose requests can be counted and that can die."""

from __future__ import annotations

from typing import Any

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Profile, Session, Store
from ctxsteward.envelope.testing import CharTokenizer, FirstLine, memory_store
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.schemas import StoreUnavailable
from ctxsteward.store import Audience, Fact, FactSource
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.journal.memory import MemoryJournal

from ..doubles import HookedObjects

TOLD = {"who": "steward", "why": "import 7", "when": "2026-11-22"}
GONE = {"who": "dpo", "why": "request 7", "when": "2026-11-23"}
CHARS = Counter(CharTokenizer())
PROFILE = Profile.from_text("You are calm.", name="support")
ANN, BOB = Audience("user", "ann"), Audience("user", "bob")


class Requests(HookedObjects):
    """An object store that counts what it is asked, and may be dead."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self.dead = False

    def ask(self, method: str, key: str) -> None:
        if self.dead:
            raise StoreUnavailable("the object store is dead")
        self.asked.append((method, key))


def counted_store() -> tuple[Store, Requests]:
    requests = Requests()
    keys = memory_keys(lambda size: b"k" * size)
    return Store(MemoryJournal(), requests, keys, uri="memory:", draw_nonce=lambda: "000000000"), requests


def fact(id: str, text: str, *, session: str = "s-7", at: int = 1, principal: str | None = "ann", **more: Any) -> Fact:
    source = FactSource(session=session, ref=f"§{at}", principal=principal)
    return Fact(id=id, text=text, sources=(source,), **more)


SEATS = fact("r-seats", "Prefers aisle seats on long flights.")
LISBON = fact("r-mia", "Her daughter Mia was born in Lisbon.", at=3, ts="2026-03-02T09:00:00")
METRIC = fact("r-metric", "Wants every answer in metric units.", at=5, standing=True)
HERS = (SEATS, LISBON, METRIC)
HIS = (fact("r-night", "Works at night and sleeps till noon.", session="s-8", principal="bob"),)


def known(*facts: Fact) -> Store:
    """A store in which these facts are known about Ann, by default all of hers."""
    store = memory_store()
    store.facts("support").commit(ANN, facts or HERS, **TOLD)
    return store


ASKED = "Book me a flight to Lisbon, which seats are left?"


def builder(dynamic_tokens: int = 2_000, **more: Any) -> EnvelopeBuilder:
    more.setdefault("summarizer", FirstLine())
    return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=dynamic_tokens), **more)


def opened(store: Store, id: str = "s-1", **more: Any) -> Session:
    more.setdefault("profile", PROFILE)
    return store.session(id, counter=CHARS, **more)


def ask(session: Session, text: str = ASKED, principal: str | None = "ann") -> Session:
    session.append({"role": "user", "content": text}, principal=principal)
    return session


def context(envelope: Envelope) -> str:
    return envelope.dynamic.context.text if envelope.dynamic.context else ""


def lines(envelope: Envelope) -> list[str]:
    """The ids of the facts that an envelope shows, in its order."""
    rows = context(envelope).splitlines()
    return [row.split()[1].rstrip(":") for row in rows if row.startswith("fact ")]


def kinds(envelope: Envelope) -> list[str]:
    return [finding.kind for finding in envelope.findings]


def rebuilt(store: Store, envelope: Envelope, made: EnvelopeBuilder | None = None) -> Envelope:
    """The envelope again, out of its log by a process that knows nothing; without a manifest: these are characters."""
    session = store.at(envelope.tenant, envelope.session, envelope.position)
    return (made or builder()).rebuild(session)
