"""What a session knows of its user, its project and itself: read once, kept while it is true, shown by reference.

Its *audiences* are the principal of the newest user message, the project it was opened for, and the session alone: the
one way to a fact, so those of another user cannot be reached. A fork is of the sessions that it was forked from, too,
as far as it shares their log: it knows whatever rests on messages up to the fork, whichever night it was learned, and
nothing that was said in them afterwards. A shelf is read once a session and audience, and again
after `REFRESH_TURNS` user turns; where a profile has no facts, one request tells for all audiences.

The log holds ids and addresses (`events.FactRef`), no text: that is read from the vault when it is laid out, so that
an erased fact leaves old envelopes, too. What is kept here lives in `Session.cache`; losing it costs time only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from ctxsteward.schemas import Erased, Finding, StoreError, StoreUnavailable

from ..events import FactRef, Selected
from ..ranking.sayings import SayingIndex
from ..slices import Kept
from .fact import Audience, Fact, fact_line, in_order
from .shelf import Active, Each, FactShelves, Held, erased

if TYPE_CHECKING:
    from ..session import Session
    from ..state import State

REFRESH_TURNS = 8
_NOTHING = Active(number=0, held=())


class Candidate(NamedTuple):
    """A fact that a session may be shown."""

    audience: Audience
    held: Held


class Offers:
    """What some sets have to offer together, indexed once."""

    def __init__(self, sets: tuple[tuple[Audience, Active], ...], shared: Mapping[str, float]) -> None:
        """`shared` are the sessions whose log this one shares, up to which ordinal."""
        self.sets = sets
        self.candidates = tuple(_distinct(sets, shared))
        self.facts = tuple(in_order(candidate.held.fact for candidate in self.candidates))
        self.index = SayingIndex(self.facts)

    def is_of(self, sets: tuple[tuple[Audience, Active], ...]) -> bool:
        """Whether it was made of exactly these."""
        return len(sets) == len(self.sets) and all(
            one[0] == other[0] and one[1] is other[1] for one, other in zip(sets, self.sets, strict=True)
        )


class FactLines(NamedTuple):
    """The facts of a turn context, rendered."""

    lines: tuple[str, ...]
    findings: tuple[Finding, ...]
    token: object
    """The same as long as the lines are; None: do not keep them."""


class Known:
    """What one session has read."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.sets: dict[tuple[str, Audience], tuple[int, Active]] = {}
        """By profile and audience: the user turn it was read in, and what was there."""
        self.texts: dict[str, Fact | None] = {}
        """By address; None: it was erased."""
        self.offered: Offers | None = None

    def read(self, shelves: FactShelves, due: Iterable[Audience], turn: int, each: Each) -> None:
        """Read these shelves; none is asked for where there is none at all."""
        if shelves.any():
            found = {audience: shelves.active(audience, each) for audience in due}
        else:
            found = dict.fromkeys(due, _NOTHING)
        for audience, active in found.items():
            self.texts.update((held.kept.blob, held.fact) for held in active.held)
            self.sets[shelves.profile, audience] = (turn, active)

    def fill(self, shelves: FactShelves, refs: Iterable[FactRef]) -> None:
        """Read the texts of these references."""
        for ref in refs:
            self.texts[ref.blob] = shelves.form.fact(Kept(ref.blob, ref.key))


def audiences_of(session: Session, state: State) -> tuple[Audience, ...]:
    """Whose facts this session may be shown now, the narrowest first."""
    found = [Audience("session", id) for id in shared_logs(session)]
    if state.head.project is not None:
        found.append(Audience("project", state.head.project))
    principal = speaker_of(session, state)
    if principal is not None:
        found.append(Audience("user", principal))
    return tuple(found)


def shared_logs(session: Session) -> dict[str, float]:
    """The session itself, and those it was forked from; up to which ordinal their messages are its own."""
    return {session.id: inf} | {origin.session: origin.ordinal for origin in session.origins()}


def speaker_of(session: Session, state: State) -> str | None:
    """The principal of the newest user message; None where nobody is named, or was forgotten."""
    if not state.last_user:
        return None
    event = session.shown(state.last_user).event
    return None if event.erased or event.damaged else event.principal


def offers_to(session: Session, state: State) -> tuple[Offers | None, list[Finding]]:
    """Facts of the session's audiences, each id and each text once, the narrowest audience's first.

    A store that does not answer is a finding; what was read before goes on being known.
    """
    lookup, profile = session.fact_lookup, profile_of(state)
    if lookup is None or profile is None:
        return None, []
    known, audiences = known_by(session), audiences_of(session, state)
    findings: list[Finding] = []
    due = [audience for audience in audiences if _is_due(known, profile, audience, state.turns)]
    if due:
        shelves = lookup.shelves(profile, session.tenant)
        try:
            lookup.ask(lambda: known.read(shelves, due, state.turns, lookup.each))
        except StoreError as error:
            findings.append(unavailable(error))
    sets = tuple((one, known.sets[profile, one][1]) for one in audiences if (profile, one) in known.sets)
    if not any(active.held for _, active in sets):
        return None, findings
    if known.offered is None or not known.offered.is_of(sets):
        known.offered = Offers(sets, shared_logs(session))
    return known.offered, findings


def lines_of(session: Session, chosen: Selected) -> FactLines:
    """The lines of the facts that were chosen, without what was erased since."""
    known, lookup = known_by(session), session.fact_lookup
    missing = [ref for ref in chosen.facts if ref.blob not in known.texts]
    if missing:
        try:
            if lookup is None:
                raise StoreUnavailable("this session has no object store")
            shelves = lookup.shelves(profile_of(session.state) or "default", session.tenant)
            lookup.ask(lambda: known.fill(shelves, missing))
        except StoreError as error:
            shown = tuple(fact_line(fact) for fact in _texts(known, chosen))
            return FactLines(shown, (unavailable(error),), None)
    gone = [ref for ref in chosen.facts if known.texts[ref.blob] is None]
    lines = tuple(fact_line(fact) for fact in _texts(known, chosen))
    return FactLines(lines, tuple(erased(Kept(ref.blob, ref.key)) for ref in gone), known)


def known_by(session: Session) -> Known:
    """What this session has read; nothing where something was forgotten since."""
    epoch = session.fact_lookup.epoch(session.tenant) if session.fact_lookup is not None else 0
    known = session.cache.get("facts")
    if not isinstance(known, Known) or known.epoch != epoch:
        known = session.cache["facts"] = Known(epoch)
    return known


def profile_of(state: State) -> str | None:
    """The name of the profile in force: facts are an agent's."""
    name = state.head.profile.get("name") if state.head.profile is not None else None
    return name if isinstance(name, str) else None


def unavailable(error: StoreError) -> Finding:
    """Says that facts could not be read."""
    what = "content of a forgotten subject" if isinstance(error, Erased) else f"{type(error).__name__}: {error}"
    return Finding(kind="facts_unavailable", field="dynamic", text=f"facts could not be read: {what}"[:500])


def _is_due(known: Known, profile: str, audience: Audience, turn: int) -> bool:
    found = known.sets.get((profile, audience))
    return found is None or turn - found[0] >= REFRESH_TURNS


def _distinct(sets: Iterable[tuple[Audience, Active]], shared: Mapping[str, float]) -> Iterator[Candidate]:
    seen: set[str] = set()
    for audience, active in sets:
        for held in active.held:
            if audience.kind == "session" and not _is_shared(held.fact, audience.name, shared):
                continue
            words = " ".join(held.fact.text.split()).casefold()
            if seen.isdisjoint((held.fact.id, words)):
                seen.update((held.fact.id, words))
                yield Candidate(audience, held)


def _is_shared(fact: Fact, session: str, shared: Mapping[str, float]) -> bool:
    """Whether a fact of a session is one of this one, too: its own, or resting on shared messages alone."""
    return shared[session] == inf or all(source.ordinal <= shared.get(source.session, 0) for source in fact.sources)


def _texts(known: Known, chosen: Selected) -> Iterator[Fact]:
    return (fact for ref in chosen.facts if (fact := known.texts.get(ref.blob)) is not None)
