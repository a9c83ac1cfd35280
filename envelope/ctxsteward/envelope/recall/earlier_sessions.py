"""Earlier sessions: what the person who asks has said before, in other sessions of the same tenant.

With ``memory="principal"`` (builder or session) a user turn is searched in what its principal said in other sessions.
The unit is a sentence (a *saying*) of a user message of that principal. Code, quotations, quoted lines, tables, mails
and other pasted text are somebody else's words (`language.foreign_text`) and are not taken in, nor is what was injected
into a session (`origin`). Sessions that share a log with the asking one (forks, and what it was forked from) are one
conversation with it, not earlier ones.

A `PersonIndex` is kept for each principal that asks, in memory. It grows by what was appended since; a turn costs the
postings of its terms. An erasure in the tenant, by whichever process, voids all of its indexes. Which sessions are a
person's is read from the tenant's logs: each is read once a process, and asked for its length again when a session has
its first turn here, and every `REFRESH_TURNS` turns. Only sessions in this journal are searched.

What is shown is fixed in the log of the asking session, sentence by sentence, by reference: the row is encrypted under
the key of the person in the session where it was said (`EarlierLine`). So an old envelope is laid out without reading
another session, and forgetting that session, or that person, takes the row from every log and every copy of it. In a
draft, which is in memory alone, rows are not encrypted: a preview makes no key.

Sayings are ranked by BM25 without term frequency, plus four signals: the rest of the message, the question that the
person answered, the session as a whole, and how new it is. *Standing* ones are shown whatever is asked: they demand
something, and were said in several sessions (`STANDING_SESSIONS`) in nearly the same words.

Weights were set on the development halves of two data sets; `benchmarks.earlier_sessions` prints what they reach.
Source: S. Robertson, H. Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009).
"""

from __future__ import annotations

import base64
import re
from array import array
from collections import Counter as Counts, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ctxsteward.language.clauses import clauses
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
from .selection import Ranking, inverse_frequency, log_of

if TYPE_CHECKING:
    from ..history.session import Session
    from ..history.state import State

FOUND_TOKENS = 120
"""Of recall's room, for what a question finds."""
STANDING_TOKENS = 60
MAX_STANDING = 5
STANDING_SESSIONS = 3
"""A demand stands when it was said in so many sessions."""
REFRESH_TURNS = 8
MAX_PEOPLE = 64
"""Indexes kept; that of who asked longest ago leaves."""
MAX_READ_CHARS = 1_600
"""Of a longer message only the first and the last paragraph are the speaker's own: what lies between was pasted."""
MIN_TERMS, MAX_TERMS = 2, 40
"""Of a saying: less says nothing by itself, more is no sentence."""
ANSWERING = 3
"""Sentences of a message that answer what was asked before it: the first ones."""
MIN_RULE_TERMS, MAX_RULE_TERMS = 4, 16
"""Of a standing one."""
MAX_QUERY_TERMS = 200
CANDIDATES = 60
LEAST_TOKENS = 8
"""No row is shorter."""
_MOST_CHARS_A_TOKEN = 12

K1, B = 2.0, 0.6
RARITY = 1.8
"""Exponent of a term's inverse document frequency: a question of several sentences has many common words."""
BEFORE = 0.4
"""Weight of a term that only the person's message before this one has."""
MESSAGE, ASKED, SITTING, RECENCY = 0.15, 0.7, 0.5, 0.4
"""Signals beside a saying's own score, which is 1 at most."""
LEAST_MET = 0.7
"""Some saying must share two terms with the question, or one so rare (1: no other saying has it), or none is shown."""
ALIKE = 0.8
"""Two sayings that share so much of the shorter one say the same; the newer one is shown."""
_ASKS = re.compile(r"[?？]")
_SPEAKER = re.compile(r"[A-Z]\w{1,20}(?: [A-Z]\w{1,20}){0,2}: +(?=\S)")
"""The name that some transcripts put before what was said."""
_PARAGRAPH = re.compile(r"\n\s*\n")


class OwnSentence(NamedTuple):
    """A sentence of a person, by its place."""

    session: int
    """Number of the session in the index."""
    ordinal: int
    start: int
    """Of its characters in the message's text."""
    stop: int
    ts: str
    """When it was said; empty where nobody told."""


class _Postings:
    """Which sayings hold a term, and how many terms each has."""

    def __init__(self) -> None:
        self.by_term: dict[str, array[int]] = {}
        self.lengths: array[int] = array("I")
        self.total: int = 0

    def add(self, number: int, found: AbstractSet[str]) -> None:
        self.lengths.append(len(found))
        self.total += len(found)
        for term in found:
            self.by_term.setdefault(term, array("I")).append(number)

    def rarity(self, term: str) -> float:
        return inverse_frequency(len(self.by_term.get(term, ())), len(self.lengths))

    def scores(self, query: Mapping[str, float]) -> dict[int, float]:
        """BM25 of every saying that holds a term of the query."""
        count = len(self.lengths)
        mean_length = self.total / count if self.total else 1.0
        sums: dict[int, float] = defaultdict(float)
        for term, weight in query.items():
            held = self.by_term.get(term, ())
            if held:
                worth = weight * self.rarity(term) ** RARITY
                for number in held:
                    sums[number] += worth
        length_of = self.lengths
        return {
            number: total * (K1 + 1) / (1 + K1 * (1 - B + B * length_of[number] / mean_length))
            for number, total in sums.items()
        }


class PersonIndex:
    """Everything that one person said in the sessions of a tenant, as far as it was read."""

    def __init__(self) -> None:
        self.read_to: dict[str, int] = {}
        """By session, the position in its log up to which it was read."""
        self.surveys: int = 0
        """The number of the last survey that it has taken in."""
        self.sessions: dict[str, int] = {}
        """Numbers of the sessions."""
        self.sayings: list[OwnSentence] = []
        self.leans: array[int] = array("B")
        """Of each saying, 1 where it leans on another sentence."""
        self._own, self._asked = _Postings(), _Postings()
        self._terms: list[frozenset[str]] = []
        self._questions: dict[str, frozenset[str]] = {}
        """By session, terms of what the assistant asked last."""
        self._demands: dict[str, list[int]] = {}
        """By term, the sayings that demand something."""
        self._repeated_in: dict[int, set[int]] = {}
        """Of each of these, the sessions in which it was said."""
        self._ages: list[int] = []
        """Of each saying its place in time, 0 the oldest; empty until it is asked for."""
        self._families: dict[str, tuple[frozenset[int], list[int]]] = {}
        """By the root of a family, its sessions, and what stands outside of it."""

    def add(self, session: str, messages: Iterable[tuple[LogEntry, bool]]) -> None:
        """Take in the next messages of a session; with each, whether it is the person's."""
        from ctxsteward.language.foreign_text import leans_on_another  # most builders never need it

        number = self.sessions.setdefault(session, len(self.sessions))
        for entry, is_own in messages:
            text = entry.message.text
            if not is_own:
                asked = [text[start:stop] for start, stop in sentences(text) if text[start:stop].rstrip()[-1:] in "?？"]
                self._questions[session] = frozenset(term for question in asked[-2:] for term in terms(question))
                continue
            asked_terms = self._questions.pop(session, frozenset[str]())
            for place, (start, stop, found) in enumerate(own_sentences(text)):
                answers = asked_terms if place < ANSWERING else frozenset[str]()
                self._add(OwnSentence(number, entry.ordinal, start, stop, entry.event.ts or ""), found, answers)
                self.leans.append(leans_on_another(text[start:stop]))
                if is_demand(text[start:stop], found):
                    self._add_demand(len(self.sayings) - 1)
        self._ages = []
        self._families.clear()

    def _add(self, saying: OwnSentence, found: frozenset[str], answers: frozenset[str]) -> None:
        number = len(self.sayings)
        self.sayings.append(saying)
        self._terms.append(found)
        self._own.add(number, found)
        self._asked.add(number, answers)

    def _add_demand(self, number: int) -> None:
        found, session = self._terms[number], self.sayings[number].session
        shared = Counts(other for term in found for other in self._demands.get(term, ()))
        said_in = self._repeated_in[number] = {session}
        for other, count in shared.items():
            if count >= ALIKE * max(len(found), len(self._terms[other])):
                said_in |= self._repeated_in[other]
                self._repeated_in[other].add(session)
        for term in found:
            self._demands.setdefault(term, []).append(number)

    # -- asking -------------------------------------------------------------------------------------------------

    def find(self, question: str, before: str, hidden: AbstractSet[int] = frozenset()) -> list[int]:
        """The sayings that a question finds, best first, without those of the sessions that are `hidden`."""
        asked = set(terms(question)[:MAX_QUERY_TERMS])
        query = dict.fromkeys(terms(before)[:MAX_QUERY_TERMS], BEFORE) | dict.fromkeys(asked, 1.0)
        own = self._own.scores(query)
        if hidden:
            own = {number: score for number, score in own.items() if self.sayings[number].session not in hidden}
        best = max(own.values(), default=0.0)
        if not best:
            return []
        scores = {number: score / best for number, score in own.items()}
        for number, score in self._asked.scores(query).items():
            if self.sayings[number].session not in hidden:
                scores[number] = scores.get(number, 0.0) + ASKED * score / best
        messages: dict[tuple[int, int], float] = {}
        for number, score in scores.items():
            place = self.sayings[number][:2]
            messages[place] = max(messages.get(place, 0.0), score)
        for number in scores:
            scores[number] += MESSAGE * messages[self.sayings[number][:2]]
        sittings = self._sittings(scores)
        ages, last = self._placed_in_time(), max(1, len(self.sayings) - 1)
        for number in scores:
            scores[number] += SITTING * sittings[self.sayings[number].session] + RECENCY * ages[number] / last
        ranked = sorted(scores, key=lambda number: (-scores[number], -ages[number]))
        met = [asked & self._terms[number] for number in ranked[:CANDIDATES]]
        least = LEAST_MET * inverse_frequency(1, len(self.sayings))
        if not any(len(shared) > 1 or sum(map(self._own.rarity, shared)) >= least for shared in met):
            return []
        return ranked[:CANDIDATES]

    def _sittings(self, scores: Mapping[int, float]) -> dict[int, float]:
        """By session, the mean of its three best sayings, the best session 1."""
        by_session: dict[int, list[float]] = defaultdict(list)
        for number, score in scores.items():
            by_session[self.sayings[number].session].append(score)
        means = {session: sum(sorted(found)[-3:]) / 3 for session, found in by_session.items()}
        best = max(means.values())
        return {session: mean / best for session, mean in means.items()}

    def outside(self, root: str, root_of: Callable[[str], str]) -> tuple[frozenset[int], list[int]]:
        """The sessions of the family with this root; and the demands that stand outside of it, best first."""
        if root not in self._families:
            hidden = frozenset(number for name, number in self.sessions.items() if root_of(name) == root)
            self._families[root] = hidden, self._standing(hidden)
        return self._families[root]

    def _standing(self, hidden: AbstractSet[int]) -> list[int]:
        ages = self._placed_in_time()
        repeated = [
            (len(said_in - hidden), ages[number], number)
            for number, said_in in self._repeated_in.items()
            if self.sayings[number].session not in hidden
        ]
        ranked = sorted((row for row in repeated if row[0] >= STANDING_SESSIONS), reverse=True)
        return [number for _, _, number in ranked]

    def newest_first(self, numbers: Iterable[int]) -> list[int]:
        ages = self._placed_in_time()
        return sorted(numbers, key=lambda number: -ages[number])

    def says_again(self, number: int, others: Iterable[int]) -> int | None:
        """Which of these says the same as this one."""
        found = self._terms[number]
        return next(
            (o for o in others if len(found & self._terms[o]) >= ALIKE * min(len(found), len(self._terms[o]))), None
        )

    def _placed_in_time(self) -> list[int]:
        if len(self._ages) != len(self.sayings):
            self._ages = [0] * len(self.sayings)
            in_time = sorted(range(len(self.sayings)), key=lambda number: (self.sayings[number].ts, number))
            for place, number in enumerate(in_time):
                self._ages[number] = place
        return self._ages


def own_sentences(text: str) -> Iterator[tuple[int, int, frozenset[str]]]:
    """The statements of a message that are wholly its speaker's own words, each with its index terms.

    >>> text = "I am allergic to peanuts.\\n> Bring peanut butter to the party.\\nOk."
    >>> [text[start:stop] for start, stop, _ in own_sentences(text)]
    ['I am allergic to peanuts.']
    """
    from ctxsteward.language.foreign_text import mask_foreign_text

    own = mask_foreign_text(text)
    for first, last in _own_parts(text):
        for start, stop in sentences(own, first, last):
            speaker = _SPEAKER.match(text, start, stop)
            start = speaker.end() if speaker else start
            is_own = own[start:stop] == text[start:stop] and text[start] not in "[("
            if is_own and not _ASKS.search(own, start, stop):
                found = frozenset(terms(text[start:stop]))
                if MIN_TERMS <= len(found) <= MAX_TERMS:
                    yield start, stop, found


def _own_parts(text: str) -> list[tuple[int, int]]:
    breaks = [match.start() for match in _PARAGRAPH.finditer(text)] if len(text) > MAX_READ_CHARS else []
    if not breaks:
        return [(0, min(len(text), MAX_READ_CHARS))]
    return [(0, min(breaks[0], MAX_READ_CHARS)), (max(breaks[-1], len(text) - MAX_READ_CHARS), len(text))]


def is_demand(text: str, found: AbstractSet[str]) -> bool:
    """Whether a sentence demands or rules out something, by its form: a modal verb or a negation with one, no question.

    >>> said = ("I must never eat peanuts.", "Must I never eat peanuts?", "I never ate peanuts before.")
    >>> [is_demand(text, set(text.split())) for text in said]
    [True, False, False]
    """
    if not MIN_RULE_TERMS <= len(found) <= MAX_RULE_TERMS or _ASKS.search(text):
        return False
    return any(clause.modality in ("must", "must_not") and not clause.condition for clause in clauses(text))


class _Tenant:
    """What was read of one tenant's logs; hold `lock` while using it."""

    def __init__(self) -> None:
        self.lock = forking.lock()
        self.erasures = -1
        self.clear(-1)

    def clear(self, erasures: int) -> None:
        self.erasures = erasures
        self.extents: dict[str, LogExtent] = {}
        self.parents: dict[str, str] = {}
        self.sessions_of: dict[str, dict[str, None]] = {}
        """By principal, the oldest session first."""
        self.people: OrderedDict[str, PersonIndex] = OrderedDict()
        self.surveys: int = 0

    def root(self, session: str) -> str:
        """The session at the beginning of a line of forks."""
        while session in self.parents:
            session = self.parents[session]
        return session


class EarlierSessions:
    """The earlier sessions of all principals of a store; safe with threads. Made by `Store.earlier_sessions`."""

    def __init__(self, store: Backend, ask: Callable[[Callable[[], None]], None]) -> None:
        """`ask` runs a question to the object store without waiting long."""
        self._store, self._ask = store, ask
        self._lock = forking.lock()
        self._tenants: dict[str, _Tenant] = {}

    def choose(
        self, session: Session, state: State, room_tokens: int, counter: Counter
    ) -> tuple[tuple[EarlierLine, ...], int, list[Finding]]:
        """The lines for this user turn, newest first, what they take of the room, and findings."""
        principal = speaker_of(session, state)
        if principal is None:
            return (), 0, []
        with self._lock:
            tenant = self._tenants.setdefault(session.tenant, _Tenant())
        with tenant.lock:
            index = self._index(tenant, session, state, principal)
            hidden, standing = index.outside(tenant.root(session.id), tenant.root)
            found = index.find(session.shown(state.last_user).message.text, _said_before(state, principal), hidden)
            rows = _Rows(index, lambda name, at: self._original(session, name, at, principal), counter.text)
            rows.fill(standing, min(room_tokens, STANDING_TOKENS), MAX_STANDING)
            rows.fill(found, min(room_tokens, FOUND_TOKENS + rows.tokens), CANDIDATES)
            placed = rows.rows()
        if not placed:
            return (), 0, []
        tokens = counter.framed(context_text(state.nonce, (), (), [row for *_, row in placed]))
        if isinstance(session.journal, DraftJournal):
            return tuple(EarlierLine(name, ordinal, "", row) for name, ordinal, row in placed), tokens, []
        lines: list[EarlierLine] = []
        try:
            self._ask(lambda: lines.extend(self._sealed(session.tenant, principal, placed)))
        except StoreError as error:
            return (), 0, [unavailable(error)]
        return tuple(lines), tokens if lines else 0, []

    def _original(self, session: Session, name: str, ordinal: int, principal: str) -> str:
        """The text of a message of the person in another session; empty where it is another one by now."""
        event = Log(self._store.journal, SessionKey(session.tenant, name), session.address_key).message(ordinal)
        if not isinstance(event, MessageAppended) or event.erased or event.principal != principal:
            return ""
        return LogEntry(event).message.text

    def _sealed(self, tenant: str, principal: str, placed: Sequence[tuple[str, int, str]]) -> Iterator[EarlierLine]:
        vault = self._store.vault(tenant)
        for name, ordinal, row in placed:
            try:
                key = vault.data_key(subject_of(name, principal))
            except Erased:  # meanwhile
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
        for name in tenant.sessions_of.get(principal, ()) if index.surveys != tenant.surveys else ():
            start, stop = index.read_to.get(name, 0), tenant.extents[name].length
            if start < stop:
                log = Log(self._store.journal, SessionKey(session.tenant, name), session.address_key)
                messages = list(_said(log, start, stop, principal))
                with uncut():  # whole, or not at all
                    index.add(name, messages)
                    index.read_to[name] = stop
        index.surveys = tenant.surveys
        return index

    def _survey(self, tenant: _Tenant, name: str) -> None:
        """Read which principals speak in what was appended to the tenant's logs since."""
        journal = self._store.journal
        extents = journal.extents(name)
        if any(  # a log is gone, another one, or shorter
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


class _Rows:
    """The rows of one choice: a message each, with those of its sentences that were taken."""

    def __init__(self, index: PersonIndex, original: Callable[[str, int], str], count: Callable[[str], int]) -> None:
        """`original` reads the text of the person's message in a session; empty where it is gone."""
        self._index, self._names, self._original, self._count = index, list(index.sessions), original, count
        self._texts: dict[tuple[int, int], str] = {}
        """By session and ordinal."""
        self.taken: dict[int, int] = {}
        """Sayings, and the tokens of each."""

    @property
    def tokens(self) -> int:
        return sum(self.taken.values())

    def fill(self, ranked: Sequence[int], room_tokens: int, most: int) -> None:
        """Take what fits, best first; of sayings that say the same the newest. What leans on a sentence of its message
        comes beside that."""
        before = len(self.taken)
        for number in ranked:
            if room_tokens - self.tokens < LEAST_TOKENS or len(self.taken) - before >= most:
                return
            older = self._index.says_again(number, self.taken)
            if older is not None:
                is_newer = self._index.newest_first((older, number))[0] == number
                if is_newer and self._place(older) != self._place(number):
                    tokens = self.taken.pop(older)
                    if not self._take(number, room_tokens):
                        self.taken[older] = tokens
                continue
            lead = None if self._is_begun(number) else self._lead(number)
            if lead is None:
                self._take(number, room_tokens)
            elif self._take(lead, room_tokens) and not self._take(number, room_tokens):
                del self.taken[lead]

    def _lead(self, number: int) -> int | None:
        """Of a sentence that leans on another, the nearest one before it in its message that does not."""
        lead = number
        while lead >= 0 and self._place(lead) == self._place(number) and self._index.leans[lead]:
            lead -= 1
        is_found = lead >= 0 and self._place(lead) == self._place(number)
        return lead if is_found and lead != number else None

    def _take(self, number: int, room_tokens: int) -> bool:
        saying, left = self._index.sayings[number], room_tokens - self.tokens
        if saying.stop - saying.start > left * _MOST_CHARS_A_TOKEN or not self._text(number):
            return False
        opening = GAP if self._is_begun(number) else self._opening(number)
        days = {self._index.sayings[other].ts[:10] for other in self.taken}
        day = "" if saying.ts[:10] in days else f" {saying.ts[:10]}"
        tokens = self._count(f"{opening}{day}: {self._said(number)}\n")
        if tokens <= left:
            self.taken[number] = tokens
        return tokens <= left

    def rows(self) -> list[tuple[str, int, str]]:
        """Session, ordinal and row of each message, the newest first; the day where it is another than above."""
        rows: list[tuple[str, int, str]] = []
        day = ""
        by_message: dict[tuple[int, int], list[int]] = {}
        for number in self._index.newest_first(self.taken):
            by_message.setdefault(self._place(number), []).append(number)
        for (session, ordinal), numbers in by_message.items():
            parts: list[str] = []
            stop = -1
            for number in sorted(numbers, key=lambda one: self._index.sayings[one].start):
                saying = self._index.sayings[number]
                parts += [GAP] if parts and saying.start - stop > 2 else []
                parts.append(self._said(number))
                stop = saying.stop
            opening = self._opening(numbers[0])
            said_on = self._index.sayings[numbers[0]].ts[:10]
            row = f"{opening}: {' '.join(parts)}" if said_on == day else f"{opening} {said_on}: {' '.join(parts)}"
            day = said_on
            rows.append((self._names[session], ordinal, continued(row)))
        return rows

    def _place(self, number: int) -> tuple[int, int]:
        return self._index.sayings[number][:2]

    def _is_begun(self, number: int) -> bool:
        return any(self._place(other) == self._place(number) for other in self.taken)

    def _opening(self, number: int) -> str:
        session, ordinal = self._place(number)
        return pointer(self._names[session], f"§{ordinal}")

    def _text(self, number: int) -> str:
        place = self._place(number)
        if place not in self._texts:
            self._texts[place] = self._original(self._names[place[0]], place[1])
        return self._texts[place]

    def _said(self, number: int) -> str:
        saying = self._index.sayings[number]
        return " ".join(self._text(number)[saying.start : saying.stop].split())


def _said(log: Log, start: int, stop: int, principal: str) -> Iterator[tuple[LogEntry, bool]]:
    """The messages of a stretch that can be read, and whether each is the person's; others only as who asks them."""
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


def _said_before(state: State, principal: str) -> str:
    """The person's message before this user turn, as far as the window has it."""
    entries = (entry for group in reversed(state.groups) for entry in reversed(group.entries))
    said = (entry for entry in entries if entry.ordinal < state.last_user and entry.message.role == "user")
    before = next(said, None)
    return before.message.text if before is not None and before.event.principal == principal else ""


def _context(session: str, ordinal: int) -> bytes:
    """What a row's ciphertext is bound to."""
    return f"earlier\x00{session}\x00{ordinal}".encode()


def with_earlier(picked: RecallSelected | None, lines: tuple[EarlierLine, ...], state: State) -> RecallSelected | None:
    """The selection with these lines; None where there is neither."""
    if not lines:
        return picked
    event = picked or RecallSelected(turn=state.last_user, refs=(), log={})
    log = event.log or log_of(Ranking(scored=(), strategy="earlier sessions"), state, (), 0, [])
    return replace(event, earlier=lines, log=log)


def shown_lines(session: Session, chosen: RecallSelected) -> FactLines:
    """What stands before the recalled messages: lines of earlier sessions and of facts, without what was erased."""
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
    findings += [_erased(line) for line in chosen.earlier if line in known.rows and line not in rows]
    return FactLines(facts.lines, tuple(findings), token, tuple(rows.values()))


def _erased(line: EarlierLine) -> Finding:
    text = f"{line.session}§{line.ordinal} was erased and is left out"
    return Finding(kind="earlier_line_erased", field="dynamic", text=text)


def unavailable(error: StoreError) -> Finding:
    """Says that lines of earlier sessions could not be encrypted or read."""
    text = f"lines of earlier sessions could not be shown: {type(error).__name__}: {error}"
    return Finding(kind="earlier_lines_unavailable", field="dynamic", text=text[:500])
