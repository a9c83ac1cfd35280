"""Earlier sessions: recall the asking person's own words from other sessions of the same tenant.

With ``memory="principal"`` (builder or session) each user turn also searches its principal's other sessions. The unit
is a sentence of a user message of that principal. Code, quotations, quoted lines, tables, mails and other pasted text
are other people's words (`language.foreign_text`) and are not indexed, nor are messages that were injected into a
session (`origin`). Sessions that share a log with the asking one (forks and their origins) are the same conversation,
not earlier ones.

Each asking principal has a `PersonIndex` in memory: a `SessionIndex` whose sittings are the sessions. The first
sentence of a message is also indexed under the assistant's question before it. The index grows by new messages, and a
turn costs the postings of its terms. An erasure in the tenant, by any process, voids all of its indexes. The sessions
of a person are found in the tenant's logs; a process reads each log once. It asks for the lengths of logs at the first
turn of a session and every `REFRESH_TURNS` turns. Only sessions in this journal are searched.

A turn gets no lines unless it is a question about the person's own things, or has rare words that the person has used.
A sentence is shown only if it, or the question that it answers, shares a word with the turn.

The choice is stored in the log of the asking session, message by message. Each row is encrypted under the person's key
in the session where it was said (`EarlierLine`). So an old envelope is laid out without reading another session, and
forgetting that session, or that person, removes the row from every log and every copy of it. Rows of a draft are not
encrypted, because a draft is in memory alone: a preview makes no key.

Weights were set on the development halves of two data sets; `benchmarks.earlier_sessions` prints the results.
"""

from __future__ import annotations

import base64
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ctxsteward.language.words import sentences, terms
from ctxsteward.schemas import Erased, Finding, StoreError, StoreUnavailable
from ctxsteward.schemas.errors import Damaged, ObjectMissing
from ctxsteward.store import process_forks as forking
from ctxsteward.store.backend import Backend
from ctxsteward.store.crypto.keyring import subject_of
from ctxsteward.store.deadline import uncut
from ctxsteward.store.facts.fact import pointer
from ctxsteward.store.journal.draft import DraftJournal
from ctxsteward.store.journal.events import EarlierLine, MessageAppended, RecallSelected, fork_point
from ctxsteward.store.journal.log import Log, principals_of
from ctxsteward.store.journal.port import LogExtent, SessionKey

from ..history.tool_groups import LogEntry
from ..layout.composition import FactLines, context_text
from ..layout.rows import GAP, continued
from ..tokens.tokenizer import Counter
from .facts import known_by, lines_of, speaker_of
from .heuristic import ASKS, Weights, date_words, ends_of, is_personal_question, rarity_of
from .selection import Ranking, log_of

if TYPE_CHECKING:
    from ..history.session import Session
    from ..history.state import State

FOUND_TOKENS = 120
"""Most tokens of the rows of one turn."""
REFRESH_TURNS = 8
MAX_PEOPLE = 64
"""Most indexes kept; the one whose person asked longest ago is dropped."""
MAX_READ_CHARS = 1_600
"""Of a longer message only the first and the last paragraph are read; the text between them is taken as pasted."""
MIN_TERMS, MAX_TERMS = 2, 40
"""Bounds on the different terms of an indexed sentence: fewer mean nothing alone, and more are no sentence."""
CANDIDATES = 60
LEAST_TOKENS = 8
"""Least tokens of a row."""
LEAST_MET, LEAST_MET_UNASKED = 0.7, 2.0
"""Least rarity of the turn's words that the person has used before, summed: for a question, and for a turn without a
question. An everyday word counts 0, a rare one 1."""
WEIGHTS = Weights.model_construct(wide=0, date=0.25, recency=0.2, novel=0)  # a validator takes 20 ms to make
"""`wide` is 0, because neighbouring sentences are often about other things. `recency` puts the newest value first."""
ALIKE = 0.8
"""Two sentences that share this part of the shorter one's terms say the same; the newer is shown."""
_PARAGRAPH = re.compile(r"\n\s*\n")


class OwnSentence(NamedTuple):
    """A sentence in a person's own words."""

    number: int
    """Number in the index."""
    session: str
    ordinal: int
    start: int
    """First character in the message's text."""
    stop: int
    text: str
    terms: frozenset[str]
    ts: str
    """Time of the message; empty if unknown."""

    @property
    def place(self) -> tuple[str, int]:
        """Session and ordinal of the message."""
        return self.session, self.ordinal

    @property
    def age_key(self) -> tuple[str, int]:
        """Sort key from the oldest to the newest sentence."""
        return self.ts, self.number

    def repeats(self, other: OwnSentence) -> bool:
        """Return whether it says the same as another sentence."""
        return len(self.terms & other.terms) >= ALIKE * min(len(self.terms), len(other.terms))


class PersonIndex:
    """Index of one person's sentences in the sessions of a tenant, as far as they were read."""

    def __init__(self) -> None:
        with uncut():  # after an interrupted import numpy cannot be imported again
            from .session_index import SessionIndex

        self.read_to: dict[str, int] = {}
        """By session, the log position up to which it was read."""
        self.surveys: int = 0
        """Number of the last survey that the index includes."""
        self._index = SessionIndex()
        self._sentences: list[OwnSentence] = []
        self._numbers: dict[str, list[int]] = {}
        """By session, the numbers of its sentences."""
        self._questions: dict[str, list[str]] = {}
        """By session, terms of the assistant's last questions that the person has not answered yet."""

    def add(self, session: str, messages: Iterable[tuple[LogEntry, bool]]) -> None:
        """Add the next messages of a session, each with whether it is the person's."""
        from .session_index import IndexedUnit

        numbers = self._numbers.setdefault(session, [])
        for entry, is_own in messages:
            text = entry.message.text
            if not is_own:
                asked = [text[start:stop] for start, stop in sentences(text) if ASKS.search(text, start, stop)]
                self._questions[session] = terms(" ".join(asked[-2:]))
                continue
            asked_terms, ts = self._questions.pop(session, []), entry.event.ts or ""
            date_terms = terms(date_words(ts)) if ts else ()
            for start, stop, words in own_sentences(text):
                number, line = len(self._sentences), " ".join(text[start:stop].split())
                sentence = OwnSentence(number, session, entry.ordinal, start, stop, line, frozenset(words), ts)
                self._sentences.append(sentence)
                numbers.append(number)
                unit = IndexedUnit(terms=words + asked_terms, sitting=session, date_terms=date_terms)
                self._index.add(number, unit)
                asked_terms = []  # only the first of several sentences is the answer

    def find(self, question: str, hidden: Iterable[str]) -> list[OwnSentence]:
        """Return the sentences that a question finds, best first, without those of `hidden` sessions."""
        question = ends_of(question)
        least = LEAST_MET if ASKS.search(question) else LEAST_MET_UNASKED
        if not is_personal_question(question) and self._index.met(rarity_of(question)) < least:
            return []
        skip = {number for session in hidden for number in self._numbers.get(session, ())}
        ranked = self._index.rank(terms(question), question, WEIGHTS, skip=skip, limit=CANDIDATES)
        # Without the signal `asked` a sentence shares no word with the question: only its session or its age ranks it.
        return [self._sentences[scored.ordinal] for scored in ranked if "asked" in scored.signals]


def own_sentences(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the statements of a message that are wholly its speaker's own words, each with its index terms.

    >>> text = "I am allergic to peanuts.\\n> Bring peanut butter to the party.\\nOk."
    >>> [text[start:stop] for start, stop, _ in own_sentences(text)]
    ['I am allergic to peanuts.']
    """
    from ctxsteward.language.foreign_text import mask_foreign_text  # most builders never need it

    own = mask_foreign_text(text)
    for first, last in _own_parts(text):
        for start, stop in sentences(own, first, last):
            sentence = text[start:stop]
            if own[start:stop] == sentence and sentence[0] not in "[(" and not ASKS.search(sentence):
                words = terms(sentence)
                if MIN_TERMS <= len(set(words)) <= MAX_TERMS:
                    yield start, stop, words


def _own_parts(text: str) -> list[tuple[int, int]]:
    breaks = [match.start() for match in _PARAGRAPH.finditer(text)] if len(text) > MAX_READ_CHARS else []
    if not breaks:
        return [(0, min(len(text), MAX_READ_CHARS))]
    return [(0, min(breaks[0], MAX_READ_CHARS)), (max(breaks[-1], len(text) - MAX_READ_CHARS), len(text))]


class _Tenant:
    """Survey and indexes of one tenant's logs; hold `lock` while using it."""

    def __init__(self) -> None:
        self.lock = forking.lock()
        self.erasures = -1
        self.clear(-1)

    def clear(self, erasures: int) -> None:
        self.erasures = erasures
        self.extents: dict[str, LogExtent] = {}
        self.parents: dict[str, str] = {}
        self.sessions_of: dict[str, dict[str, None]] = {}
        """Sessions by principal, the oldest first."""
        self.people: OrderedDict[str, PersonIndex] = OrderedDict()
        self.surveys: int = 0

    def root(self, session: str) -> str:
        """Return the session that a line of forks began with."""
        while session in self.parents:
            session = self.parents[session]
        return session


class EarlierSessions:
    """Search in all principals' earlier sessions of a store; safe with threads. Made by `Store.earlier_sessions`."""

    def __init__(self, store: Backend, ask: Callable[[Callable[[], None]], None]) -> None:
        """Make the search; `ask` runs a query of the object store with a short time limit."""
        self._store, self._ask = store, ask
        self._lock = forking.lock()
        self._tenants: dict[str, _Tenant] = {}

    def choose(
        self, session: Session, state: State, room_tokens: int, counter: Counter
    ) -> tuple[tuple[EarlierLine, ...], int, list[Finding]]:
        """Return the lines for this user turn, newest first, the tokens that they take of the room, and findings."""
        principal = speaker_of(session, state)
        if principal is None:
            return (), 0, []
        with self._lock:
            tenant = self._tenants.setdefault(session.tenant, _Tenant())
        with tenant.lock:
            index = self._index(tenant, session, state, principal)
            root = tenant.root(session.id)
            hidden = [name for name in index.read_to if tenant.root(name) == root]
            ranked = index.find(session.shown(state.last_user).message.text, hidden)
        rows = message_rows(fit_sentences(ranked, min(room_tokens, FOUND_TOKENS), counter))
        if not rows:
            return (), 0, []
        tokens = counter.framed(context_text(state.nonce, (), (), [row for *_, row in rows]))
        if isinstance(session.journal, DraftJournal):
            return tuple(EarlierLine(name, ordinal, "", row) for name, ordinal, row in rows), tokens, []
        lines: list[EarlierLine] = []
        try:
            self._ask(lambda: lines.extend(self.seal(session.tenant, principal, rows)))
        except StoreError as error:
            return (), 0, [unavailable(error)]
        return tuple(lines), tokens if lines else 0, []

    def seal(self, tenant: str, principal: str, rows: Sequence[tuple[str, int, str]]) -> Iterator[EarlierLine]:
        """Yield the rows (session, ordinal, text) under this person's keys, without those of forgotten subjects."""
        vault = self._store.vault(tenant)
        for name, ordinal, row in rows:
            try:
                key = vault.data_key(subject_of(name, principal))
            except Erased:  # erased meanwhile
                continue
            sealed = base64.b64encode(vault.encrypt(key, row.encode(), _context(name, ordinal))).decode()
            yield EarlierLine(name, ordinal, key.subject, sealed)

    def open(self, tenant: str, lines: Sequence[EarlierLine], rows: dict[EarlierLine, str | None]) -> None:
        """Put the row of each line into `rows`, None for one that was erased since."""

        def look() -> None:
            vault = self._store.vault(tenant)
            for line in lines:
                try:
                    data = vault.decrypt(vault.known_key(line.key), base64.b64decode(line.sealed), _context(*line[:2]))
                    rows[line] = data.decode()
                except (Erased, ObjectMissing):
                    rows[line] = None

        self._ask(look)

    # -- reading ------------------------------------------------------------------------------------------------

    def _index(self, tenant: _Tenant, session: Session, state: State, principal: str) -> PersonIndex:
        erasures, looked = self._store.erasures(session.tenant), session.cache.get("earlier sessions")
        if tenant.erasures != erasures:
            tenant.clear(erasures)
            looked = None
        if not isinstance(looked, int) or not 0 <= state.turns - looked < REFRESH_TURNS or not tenant.extents:
            self._survey(tenant, session.tenant)
            session.cache["earlier sessions"] = state.turns
        index = tenant.people.setdefault(principal, PersonIndex())
        tenant.people.move_to_end(principal)
        while len(tenant.people) > MAX_PEOPLE:
            tenant.people.popitem(last=False)
        if index.surveys == tenant.surveys:
            return index
        root = tenant.root(session.id)
        for name in tenant.sessions_of.get(principal, ()):
            start, stop = index.read_to.get(name, 0), tenant.extents[name].length
            # The asking conversation is read when another one asks: hidden sentences would take part in the scores.
            if start < stop and tenant.root(name) != root:
                log = Log(self._store.journal, SessionKey(session.tenant, name), session.address_key)
                messages = list(_said(log, start, stop, principal))
                with uncut():  # all of them, or none
                    index.add(name, messages)
                    index.read_to[name] = stop
        index.surveys = tenant.surveys
        return index

    def _survey(self, tenant: _Tenant, name: str) -> None:
        """Read which principals speak in the new records of the tenant's logs."""
        journal = self._store.journal
        extents = journal.extents(name)
        if any(  # a log was deleted, replaced or shortened
            (now := extents.get(session)) is None or now.generation != known.generation or now.length < known.length
            for session, known in tenant.extents.items()
        ):
            tenant.clear(tenant.erasures)
        tenant.surveys += 1
        for session, extent in extents.items():
            start = tenant.extents[session].length if session in tenant.extents else 0
            if start < extent.length:
                rows = journal.read(SessionKey(name, session), start, extent.length)
                origin = fork_point(rows) if start == 0 else None
                with uncut():
                    if origin is not None:
                        tenant.parents[session] = origin.session
                    for principal in principals_of(rows):
                        tenant.sessions_of.setdefault(principal, {})[session] = None
                    tenant.extents[session] = extent


def fit_sentences(ranked: Iterable[OwnSentence], room_tokens: int, counter: Counter) -> list[OwnSentence]:
    """Return the best sentences whose rows fit; of two that say the same, return the newer."""
    taken: list[OwnSentence] = []
    used_tokens = 0
    for sentence in ranked:
        if room_tokens - used_tokens < LEAST_TOKENS:
            break
        same = next((other for other in taken if sentence.repeats(other)), None)
        if same is not None and (same.place == sentence.place or same.age_key > sentence.age_key):
            continue
        trial = [other for other in taken if other is not same] + [sentence]
        tokens = counter.text("".join(f"{row}\n" for _, _, row in message_rows(trial)))
        if tokens <= room_tokens:
            taken, used_tokens = trial, tokens
    return taken


def message_rows(chosen: Iterable[OwnSentence]) -> list[tuple[str, int, str]]:
    """Return session, ordinal and row of each message, newest first; a row repeats no day of the row above it."""
    messages: dict[tuple[str, int], list[OwnSentence]] = {}
    for sentence in sorted(chosen, key=lambda sentence: sentence.age_key, reverse=True):
        messages.setdefault(sentence.place, []).append(sentence)
    rows: list[tuple[str, int, str]] = []
    day = ""
    for (session, ordinal), group in messages.items():
        group.sort(key=lambda sentence: sentence.start)
        text = group[0].text
        for before, after in pairwise(group):
            text += f" {after.text}" if after.start - before.stop <= 2 else f" {GAP} {after.text}"
        above, day = day, group[0].ts[:10]
        row = f"{pointer(session, f'§{ordinal}')}{'' if day in ('', above) else f' {day}'}: {text}"
        rows.append((session, ordinal, continued(row)))
    return rows


def _said(log: Log, start: int, stop: int, principal: str) -> Iterator[tuple[LogEntry, bool]]:
    """Yield the readable messages of a range of the log that the person or the assistant said, and whose they are."""
    for event in log.read(start, stop):
        if isinstance(event, MessageAppended) and not (event.erased or event.origin):
            try:
                entry = LogEntry(event)
                role = entry.message.role
            except (ValueError, Damaged):
                continue
            if role == "user" and event.principal == principal:
                yield entry, True
            elif role == "assistant":
                yield entry, False


def _context(session: str, ordinal: int) -> bytes:
    """Return the data that a row's ciphertext is bound to."""
    return f"earlier\x00{session}\x00{ordinal}".encode()


def with_earlier(picked: RecallSelected | None, lines: tuple[EarlierLine, ...], state: State) -> RecallSelected | None:
    """Return the selection with these lines, or None if there is neither."""
    if not lines:
        return picked
    event = picked or RecallSelected(turn=state.last_user, refs=(), log={})
    log = event.log or log_of(Ranking(scored=(), strategy="earlier sessions"), state, (), 0, [])
    return replace(event, earlier=lines, log=log)


def shown_lines(session: Session, chosen: RecallSelected) -> FactLines:
    """Return the unerased lines that precede recalled messages: lines of earlier sessions, and facts."""
    known = known_by(session)
    facts = lines_of(session, chosen) if chosen.facts else FactLines((), (), known)
    if not chosen.earlier:
        return facts
    known.rows.update((line, line.sealed) for line in chosen.earlier if not line.key)
    unread = [line for line in chosen.earlier if line not in known.rows]
    findings, token = [*facts.findings], facts.token
    try:
        if unread:
            if session.earlier_sessions is None:
                raise StoreUnavailable("this session has no object store")
            session.earlier_sessions().open(session.tenant, unread, known.rows)
    except StoreError as error:
        findings.append(unavailable(error))
        token = None
    rows = {line: row for line in chosen.earlier if (row := known.rows.get(line)) is not None}
    for line in chosen.earlier:
        if line in known.rows and line not in rows:
            text = f"{line.session}§{line.ordinal} was erased and is left out"
            findings.append(Finding(kind="earlier_line_erased", field="dynamic", text=text))
    return FactLines(facts.lines, tuple(findings), token, tuple(rows.values()))


def unavailable(error: StoreError) -> Finding:
    """Return the finding that lines of earlier sessions could not be encrypted or read."""
    text = f"lines of earlier sessions could not be shown: {type(error).__name__}: {error}"
    return Finding(kind="earlier_lines_unavailable", field="dynamic", text=text[:500])
