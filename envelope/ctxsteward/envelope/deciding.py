"""What one build decides and writes to the log: at most one compaction and, first in a user turn, one selection.

Everything that is decided here is an event, so that whoever lays the log out again decides nothing. `Made` remembers
over a retry (another writer was first) what this build has already written. Raises what the journal raises.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from ctxsteward.schemas import CompressionReport, Finding

from .budgets import Budgets
from .compaction import Compactor
from .counting import Counter
from .events import Compacted, Selected
from .facts.choosing import offer, with_facts
from .facts.known import lines_of
from .fitting import LEAST_EXCERPT_TOKENS
from .history import Histories
from .keys import address_of
from .layout import DynamicLayout, lay_dynamic
from .policy import Window
from .rows import ROWS, RowForm
from .selection import Selector, named_now, select, verbatim
from .session import Session
from .state import State


@dataclass(slots=True)
class Made:
    """What one call of `build` has written so far."""

    compacted: bool = False
    reports: tuple[CompressionReport, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    selection_seconds: float = 0.0


class Decided(NamedTuple):
    """A layout and what was decided on the way to it."""

    layout: DynamicLayout
    reports: tuple[CompressionReport, ...]
    findings: list[Finding]
    selection_seconds: float = 0.0


class Recalled(NamedTuple):
    """A selection for this user turn; None: there is nothing to recall."""

    event: Selected | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Decides as one builder is set up."""

    compactor: Compactor
    selector: Selector | None
    """None: nothing is recalled, neither messages nor facts."""
    budgets: Budgets
    counter: Counter
    histories: Histories
    form: RowForm = ROWS
    """How rows are written: a builder out of a manifest has the form of the renderer that the manifest names."""

    def run(self, session: Session, made: Made) -> Decided:
        """Compact and select where due."""
        layout = self.lay(session, session.state)
        window = Window(session.state, layout, self.budgets)
        if not made.compacted and self.compactor.policy.due(window) and self._compact(session, window, made):
            layout = self.lay(session, session.state)
            window = Window(session.state, layout, self.budgets)
        if self._select(session, window, made):
            layout = self.lay(session, session.state)
        return Decided(layout, made.reports, made.findings, made.selection_seconds)

    def with_budgets(self, budgets: Budgets) -> Decider:
        """The same under other budgets."""
        return replace(self, budgets=budgets, compactor=self.compactor.with_budgets(budgets))

    def lay(self, session: Session, state: State) -> DynamicLayout:
        """The dynamic section of a session as it stands, deciding nothing."""
        facts = partial(lines_of, session)
        return lay_dynamic(state, self.budgets, self.counter, session.shown, session.cache, facts, self.form)

    # -- compacting ---------------------------------------------------------------------------------------------

    def _compact(self, session: Session, window: Window, made: Made) -> bool:
        """Try one compaction; whether the window is another one now."""
        place = b"%d\x00" % session.state.position  # one that is made again after damage goes by another address
        outcome = self.compactor.run(
            session.state, window, lambda kind, data: address_of(session.address_key, session.id, kind, place + data)
        )
        if outcome.event is not None:
            session.commit(outcome.event)
        made.compacted = True
        made.findings += outcome.findings
        if not isinstance(outcome.event, Compacted):
            return False
        made.reports += (outcome.event.report,)
        return True

    # -- recalling ----------------------------------------------------------------------------------------------

    def _select(self, session: Session, window: Window, made: Made) -> bool:
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

    def _keep(self, session: Session, window: Window, recalled: Selected, made: Made) -> bool:
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

    def _least(self, session: Session, recalled: Selected) -> Selected:
        """What stays of a selection where there is no room: the beginning of what the question names by number."""
        refs = set(recalled.refs).intersection(named_now(session, session.state))
        superseded = {old: newer for old, newer in recalled.superseded.items() if old in refs}
        refs.update(n for newer in superseded.values() for n in newer if n in recalled.refs)
        excerpts = dict.fromkeys(sorted(refs), LEAST_EXCERPT_TOKENS)
        return Selected(turn=recalled.turn, refs=tuple(excerpts), log={}, superseded=superseded, excerpts=excerpts)

    def _with_hidden(self, session: Session, recalled: Selected) -> Selected:
        """With what the question names and a compaction has taken out of the window meanwhile."""
        shown = verbatim(session.state).union(recalled.refs)
        hidden = [ordinal for ordinal in named_now(session, session.state) if ordinal not in shown]
        if not hidden:
            return recalled
        excerpts = recalled.excerpts | dict.fromkeys(hidden, self.budgets.cap_tokens)
        return replace(recalled, refs=tuple(sorted({*recalled.refs, *hidden})), excerpts=excerpts)

    def _chosen(self, session: Session, window: Window, selector: Selector) -> Recalled:
        """Facts and messages for this user turn, in what room the history leaves."""
        state = session.state
        room = self.budgets.dynamic_tokens - max(self.budgets.history_tokens, window.history_tokens)
        facts = offer(session, state, self._facts_room(state, room), self.counter)
        recalled = self._messages(selector, session, state, room - facts.tokens)
        event = with_facts(facts, recalled.event, session, state, room, self.counter)
        return Recalled(event, facts.findings if event is None else (*recalled.findings, *facts.findings))

    def _facts_room(self, state: State, room_tokens: int) -> int:
        """What facts may take of the room: their part; before the first compaction, no message needs the rest."""
        budgets = self.budgets
        if state.compactions:
            return int(room_tokens * budgets.facts_fraction)
        return min(room_tokens, int(budgets.recall_tokens * budgets.facts_fraction))

    def _messages(self, selector: Selector, session: Session, state: State, room_tokens: int) -> Recalled:
        from ctxsteward.schemas.publish import validate_quickly  # with all models; not for who only imports us

        try:
            cap = self.budgets.cap_tokens
            picked = select(selector, session, state, room_tokens, self.counter, self.histories, cap)
            if picked is not None and picked.event.log:
                validate_quickly("selection_log", picked.event.log)
        except Exception as error:  # a selector is the caller's code: whatever it raises, the call goes on without
            text = f"nothing was recalled: the selector failed: {type(error).__name__}: {error}"
            failed = Finding(kind="selection_failed", field="dynamic", text=text)
            return Recalled(Selected(turn=state.last_user, refs=(), log={}), (failed,))
        return Recalled(None, ()) if picked is None else Recalled(picked.event, picked.findings)


def _still_paired(recalled: Selected, state: State) -> Selected:
    """What was recalled, without messages whose later ones a compaction has taken out of the window."""
    here = verbatim(state).union(recalled.refs)
    alone = {old for old, newer in recalled.superseded.items() if not here.issuperset(newer)}
    if not alone:
        return recalled
    refs = tuple(ordinal for ordinal in recalled.refs if ordinal not in alone)
    superseded = {old: newer for old, newer in recalled.superseded.items() if old not in alone}
    return _still_paired(replace(recalled, refs=refs, superseded=superseded), state)
