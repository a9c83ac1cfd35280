"""What one build decides and writes to the log: at most one compaction and, first in a user turn, one selection.

Everything that is decided here is an event, so that whoever lays the log out again decides nothing. `BuildProgress`
remembers over a retry (another writer was first) what this build has already written. Raises what the journal raises.

`SupersessionIndex` knows of a session's history how long it is, and what of it was replaced since. Every message is
read once, when the first turn after it recalls. What was read is a cache, as a selector's index is: the first turn in a
new process reads the session again. The reader (`ReplacementReader`) is installed under the entry-point group
``ctxsteward.replacing``; an answer costs what it finds, not the session's age.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from ctxsteward.schemas import CompressionReport, Finding, Message, Ref, ReplacementReader, SourceMessage, TextPart
from ctxsteward.store.crypto.addresses import address_of
from ctxsteward.store.journal.events import RecallSelected, WindowCompacted

from ..compaction.compactor import Compactor
from ..compaction.policy import Window
from ..history.session import Session
from ..history.state import State
from ..layout.composition import DynamicLayout, lay_dynamic
from ..layout.rows import ROWS, RowForm
from ..recall.facts import lines_of, offer, with_facts
from ..recall.room import LEAST_EXCERPT_TOKENS
from ..recall.selection import SelectionRequest, Selector, SessionCache, VisibleMessages, named_now, select, verbatim
from ..tokens.budgets import Budgets
from ..tokens.tokenizer import MESSAGE_TOKENS, Counter


class SessionSupersession:
    """One session's, up to the message before the current user turn."""

    __slots__ = ("_of_text", "_replacing", "tokens", "upto")

    def __init__(self, replacing: ReplacementReader) -> None:
        self._replacing = replacing
        self._of_text = array("Q", (0,))
        """By ordinal, tokens of a message's text; 0 where it is more than a text."""
        self.upto = 0
        self.tokens = 0
        """Of all originals read so far."""

    def read(self, request: SelectionRequest, counter: Counter) -> None:
        """Read what was appended since."""
        for ordinal in range(self.upto + 1, request.last + 1):
            entry = request.entry(ordinal)
            self._replacing.read(SourceMessage(ref=entry.ref, message=entry.message))
            tokens = entry.tokens(counter)
            self._of_text.append(max(0, tokens - MESSAGE_TOKENS) if _is_text(entry.message) else 0)
            self.tokens += tokens
            self.upto = ordinal

    def replaced_by(self, ordinal: int) -> tuple[int, ...]:
        """The messages that say the newest of what this one says; () where nothing of it was replaced."""
        return tuple(Ref.parse(ref).ordinal for ref in self._replacing.replaced_by(f"§{ordinal}"))

    def least_tokens(self, ordinal: int) -> int:
        """What a message takes at least where it is shown again, told without reading it."""
        return self._of_text[ordinal]


def _is_text(message: Message) -> bool:
    return len(message.wire) == 2 and len(message.parts) == 1 and isinstance(message.parts[0], TextPart)


class SupersessionIndex:
    """Of many sessions; safe with threads."""

    def __init__(self, replacing: Callable[[], ReplacementReader], counter: Counter, max_sessions: int = 64) -> None:
        self._replacing, self._counter = replacing, counter
        self._sessions: SessionCache[SessionSupersession] = SessionCache(max_sessions)

    def __call__(self, request: SelectionRequest) -> VisibleMessages:
        """Everything up to the request's last message."""
        kept = self._sessions.of(request)
        with kept.lock:
            if kept.made is None or not kept.holds(request):
                kept.made, kept.newest, kept.generation = (
                    SessionSupersession(self._replacing()),
                    None,
                    request.generation,
                )
            history = kept.made
            history.read(request, self._counter)
            kept.newest = request.entry(history.upto) if history.upto else None

        def replaced_by(ordinal: int) -> tuple[int, ...]:
            with kept.lock:
                return history.replaced_by(ordinal)

        return VisibleMessages(history.tokens, replaced_by, history.least_tokens)


@dataclass(slots=True)
class BuildProgress:
    """What one call of `build` has written so far."""

    compacted: bool = False
    reports: tuple[CompressionReport, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    selection_seconds: float = 0.0


class BuildDecision(NamedTuple):
    """A layout and what was decided on the way to it."""

    layout: DynamicLayout
    reports: tuple[CompressionReport, ...]
    findings: list[Finding]
    selection_seconds: float = 0.0


class RecallResult(NamedTuple):
    """A selection for this user turn; None: there is nothing to recall."""

    event: RecallSelected | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Decides as one builder is set up."""

    compactor: Compactor
    selector: Selector | None
    """None: nothing is recalled, neither messages nor facts."""
    budgets: Budgets
    counter: Counter
    histories: SupersessionIndex
    form: RowForm = ROWS
    """How rows are written: a builder out of a manifest has the form of the renderer that the manifest names."""

    def run(self, session: Session, made: BuildProgress) -> BuildDecision:
        """Compact and select where due."""
        layout = self.lay(session, session.state)
        window = Window(session.state, layout, self.budgets)
        if not made.compacted and self.compactor.policy.due(window) and self._compact(session, window, made):
            layout = self.lay(session, session.state)
            window = Window(session.state, layout, self.budgets)
        if self._select(session, window, made):
            layout = self.lay(session, session.state)
        return BuildDecision(layout, made.reports, made.findings, made.selection_seconds)

    def with_budgets(self, budgets: Budgets) -> Decider:
        """The same under other budgets."""
        return replace(self, budgets=budgets, compactor=self.compactor.with_budgets(budgets))

    def lay(self, session: Session, state: State) -> DynamicLayout:
        """The dynamic section of a session as it stands, deciding nothing."""
        facts = partial(lines_of, session)
        return lay_dynamic(state, self.budgets, self.counter, session.shown, session.cache, facts, self.form)

    # -- compacting ---------------------------------------------------------------------------------------------

    def _compact(self, session: Session, window: Window, made: BuildProgress) -> bool:
        """Try one compaction; whether the window is another one now."""
        place = b"%d\x00" % session.state.position  # one that is made again after damage goes by another address
        outcome = self.compactor.run(
            session.state, window, lambda kind, data: address_of(session.address_key, session.id, kind, place + data)
        )
        if outcome.event is not None:
            session.commit(outcome.event)
        made.compacted = True
        made.findings += outcome.findings
        if not isinstance(outcome.event, WindowCompacted):
            return False
        made.reports += (outcome.event.report,)
        return True

    # -- recalling ----------------------------------------------------------------------------------------------

    def _select(self, session: Session, window: Window, made: BuildProgress) -> bool:
        """Recall for this user turn, or give up what was recalled where there is no room any more."""
        state = session.state
        if state.recalled is not None:
            return self._keep(session, window, state.recalled, made)
        if self.selector is None or not self.budgets.recall_fraction or not state.last_user:
            return False
        if state.in_loop and not made.compacted:
            return False  # what a turn did not need at its first call it gets only where the prefix is new anyway
        started = time.perf_counter()
        chosen = self._chosen(session, window, self.selector)
        made.selection_seconds += time.perf_counter() - started
        if chosen.event is not None:
            session.commit(chosen.event)
        made.findings += chosen.findings
        return chosen.event is not None

    def _keep(self, session: Session, window: Window, recalled: RecallSelected, made: BuildProgress) -> bool:
        """Leave what was recalled as it is, or write what is left of it; whether that is less."""
        state = session.state
        if window.context_tokens and window.section_tokens > self.budgets.dynamic_tokens:
            least = self._least(session, recalled)
            if least.refs == recalled.refs and least.excerpts == recalled.excerpts and not recalled.facts:
                return False
            text = "the history left no room for recalled messages"
            session.commit(least)
            made.findings.append(Finding(kind="recall_dropped", field="dynamic", text=text))
            return True
        left = _still_paired(self._with_hidden(session, recalled), state) if made.compacted else recalled
        if left is not recalled:
            session.commit(left)
        return left is not recalled

    def _least(self, session: Session, recalled: RecallSelected) -> RecallSelected:
        """What stays of a selection where there is no room: the beginning of what the question names by number."""
        refs = set(recalled.refs).intersection(named_now(session, session.state))
        superseded = {old: newer for old, newer in recalled.superseded.items() if old in refs}
        refs.update(n for newer in superseded.values() for n in newer if n in recalled.refs)
        excerpts = dict.fromkeys(sorted(refs), LEAST_EXCERPT_TOKENS)
        return RecallSelected(
            turn=recalled.turn, refs=tuple(excerpts), log={}, superseded=superseded, excerpts=excerpts
        )

    def _with_hidden(self, session: Session, recalled: RecallSelected) -> RecallSelected:
        """With what the question names and a compaction has taken out of the window meanwhile."""
        shown = verbatim(session.state).union(recalled.refs)
        hidden = [ordinal for ordinal in named_now(session, session.state) if ordinal not in shown]
        if not hidden:
            return recalled
        excerpts = recalled.excerpts | dict.fromkeys(hidden, self.budgets.cap_tokens)
        return replace(recalled, refs=tuple(sorted({*recalled.refs, *hidden})), excerpts=excerpts)

    def _chosen(self, session: Session, window: Window, selector: Selector) -> RecallResult:
        """Facts and messages for this user turn, in what room the history leaves."""
        state = session.state
        room = self.budgets.dynamic_tokens - max(self.budgets.history_tokens, window.history_tokens)
        facts = offer(session, state, self._facts_room(state, room), self.counter)
        recalled = self._messages(selector, session, state, room - facts.tokens)
        event = with_facts(facts, recalled.event, session, state, room, self.counter)
        return RecallResult(event, facts.findings if event is None else (*recalled.findings, *facts.findings))

    def _facts_room(self, state: State, room_tokens: int) -> int:
        """What facts may take of the room: their part; before the first compaction, no message needs the rest."""
        budgets = self.budgets
        if state.compactions:
            return int(room_tokens * budgets.facts_fraction)
        return min(room_tokens, int(budgets.recall_tokens * budgets.facts_fraction))

    def _messages(self, selector: Selector, session: Session, state: State, room_tokens: int) -> RecallResult:
        from ctxsteward.schemas.publish import validate_quickly  # with all models; not for who only imports us

        try:
            cap = self.budgets.cap_tokens
            picked = select(selector, session, state, room_tokens, self.counter, self.histories, cap)
            if picked is not None and picked.event.log:
                validate_quickly("selection_log", picked.event.log)
        except Exception as error:  # a selector is the caller's code: whatever it raises, the call goes on without
            text = f"nothing was recalled: the selector failed: {type(error).__name__}: {error}"
            failed = Finding(kind="selection_failed", field="dynamic", text=text)
            return RecallResult(RecallSelected(turn=state.last_user, refs=(), log={}), (failed,))
        return RecallResult(None, ()) if picked is None else RecallResult(picked.event, picked.findings)


def _still_paired(recalled: RecallSelected, state: State) -> RecallSelected:
    """What was recalled, without messages whose later ones a compaction has taken out of the window."""
    here = verbatim(state).union(recalled.refs)
    alone = {old for old, newer in recalled.superseded.items() if not here.issuperset(newer)}
    if not alone:
        return recalled
    refs = tuple(ordinal for ordinal in recalled.refs if ordinal not in alone)
    superseded = {old: newer for old, newer in recalled.superseded.items() if old not in alone}
    return _still_paired(replace(recalled, refs=refs, superseded=superseded), state)
