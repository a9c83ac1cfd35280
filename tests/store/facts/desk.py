"""A small desk: an agent, its builder and sessions, and a store whose requests can be counted and that can die."""

from __future__ import annotations

from typing import Any

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Profile, Session, Store
from ctxsteward.envelope.testing import CharTokenizer, FirstLine
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.schemas import StoreUnavailable
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.journal.memory import MemoryJournal

from ..doubles import HookedObjects

TOLD = {"who": "steward", "why": "import 7", "when": "2026-11-22"}
GONE = {"who": "dpo", "why": "request 7", "when": "2026-11-23"}
CHARS = Counter(CharTokenizer())
PROFILE = Profile.from_text("You are calm.", name="support")


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


def builder(dynamic_tokens: int = 2_000, **more: Any) -> EnvelopeBuilder:
    more.setdefault("summarizer", FirstLine())
    return EnvelopeBuilder(tokenizer=CharTokenizer(), budgets=Budgets(dynamic_tokens=dynamic_tokens), **more)


def opened(store: Store, id: str = "s-1", **more: Any) -> Session:
    more.setdefault("profile", PROFILE)
    return store.session(id, counter=CHARS, **more)


def ask(session: Session, text: str = "Which seats are left?", principal: str | None = "ann") -> Session:
    session.append({"role": "user", "content": text}, principal=principal)
    return session


def kinds(envelope: Envelope) -> list[str]:
    return [finding.kind for finding in envelope.findings]
