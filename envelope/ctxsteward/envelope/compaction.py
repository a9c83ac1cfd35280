"""Compaction: when the history is shortened, which part of it, into what, and what that lost.

Three plug points, in this order: `due` (is it time), `choose` (which groups leave, which lose their tool results),
`shrink` (a summarizer: originals into cited bullets). Then the account is drawn up by code that is not the summarizer.
A compaction is made whole or not at all; one that saves less than a tenth of the section is not made.

Tokens are tokens of the builder's counter. Source: the layered-envelope design; thresholds in `budgets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ctxsteward.schemas import (
    Bullet,
    CompressionReport,
    Finding,
    Loss,
    LossKind,
    Message,
    Ref,
    Source,
    SourceMessage,
    Summarizer,
    Summary,
    ToolCallPart,
)

from .budgets import BULLETS_FLOOR_FRACTION, BULLETS_FRACTION, MIN_PROGRESS_FRACTION, Budgets
from .counting import Counter
from .events import Compacted, Refused
from .groups import Entry, Group
from .layout import DynamicLayout, bullet_line, bullets_text
from .probes import normalize, probes
from .state import State
from .steps import Shape
from .strip import group_fragment

POLICY = "deep-oldest-first/1"

PROBED_CHARS = 120_000
"""Of a compaction's originals, newest first; what is older in so large a backlog is accounted for by message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A group as `choose` sees it."""

    group: Group
    tokens: int
    masked_tokens: int
    """What it would take with its tool results shown as one line; equal to `tokens` where that saves nothing."""
    must: bool
    """Last raw turn, newest message, pending group, pinned: never leaves."""
    live: bool
    """Belongs to the live turn: loses its tool results before its text."""
    task: bool = False
    pinned: bool = False
    soft: bool = False
    """Pinned softly: goes last."""


class Window:
    """The dynamic section measured for a decision. Totals are at hand; candidates are worked out when asked for."""

    __slots__ = ("_candidates", "budgets", "layout", "state")

    def __init__(self, state: State, layout: DynamicLayout, budgets: Budgets) -> None:
        self.state = state
        self.layout = layout
        self.budgets = budgets
        self._candidates: tuple[Candidate, ...] | None = None

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The groups, oldest first."""
        if self._candidates is None:
            self._candidates = tuple(_candidates(self.state, self.layout, self.budgets))
        return self._candidates

    def replace_candidates(self, candidates: tuple[Candidate, ...]) -> None:
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
        return self.layout.tokens - self.layout.context_tokens

    @property
    def section_tokens(self) -> int:
        return self.layout.tokens

    @property
    def refused_at(self) -> int:
        """Section tokens at which the last due compaction was not made; 0: none."""
        return self.state.refused.section_tokens if self.state.refused else 0

    @property
    def pinned_tokens(self) -> int:
        return sum(candidate.tokens for candidate in self.candidates if candidate.pinned) if self.state.pins else 0

    @property
    def must_tokens(self) -> int:
        return sum(candidate.tokens for candidate in self.candidates if candidate.must)

    @property
    def movable_tokens(self) -> int:
        """Groups that may leave."""
        return self.groups_tokens - self.must_tokens

    @property
    def over(self) -> bool:
        """Whether the section exceeds what it may take: its budget, or what never leaves and a tenth of the budget."""
        budget = self.budgets.dynamic_tokens
        if self.section_tokens <= budget:
            return False
        must = self.must_tokens + self.notes_tokens
        return must <= budget or self.section_tokens > must + int(budget * MIN_PROGRESS_FRACTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a compaction will do to the groups."""

    drop: tuple[Group, ...] = ()
    mask: tuple[Group, ...] = ()
    freed_tokens: int = 0


Due = Callable[[Window], bool]
"""Whether to compact now."""
Choose = Callable[[Window, int], Choice]
"""Which groups leave so that at least so many tokens are freed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A compaction, or the reason why it was not made."""

    event: Compacted | Refused | None = None
    findings: tuple[Finding, ...] = ()


# -- measuring ----------------------------------------------------------------------------------------------------


def _candidates(state: State, layout: DynamicLayout, budgets: Budgets) -> Iterator[Candidate]:
    """Every group with what it costs and whether it may leave.

    Never leave: the newest user text, the newest assistant text, the newest message, tool results that the model has
    not seen, a task within its share, pins.
    """
    must = {state.last_user, state.last_text, state.ordinal}
    pins = state.pins
    for group, fragment in zip(state.groups, layout.strip.fragments, strict=True):
        ordinals = group.ordinals
        task = state.task in ordinals
        pinned = bool(pins) and any(n in pins and pins[n].strength == "keep" for n in ordinals)
        unseen = len(ordinals) > 1 and ordinals[0] == state.last_reply
        held = pinned or unseen or (task and fragment.tokens <= budgets.task_tokens) or not must.isdisjoint(ordinals)
        yield Candidate(
            group=group, tokens=fragment.tokens, masked_tokens=fragment.tokens, must=held, pinned=pinned,
            live=ordinals[-1] > state.last_user, task=task, soft=bool(pins) and any(n in pins for n in ordinals),
        )  # fmt: skip


# -- when ---------------------------------------------------------------------------------------------------------


def due(window: Window) -> bool:
    """At 0.8 of the history's share, once what may leave pays for a deep cut; at once where the section is over.

    Where messages that never leave fill the share, history would stand above 0.8 for ever and every call would compact:
    so the groups that may leave must come to the distance between trigger and target first. After a refusal the
    section must have grown by a tenth.
    """
    budgets = window.budgets
    history = window.history_tokens - window.pinned_tokens
    if not window.over:
        if history < budgets.trigger_tokens:
            return False
        if window.movable_tokens < (budgets.trigger_tokens - budgets.target_tokens):
            return False
    if window.refused_at and window.section_tokens < window.refused_at * (1 + MIN_PROGRESS_FRACTION):
        return False
    return window.movable_tokens + window.bullets_tokens >= window.section_tokens * MIN_PROGRESS_FRACTION or (
        window.over and window.movable_tokens > 0
    )


# -- what ---------------------------------------------------------------------------------------------------------


def choose(window: Window, need_tokens: int) -> Choice:
    """Closed turns, oldest first; then tool results of the live turn; then its oldest steps; a long task last."""
    drop: list[Group] = []
    mask: list[Group] = []
    freed = 0
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
    return Choice(drop=tuple(drop), mask=tuple(mask), freed_tokens=freed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The three plug points of a compaction; `shrink` is the builder's summarizer."""

    name: str = POLICY
    due: Due = due
    choose: Choose = choose


# -- into what ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Makes compactions of one builder: policy, summarizer, counter, budgets, clock."""

    policy: Policy
    summarizer: Summarizer
    counter: Counter
    budgets: Budgets
    now: Callable[[], str] | None = None

    def run(self, state: State, window: Window, address: Callable[[str, bytes], str]) -> Outcome:
        """Try one compaction of this state; `address` names a stored artifact."""
        self._price_masks(state, window)
        frame = self.counter.framed(bullets_text(state, (), state.ordinal))
        share = self._bullets_share(window)
        wanted = max(window.must_tokens, self._verbatim_target(window, share))
        choice = self.policy.choose(window, window.groups_tokens - wanted)
        if not choice.drop and not choice.mask and not window.over:
            return self._refuse(window, "nothing may leave the window")
        source = self._source(state, choice)
        try:
            summary = self.summarizer(source, budget_tokens=max(0, share - frame))
        except Exception as error:  # a summarizer is the caller's code: whatever it raises, the history stays
            return self._refuse(window, f"the summarizer failed: {type(error).__name__}: {error}")
        return self._assemble(state, window, choice, source, summary, share, frame, address)

    def with_budgets(self, budgets: Budgets) -> Compactor:
        """The same compactor under other budgets."""
        return replace(self, budgets=budgets)

    def _price_masks(self, state: State, window: Window) -> None:
        """Work out what tool groups of the live turn would take with their results masked."""
        shape = Shape(cap_tokens=self.budgets.cap_tokens, masked=True)
        rows = []
        for row in window.candidates:
            if row.live and not row.must and len(row.group.entries) > 1 and row.group.first not in state.masked:
                masked = group_fragment(row.group, shape, state.nonce, self.counter).tokens
                row = replace(row, masked_tokens=min(row.tokens, masked))
            rows.append(row)
        window.replace_candidates(tuple(rows))

    def _bullets_share(self, window: Window) -> int:
        """Tokens bullets may take after this compaction, their fence included."""
        budgets = self.budgets
        room = budgets.target_tokens - window.must_tokens - window.notes_tokens
        low = int(budgets.history_tokens * BULLETS_FLOOR_FRACTION)
        high = int(budgets.target_tokens * BULLETS_FRACTION)
        hard = budgets.dynamic_tokens - window.must_tokens - window.notes_tokens - window.context_tokens
        if hard <= 0:
            hard = int(budgets.dynamic_tokens * MIN_PROGRESS_FRACTION)
        return max(0, min(hard, max(low, min(high, room))))

    def _verbatim_target(self, window: Window, share: int) -> int:
        """Tokens of groups that may stay so that bullets and groups meet the target."""
        return self.budgets.target_tokens - window.notes_tokens - share

    def _source(self, state: State, choice: Choice) -> Source:
        dropped = {group.first for group in choice.drop}
        masked = {group.first for group in choice.mask}
        leaving: list[SourceMessage] = []
        visible: list[SourceMessage] = []
        for group in state.groups:
            for entry in group.entries:
                item = SourceMessage(ref=entry.ref, message=entry.message)
                gone = group.first in dropped or (group.first in masked and bool(entry.message.tool_results))
                (leaving if gone else visible).append(item)
        return Source(
            messages=tuple(leaving),
            standing=state.bullets,
            visible=tuple(visible),
            count_tokens=self.counter.text,
        )

    def _assemble(
        self,
        state: State,
        window: Window,
        choice: Choice,
        source: Source,
        summary: Summary,
        share: int,
        frame: int,
        address: Callable[[str, bytes], str],
    ) -> Outcome:
        dropped = {group.first for group in choice.drop}
        kept = [group for group in state.groups if group.first not in dropped]
        masked = (state.masked | {group.first for group in choice.mask}) & {group.first for group in kept}
        gone = [entry for group in choice.drop for entry in group.entries]
        compacted_to = max([state.compacted_to, *(entry.ordinal for entry in gone)])
        kept_tokens = sum(
            group_fragment(
                group,
                Shape(cap_tokens=self.budgets.cap_tokens, masked=group.first in masked),
                state.nonce,
                self.counter,
            ).tokens
            for group in kept
        )
        fixed_tokens = kept_tokens + window.notes_tokens + window.context_tokens
        progress = int(window.section_tokens * (1 - MIN_PROGRESS_FRACTION)) - fixed_tokens
        share = min(share, progress) if window.over else share
        bullets, lost_bullets = self._fit_bullets(state, summary, share - frame, gone)
        text = bullets_text(state, bullets, compacted_to) if bullets else ""
        post = fixed_tokens + (self.counter.framed(text) if text else 0)
        pre = window.section_tokens
        forced = window.over and window.must_tokens + window.notes_tokens <= self.budgets.dynamic_tokens
        if pre - post < pre * MIN_PROGRESS_FRACTION and not (forced and post < pre):
            return self._refuse(window, f"it would save {pre - post} of {pre} tokens")
        masked_results = [e for group in choice.mask for e in group.entries if e.message.tool_results]
        losses = account(gone, masked_results, bullets, kept, masked, lost_bullets)
        checkpoint = {**state.checkpoint(), "compacted_to": compacted_to}
        report = CompressionReport(
            id="",
            section="dynamic",
            pre_tokens=pre,
            post_tokens=post,
            losses=tuple(losses),
            kept_refs=_kept_refs(bullets, kept),
            policy=self.policy.name,
            source_addresses=tuple(entry.event.address for entry in gone),
            artifact="",
            created_at=self.now() if self.now else None,
        )
        event = Compacted(
            bullets=bullets,
            kept=tuple(group.ordinals for group in kept),
            masked=tuple(sorted(masked)),
            report=report,
            checkpoint=checkpoint,
        )
        name = address("compaction", _canonical(event))
        return Outcome(event=replace(event, report=report.model_copy(update={"id": name, "artifact": name})))

    def _fit_bullets(
        self, state: State, summary: Summary, room: int, gone: Sequence[Entry]
    ) -> tuple[tuple[Bullet, ...], list[Bullet]]:
        """Standing bullets not superseded, then the new ones; the least valuable go until all fit `room` tokens."""
        superseded = set(summary.superseded)
        lost = [bullet for index, bullet in enumerate(state.bullets) if index in superseded]
        rows = [bullet for index, bullet in enumerate(state.bullets) if index not in superseded]
        rows += [_one_line(bullet) for bullet in summary.bullets]
        task = next((entry for entry in gone if entry.ordinal == state.task), None)
        task_ref = f"§{state.task}"
        if task is not None and not any(task_ref in bullet.citations for bullet in rows):
            rows.append(task_bullet(task, self.counter, max(16, min(self.budgets.task_tokens, room // 2))))
        costs = [self.counter.text(bullet_line(bullet)) for bullet in rows]
        used = sum(costs)
        task_gone = task is not None or not _in_window(state, state.task)
        order = sorted(range(len(rows)), key=lambda index: (rows[index].value, index))
        holders = [index for index in range(len(rows)) if task_ref in rows[index].citations] if task_gone else []
        protected = max(holders, key=lambda index: rows[index].value, default=-1)
        out: set[int] = set()
        for index in order:
            if used <= room:
                break
            if index == protected:
                continue
            out.add(index)
            used -= costs[index]
        lost += [rows[index] for index in sorted(out)]
        return tuple(bullet for index, bullet in enumerate(rows) if index not in out), lost

    def _refuse(self, window: Window, reason: str) -> Outcome:
        text = f"a compaction was due at {window.section_tokens} tokens and not made: {reason}; the history stays"
        finding = Finding(kind="compaction_refused", field="dynamic", text=text)
        return Outcome(event=Refused(reason=reason, section_tokens=window.section_tokens), findings=(finding,))


def task_bullet(task: Entry, counter: Counter, room_tokens: int) -> Bullet:
    """The beginning of the task, for a task too long to stay verbatim that no bullet cites."""
    text = " ".join(task.message.text.split())
    tokens = counter.text(text)
    if tokens > room_tokens:
        text = text[: max(8, int(len(text) * room_tokens / tokens * 0.95))].rstrip()
    return Bullet(text=text or "(no text)", citations=(task.ref,), kind="open_item", value=100.0)


# -- what was lost ------------------------------------------------------------------------------------------------


def account(
    gone: Sequence[Entry],
    masked_results: Sequence[Entry],
    bullets: Sequence[Bullet],
    kept: Sequence[Group],
    masked: set[int] | frozenset[int],
    lost_bullets: Sequence[Bullet],
) -> list[Loss]:
    """Every probe of what left that the window no longer shows, every message no bullet cites, every bullet dropped."""
    shown = [bullet.text for bullet in bullets]
    shown += [
        text_of(entry.message)
        for group in kept
        for entry in group.entries
        if not (group.first in masked and entry.message.tool_results)
    ]
    haystack = normalize("\n".join(shown))
    cited = {ref for bullet in bullets for ref in bullet.citations}
    losses: list[Loss] = []
    seen: set[str] = set()
    left = PROBED_CHARS
    for entry in reversed((*gone, *masked_results)):
        found = False
        text = text_of(entry.message)
        left -= len(text)
        for probe in probes(text) if left > 0 else ():
            if probe.value in seen or probe.value in haystack:
                continue
            seen.add(probe.value)
            found = True
            losses.append(_loss(probe.kind, probe.text, entry.ref, (probe.start, probe.stop)))
        if not found and entry.ref not in cited:
            losses.append(_loss("fact", text[:80], entry.ref))
    losses.reverse()
    for bullet in lost_bullets:
        losses += [_loss(bullet.kind, bullet.text, ref) for ref in bullet.citations]
    return losses


def _loss(kind: LossKind, text: str, ref: str, span: tuple[int, int] | None = None) -> Loss:
    return Loss(kind=kind, text=text, ref=ref, span=span)


def text_of(message: Message) -> str:
    """All text of a message as probes and spans see it: its text, call arguments, tool results, joined by newlines."""
    parts = [message.text]
    parts += [f"{call.name} {call.arguments}" for call in message.parts if isinstance(call, ToolCallPart)]
    parts += [result.text for result in message.tool_results]
    return "\n".join(part for part in parts if part)


def _kept_refs(bullets: Sequence[Bullet], kept: Sequence[Group]) -> tuple[str, ...]:
    refs = {Ref.parse(ref).ordinal for bullet in bullets for ref in bullet.citations}
    refs.update(ordinal for group in kept for ordinal in group.ordinals)
    return tuple(f"§{ordinal}" for ordinal in sorted(refs))


def _in_window(state: State, ordinal: int) -> bool:
    return any(ordinal in group.ordinals for group in state.groups)


def _one_line(bullet: Bullet) -> Bullet:
    if "\n" in bullet.text or "\r" in bullet.text:
        return bullet.model_copy(update={"text": " ".join(bullet.text.split())})
    return bullet


def _canonical(event: Compacted) -> bytes:
    bullets = "".join(bullet.model_dump_json() for bullet in event.bullets)
    return f"{event.report.model_dump_json()}{bullets}{event.kept}{event.masked}".encode()
