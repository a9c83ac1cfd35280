"""Follow whole histories: find the session or fork that matches a history, and append only its new messages.

Frameworks hand over the whole conversation at each model call. Two messages are the same if role, text, calls, results
and media are equal (`said_message`); details that providers and frameworks add (their ids, key order, null fields,
cache marks, thinking) do not count. Leading system messages belong to the head, which is named when the session is
opened, so they take no ordinal. Text that this package put into a prompt (fenced with the session's nonce) is skipped.

The history is compared with the logs of the conversation, from the root session down its forks:

    the history begins with a log    the rest is appended
    a log begins with the history    nothing is written: the session as it was then (`Session.past`)
    the same but for lines around    the same history: the log keeps the message's first form; this call sees the
    a user message                   newest user message as it was sent, in a draft; finding `context_pasted`
    it shares a log's newest         the framework has compacted: the messages behind the shared ones are appended;
    messages, with fewer before      finding `history_compacted`
    none of these                    it diverged: a fork at the last common message, one for all histories that
                                     go on alike; finding `history_forked`

A tool result that comes back as an excerpt or a placeholder of itself was reduced by the framework and is the same
message. An erased or damaged message counts as the same only if its id or a later message of the log confirms it.

Each message is appended under an id derived from the whole history up to it, keyed by tenant and session. Another
process finds the place of a history with one look into the journal, and two processes that append it at once write it
once. In one process a call costs a digest of the whole history (about 2 µs a message) and a comparison of new messages.

Erased messages are skipped: an erased message of the log stands for the caller's copy, whose words are not read again.
A forgotten principal may write no more in the session: the call raises `Erased`. With ``forgotten="draft"`` the call
returns a draft that has the messages beyond the log, and the log stays as it is. If the history then diverges from the
log, copies of that principal's older messages cannot be distinguished from new ones, so all but the newest user turn
are left out. The finding is `erased_skipped`.

Raises the errors of `Session.extend`. A history with an invalid message is not written at all.
"""

from __future__ import annotations

import hashlib
import marshal
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from ctxsteward.schemas import Erased, Finding, InputError, Message, TextPart
from ctxsteward.schemas.errors import Conflict
from ctxsteward.schemas.message import Wire, encode_wire

from .said_message import SaidMessage, is_reduced, said_message, without_own_text
from .tool_groups import NewMessage, check_meta

if TYPE_CHECKING:
    from ctxsteward.store.journal.port import SessionKey

    from .session import Session

TRIES = 100
"""Attempts that may lose to other writers before `Conflict` is raised."""
MAX_FORKS = 1000
"""Most forks at one message."""
MIN_OVERLAP, SURE_OVERLAP, MIN_OVERLAP_CHARS = 2, 4, 60
"""Different messages that a compacted history must share with the end of a log: two with so many characters together,
or four. Short ones such as "Continue" and "ok" occur in every branch."""
MAX_LOOK_BACK = 50
"""Number of newest messages on each side in which the other side's end is searched."""
MAX_ALIGNED = 8
"""Most places at which the two ends are compared message by message."""
MAX_KNOWN = 20_000
"""Most messages of logs whose content digests are remembered."""
_DIGEST_BYTES = 16
CONTEXT_PASTED = "context_pasted"
"""Kind of the finding that the caller puts text around the user's own words."""
PASTED_TEXT = (
    "a user message came with other text around it than before; it counts as the same message, and the log keeps it as "
    "it came first. Hand over the user's own words, and put retrieved text into a message or system text of its own"
)
ForgottenWriter = Literal["raise", "draft"]
"""Reaction to a history in which an erased principal goes on speaking: raise `Erased`, or return a draft."""
ERASED_SKIPPED = "erased_skipped"
"""Kind of the finding that the caller still has messages that were erased here."""


def newest_turn(messages: Sequence[SaidMessage]) -> int:
    """Return the index at which the newest user turn begins, or the length if no user speaks."""
    spoken = (at for at in range(len(messages) - 1, -1, -1) if messages[at].is_spoken)
    return next(spoken, len(messages))


class HandedHistory(NamedTuple):
    """A caller's history without the text that this package put into it."""

    sources: Sequence[object]
    """Messages as the caller gave them; user messages without our fenced blocks."""
    messages: Sequence[SaidMessage]
    chain: Sequence[bytes]
    """For each message, a keyed digest of all messages up to it."""
    has_own_text: bool = False
    has_other_head: bool = False
    """Whether its leading system messages contain text that the session's head lacks."""


class Follower:
    """State for following the histories of one conversation: a session and its forks."""

    def __init__(self, root: Session) -> None:
        self._root, self._leaf = root, root
        self._key = hashlib.sha256(root.address_key + root.id.encode()).digest()
        """Key of the digests in ids, so that an id reveals nothing about the messages."""
        self._met: tuple[int, bytes] | None = None
        """Ordinal up to which the leaf's log equalled the last history, and the chain digest there."""
        self._raw: list[bytes] = []
        """Digests of the last history's messages as they were handed over."""
        self._read: dict[bytes, tuple[SaidMessage | None, Wire | None]] = {}
        """Content by raw digest (None if all of it is our text), and the message without our text if it had any."""
        self._chain: list[bytes] = []
        self._known: dict[tuple[str, int], SaidMessage] = {}
        """Content of log messages, by the session that wrote them and ordinal."""
        self._siblings: dict[tuple[str, int], dict[bytes, int]] = {}
        """Numbers of forks by session and last common ordinal, then by the digest of the fork's first message."""
        self._stood: tuple[Sequence[bytes], int] = (), 0
        """Chain of the last followed history, and the number of its messages that the log has."""
        self._kept: int = 0
        """Number of messages of the current history that the log has after this call."""
        self._forgotten: ForgottenWriter = "raise"
        self._pasted: set[int] = set()
        """Ordinals of user messages that came with more or less text around them than in the log."""
        self._around: dict[int, int] = {}
        """Index in the history of each message that came with more text, by ordinal."""
        self.forks_made: int = 0
        """Number of forks that this process began for diverging histories."""
        self._erased: tuple[tuple[SessionKey, int], Sequence[int]] | None = None
        """Ordinals of erased messages of one log at one generation. They are read once, not at each call."""
        self._left_out: int = 0
        """Messages of the last history that were left out as possible copies of erased ones."""

    def follow(
        self, messages: Iterable[object], *, principal: str | None = None, forgotten: ForgottenWriter = "raise"
    ) -> Session:
        """Return the session for a whole history; see `Session.follow`."""
        history = self._handed(list(messages))
        self._forgotten, self._left_out, self._kept = forgotten, 0, len(history.messages)
        self._pasted.clear()
        self._around.clear()
        for _ in range(TRIES):
            try:
                session = self._stand(history, principal)
            except Conflict:
                self._leaf, self._met = self._root, None
                continue
            self._stood = history.chain, self._kept
            if session.replica.forgotten:
                self._tell_erased(session, history)
            if self._pasted:
                session = self._as_sent(session, history, principal)
                _tell(session, CONTEXT_PASTED, PASTED_TEXT, f"§{max(self._pasted)}")
            if history.has_own_text:
                _tell(
                    session,
                    "own_text_skipped",
                    "the history holds text of ours, fenced with this session's number; it was not appended",
                )
            if history.has_other_head:
                _tell(
                    session,
                    "system_not_in_head",
                    "the history begins with system messages that the session's head "
                    "does not say; name them when it is opened: store.session(…, system=…)",
                )
            return session
        raise Conflict(self._root.id, self._root.state.position)

    # -- reading the history ------------------------------------------------------------------------------------

    def _handed(self, sources: list[object]) -> HandedHistory:
        raw = [_raw_digest(source) for source in sources]
        kept = self._read
        self._read = {digest: kept[digest] for digest in raw if digest in kept}
        for digest, source in zip(raw, sources, strict=True):
            if digest not in self._read:
                self._read[digest] = self._said(source)
        rows = [(*self._read[digest], digest, source) for digest, source in zip(raw, sources, strict=True)]
        spoken = [(said, stripped or source, digest) for said, stripped, digest, source in rows if said is not None]
        heads = next((at for at, (said, _, _) in enumerate(spoken) if not said.is_head), len(spoken))
        theirs = spoken[heads:]
        digests = [digest for _, _, digest in theirs]
        chain = self._chain if digests[: len(self._raw)] == self._raw else []
        for said, _, _ in theirs[len(chain) :]:
            chain.append(self._keyed((chain[-1] if chain else b"") + said.said))
        self._raw, self._chain = digests, chain
        _check_ids([source for _, source, _ in theirs])
        head = self._head() if heads else frozenset()
        return HandedHistory(
            sources=[source for _, source, _ in theirs],
            messages=[said for said, _, _ in theirs],
            chain=chain,
            has_own_text=any(said is None or stripped is not None for said, stripped, _, _ in rows),
            has_other_head=any(said.said not in head for said, _, _ in spoken[:heads]),
        )

    def _said(self, source: object) -> tuple[SaidMessage | None, Wire | None]:
        if isinstance(source, NewMessage):
            check_meta(source)
        message = _message(source)
        if message.role != "user":
            return said_message(message), None
        theirs = without_own_text(message, self._root.state.nonce)
        if theirs is None:
            return None, None
        return said_message(theirs), None if theirs is message else theirs.wire

    def _head(self) -> frozenset[bytes]:
        """Return digests of the session's head, as one system message or one for each text."""
        texts = self._root.state.head.system
        wires = ({"role": "system", "content": text} for text in (*texts, "\n\n".join(texts)) if text)
        return frozenset(said_message(Message.from_wire(wire)).said for wire in wires)

    def _keyed(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, key=self._key, digest_size=_DIGEST_BYTES).digest()

    # -- finding its place in the logs --------------------------------------------------------------------------

    def _stand(self, history: HandedHistory, principal: str | None) -> Session:
        session = self._leaf
        session.refresh()
        start = self._met_at(session, history)
        if start is not None and (common := self._common(session, history, start)) == len(session):
            return self._go_on(session, history, common, common, principal)
        session, common = self._walked(history)
        if common == len(session):
            return self._go_on(session, history, common, common, principal)
        if common == len(history.messages):
            self._leaf, self._met = session, None
            past = session.past(common)
            past.replica.noticed.add(finding for finding in session.findings if finding.kind == "history_forked")
            return past
        overlap = self._overlap({known.id: known for known in (self._leaf, session, self._root)}.values(), history)
        if overlap is not None:
            return self._compacted(history, *overlap, principal)
        child = self._fork(session, history, common)
        return self._go_on(child, history, len(child), len(child), principal)

    def _met_at(self, session: Session, history: HandedHistory) -> int | None:
        """Return the ordinal up to which the leaf is known to equal this history, or None to search from the root."""
        if self._met is None:
            return None
        ordinal, digest = self._met
        if ordinal > len(session):
            return None
        return ordinal if history.chain[ordinal - 1 : ordinal] == [digest] else None

    def _walked(self, history: HandedHistory) -> tuple[Session, int]:
        """Walk down existing forks from the root; return the log that shares most with the history, and how much."""
        session, common = self._root, 0
        session.refresh()
        for _ in range(MAX_FORKS):
            common = self._common(session, history, common)
            if common in (len(session), len(history.messages)):
                break
            child = self._sibling(session, history, common, make=False)
            if child is None or len(child) == common:
                break
            session = child
            _tell_fork(session)
        return session, common

    def _common(self, session: Session, history: HandedHistory, start: int) -> int:
        """Return the length of the longest beginning that log and history share, known to be at least `start`."""
        most = min(len(session), len(history.messages))
        low = max(start, self._found_by_id(session, history, start, most))
        sure = low
        while low < most:
            is_same = self._is_same(session, low + 1, history, low)
            if is_same is False:
                if not self._is_pasted(session, low + 1, history, low):
                    break
                is_same = True
            low += 1
            sure = low if is_same else sure
        return sure

    def _found_by_id(self, session: Session, history: HandedHistory, start: int, most: int) -> int:
        """Search by the ids under which histories are appended; return a length up to which the two are the same."""
        low, high = start, most
        middle = most
        while low < high:
            entry = session.replica.by_id(_id(history.chain[middle - 1]))
            low, high = (middle, high) if entry is not None and entry.ordinal == middle else (low, middle - 1)
            middle = (low + high + 1) // 2
        return low

    def _is_same(self, session: Session, ordinal: int, history: HandedHistory, index: int) -> bool | None:
        """Return whether a message of log and history is the same, or None if the log's was erased or is damaged."""
        handed = history.messages[index]
        key = (session.replica.ancestry.owner(ordinal).key.session, ordinal)
        known = self._known.get(key)
        if known is None:
            entry = session.shown(ordinal)
            if entry.event.erased or entry.event.damaged:
                return None
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            known = self._known[key] = said_message(entry.message)
        if known.said == handed.said:
            return True
        if (
            not handed.answers
            or handed.answers != known.answers
            or handed.frame != known.frame
            or not all(known.answers)
        ):
            return False
        return is_reduced(session.shown(ordinal).message, _message(history.sources[index]), f"§{ordinal}")

    def _is_pasted(self, session: Session, ordinal: int, history: HandedHistory, index: int) -> bool:
        """Return whether two user messages differ only by lines before or after the text, not by an edit.

        The conversation must also continue as in the log.
        """
        if not history.messages[index].is_spoken:
            return False
        handed, logged = _message(history.sources[index]), session.shown(ordinal).message
        if logged.role != "user" or not _is_around(handed, logged):
            return False
        goes_on = index + 1 < len(history.messages) and ordinal < len(session)
        if ordinal < len(session) and not (goes_on and self._is_same(session, ordinal + 1, history, index + 1)):
            return False
        self._pasted.add(ordinal)
        if len(handed.text) > len(logged.text):
            self._around[ordinal] = index
        return True

    def _as_sent(self, session: Session, history: HandedHistory, principal: str | None) -> Session:
        """Return the session, or a draft in which the newest user message has the text that the caller sent."""
        turn = newest_turn(history.messages)
        ordinal = next((ordinal for ordinal, index in self._around.items() if index == turn), None)
        if ordinal is None or len(session) - ordinal != len(history.messages) - turn - 1:
            return session
        draft = session.past(ordinal - 1).draft()
        draft.extend(
            _by(source, said, principal)
            for source, said in zip(history.sources[turn:], history.messages[turn:], strict=True)
        )
        draft.findings.extend(finding for finding in session.findings if finding not in draft.findings)
        return draft

    # -- appending, drafting, forking ---------------------------------------------------------------------------

    def _go_on(
        self, session: Session, history: HandedHistory, known: int, ordinal: int, principal: str | None
    ) -> Session:
        """Append the messages behind the first `known` of the history; the log must end at `ordinal`."""
        in_step = known == ordinal and not self._around  # otherwise the next call would miss that text was pasted
        batch = []
        for index in range(known, len(history.messages)):
            source, said = history.sources[index], history.messages[index]
            new = source if isinstance(source, NewMessage) else NewMessage(message=source)
            id = new.id if new.id is not None or not in_step else _id(history.chain[index])
            batch.append(replace(_by(new, said, principal), id=id))
        if batch:
            try:
                session.extend_at(ordinal, batch)
            except Erased:
                if self._forgotten == "raise":
                    raise
                return self._unkept(session, history, known, batch)
        self._leaf = session
        self._met = (len(session), history.chain[-1]) if in_step and history.chain else None
        return session

    def _unkept(self, session: Session, history: HandedHistory, known: int, batch: Sequence[NewMessage]) -> Session:
        """Return a draft with this batch, because one of its principals was forgotten and writes no more."""
        gone = session.replica.forgotten
        turn = newest_turn(history.messages)
        origins = session.origins()
        goes_on = not origins or origins[0].ordinal < len(session)  # else a fork without messages of its own
        draft = session.draft()
        kept = [
            replace(new, principal=None) if new.principal in gone else new
            for at, new in enumerate(batch, start=known)
            if goes_on or at >= turn or new.principal not in gone
        ]
        self._left_out, self._kept = len(batch) - len(kept), known
        draft.extend(kept)
        return draft

    def _tell_erased(self, session: Session, history: HandedHistory) -> None:
        log = session.key, session.generation
        if self._erased is None or self._erased[0] != log:  # later messages cannot be erased in the same generation
            gone = [ordinal for ordinal in range(1, len(session) + 1) if session.shown(ordinal).event.erased]
            self._erased = log, gone
        erased = bisect_right(self._erased[1], len(history.messages)) + self._left_out
        if erased:
            text = (
                f"{erased} of the {len(history.messages)} messages handed over were erased on purpose; they are not "
                "shown. Delete them from the history that you keep"
            )
            session.findings[:] = [finding for finding in session.findings if finding.kind != ERASED_SKIPPED]
            _tell(session, ERASED_SKIPPED, text)

    def beyond_last(self, messages: Sequence[object]) -> list[object]:
        """Return the messages behind the last followed history; for a different history, return its newest user turn.

        It serves a forgotten session, whose log is not read.
        """
        said = [said_message(_message(source)) for source in messages]
        chain: list[bytes] = []
        for message in said:
            chain.append(self._keyed((chain[-1] if chain else b"") + message.said))
        before, known = self._stood
        return list(messages[known if known and chain[:known] == before[:known] else newest_turn(said) :])

    def _compacted(
        self, history: HandedHistory, session: Session, known: int, ordinal: int, principal: str | None
    ) -> Session:
        """Append the messages behind the first `known` of a compacted history, the last of which the log has at
        `ordinal`."""
        if known == len(history.messages) and ordinal < len(session):
            self._leaf, self._met = session, None
            session = session.past(ordinal)
        else:
            self._go_on(session, history, known, ordinal, principal)
        _tell(
            session,
            "history_compacted",
            "the caller's history says less than the log before its newest messages: "
            "it was compacted there; the log stays whole",
        )
        return session

    def _overlap(self, sessions: Iterable[Session], history: HandedHistory) -> tuple[Session, int, int] | None:
        """Find the end of log or history inside the other, with fewer messages before it in the history.

        Return the log, the number of the history's messages up to the last one that the log has, and that message's
        ordinal in the log. The longest run of equal messages wins. A history that only leaves out messages in the
        middle was edited, not compacted.
        """
        best: tuple[Session, int, int] | None = None
        longest = 0
        for session in sessions:
            common = self._common(session, history, 0)
            for known, ordinal in self._ends(session, history):
                run = 0
                while run < min(known, ordinal) and self._is_same(session, ordinal - run, history, known - run - 1):
                    run += 1
                stand_in, replaced = known - run - common, ordinal - run - common
                is_shorter = 0 <= stand_in < replaced and (stand_in > 0 or common < MIN_OVERLAP)
                shared = {message.said: message.chars for message in history.messages[known - run : known]}
                is_long = len(shared) >= (MIN_OVERLAP if sum(shared.values()) >= MIN_OVERLAP_CHARS else SURE_OVERLAP)
                if is_shorter and is_long and run > longest:
                    best, longest = (session, known, ordinal), run
        return best

    def _ends(self, session: Session, history: HandedHistory) -> Iterator[tuple[int, int]]:
        """Yield possible places of one end in the other: a number of history messages, an ordinal of the log."""
        said, length = len(history.messages), len(session)
        places = [(known, length) for known in range(said, max(0, said - MAX_LOOK_BACK), -1)]
        places += [(said, ordinal) for ordinal in range(length - 1, max(0, length - MAX_LOOK_BACK), -1)]
        fitting = (place for place in places if self._is_same(session, place[1], history, place[0] - 1))
        for _, place in zip(range(MAX_ALIGNED), fitting, strict=False):
            yield place

    def _fork(self, session: Session, history: HandedHistory, common: int) -> Session:
        """Return the fork at this message that goes on as the history does, or is empty; make one if needed."""
        child = self._sibling(session, history, common, make=True)
        if child is None:
            raise Conflict(session.id, session.state.position)
        _tell_fork(child)
        return child

    def _sibling(self, session: Session, history: HandedHistory, common: int, *, make: bool) -> Session | None:
        siblings = self._siblings.setdefault((session.id, common), {})
        known = siblings.get(history.messages[common].said)
        passed = set(siblings.values())
        numbers = range(1, MAX_FORKS) if known is None else (known,)
        for number in numbers:
            if known is None and number in passed:
                continue
            child = session.fork_before(common + 1, number, make=make)
            if child is None:
                return None
            if child is False:
                continue  # another log has this name
            if len(child) == common:
                self.forks_made += 1
                return child
            if self._is_same(child, common + 1, history, common):
                siblings[history.messages[common].said] = number
                return child
            other = self._known.get((child.id, common + 1))
            if other is not None:
                siblings[other.said] = number
        return None


def _by(source: object, said: SaidMessage, principal: str | None) -> NewMessage:
    """Return a message of the history with `principal` filled in if a user speaks and the message names nobody."""
    new = source if isinstance(source, NewMessage) else NewMessage(message=source)
    return replace(new, principal=principal) if new.principal is None and said.is_spoken else new


def _is_around(one: Message, other: Message) -> bool:
    """Return whether two text messages differ only by lines before or after the text."""
    if not all(isinstance(part, TextPart) for part in (*one.parts, *other.parts)):
        return False
    short, long = sorted((one.text.strip(), other.text.strip()), key=len)
    return bool(short) and (long.startswith(f"{short}\n") or long.endswith(f"\n{short}") or f"\n{short}\n" in long)


def _tell_fork(child: Session) -> None:
    (origin, *_) = child.origins()
    text = f"the history is another one than the log's from here on; it is kept in session {child.id!r}"
    _tell(child, "history_forked", text, f"§{origin.ordinal + 1}")


def _tell(session: Session, kind: str, text: str, ref: str | None = None) -> None:
    finding = Finding(kind=kind, ref=ref, text=text)
    if finding not in session.findings:
        session.findings.append(finding)


def _check_ids(sources: Sequence[object]) -> None:
    seen: set[str] = set()
    for source in sources:
        if isinstance(source, NewMessage) and source.id is not None:
            if source.id in seen:
                what = f"the history has two messages of the id {source.id!r:.60}"
                raise InputError(f"{what}; each message has its own, or none")
            seen.add(source.id)


def _id(digest: bytes) -> str:
    return f"history-{digest.hex()}"


def _raw_digest(source: object) -> bytes:
    try:
        data = marshal.dumps(source, 2)  # type: ignore[arg-type]  # an unsupported value raises ValueError
    except ValueError:
        wire = source.message if isinstance(source, NewMessage) else source
        data = encode_wire(wire).encode("utf-8", "surrogatepass")
        if isinstance(source, NewMessage):
            data += repr(source).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _message(source: object) -> Message:
    return Message.from_wire(source.message if isinstance(source, NewMessage) else source)


__all__ = ["Follower"]
