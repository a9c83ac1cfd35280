"""Facts: what a session knows of its user, its project and itself, and which of it a user turn is shown.

A session's *audiences* are the principal of the newest user message, the project it was opened for, and the session
alone: the one way to a fact, so those of another user cannot be reached. A fork is of the sessions that it was forked
from, too, as far as it shares their log: it knows whatever rests on messages up to the fork, whichever night it was
learned, and nothing that was said in them afterwards. A store of facts is read once a session and audience, and again
after `REFRESH_TURNS` user turns; where a profile has no facts, one request tells for all audiences.

For each user turn facts are ranked for its message (`heuristic.UtteranceIndex`) and fitted into recall's room, each
once. A fact takes part that scores at least `LEAST_FRACTION` of the best, or that stands whatever is asked; best first,
whatever still fits. Facts take `Budgets.facts_fraction` of recall's room at most, fence and label counted; what they
leave is for recalled messages. What the head's records, the window or a recalled message say already is passed over.
What was chosen, and why not the others, is in the selection's log by id.

The log holds ids and addresses (`events.FactRef`), no text: that is read from the vault when it is laid out, so that
an erased fact leaves old envelopes, too. What is kept here lives in `Session.cache`; losing it costs time only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxsteward.schemas import Erased, Finding, StoreError, StoreUnavailable
from ctxsteward.store import Audience, Fact
from ctxsteward.store.facts.fact import fact_line, in_order
from ctxsteward.store.facts.fact_store import AudienceFacts, Each, FactStore, StoredFact, erased_fact
from ctxsteward.store.journal.events import EarlierLine, FactRef, RecallSelected
from ctxsteward.store.profiles.version_codec import RecordRef

from ..layout.composition import FactLines, context_text, recalled_rows
from ..tokens.tokenizer import Counter
from .heuristic import UtteranceIndex
from .room import CHOSEN, LEAST_TOKENS, MISSES, NO_ROOM
from .selection import LOGGED_CANDIDATES, Ranking, ScoredOriginal, log_of, verbatim

if TYPE_CHECKING:
    from ..history.session import Session
    from ..history.state import State
    from ..history.tool_groups import LogEntry

REFRESH_TURNS = 8
_NOTHING = AudienceFacts(number=0, held=())


class FactOffers:
    """What some sets have to offer together, indexed once."""

    def __init__(self, sets: tuple[tuple[Audience, AudienceFacts], ...], shared: Mapping[str, float]) -> None:
        """`shared` are the sessions whose log this one shares, up to which ordinal."""
        self.sets = sets
        self.candidates: tuple[tuple[Audience, StoredFact], ...] = tuple(_distinct(sets, shared))
        """Each with its audience."""
        self.facts: tuple[Fact, ...] = tuple(in_order(held.fact for _, held in self.candidates))
        self.index: UtteranceIndex = UtteranceIndex(self.facts)

    def is_of(self, sets: tuple[tuple[Audience, AudienceFacts], ...]) -> bool:
        """Whether it was made of exactly these."""
        return len(sets) == len(self.sets) and all(
            one[0] == other[0] and one[1] is other[1] for one, other in zip(sets, self.sets, strict=True)
        )


class SessionFacts:
    """What one session has read."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.sets: dict[tuple[str, Audience], tuple[int, AudienceFacts]] = {}
        """By profile and audience: the user turn it was read in, and what was there."""
        self.texts: dict[str, Fact | None] = {}
        """By address; None: it was erased."""
        self.rows: dict[EarlierLine, str | None] = {}
        """Of lines of earlier sessions; None: it was erased."""
        self.offered: FactOffers | None = None

    def read(self, shelves: FactStore, due: Iterable[Audience], turn: int, each: Each) -> None:
        """Read these shelves; none is asked for where there is none at all."""
        if shelves.any():
            found = {audience: shelves.active(audience, each) for audience in due}
        else:
            found = dict.fromkeys(due, _NOTHING)
        for audience, active in found.items():
            self.texts.update((held.kept.blob, held.fact) for held in active.held)
            self.sets[shelves.profile, audience] = (turn, active)

    def fill(self, shelves: FactStore, refs: Iterable[FactRef]) -> None:
        """Read the texts of these references."""
        for ref in refs:
            self.texts[ref.blob] = shelves.fact(RecordRef(ref.blob, ref.key))


def audiences_of(session: Session, state: State, *, of_user: bool = True) -> tuple[Audience, ...]:
    """Whose facts this session may be shown now, the narrowest first."""
    found = [Audience("session", id) for id in shared_logs(session)]
    if state.head.project is not None:
        found.append(Audience("project", state.head.project))
    principal = speaker_of(session, state)
    if of_user and principal is not None:
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


def offers_to(session: Session, state: State, *, of_user: bool = True) -> tuple[FactOffers | None, list[Finding]]:
    """Facts of the session's audiences, each id and each text once, the narrowest audience's first.

    Without `of_user`, those about the user are not read: earlier sessions are searched in their place.

    A store that does not answer is a finding; what was read before goes on being known.
    """
    lookup, profile = session.fact_lookup, profile_of(state)
    if lookup is None or profile is None:
        return None, []
    known, audiences = known_by(session), audiences_of(session, state, of_user=of_user)
    findings: list[Finding] = []
    due = [audience for audience in audiences if _is_due(known, profile, audience, state.turns)]
    if due:
        shelves = lookup.shelves(profile, session.tenant)
        try:
            lookup.ask(lambda: known.read(shelves, due, state.turns, lookup.each))
        except StoreError as error:
            findings.append(unavailable(error))
    sets = tuple(
        (audience, known.sets[profile, audience][1]) for audience in audiences if (profile, audience) in known.sets
    )
    if not any(active.held for _, active in sets):
        return None, findings
    if known.offered is None or not known.offered.is_of(sets):
        known.offered = FactOffers(sets, shared_logs(session))
    return known.offered, findings


def lines_of(session: Session, chosen: RecallSelected) -> FactLines:
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
    return FactLines(lines, tuple(erased_fact(RecordRef(ref.blob, ref.key)) for ref in gone), known)


def known_by(session: Session) -> SessionFacts:
    """What this session has read; nothing where something was forgotten since."""
    epoch = session.fact_lookup.epoch(session.tenant) if session.fact_lookup is not None else 0
    known = session.cache.get("facts")
    if not isinstance(known, SessionFacts) or known.epoch != epoch:
        known = session.cache["facts"] = SessionFacts(epoch)
    return known


def profile_of(state: State) -> str | None:
    """The name of the profile in force: facts are an agent's."""
    name = state.head.profile.get("name") if state.head.profile is not None else None
    return name if isinstance(name, str) else None


def unavailable(error: StoreError) -> Finding:
    """Says that facts could not be read."""
    what = "content of a forgotten subject" if isinstance(error, Erased) else f"{type(error).__name__}: {error}"
    return Finding(kind="facts_unavailable", field="dynamic", text=f"facts could not be read: {what}"[:500])


def _is_due(known: SessionFacts, profile: str, audience: Audience, turn: int) -> bool:
    found = known.sets.get((profile, audience))
    return found is None or turn - found[0] >= REFRESH_TURNS


def _distinct(
    sets: Iterable[tuple[Audience, AudienceFacts]], shared: Mapping[str, float]
) -> Iterator[tuple[Audience, StoredFact]]:
    seen: set[str] = set()
    for audience, active in sets:
        for held in active.held:
            if audience.kind == "session" and not _is_shared(held.fact, audience.name, shared):
                continue
            words = _words(held.fact.text)
            if seen.isdisjoint((held.fact.id, words)):
                seen.update((held.fact.id, words))
                yield audience, held


def _is_shared(fact: Fact, session: str, shared: Mapping[str, float]) -> bool:
    """Whether a fact of a session is one of this one, too: its own, or resting on shared messages alone."""
    return shared[session] == inf or all(source.ordinal <= shared.get(source.session, 0) for source in fact.sources)


def _texts(known: SessionFacts, chosen: RecallSelected) -> Iterator[Fact]:
    return (fact for ref in chosen.facts if (fact := known.texts.get(ref.blob)) is not None)


LEAST_FRACTION = 0.3
"""Of the best score: what scores less shares a day or a neighbour with an answer, and says nothing itself."""
STANDING_SCORE = 0.5
"""Added to the score of a fact that stands whatever is asked."""
IN_HEAD = "the head says it"
IN_WINDOW = "the window says it"
_NONE: Mapping[str, float] = MappingProxyType({})
OFF_TOPIC = "it says too little of the question"


class _FactRow(NamedTuple):
    audience: Audience
    held: StoredFact
    score: float
    signals: Mapping[str, float]
    why: str
    """Why it was passed over; empty: it was taken."""

    @property
    def fact(self) -> Fact:
        return self.held.fact


def offer(
    session: Session,
    state: State,
    room_tokens: int,
    counter: Counter,
    *,
    of_user: bool = True,
) -> tuple[list[_FactRow], int, list[Finding]]:
    """Rank what is known for this user turn and fit it into the room for facts; decides nothing about messages.

    Facts that fit, and what became of the others, best first; tokens of their lines and label (the fence is counted
    with the messages that they share it with); findings.
    """
    known, findings = offers_to(session, state, of_user=of_user)
    if known is None:
        return [], 0, findings
    ranked = _ranked(known, session.shown(state.last_user).message.text)
    already_said = _said_in_head_or_window(session, state)
    rows, tokens = _fitted(
        [row._replace(why=row.why or already_said(row.fact)) for row in ranked], state, counter, room_tokens
    )
    return rows, tokens, findings


def with_facts(
    offered: Sequence[_FactRow],
    picked: RecallSelected | None,
    session: Session,
    state: State,
    room_tokens: int,
    counter: Counter,
) -> RecallSelected | None:
    """The selection with the facts that no recalled message says already; None where there is neither."""
    if not offered:
        return picked
    event = picked or RecallSelected(turn=state.last_user, refs=(), log={})
    already_said = _said_by_recalled(session, event)
    rows = [row if row.why else row._replace(why=already_said(row.fact)) for row in offered]
    while (kept := [row for row in rows if not row.why]) and event.refs:
        if _tokens(state, counter, kept, event, session.shown) <= room_tokens:
            break
        rows[rows.index(kept[-1])] = kept[-1]._replace(why=NO_ROOM)
    if not kept and picked is None:
        return None
    log = event.log or log_of(Ranking(scored=(), strategy="facts"), state, (), 0, [])
    return replace(event, facts=tuple(map(_ref, _by_time(kept))), log={**log, "facts": list(_logged(rows))})


# -- ranking -------------------------------------------------------------------------------------------------------


def _ranked(known: FactOffers, query: str) -> list[_FactRow]:
    """Best first; ties go to the more valuable."""
    found = {known.facts[scored.ordinal].id: scored for scored in known.index.rank(query)}
    best = max((scored.score for scored in found.values()), default=0.0)
    rows = [_row(audience, held, found.get(held.fact.id), best) for audience, held in known.candidates]
    return sorted(rows, key=lambda row: -row.score)


def _row(audience: Audience, held: StoredFact, scored: ScoredOriginal | None, best: float) -> _FactRow:
    score, signals = (0.0, _NONE) if scored is None else (scored.score, scored.signals)
    if held.fact.standing:
        return _FactRow(audience, held, score + STANDING_SCORE, {**signals, "standing": STANDING_SCORE}, "")
    says = score > 0 and score >= LEAST_FRACTION * best
    return _FactRow(audience, held, score, signals, "" if says else OFF_TOPIC)


# -- what is said already ------------------------------------------------------------------------------------------


def _said_in_head_or_window(session: Session, state: State) -> Callable[[Fact], str]:
    """Tells where head or window say a fact already; empty: nowhere."""
    records = (state.head.profile or {}).get("meta", ())
    ids, texts = {record["id"] for record in records}, {_words(record["text"]) for record in records}
    shared, shown = shared_logs(session), verbatim(state)

    def where(fact: Fact) -> str:
        if fact.id in ids or _words(fact.text) in texts:
            return IN_HEAD
        return "" if shown.isdisjoint(_own_ordinals(fact, shared)) else IN_WINDOW

    return where


def _said_by_recalled(session: Session, event: RecallSelected) -> Callable[[Fact], str]:
    """Tells which recalled message says a fact already; empty: none."""
    shared, refs = shared_logs(session), frozenset(event.refs)
    texts = {_words(session.shown(ordinal).message.text): ordinal for ordinal in event.refs}

    def where(fact: Fact) -> str:
        said = min(_own_ordinals(fact, shared) & refs, default=0) or texts.get(_words(fact.text), 0)
        return f"§{said} is recalled" if said else ""

    return where


def _own_ordinals(fact: Fact, shared: Mapping[str, float]) -> set[int]:
    """Messages of this session's log, what it shares with others included, that a fact rests on."""
    return {source.ordinal for source in fact.sources if source.ordinal <= shared.get(source.session, 0)}


def _words(text: str) -> str:
    return " ".join(text.split()).casefold()


# -- fitting -------------------------------------------------------------------------------------------------------


def _fitted(ranked: Sequence[_FactRow], state: State, counter: Counter, room_tokens: int) -> tuple[list[_FactRow], int]:
    """Fill the room best first with those that nothing says yet; what those that fit take."""
    empty = counter.framed(context_text(state.nonce, (), ()))
    rows: list[_FactRow] = []
    kept: list[_FactRow] = []
    used = misses = 0
    for row in ranked:
        if not row.why:
            tokens, left = room_tokens + 1, room_tokens - used
            fits = misses < MISSES and left >= LEAST_TOKENS and counter.text(fact_line(row.fact) + "\n") <= left
            if fits:
                tokens = _tokens(state, counter, [*kept, row])
            if tokens <= room_tokens:
                kept.append(row)
                used, misses = tokens, 0
            else:
                misses += 1
                row = row._replace(why=NO_ROOM)
        rows.append(row)
    return rows, max(0, used - empty) if kept else 0


def _tokens(
    state: State,
    counter: Counter,
    rows: Sequence[_FactRow],
    event: RecallSelected | None = None,
    original: Callable[[int], LogEntry] | None = None,
) -> int:
    """What these facts cost as they will be shown, with the messages of the selection."""
    lines = [fact_line(row.fact) for row in _by_time(rows)]
    messages = recalled_rows(event, state, original, counter) if event is not None and original is not None else ()
    return counter.framed(context_text(state.nonce, lines, messages))


def _by_time(rows: Sequence[_FactRow]) -> list[_FactRow]:
    places = {fact.id: place for place, fact in enumerate(in_order(row.fact for row in rows))}
    return sorted(rows, key=lambda row: places[row.fact.id])


# -- the log -------------------------------------------------------------------------------------------------------


def _ref(row: _FactRow) -> FactRef:
    return FactRef(row.fact.id, *row.held.kept)


def _logged(rows: Sequence[_FactRow]) -> Iterator[dict[str, Any]]:
    """Facts in the published form, best first: all that were chosen, and the best of the others."""
    others = LOGGED_CANDIDATES
    for row in rows:
        others -= bool(row.why)
        if not row.why or others >= 0:
            yield {
                "id": row.fact.id,
                "audience": row.audience.kind,
                "score": round(row.score, 4),
                "signals": {name: round(value, 4) for name, value in row.signals.items()},
                "in": not row.why,
                "why": row.why or CHOSEN,
            }
