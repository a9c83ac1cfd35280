"""Facts of past envelopes: lines that earlier versions recalled about a user, project or session.

No selector chooses facts any more. A selection of an earlier version names them by id and address (`events.FactRef`),
without text. The text is read from the vault when the envelope is laid out, so that an erased fact disappears from old
envelopes too. Texts read so are cached in `Session.cache`; losing them costs only time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctxsteward.schemas import Erased, Finding, StoreError, StoreUnavailable
from ctxsteward.store.facts.fact import Fact, fact_line
from ctxsteward.store.facts.fact_store import FactStore, erased_fact
from ctxsteward.store.journal.events import EarlierLine, FactRef, RecallSelected
from ctxsteward.store.profiles.version_codec import RecordRef

from ..layout.composition import FactLines

if TYPE_CHECKING:
    from ..history.session import Session
    from ..history.state import State


class SessionFacts:
    """Texts that one session has read."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.texts: dict[str, Fact | None] = {}
        """Facts by address; None for an erased one."""
        self.rows: dict[EarlierLine, str | None] = {}
        """Rows of lines of earlier sessions; None for an erased one."""

    def fill(self, shelves: FactStore, refs: Iterable[FactRef]) -> None:
        """Read the texts of these references."""
        for ref in refs:
            self.texts[ref.blob] = shelves.fact(RecordRef(ref.blob, ref.key))


def speaker_of(session: Session, state: State) -> str | None:
    """Return the principal of the newest user message; None if it names nobody, was erased or is damaged."""
    if not state.last_user:
        return None
    event = session.shown(state.last_user).event
    return None if event.erased or event.damaged else event.principal


def lines_of(session: Session, chosen: RecallSelected) -> FactLines:
    """Return the lines of the chosen facts, without those erased since."""
    known, lookup, findings = known_by(session), session.fact_lookup, list[Finding]()
    missing = [ref for ref in chosen.facts if ref.blob not in known.texts]
    if missing:
        try:
            if lookup is None:
                raise StoreUnavailable("this session has no object store")
            profile = (session.state.head.profile or {}).get("name") or "default"
            shelves = lookup.shelves(profile, session.tenant)
            lookup.ask(lambda: known.fill(shelves, missing))
        except StoreError as error:
            what = "content of a forgotten subject" if isinstance(error, Erased) else f"{type(error).__name__}: {error}"
            text = f"facts could not be read: {what}"[:500]
            findings.append(Finding(kind="facts_unavailable", field="dynamic", text=text))
    lines = tuple(fact_line(fact) for ref in chosen.facts if (fact := known.texts.get(ref.blob)) is not None)
    if findings:
        return FactLines(lines, tuple(findings), None)
    gone = (ref for ref in chosen.facts if known.texts[ref.blob] is None)
    return FactLines(lines, tuple(erased_fact(RecordRef(ref.blob, ref.key)) for ref in gone), known)


def known_by(session: Session) -> SessionFacts:
    """Return the texts that this session has read; empty if anything was forgotten since."""
    epoch = session.fact_lookup.epoch(session.tenant) if session.fact_lookup is not None else 0
    known = session.cache.get("facts")
    if not isinstance(known, SessionFacts) or known.epoch != epoch:
        known = session.cache["facts"] = SessionFacts(epoch)
    return known
