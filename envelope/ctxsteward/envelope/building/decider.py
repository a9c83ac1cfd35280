"""What one build decides and writes to the log: at most one compaction, first in a user turn one selection.

Each decision is an event, so that a rebuild from the log decides nothing. `BuildProgress` remembers over a retry what
was already written.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from ctxsteward.language.word_uses import WordUses
from ctxsteward.language.words import terms
from ctxsteward.schemas import CompressionReport, ContextError, Finding, InputError
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.deadline import Deadline, DeadlinePassed
from ctxsteward.store.journal.events import CompactionRefused, EarlierLine, RecallSelected, WindowCompacted
from ctxsteward.store.memory_spans import memory_span

from ..compaction.ahead import PlannedCompaction, SummaryAhead
from ..compaction.compactor import Compactor
from ..compaction.policy import Policy, Window
from ..compaction.undo import newest_standing, shown_again
from ..history.session import MemoryScope, PersonMemory, Session
from ..history.state import State
from ..history.tool_groups import is_user_turn
from ..layout.composition import DynamicLayout, lay_dynamic
from ..layout.rows import FORM, LayoutForm
from ..recall.earlier_sessions import shown_lines, with_earlier
from ..recall.heuristic import QUOTES, Heuristic, SupersessionIndex, ends_of
from ..recall.room import LEAST_EXCERPT_TOKENS
from ..recall.selection import Recall, Selector, SelectorFailed, described, named_now, recalled_share, select, verbatim
from ..tokens.budgets import MIN_PROGRESS_FRACTION, Budgets
from ..tokens.models import Prices
from ..tokens.tokenizer import Counter

OUR_FAULT = "this is a fault of ctxsteward, please report it"


@dataclass(slots=True)
class BuildProgress:
    """What one call of `build` has decided and written so far."""

    compacted: bool = False
    reports: tuple[CompressionReport, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    selection_seconds: float = 0.0
    is_late: bool = False
    """Whether a compaction was due and took too long."""
    deadline: Deadline = field(default_factory=lambda: Deadline(None))
    """For choosing what to compact and what to recall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Decides as one builder is set up."""

    compactor: Compactor
    selector: Selector | None
    """None: nothing is recalled."""
    budgets: Budgets
    counter: Counter
    histories: SupersessionIndex
    ahead: SummaryAhead | None = None
    memory: MemoryScope | None = None
    """Whose earlier sessions user turns of all sessions are searched in; None: as a session says."""
    prices: Prices = field(default_factory=Prices)
    form: LayoutForm = FORM
    """A builder out of a manifest has the form of the renderer that the manifest names."""

    def run(
        self, session: Session, progress: BuildProgress, head_tokens: int = 0, guard_tokens: int | None = None
    ) -> DynamicLayout:
        """Compact and select where due; the layout that comes of it.

        `head_tokens` stand before it in every prompt. Over `guard_tokens` of dynamic the model's window is nearly full:
        it is compacted though its budget is not.
        """
        layout = self.lay(session, session.state)
        own, window = self.beside_log(session, layout, head_tokens)
        if not progress.compacted:
            guard = None if guard_tokens is None else guard_tokens - layout.observations_tokens
            decider = own if own.compactor.policy.due(window) else own._guarding(window, guard)
            if decider is not None and decider._compact(session, window, progress, guard):
                layout = self.lay(session, session.state)
                own, window = self.beside_log(session, layout, head_tokens)
        if own._select(session, window, progress):
            layout = self.lay(session, session.state)
        return layout

    def beside_log(
        self, session: Session, layout: DynamicLayout, head_tokens: int = 0, state: State | None = None
    ) -> tuple[Decider, Window]:
        """This decider and the window without the observation log of an earlier version, which counts as head."""
        tokens, state = layout.observations_tokens, state or session.state
        own = self.with_budgets(self.budgets.beside(tokens)) if tokens else self
        recallable_tokens = self._recallable_tokens(session, state)
        return own, Window(state, layout, own.budgets, head_tokens + tokens, recallable_tokens, self.prices)

    def _recallable_tokens(self, session: Session, state: State) -> int | None:
        """Return the most that this user turn recalls; None for all of recall's share.

        It may take all of that if it searches earlier sessions, and if it quotes or names a message, which then comes
        back whole. Within a turn nothing more is recalled, so its text is not read again for each call.
        """
        searches_earlier = (self.memory or session.memory) and session.earlier_sessions is not None
        may_recall = state.compactions and state.recalled is None and not state.in_loop
        if not may_recall or state.left_out_tokens is None or searches_earlier:
            return None
        asked = session.shown(state.last_user).message.text if state.last_user else ""
        if asked and (QUOTES.search(ends_of(asked)) or named_now(session, state)):
            return None
        return recalled_share(state.left_out_tokens)

    def _guarding(self, window: Window, guard_tokens: int | None) -> Decider | None:
        """This one with no more dynamic than the guard leaves; None where it has nothing to do, or did just now.

        A compaction that could not save a tenth of the section is not tried, nor one after which less than a tenth was
        said: what stands in the way has not left.
        """
        state, tokens = window.state, window.section_tokens
        if guard_tokens is None or not 0 < guard_tokens < min(tokens, self.budgets.most_tokens):
            return None
        least = tokens * MIN_PROGRESS_FRACTION
        fragments = zip(state.groups, window.layout.strip.fragments, strict=True)
        new_tokens = sum(fragment.tokens for group, fragment in fragments if group.first > state.compacted_at)
        is_refused = window.refused_at and abs(tokens - window.refused_at) < window.refused_at * MIN_PROGRESS_FRACTION
        if new_tokens < least or is_refused or window.movable_tokens + window.bullets_tokens < least:
            return None
        tight = self.budgets.limited(guard_tokens).model_copy(update={"arrival_cap_tokens": self.budgets.cap_tokens})
        return self.with_budgets(tight)

    def with_budgets(self, budgets: Budgets) -> Decider:
        """The same under other budgets."""
        return replace(self, budgets=budgets, compactor=replace(self.compactor, budgets=budgets))

    def with_policy(self, policy: Policy) -> Decider:
        """The same with another compaction policy."""
        return replace(self, compactor=replace(self.compactor, policy=policy))

    def dated_by(self, now: Callable[[], str] | None) -> Decider:
        """The same with this clock for its reports, where it has none."""
        if now is None or self.compactor.now is not None:
            return self
        return replace(self, compactor=replace(self.compactor, now=now))

    def lay(self, session: Session, state: State, cache: dict[object, object] | None = None) -> DynamicLayout:
        """The dynamic section of a session as it stands, deciding nothing; in the session's cache or another one."""
        lines = partial(shown_lines, session)
        cache = session.cache if cache is None else cache
        return lay_dynamic(state, self.budgets, self.counter, session.shown, cache, lines, self.form)

    # -- compacting ---------------------------------------------------------------------------------------------

    def _compact(
        self, session: Session, window: Window, progress: BuildProgress, guard_tokens: int | None = None
    ) -> bool:
        """Try one compaction; whether the window is another one now.

        One that was not made in time is not tried again until the section has grown by a tenth, unless it is over
        `guard_tokens`: then the model's window is nearly full, and the session could not go on without.
        """
        session.branch()
        place = b"%d\x00" % session.state.position  # made again after damage: another address
        if window.budgets is not self.budgets:
            window = replace(window, budgets=self.budgets)
        prepared = None if self.ahead is None else self.ahead.landing(session, window)
        from ctxsteward.schemas.publish import validate  # noqa: F401  # now: an import must not be cut off

        terms("words")  # loads the stemmer, for recall

        findings: list[Finding] = []
        try:
            with progress.deadline.bounding():
                event = self._compactor_of(session).run(
                    session.state,
                    window,
                    partial(_named, session, place),
                    findings,
                    prepared,
                )
        except DeadlinePassed:
            progress.compacted = progress.is_late = True
            progress.findings.append(self._told_late(window, progress.deadline))
            if guard_tokens is None or window.section_tokens <= guard_tokens:
                session.commit(CompactionRefused(reason=progress.deadline.reason, section_tokens=window.section_tokens))
            return False
        session.commit(event)
        if self.ahead is not None:
            self.ahead.settle(session, event)
        progress.compacted = True
        progress.findings += findings
        progress.reports += (event.report,) if isinstance(event, WindowCompacted) else ()
        return isinstance(event, WindowCompacted)

    def planned(self, session: Session, window: Window, more_tokens: int) -> PlannedCompaction | None:
        """Return what a compaction would take if there were so many more tokens, or None if nothing becomes bullets."""
        return self._compactor_of(session).planned(session.state, window, more_tokens)

    def _compactor_of(self, session: Session) -> Compactor:
        """Return the compactor, with the words that users of this session have used."""
        return replace(self.compactor, uses=_word_uses(session))

    def show_again(self, session: Session, head_tokens: int, guard_tokens: int | None) -> WindowCompacted:
        """Undo the newest compaction; raises `InputError` where there is none, or its messages do not fit."""
        found = newest_standing(session.replica.log)
        if found is None:
            raise InputError(f"session {session.id!r} has no compaction of its own to undo; everything is as it was")
        position, undone = found
        earlier = session.replica.over(session.replica.log)
        earlier.load(position)
        state, before = session.state, earlier.state
        place = b"%d\x00" % state.position
        now = self.compactor.now() if self.compactor.now else None
        layout = self.lay(session, state)
        address = partial(_named, session, place)
        event = shown_again(state, before, undone, (layout.tokens, 0), address, now)
        after = state.copy()
        after.apply(event, lambda ordinal: session.replica.found(ordinal, f"§{ordinal}"))
        own, window = self.beside_log(session, self.lay(session, after, {}), head_tokens, after)
        tokens, budget = window.section_tokens, own.budgets.dynamic_tokens
        if window.over or own.compactor.policy.due(window) or (guard_tokens is not None and tokens > guard_tokens):
            back = undone.report.source_addresses
            raise InputError(
                f"what the compaction took out ({len(back)} messages) is not shown again: the dynamic section would "
                f"have {tokens:,} tokens, and at a budget of {budget:,} the next build would compact it again; pass "
                f"dynamic_tokens={tokens * budget * 11 // own.budgets.trigger_at(window.share_tokens) // 10}, "
                "or a model with a larger window"
            )
        event = shown_again(state, before, undone, (layout.tokens, tokens), address, now)
        session.commit(event)
        if self.ahead is not None:
            self.ahead.settle(session, event)
        return event

    def _told_late(self, window: Window, deadline: Deadline) -> Finding:
        tokens, budget = window.section_tokens, self.budgets.dynamic_tokens
        over = f", {tokens - budget} over its budget of {budget}" if tokens > budget else f" of {budget}"
        text = f"a compaction was due and not made: {deadline.reason}; the history stays, {tokens} tokens{over}"
        return Finding(kind="build_deadline", field="dynamic", text=text)

    # -- recalling ----------------------------------------------------------------------------------------------

    def _select(self, session: Session, window: Window, progress: BuildProgress) -> bool:
        """Recall for this user turn, or give up what was recalled where there is no room any more."""
        state = session.state
        if state.recalled is not None:
            return self._keep(session, window, state.recalled, progress)
        if self.selector is None or not self.budgets.recall_fraction or not state.last_user:
            return False
        if state.in_loop and not (progress.compacted and named_now(session, state)):
            return False  # what a turn did not need at its first call is dearer than what it gives, but for named ones
        started = time.perf_counter()
        try:
            with progress.deadline.bounding(), memory_span("search_memory", session.address) as recalled:
                event, findings = self._chosen(session, window, self.selector)
                if event is not None:
                    recalled(len(event.refs) + len(event.earlier))
        except DeadlinePassed:
            event = RecallSelected(turn=state.last_user, refs=(), log={})
            text = f"nothing was recalled: {progress.deadline.reason}"
            findings = (Finding(kind="build_deadline", field="dynamic", text=text),)
        progress.selection_seconds += time.perf_counter() - started
        if event is not None:
            session.commit(event)
        progress.findings += findings
        return event is not None

    def _keep(self, session: Session, window: Window, recalled: RecallSelected, progress: BuildProgress) -> bool:
        """Leave what was recalled as it is, or write what is left of it; whether that is less."""
        state = session.state
        if window.context_tokens and window.section_tokens > self.budgets.limit_of(window.section_tokens):
            least = self._least(session, recalled)
            shows_others = recalled.facts or recalled.earlier
            if least.refs == recalled.refs and least.excerpts == recalled.excerpts and not shows_others:
                return False
            text = "the history left no room for recalled messages"
            session.commit(least)
            progress.findings.append(Finding(kind="recall_dropped", field="dynamic", text=text))
            return True
        left = _still_paired(self._with_hidden(session, recalled), state) if progress.compacted else recalled
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

    def _chosen(
        self, session: Session, window: Window, selector: Selector
    ) -> tuple[RecallSelected | None, tuple[Finding, ...]]:
        """Messages for this user turn, in what room the history leaves; None: there is nothing to recall."""
        state = session.state
        history_tokens = max(self.budgets.history_tokens, window.history_tokens + window.calls_tokens)
        room = self.budgets.limit_of(history_tokens) - history_tokens
        if (self.memory or session.memory) is None or session.earlier_sessions is None:
            return self._messages(selector, session, state, room) or (None, ())
        lines, tokens, earlier_findings = self._earlier(session, state, session.earlier_sessions(), room)
        event, findings = self._messages(selector, session, state, room - tokens) or (None, ())
        return with_earlier(event, lines, state), (*findings, *earlier_findings)

    def _earlier(
        self, session: Session, state: State, earlier: PersonMemory, room: int
    ) -> tuple[tuple[EarlierLine, ...], int, list[Finding]]:
        """Lines of earlier sessions, the tokens that they take, and findings; no lines where the search fails."""
        try:
            return earlier.choose(session, state, self._earlier_room(state, room), self.counter)
        except Exception as error:  # a turn without them is better than no turn
            fault = "" if isinstance(error, ContextError) else f"; {OUR_FAULT}"
            text = f"earlier sessions were not searched: {described(error)}{fault}"
            return (), 0, [Finding(kind="recall_failed", field="dynamic", text=text[:500])]

    def _earlier_room(self, state: State, room_tokens: int) -> int:
        """What lines of earlier sessions may take; before the first compaction, no message needs the rest."""
        budgets = self.budgets
        if state.compactions:
            return int(room_tokens * budgets.facts_fraction)
        return min(room_tokens, int(budgets.recall_tokens * budgets.facts_fraction))

    def _messages(self, selector: Selector, session: Session, state: State, room_tokens: int) -> Recall | None:
        cap = self.budgets.cap_tokens
        try:
            return select(selector, session, state, room_tokens, self.counter, self.histories, cap)
        except SelectorFailed as error:  # a selector is the caller's code: whatever it raises, the call goes on without
            if isinstance(selector, Heuristic):  # nothing of the caller's runs in this one
                return self._without_recall(state, "recall_failed", f"{error}; {OUR_FAULT}")
            return self._without_recall(state, "selection_failed", str(error))
        except Exception as error:  # a turn without recall is better than no turn
            why = f"recall itself failed, not the selector: {described(error)}"
            fault = "" if isinstance(error, ContextError) else f"; {OUR_FAULT}"
            return self._without_recall(state, "recall_failed", f"{why}{fault}")

    def _without_recall(self, state: State, kind: str, why: str) -> Recall:
        finding = Finding(kind=kind, field="dynamic", text=f"nothing was recalled for this turn: {why}")
        return RecallSelected(turn=state.last_user, refs=(), log={}), (finding,)


def _named(session: Session, place: bytes, kind: str, data: bytes) -> str:
    return address_of(session.address_key, session.id, kind, place + data)


def _still_paired(recalled: RecallSelected, state: State) -> RecallSelected:
    """What was recalled, without messages whose later ones a compaction has taken out of the window."""
    here = verbatim(state).union(recalled.refs)
    alone = {old for old, newer in recalled.superseded.items() if not here.issuperset(newer)}
    if not alone:
        return recalled
    refs = tuple(ordinal for ordinal in recalled.refs if ordinal not in alone)
    superseded = {old: newer for old, newer in recalled.superseded.items() if old not in alone}
    return _still_paired(replace(recalled, refs=refs, superseded=superseded), state)


@dataclass(slots=True)
class _ReadWords:
    """Words that users have used up to an ordinal, in one generation of a log."""

    generation: int
    upto: int = 0
    uses: WordUses = field(default_factory=WordUses)


def _word_uses(session: Session) -> WordUses:
    """Return the words that users of a session have used so far; each message is read once."""
    read = session.cache.get("word uses")
    if not isinstance(read, _ReadWords) or read.generation != session.generation:  # else erased words would be counted
        read = session.cache["word uses"] = _ReadWords(session.generation)
    for ordinal in range(read.upto + 1, session.state.ordinal + 1):
        message = session.shown(ordinal).message
        if is_user_turn(message):
            read.uses.read(message.text, ordinal)
    read.upto = session.state.ordinal
    return read.uses
