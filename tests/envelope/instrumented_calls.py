"""Model calls that give every instrument of the request path something to count.

The incident that the demo ships is replayed under a window so small that its guard counts. Requests are audited, and
now and then one lacks a message. A compaction's record is damaged, so that the session that is opened again has to make
it anew. A build fails, since its head is larger than its window. All offline.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Profile, Session, Store
from ctxsteward.envelope.audit import audit
from ctxsteward.envelope.transcripts.files import parse_transcripts
from ctxsteward.evals.replay import new_message
from ctxsteward.schemas import BudgetExceeded, WindowExceeded

BUDGETS = Budgets(static_tokens=200, meta_tokens=97, dynamic_tokens=2_000)
DATA = Path(str(files("ctxsteward.console"))) / "data"
AUDIT_EVERY, CUT_EVERY, DAMAGE_EVERY = 3, 40, 60
"""Calls between audits, requests that lack a message, damaged records."""


def model_calls(store: Store, id: str) -> Iterator[tuple[Session, EnvelopeBuilder]]:
    """The session as it stands before each model call."""
    (transcript,) = parse_transcripts((DATA / "demo.jsonl").read_text(encoding="utf-8"), "demo.jsonl")
    profile = Profile.load(DATA / "demo-profile.yaml")
    session = store.session(id, tools=transcript.tools, system=transcript.system, profile=profile)
    builder = _builder()
    for number, entry in enumerate(transcript.entries(), start=1):
        if entry.wire.get("role") == "assistant" and number > 1:
            yield session, builder
        session.extend([new_message(entry, number)])


def call_model(store: Store, session: Session, builder: EnvelopeBuilder, number: int) -> None:
    """Build for one model call; of some, the request is audited or the store is damaged."""
    with suppress(BudgetExceeded, WindowExceeded):
        envelope = builder.build(session)
        if number % AUDIT_EVERY == 0:
            _audit(envelope, cut=number % CUT_EVERY < AUDIT_EVERY)
        if number % DAMAGE_EVERY == 0:
            _damage(store, session)
            builder.build(store.session(session.id))
            _builder(window_tokens=300).build(session)  # does not fit


def _audit(envelope: Envelope, *, cut: bool) -> None:
    request = envelope.render("openai-chat")
    if cut:
        request = {**request, "messages": request["messages"][:-1]}
    audit(envelope, request)


def _damage(store: Store, session: Session) -> None:
    """Take its code from the newest compaction, or from the newest record."""
    records = store.journal.read(session.key, 0)
    at = max((n for n, record in enumerate(records) if record.kind == "compaction"), default=len(records) - 1)
    store.journal.rewrite(session.key, {at: records[at]._replace(mac="")})


def _builder(window_tokens: int = 2_720) -> EnvelopeBuilder:
    return EnvelopeBuilder(model="gpt-4o", budgets=BUDGETS, window_tokens=window_tokens, output_reserve_tokens=100)
