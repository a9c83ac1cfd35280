"""Making an index's cards again, from originals: after it was lost, or with another summarizer or embedder.

Cards that stand are replaced as the new ones arrive; a reader sees one or the other. Erased messages get none. May run
beside workers: whoever generates last wins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ctxsteward.schemas import Damaged, Finding, InputError

from ..store import Store
from ..stores.port import SessionKey
from .backlog import Backlog
from .making import CardMaker
from .port import CardIndex, Done

BATCH_MESSAGES = 100


class Rebuilt(NamedTuple):
    """What was done."""

    sessions: int
    messages: int
    cards: int
    findings: tuple[Finding, ...]


def rebuild(
    store: Store,
    index: CardIndex,
    maker: CardMaker,
    tenant: str = "default",
    session: str | None = None,
    *,
    on_session: Callable[[str], None] = lambda name: None,
) -> Rebuilt:
    """Make all cards of a session (None: of every session of the tenant) again.

    Of all sessions, a damaged one is left with a finding. Raises `InputError` for a session that does not exist and for
    embeddings that the index cannot hold; `StoreError`.
    """
    done: list[Rebuilt] = []
    for name in store.journal.sessions(tenant) if session is None else [session]:
        on_session(name)
        try:
            backlog = Backlog.open(store, index, SessionKey(tenant, name), anew=True)
        except Damaged as error:
            if session is not None:
                raise
            done.append(Rebuilt(0, 0, 0, (Finding(kind="cards_failed", text=f"session {name!r}: {error}"),)))
            continue
        if backlog is not None:
            done.append(_rebuilt(index, maker, backlog))
        elif session is not None:
            raise InputError(f"{store.uri}: no session {session!r} of tenant {tenant!r}; nothing was rebuilt")
    findings = tuple(finding for one in done for finding in one.findings)
    return Rebuilt(
        sum(one.sessions for one in done), sum(one.messages for one in done), sum(one.cards for one in done), findings
    )


def _rebuilt(index: CardIndex, maker: CardMaker, backlog: Backlog) -> Rebuilt:
    key, before, cards = backlog.session.key, backlog.carded, 0
    findings: list[Finding] = []
    while len(backlog):
        upto = min(backlog.carded + BATCH_MESSAGES, len(backlog.session))
        made = maker.make(key, backlog.next(BATCH_MESSAGES), backlog.standing, backlog.session.state.pins)
        at_end = upto == len(backlog.session)
        cards += index.put(made.cards, (Done(key.tenant, key.session, upto),) if at_end else ())
        backlog.carded, backlog.standing = upto, made.standing
        findings += made.findings
    return Rebuilt(1, backlog.carded - before, cards, (*findings, *backlog.findings))
