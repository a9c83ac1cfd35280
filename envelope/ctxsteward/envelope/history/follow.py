"""`Follower`: a whole history in, the session that has it out; what is new is appended, what is known is no event.

Frameworks hand over the whole conversation at each model call. Two messages are the same where role, text, calls,
results and media are: what providers and frameworks add (ids of theirs, key order, null fields, cache marks, thinking)
does not count. What ours put into a prompt (fenced text with this session's nonce) is skipped where it comes back.

The history is laid beside the log:

    longer than the log, the log is its beginning        the rest is appended
    a beginning of the log                               nothing is written: the session as it was then (`Session.past`)
    the log's newest messages, with less before them     a framework's own compaction: what is behind them is appended
    anything else                                        it diverged: a fork at the last common message, one for all who
                                                         bring this history; finding `history_forked`

A tool result that comes back shorter under the same call is the framework's own reduction, and the same message.

Each message is appended under an id that says all of the history up to it, keyed by the tenant (HMAC): another process
that is handed the same history finds with one look into the journal where it stands, and reads no message again; two
that append it at once write it once. In one process a call costs a digest of what was handed over (about 2 µs a
message) and a comparison of what is new.

Raises what `Session.extend` raises. Nothing of a history with an invalid message is written.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxsteward.schemas import Conflict, Finding, ImagePart, Message, OpaquePart, TextPart, ToolCallPart, encode_wire

from .tool_groups import NewMessage

if TYPE_CHECKING:
    from .session import Session

TRIES = 100
"""Other writers may be first so often before `Conflict` is raised."""
MAX_FORKS = 1000
"""At one message."""
MIN_OVERLAP = 2
"""Messages that a history must share with the end of the log to be taken for a compacted one."""
MAX_LOOK_BACK = 200
"""Messages of the log's end that a compacted history's newest message is looked for in, beyond its own length."""
_DIGEST_BYTES: Final = 16


class SaidMessage(NamedTuple):
    """What makes two messages the same."""

    said: bytes
    """Digest of role, text, calls, results and media."""
    answers: tuple[str, ...] = ()
    """Ids of the calls that a message of tool results answers."""
    result_chars: int = 0
    is_system: bool = False


class HandedHistory(NamedTuple):
    """A history without what is ours."""

    sources: Sequence[object]
    """As the caller gave them."""
    messages: Sequence[SaidMessage]
    chain: Sequence[bytes]
    """By message: a keyed digest of all up to it."""
    has_own_text: bool = False


class Overlap(NamedTuple):
    """Where a compacted history meets the log."""

    known: int
    """Messages of the history up to the end of what is in the log."""
    ordinal: int
    """Of the last of them."""


class Follower:
    """Follows the histories of one conversation: a session and its forks."""

    def __init__(self, root: Session) -> None:
        self._root, self._leaf = root, root
        self._key = hashlib.sha256(root.address_key + root.id.encode()).digest()
        """Without it an id tells nobody what was said."""
        self._met: tuple[int, bytes] | None = None
        """Ordinal up to which the leaf's log was the history, and the digest of that."""
        self._raw: list[bytes] = []
        """Digests of the messages of the last history, as they were handed over."""
        self._read: dict[bytes, SaidMessage | None] = {}
        """By those: what the message is; None: ours."""
        self._chain: list[bytes] = []
        self._known: dict[tuple[str, int], SaidMessage] = {}
        """Messages of logs, by session and ordinal."""

    def follow(self, messages: Iterable[object], *, principal: str | None = None) -> Session:
        """See `Session.follow`."""
        history = self._handed(list(messages))
        for _ in range(TRIES):
            try:
                return self._stand(history, principal)
            except Conflict:
                self._leaf, self._met = self._root, None
        raise Conflict(self._root.id, self._root.state.position)

    # -- what was handed over -----------------------------------------------------------------------------------

    def _handed(self, sources: list[object]) -> HandedHistory:
        raw = [_raw_digest(source) for source in sources]
        kept = self._read
        self._read = {digest: kept[digest] for digest in raw if digest in kept}
        for digest, source in zip(raw, sources, strict=True):
            if digest not in self._read:
                self._read[digest] = self._own_or_said(source)
        told = [(digest, one, source) for digest, source in zip(raw, sources, strict=True)
                if (one := self._read[digest]) is not None]  # fmt: skip
        theirs = told[self._head_messages([one for _, one, _ in told]) :]
        digests = [digest for digest, _, _ in theirs]
        chain = self._chain if digests[: len(self._raw)] == self._raw else []
        for _, one, _ in theirs[len(chain) :]:
            chain.append(self._keyed((chain[-1] if chain else b"") + one.said))
        self._raw, self._chain = digests, chain
        has_own = len(told) < len(sources)
        return HandedHistory([source for _, _, source in theirs], [one for _, one, _ in theirs], chain, has_own)

    def _own_or_said(self, source: object) -> SaidMessage | None:
        message = Message.from_wire(source.message if isinstance(source, NewMessage) else source)
        if message.role == "user":
            theirs = without_own_text(message, self._root.state.nonce)
            return None if theirs is None else said_message(theirs)
        return said_message(message)

    def _head_messages(self, said: Sequence[SaidMessage]) -> int:
        """How many leading system messages the session's head says already; they take no ordinal."""
        if not said or not said[0].is_system:
            return 0
        texts = self._root.state.head.system
        heads = {_system_said(text).said for text in (*texts, "\n\n".join(texts)) if text}
        return next((at for at, one in enumerate(said) if one.said not in heads), len(said))

    def _keyed(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, key=self._key, digest_size=_DIGEST_BYTES).digest()

    # -- where it stands ----------------------------------------------------------------------------------------

    def _stand(self, history: HandedHistory, principal: str | None) -> Session:
        session = self._leaf
        session.refresh()
        start = self._met_at(session, history)
        if start is None and session is not self._root:
            stood = self._in_log(session, history, self._common(session, history, 0), principal)
            if stood is not None:
                return stood
            session = self._root
            session.refresh()
        common = start or 0
        for _ in range(MAX_FORKS):
            common = self._common(session, history, common)
            stood = self._in_log(session, history, common, principal)
            if stood is not None:
                return stood
            session = self._fork(session, history, common)
        raise Conflict(session.id, session.state.position)

    def _in_log(self, session: Session, history: HandedHistory, common: int, principal: str | None) -> Session | None:
        """The session where this log is the history's; None where they diverge behind `common` messages."""
        if common == len(session):
            return self._go_on(session, history, common, common, principal)
        if common == len(history.messages):
            return self._past(session, common)
        overlap = self._overlap(session, history, common)
        return None if overlap is None else self._compacted(session, history, overlap, principal)

    def _met_at(self, session: Session, history: HandedHistory) -> int | None:
        """Up to where the leaf is known to be this history; None: look from the root."""
        if self._met is None:
            return None
        ordinal, digest = self._met
        if ordinal > len(session):
            return None
        return ordinal if history.chain[ordinal - 1 : ordinal] == [digest] else None

    def _common(self, session: Session, history: HandedHistory, start: int) -> int:
        """The longest beginning that log and history share, known to be at least `start` messages."""
        most = min(len(session), len(history.messages))
        low = max(start, self._found_by_id(session, history, start, most))
        while low < most and self._is_same(session, low + 1, history.messages[low]):
            low += 1
        return low

    def _found_by_id(self, session: Session, history: HandedHistory, start: int, most: int) -> int:
        """By the ids under which histories are appended: a message up to which the two are the same."""
        if most - start < MIN_OVERLAP:
            return start
        low, high = start, most
        middle = most
        while low < high:
            entry = session.replica.by_id(_id(history.chain[middle - 1]))
            low, high = (middle, high) if entry is not None and entry.ordinal == middle else (low, middle - 1)
            middle = (low + high + 1) // 2
        return low

    def _is_same(self, session: Session, ordinal: int, handed: SaidMessage) -> bool:
        key = (session.id, ordinal)
        known = self._known.get(key)
        if known is None:
            entry = session.shown(ordinal)
            if entry.event.erased or entry.event.damaged:
                return True  # what it said is not known here any more, and is not asked for
            known = self._known[key] = said_message(entry.message)
        return is_same(known, handed)

    # -- what follows from it -----------------------------------------------------------------------------------

    def _go_on(
        self, session: Session, history: HandedHistory, known: int, ordinal: int, principal: str | None
    ) -> Session:
        """Append what is behind the first `known` messages of the history, where the log ends at `ordinal`."""
        in_step = known == ordinal
        batch = []
        for index in range(known, len(history.messages)):
            source = history.sources[index]
            new = source if isinstance(source, NewMessage) else NewMessage(message=source)
            message, said = new.message, history.messages[index]
            id = new.id if new.id is not None or not in_step else _id(history.chain[index])
            who = (
                principal if new.principal is None and not said.answers and _role(message) == "user" else new.principal
            )
            stripped = self._stripped(message)
            batch.append(NewMessage(message=stripped, id=id, principal=who, phase=new.phase, pin=new.pin, ts=new.ts,
                                    origin=new.origin))  # fmt: skip
        if batch:
            session.extend_at(ordinal, batch)
        self._leaf = session
        self._met = (len(session), history.chain[-1]) if in_step and history.chain else None
        if history.has_own_text:
            _tell(session, "own_text_skipped", "the history holds text of ours (fenced with this session's number); "
                  "it was not appended")  # fmt: skip
        return session

    def _stripped(self, source: object) -> object:
        """A message without the fenced blocks of ours that a framework kept in it."""
        if _role(source) != "user":
            return source
        message = Message.from_wire(source)
        theirs = without_own_text(message, self._root.state.nonce)
        return source if theirs is message or theirs is None else theirs.wire

    def _past(self, session: Session, ordinal: int) -> Session:
        self._leaf, self._met = session, None
        return session.past(ordinal)

    def _compacted(self, session: Session, history: HandedHistory, overlap: Overlap, principal: str | None) -> Session:
        at = f"§{overlap.ordinal}"
        text = "the history says less than the log before its newest messages: the caller compacted it; the log stays"
        if overlap.known == len(history.messages) and overlap.ordinal < len(session):
            past = self._past(session, overlap.ordinal)
            _tell(past, "history_compacted", text, at)
            return past
        going = self._go_on(session, history, overlap.known, overlap.ordinal, principal)
        _tell(going, "history_compacted", text, at)
        return going

    def _overlap(self, session: Session, history: HandedHistory, common: int) -> Overlap | None:
        """The end of the log inside the history, or the history's end inside the log, with less before it than there.

        The longest run counts. What only leaves out messages in the middle is an edit.
        """
        said, length = history.messages, len(session)
        ends = [(known, length) for known in range(len(said), 0, -1)]
        back = max(1, length - len(said) - MAX_LOOK_BACK)
        ends += [(len(said), ordinal) for ordinal in range(length - 1, back, -1)]
        best, longest = None, MIN_OVERLAP - 1
        for known, ordinal in ends:
            run = 0
            while run < min(known, ordinal) and self._is_same(session, ordinal - run, said[known - run - 1]):
                run += 1
            stand_in, replaced = known - run - common, ordinal - run - common
            is_shorter = 0 <= stand_in < replaced and (stand_in > 0 or common < MIN_OVERLAP)
            if run > longest and is_shorter:
                best, longest = Overlap(known, ordinal), run
        return best

    def _fork(self, session: Session, history: HandedHistory, common: int) -> Session:
        """The fork at this message that goes on as the history does; made where there is none."""
        for number in range(1, MAX_FORKS):
            child = session.fork_before(common + 1, number)
            if child is not None and (
                len(child) == common or self._is_same(child, common + 1, history.messages[common])
            ):
                text = f"the history is another one than the log's from here on; it is kept in session {child.id!r}"
                _tell(child, "history_forked", text, f"§{common + 1}")
                return child
        raise Conflict(session.id, session.state.position)


def said_message(message: Message) -> SaidMessage:
    """What a message says, whoever wrote it down.

    >>> one = Message.from_wire({"role": "user", "content": "hi"})
    >>> other = Message.from_wire({"content": [{"type": "text", "text": "hi"}], "role": "user", "name": None})
    >>> said_message(one) == said_message(other)
    True
    """
    parts: list[object] = ["system" if message.role == "developer" else message.role, message.text]
    answers, chars = [], 0
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            parts.append(("call", part.id, part.name, _plain_arguments(part.arguments)))
        elif isinstance(part, ImagePart):
            parts.append(("image", part.url, part.data))
        elif isinstance(part, OpaquePart):
            parts.append(("opaque", part.type))
    for result in message.tool_results:
        answers.append(result.call_id)
        chars += len(result.text)
        parts.append(("result", result.call_id, result.text, [(image.url, image.data) for image in result.images]))
    if answers:
        parts[0] = "tool"
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
    return SaidMessage(digest, tuple(answers), chars, parts[0] == "system")


def is_same(logged: SaidMessage, handed: SaidMessage) -> bool:
    """Whether a message of the log is the one that was handed over, whole or as a shortened tool result."""
    if logged.said == handed.said:
        return True
    shortened = handed.answers == logged.answers and all(handed.answers) and handed.result_chars < logged.result_chars
    return bool(handed.answers) and shortened


def without_own_text(message: Message, nonce: str) -> Message | None:
    """The message without texts that are fenced with this session's number; None where nothing is left of it."""
    if not any(isinstance(part, TextPart) and nonce in part.text for part in message.parts):
        return message
    content = message.wire["content"]
    if isinstance(content, str):
        return None if _is_own(content, nonce) else message
    kept = [block for block in content if not _is_own(_block_text(block), nonce)]
    if len(kept) == len(content):
        return message
    return Message.from_wire({**message.wire, "content": kept}) if kept else None


def _tell(session: Session, kind: str, text: str, ref: str | None = None) -> None:
    finding = Finding(kind=kind, ref=ref, text=text)
    if finding not in session.findings:
        session.findings.append(finding)


def _id(digest: bytes) -> str:
    return f"history-{digest.hex()}"


def _raw_digest(source: object) -> bytes:
    try:
        data = marshal.dumps(source, 2)  # type: ignore[arg-type]  # what it cannot take is a ValueError
    except ValueError:
        wire = source.message if isinstance(source, NewMessage) else source
        data = encode_wire(wire).encode("utf-8", "surrogatepass")
        if isinstance(source, NewMessage):
            data += repr(source).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _role(source: object) -> object:
    return source.get("role") if isinstance(source, dict) else getattr(source, "role", None)


def _system_said(text: str) -> SaidMessage:
    return said_message(Message.from_wire({"role": "system", "content": text}))


def _block_text(block: object) -> str:
    if isinstance(block, dict):
        text = block.get("text")
        return text if isinstance(text, str) else ""
    return block if isinstance(block, str) else ""


def _is_own(text: str, nonce: str) -> bool:
    fence = re.escape(nonce)
    return re.fullmatch(rf"\s*<{fence}(?: [^>\n]*)?>\n.*</{fence}(?: [^>\n]*)?>\s*", text, re.DOTALL) is not None


def _plain_arguments(arguments: str) -> str:
    """Arguments as canonical JSON; what is no JSON stays as it is."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except ValueError:
        return arguments


__all__ = ["Follower", "SaidMessage", "is_same", "said_message", "without_own_text"]
