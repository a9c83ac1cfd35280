"""When a compaction is due and what leaves the window: the plug points `due` and `choose`, and what they look at.

A `Window` is the dynamic section measured for a decision. Which groups may leave, and in which order, is decided here;
`compactor` decides what they are shortened into, and `losses` what that lost. `phase_log` says afterwards what a call
was shown of its history. Tokens are the builder's counter's.
Source: the layered-envelope design; thresholds in `budgets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ctxsteward.schemas.documents import SelectionCandidate, SelectionLog

from ..history.session import Session
from ..history.state import State
from ..history.tool_groups import ToolGroup as ToolGroup
from ..layout.composition import DynamicLayout
from ..layout.fragments import Fragment, RenderOptions, group_fragment
from ..tokens.budgets import MIN_PROGRESS_FRACTION, Budgets
from ..tokens.models import Prices
from ..tokens.tokenizer import MESSAGE_TOKENS, Counter
from .regret import affordable

POLICY = "deep-oldest-first/1"
TURNS = 3
"""User turns that a compaction makes room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCandidate:
    """A group as `choose` sees it."""

    group: ToolGroup
    tokens: int
    masked_tokens: int
    """What it would take with its tool results shown as one line; equal to `tokens` where that saves nothing."""
    least_tokens: int
    """What it would take with its text shown as beginning and end, where it may be; else `tokens`."""
    text_tokens: int = 0
    """What that text may take then; 0: it stays as it is."""
    must: bool
    """Last raw turn, newest message, pending group, pinned: never leaves."""
    live: bool
    """Belongs to the live turn: loses its tool results before its text."""
    task: bool = False
    pinned: bool = False
    soft: bool = False
    """Pinned softly: goes last."""


@dataclass(slots=True, eq=False)
class Window:
    """Dynamic without its observation log, measured for a decision. Totals are at hand; candidates are worked out when
    asked for."""

    state: State
    layout: DynamicLayout
    budgets: Budgets
    head_tokens: int = 0
    """Of what stands before the section in every prompt: head sections and tool schemas."""
    recallable_tokens: int | None = None
    """The most that a user turn recalls now; None: all of recall's share."""
    prices: Prices = field(default_factory=Prices)
    _candidates: tuple[CompactionCandidate, ...] | None = field(default=None, init=False, repr=False)
    _cut: tuple[Budgets | None] | None = field(default=None, init=False, repr=False)

    @property
    def candidates(self) -> tuple[CompactionCandidate, ...]:
        """The groups, oldest first."""
        if self._candidates is None:
            self._candidates = tuple(_candidates(self.state, self.layout, self.budgets))
        return self._candidates

    @property
    def cut(self) -> Budgets | None:
        """The budgets of the default policy's cut, if it may be made now; `due` and `within` ask for them."""
        if self._cut is None:
            self._cut = (affordable(self, paced(self)),)
        return self._cut[0]

    def price_masks(self, *, closed: bool = False) -> None:
        """Work out what tool groups of the live turn, or of closed ones too, would take with their results masked."""
        state, strip = self.state, self.layout.strip
        shape = RenderOptions(cap_tokens=self.budgets.cap_tokens, masked=True)
        rows = []
        for row in self.candidates:
            can = (row.live or closed) and not row.must and len(row.group.entries) > 1
            if can and row.group.first not in state.masked:
                masked = group_fragment(row.group, shape, state.nonce, strip.counter).tokens
                row = replace(row, masked_tokens=min(row.tokens, masked))
            rows.append(row)
        self.replace_candidates(tuple(rows))

    def replace_candidates(self, candidates: tuple[CompactionCandidate, ...]) -> None:
        """The same groups, priced more finely."""
        self._candidates = candidates

    @property
    def bullets_tokens(self) -> int:
        return self.layout.bullets_tokens

    @property
    def notes_tokens(self) -> int:
        return self.layout.notes_tokens

    @property
    def context_tokens(self) -> int:
        return self.layout.context_tokens

    @property
    def groups_tokens(self) -> int:
        return self.layout.groups_tokens

    @property
    def history_tokens(self) -> int:
        """Dynamic without turn context."""
        return self.section_tokens - self.layout.context_tokens

    @property
    def calls_tokens(self) -> int:
        """Tool calls that stand here, with their results: what a further turn of this session is likely to add.

        What is recalled at a turn's first call and pushed out at its third costs the prefix twice.
        """
        fragments = self.layout.strip.fragments
        return sum(
            fragment.tokens
            for group, fragment in zip(self.state.groups, fragments, strict=True)
            if len(group.entries) > 1
        )

    @property
    def share_tokens(self) -> int:
        """What the history may take now: its share, and recall's where that would lie idle.

        In a short session a user turn recalls less than recall's share, and in a turn's tool loop nothing more. Before
        the first compaction there is nothing to recall.
        """
        budgets, state = self.budgets, self.state
        if state.compactions and state.recalled is None and not state.in_loop:
            idle = 0 if self.recallable_tokens is None else budgets.dynamic_tokens - self.recallable_tokens
            return max(self._own_tokens, idle)
        return max(budgets.history_tokens, budgets.dynamic_tokens - self.context_tokens)

    @property
    def next_share_tokens(self) -> int:
        """The least that the history may take at the next call, which may begin a turn with nothing recalled yet."""
        return min(self.share_tokens, self._own_tokens) if self.state.compactions else self.share_tokens

    @property
    def _own_tokens(self) -> int:
        budgets = self.budgets
        return min(budgets.dynamic_tokens, budgets.history_tokens + budgets.lent_tokens(self.bullets_tokens))

    @property
    def section_tokens(self) -> int:
        return self.layout.tokens - self.layout.observations_tokens

    @property
    def refused_at(self) -> int:
        """Section tokens at which the last due compaction was not made; 0: none."""
        return self.state.refused.section_tokens if self.state.refused else 0

    @property
    def pinned_tokens(self) -> int:
        return sum(candidate.tokens for candidate in self.candidates if candidate.pinned) if self.state.pins else 0

    @property
    def must_tokens(self) -> int:
        return sum(candidate.least_tokens for candidate in self.candidates if candidate.must)

    @property
    def movable_tokens(self) -> int:
        """Groups that may leave, and what long texts that stay may be shortened by."""
        return self.groups_tokens - self.must_tokens

    @property
    def over(self) -> bool:
        """Whether the history exceeds what it may take: the budget, or what never leaves and a tenth of the budget.

        Recalled messages do not count: they go before anything is compacted for them.
        """
        budget = self.budgets.limit_of(self.section_tokens)
        if self.history_tokens <= budget:
            return False
        must = self.must_tokens + self.notes_tokens
        return must <= budget or self.history_tokens > must + int(budget * MIN_PROGRESS_FRACTION)

    @property
    def excess_tokens(self) -> int:
        """What must go for the history to reach its target where nothing becomes bullets."""
        return self.history_tokens - self.budgets.target_tokens - self.budgets.lent_tokens(self.bullets_tokens)

    @property
    def forced(self) -> bool:
        """Whether the history is over its budget though what never leaves is not: any cut is better than none."""
        return self.over and self.must_tokens + self.notes_tokens <= self.budgets.dynamic_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionChoice:
    """What a compaction will do to the groups."""

    drop: tuple[ToolGroup, ...] = ()
    mask: tuple[ToolGroup, ...] = ()
    shorten: tuple[tuple[ToolGroup, int], ...] = ()
    """Groups whose text is shown as beginning and end from now on, with the tokens it may take."""
    is_summarized: bool = True
    """Whether what leaves becomes bullets; not where masked results alone leave, whose references stay in place."""
    detail: str = ""
    """What the report adds to the policy's name."""
    fell_back: str = ""
    """Why more was taken than the policy's own settings allow; empty where they were kept."""


Due = Callable[[Window], bool]
"""Whether to compact now."""
Choose = Callable[[Window, int], CompactionChoice]
"""Which groups leave so that at least so many tokens are freed."""


# -- measuring ----------------------------------------------------------------------------------------------------


def _candidates(state: State, layout: DynamicLayout, budgets: Budgets) -> Iterator[CompactionCandidate]:
    """Every group with what it costs and whether it may leave.

    Never leave: the newest user text, the newest assistant text, the newest message, tool results that the model has
    not seen, pins; the user text that the newest assistant text replied to, and the task, each within a task's share.
    Of these, what the assistant said and a task longer than its share may be shown as beginning and end.
    """
    must = {state.last_user, state.last_text, state.ordinal}
    pins = state.pins
    for group, fragment in zip(state.groups, layout.strip.fragments, strict=True):
        ordinals = group.ordinals
        task = state.task in ordinals
        short = fragment.tokens <= budgets.task_tokens and state.answered in ordinals
        pinned = bool(pins) and any(n in pins and pins[n].strength == "keep" for n in ordinals)
        unseen = (len(ordinals) > 1 and state.last_reply in ordinals) or (
            ordinals[0] > state.last_reply and bool(group.entries[0].message.tool_results)
        )  # results of the newest calls; late ones of older calls
        held = pinned or unseen or short or not must.isdisjoint(ordinals)
        text_tokens, least = 0, fragment.tokens
        if (held or task) and not pinned and group.first not in state.shortened:
            text_tokens, least = _shortened(state, layout, budgets, group, fragment)
        held = held or (task and (bool(text_tokens) or fragment.tokens <= budgets.task_tokens + MESSAGE_TOKENS))
        yield CompactionCandidate(
            group=group,
            tokens=fragment.tokens,
            masked_tokens=fragment.tokens,
            least_tokens=least,
            text_tokens=text_tokens,
            must=held,
            pinned=pinned,
            live=ordinals[-1] > state.last_user,
            task=task,
            soft=bool(pins) and any(n in pins for n in ordinals),
        )


def _shortened(
    state: State, layout: DynamicLayout, budgets: Budgets, group: ToolGroup, fragment: Fragment
) -> tuple[int, int]:
    """What the text of a group that stays may take, and the group with it; (0, its tokens) where it stays as it is."""
    first = group.entries[0]
    text_tokens = 0
    if first.message.role == "assistant":
        text_tokens = budgets.reply_tokens
    elif state.task in group.ordinals and state.task != state.last_user:
        text_tokens = budgets.task_tokens
    if not text_tokens or fragment.tokens <= text_tokens:
        return 0, fragment.tokens
    strip = layout.strip
    shape = RenderOptions(cap_tokens=budgets.cap_tokens, masked=group.first in state.masked, text_tokens=text_tokens)
    least = group_fragment(group, shape, strip.nonce, strip.counter).tokens
    return (text_tokens, least) if least < fragment.tokens else (0, fragment.tokens)


# -- when ---------------------------------------------------------------------------------------------------------


def due(window: Window) -> bool:
    """Compact where the share is full, if what may leave reaches the target; at once if the section is over.

    A fraction of the share that the caller set is the trigger instead. Where messages that never leave fill the share,
    every call would compact: so the groups that may leave must come to the distance between trigger and target first.
    After a refusal the section must have grown by a tenth, or, where it is over, be a tenth smaller: what stood in the
    way then has left.
    """
    budgets = window.budgets
    history = window.history_tokens - window.pinned_tokens
    if not window.over:
        trigger = budgets.trigger_at(window.share_tokens)
        if "compact_at_fraction" not in budgets.model_fields_set:
            trigger = window.share_tokens  # the later a cut comes, the more calls read what is cached
        if history < trigger or window.movable_tokens < trigger - paced(window).target_tokens:
            return False
    if window.refused_at:
        least = 1 - MIN_PROGRESS_FRACTION if window.forced else 0.0
        if window.refused_at * least < window.section_tokens < window.refused_at * (1 + MIN_PROGRESS_FRACTION):
            return False
    makes_progress = window.movable_tokens + window.bullets_tokens >= window.section_tokens * MIN_PROGRESS_FRACTION
    if not (makes_progress or (window.over and (window.movable_tokens > 0 or window.forced))):
        return False
    return window.cut is not None


# -- what ---------------------------------------------------------------------------------------------------------


def choose(window: Window, need_tokens: int) -> CompactionChoice:
    """Long texts of what stays are shortened; closed turns go, oldest first; then tool results of the live turn; then
    its oldest steps; last a task that is long and cannot be shortened.
    """
    drop: list[ToolGroup] = []
    mask: list[ToolGroup] = []
    short = [row for row in window.candidates if row.must and row.text_tokens]
    freed = sum(row.tokens - row.least_tokens for row in short)
    rows = [row for row in window.candidates if not row.must]
    closed = [row for row in rows if not row.live and not row.task]
    for row in [*(r for r in closed if not r.soft), *(r for r in closed if r.soft)]:
        if freed >= need_tokens:
            break
        drop.append(row.group)
        freed += row.tokens
    live = [row for row in rows if row.live and not row.task]
    for row in live:
        if freed >= need_tokens:
            break
        if row.masked_tokens < row.tokens:
            mask.append(row.group)
            freed += row.tokens - row.masked_tokens
    for row in live:
        if freed >= need_tokens:
            break
        held = row.masked_tokens if row.group in mask else row.tokens
        if row.group in mask:
            mask.remove(row.group)
        drop.append(row.group)
        freed += held
    for row in rows:
        if freed < need_tokens and row.task:
            drop.append(row.group)
            freed += row.tokens
    shorten = tuple((row.group, row.text_tokens) for row in short)
    return CompactionChoice(drop=tuple(drop), mask=tuple(mask), shorten=shorten)


def paced(window: Window) -> Budgets:
    """Return the budgets with a target that leaves room for `TURNS` turns, one of them as long as any in the window.

    A reply counts as what it takes once it is not the newest. The task and the turn that has no reply yet do not count.
    A prompt that is too short for the provider's cache is billed whole at each call, so cutting it more often costs
    nothing: there is room for one turn, and the rest keeps what was said.
    """
    state, reply_tokens = window.state, window.budgets.old_reply_tokens
    turns: list[int] = []
    for group, fragment in zip(state.groups, window.layout.strip.fragments, strict=True):
        role = group.entries[0].message.role
        if role == "user" and state.task not in group.ordinals:
            turns.append(0)
        if turns:
            is_reply = role == "assistant" and len(group.entries) == 1
            turns[-1] += min(fragment.tokens, reply_tokens) if is_reply else fragment.tokens
    answered = turns[:-1] if state.last_user > state.last_reply else turns
    if not answered:
        return window.budgets
    is_cached = window.prices.served(window.head_tokens + window.budgets.dynamic_tokens)
    further = TURNS - 1 if is_cached else 0
    return window.budgets.leaving(further * sum(answered) // len(answered) + max(turns))


def within(window: Window) -> Budgets:
    """Return the budgets that the default policy compacts by: paced, and as deep as the session can afford."""
    return window.cut or paced(window)


Within = Callable[[Window], Budgets]
"""The budgets that a compaction is made by, in place of the builder's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """When a compaction is due and what it takes: two of its three plug points. The third is the summarizer."""

    name: str = POLICY
    due: Due = due
    choose: Choose = choose
    within: Within = within
    shortens_old_replies: bool = True
    """Whether replies before the newest are shown as beginning and end from now on."""


def asked_policy(keep_tokens: int | None = None) -> Policy:
    """Compact now, whatever the thresholds say, for one call of `build` or `preview`.

    It is made as if what stands there now filled its budget: as deep as one that is due, with bullets in proportion.
    With `keep_tokens` it goes until what may leave takes no more than so many.
    """

    def chosen(window: Window, need_tokens: int) -> CompactionChoice:
        return choose(window, need_tokens if keep_tokens is None else window.movable_tokens - keep_tokens)

    def full(window: Window) -> Budgets:
        budgets = window.budgets
        tight = budgets.limited(max(1, min(budgets.dynamic_tokens, window.section_tokens)))
        return tight.model_copy(update={"arrival_cap_tokens": budgets.cap_tokens})

    return Policy(name="asked/1", due=lambda window: True, choose=chosen, within=full)


# -- what a call was shown -------------------------------------------------------------------------------------------


def with_default(
    window: Window, chosen: CompactionChoice, need_tokens: int, kept: Callable[[int], bool]
) -> CompactionChoice:
    """Return a choice, extended by the default policy if it frees too few tokens.

    `kept` says of a group, by its first ordinal, that it was to stay; taking one of those is falling back.
    """
    rows = {row.group.first: row for row in window.candidates}
    drop = {group.first for group in chosen.drop}
    masked = {group.first for group in chosen.mask}
    freed = sum(rows[first].tokens for first in drop)
    freed += sum(rows[first].tokens - rows[first].masked_tokens for first in masked)
    freed += sum(rows[group.first].tokens - rows[group.first].least_tokens for group, _ in chosen.shorten)
    if freed >= need_tokens:
        return chosen
    short = {group.first for group, _ in chosen.shorten}
    window.replace_candidates(
        tuple(
            replace(row, tokens=row.masked_tokens)
            if first in masked
            else replace(row, text_tokens=0, tokens=row.least_tokens)
            if first in short
            else row
            for first, row in rows.items()
            if first not in drop
        )
    )
    rest = choose(window, need_tokens - freed)
    dropped = drop | {group.first for group in rest.drop}
    hidden = (masked | {group.first for group in rest.mask}) - dropped
    gave = [first for first in rows if first in dropped | hidden and kept(first)]
    state_groups = window.state.groups
    taken = [rows[first].group.ordinals for first in gave]
    return replace(
        chosen,
        drop=tuple(group for group in state_groups if group.first in dropped),
        mask=tuple(group for group in state_groups if group.first in hidden),
        shorten=(*(one for one in chosen.shorten if one[0].first not in dropped), *rest.shorten),
        is_summarized=chosen.is_summarized or bool(dropped),
        fell_back=_told(window, need_tokens - freed, taken),
    )


def _told(window: Window, missing_tokens: int, taken: Sequence[tuple[int, ...]]) -> str:
    if not taken:
        return ""
    refs = [f"§{ordinals[0]}" for ordinals in sorted(taken)]
    named = ", ".join(refs[:8]) + (" …" if len(refs) > 8 else "")
    return (
        f"its own rules leave {missing_tokens} tokens too many for a budget of {window.budgets.dynamic_tokens}; "
        f"{len(refs)} groups that were to stay were taken as well: {named}"
    )


def phase_log(session: Session, layout: DynamicLayout, strategy: str) -> SelectionLog:
    """What one call is shown of its session's history, as a selection log; `layout` is the newest envelope's dynamic.

    `strategy` is the policy's name. Masked and shortened messages are candidates that are not in; what left the window
    before is in the sizes alone. It costs the window, and the messages since the last log.
    """
    state, counter = session.state, layout.strip.counter
    fragments, hidden, short = layout.strip.fragments[: layout.stop], layout.strip.hidden, layout.strip.shortened
    anchors = {state.task, state.last_user, state.last_reply, state.ordinal, *state.pins}
    kept: list[str] = []
    candidates: list[SelectionCandidate] = []
    newest = len(fragments) - 1
    for at, (group, fragment) in enumerate(zip(state.groups, fragments, strict=False)):
        is_anchor = not anchors.isdisjoint(group.ordinals)
        why = "masked" if group.first in hidden else "shortened" if group.first in short else "whole"
        kept += [entry.ref for entry in group.entries if why == "whole" and not is_anchor]
        candidate = SelectionCandidate(
            ref=f"§{group.first}",
            score=round(1 / (1 + newest - at), 4),
            in_=why == "whole",
            signals={"groups_after": newest - at, "tokens": fragment.tokens},
            why="anchor" if is_anchor else why,
        )
        candidates.append(candidate)
    shown = {ordinal for fragment in fragments for ordinal in fragment.refs}
    masked = [group for group in state.groups if group.first in hidden]
    return SelectionLog(
        selection_type="intra_phase",
        strategy=strategy,
        full_history_size=state.ordinal,
        context_size=len(shown),
        masked_count=sum(bool(entry.message.tool_results) for group in masked for entry in group.entries),
        anchor_refs=tuple(f"§{ordinal}" for ordinal in sorted(anchors & shown)),
        selected_refs=tuple(kept),
        tokens_saved=_said_tokens(session, counter) - layout.tokens,
        candidates=tuple(candidates[::-1]),
    )


def _said_tokens(session: Session, counter: Counter) -> int:
    """Tokens of all messages of a session; each is counted once."""
    key = ("said tokens", counter.name)
    known = session.cache.get(key)
    upto, tokens = known if isinstance(known, tuple) else (0, 0)
    for ordinal in range(upto + 1, session.state.ordinal + 1):
        tokens += session.entry(ordinal).tokens(counter)
    session.cache[key] = (session.state.ordinal, tokens)
    return int(tokens)
