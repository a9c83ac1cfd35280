"""Compaction: what leaves the window becomes cited bullets, and a report says what that lost.

`policy` says when and which groups; a summarizer (the third plug point) turns their originals into bullets;
`losses` says what is gone. A compaction is made whole or not at all. One that saves less than a tenth of the section is
not made, nor one whose summary is unsound: the history stays, with a finding, and the next try waits until the section
has grown by a tenth. Tokens are tokens of the builder's counter.

Summarizers and the reader of replacements are found by name under an entry-point group, which this distribution or
another package fills: this room imports neither. Raises `InputError` for a name that is not installed.

Source: the layered-envelope design.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, get_args

from ctxsteward.schemas import Bullet, CompressionReport, Finding, InputError, Ref, Summarizer, SummarizerInput, Summary
from ctxsteward.schemas.summary import ReplacementReader, RuleReader, SourceMessage, WordUse
from ctxsteward.store.journal.events import CompactionRefused, WindowCompacted

from ..history.standing_rules import rules_to_carry
from ..history.state import HeldRule, State
from ..history.tool_groups import LogEntry, ToolGroup
from ..layout.composition import bullets_text
from ..layout.fragments import Fragment, RenderOptions, group_fragment
from ..layout.rows import bullet_line, heading_lines, one_line
from ..tokens.budgets import (
    BULLETS_FLOOR_FRACTION,
    LIKELY_FRACTION,
    LIVE_FLOOR_FRACTION,
    MIN_PROGRESS_FRACTION,
    NEW_FLOOR_FRACTION,
    RULES_FRACTION,
    Budgets,
)
from ..tokens.tokenizer import Counter
from .ahead import PlannedCompaction, PreparedSummary, fell_back
from .losses import account, shown_texts
from .policy import CompactionChoice, Policy, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class _After:
    """What a choice leaves of the window's groups."""

    kept: list[ToolGroup]
    masked: frozenset[int]
    shortened: dict[int, int]
    gone: list[LogEntry]
    hidden: list[LogEntry]
    """What is no longer shown whole: gone, masked tool results, shortened texts."""
    compacted_to: int
    fragments: list[Fragment]

    @property
    def tokens(self) -> int:
        return sum(fragment.tokens for fragment in self.fragments)

    @property
    def shown(self) -> list[str]:
        return [text for fragment in self.fragments for text in shown_texts(fragment.steps)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Makes compactions of one builder: policy, summarizer, counter, budgets, clock."""

    policy: Policy
    summarizer: Summarizer
    counter: Counter
    budgets: Budgets
    now: Callable[[], str] | None = None
    keeps_rules: bool = False
    """Whether users' rules stay in their own words, whatever a summarizer makes of them."""
    uses: Callable[[str], WordUse] | None = None
    """How users of the session have used a word or a pair of words, for the summarizer."""

    def run(
        self,
        state: State,
        window: Window,
        address: Callable[[str, bytes], str],
        findings: list[Finding],
        prepared: PreparedSummary | Finding | None = None,
    ) -> WindowCompacted | CompactionRefused:
        """Try one compaction of this state; `address` names a stored artifact, `findings` are added to.

        `prepared` is a summary made ahead, or the reason why it is missing. Without one, or where it does not fit what
        leaves now, the summarizer is called.
        """
        own, inner = self._within(window)
        return own._made(state, inner, address, findings, prepared)

    def _within(self, window: Window) -> tuple[Compactor, Window]:
        """This compactor and the window, under the budgets that the policy compacts by."""
        budgets = self.policy.within(window)
        if budgets is not window.budgets:  # else what the window has measured holds
            window = replace(window, budgets=budgets)
        return replace(self, budgets=budgets), window

    def _made(
        self,
        state: State,
        window: Window,
        address: Callable[[str, bytes], str],
        findings: list[Finding],
        prepared: PreparedSummary | Finding | None,
    ) -> WindowCompacted | CompactionRefused:
        """Make the compaction of `run` under budgets that are settled."""
        frame = self.counter.framed(bullets_text(state, (), state.ordinal))
        new_tokens, all_tokens = self._bullets_share(window)
        choice = self._choice(window, all_tokens)
        if not (choice.drop or choice.mask or choice.shorten) and not window.over:
            return _refuse(window, "nothing may leave the window", findings)
        summary: Summary | str | None = None
        unused = list[Finding]()
        if choice.is_summarized:
            budget_tokens = max(0, new_tokens - frame)
            source = self._source(state, choice)
            landed = None if prepared is None else self._landed(state, choice, prepared, budget_tokens)
            if isinstance(landed, tuple):
                choice, summary, source = landed
            else:
                unused = [] if landed is None else [landed]
                summary = self._summary(source, budget_tokens)
        if isinstance(summary, str):
            return _refuse(window, summary, findings)
        findings += unused
        event = self._assemble(state, window, choice, summary, all_tokens, frame, address, findings)
        if choice.fell_back and isinstance(event, WindowCompacted):
            text = f"{self.policy.name}: {choice.fell_back}"
            findings.append(Finding(kind="policy_fell_back", field="policy", text=text))
        return event

    def _landed(
        self, state: State, choice: CompactionChoice, prepared: PreparedSummary | Finding, budget_tokens: int
    ) -> tuple[CompactionChoice, Summary | str, SummarizerInput] | Finding:
        """What was made ahead and what must leave beside it, that summarized now; or why there is nothing to land."""
        if isinstance(prepared, Finding):
            return prepared
        ahead, summary = prepared
        source = self._source(state, ahead)
        try:
            fault = _fault(summary, source)
        except Exception as error:  # whatever it is that the summarizer gave for a summary
            fault = type(error).__name__
        if fault:
            return fell_back(fault.partition(":")[0])  # behind it stands what was found there
        drop = {group.first for group in (*ahead.drop, *choice.drop)}
        mask = {group.first for group in (*ahead.mask, *choice.mask)} - drop
        taken = replace(
            choice,
            detail=f"{choice.detail} {ahead.detail}".strip(),
            drop=tuple(group for group in state.groups if group.first in drop),
            mask=tuple(group for group in state.groups if group.first in mask),
            shorten=tuple(row for row in choice.shorten if row[0].first not in drop),
        )
        whole, covered = self._source(state, taken), {item.ref for item in source.messages}
        left = tuple(item for item in whole.messages if item.ref not in covered)
        if not left:
            return taken, summary, source
        used = sum(self.counter.text(bullet_line(bullet)) for bullet in summary.bullets)
        share = max(budget_tokens - used, budget_tokens * len(left) // len(whole.messages))
        return taken, _beside(summary, self._summary(replace(whole, messages=left), share)), source

    def _choice(self, window: Window, bullets_tokens: int, more_tokens: int = 0) -> CompactionChoice:
        """What leaves so that the history comes to its target, with so many more tokens behind it."""
        window.price_masks()
        target = self.budgets.target_tokens + self.budgets.lent_tokens(bullets_tokens)
        verbatim_tokens = max(window.must_tokens, target - window.notes_tokens - bullets_tokens)
        return self.policy.choose(window, window.groups_tokens - verbatim_tokens + more_tokens)

    def planned(self, state: State, window: Window, more_tokens: int) -> PlannedCompaction | None:
        """What a compaction would take, were there so many more tokens; None: nothing that becomes bullets."""
        own, window = self._within(window)
        frame = self.counter.framed(bullets_text(state, (), state.ordinal))
        new_tokens, all_tokens = own._bullets_share(window)
        choice = own._choice(window, all_tokens, more_tokens)
        if not choice.is_summarized or not (choice.drop or choice.mask):
            return None
        source = self._source(state, choice)
        return PlannedCompaction(choice=choice, source=source, budget_tokens=max(0, new_tokens - frame))

    @property
    def _reply_tokens(self) -> int:
        return self.budgets.old_reply_tokens if self.policy.shortens_old_replies else 0

    def _bullets_share(self, window: Window) -> tuple[int, int]:
        """Tokens that new bullets, and all, may take after this compaction, their fence included.

        One large turn that passes through leaves little room for new bullets, but does not push out what has stood.
        """
        budgets = self.budgets
        likely = window.bullets_tokens + int(window.movable_tokens * LIKELY_FRACTION)
        high = min(budgets.bullets_tokens, likely)
        room = budgets.target_tokens + budgets.lent_tokens(high) - window.must_tokens - window.notes_tokens
        low, least = int(budgets.bullets_tokens * LIVE_FLOOR_FRACTION), 0
        if not window.state.in_loop:
            low = int(budgets.sure_bullets_tokens * NEW_FLOOR_FRACTION)
            least = min(high, int(budgets.sure_bullets_tokens * BULLETS_FLOOR_FRACTION))
        hard = budgets.dynamic_tokens - window.must_tokens - window.notes_tokens
        if hard <= 0:
            hard = int(budgets.dynamic_tokens * MIN_PROGRESS_FRACTION)
        new = max(0, min(hard, max(low, min(high, room))))
        return new, max(new, min(hard, max(least, min(window.bullets_tokens, high))))

    def _summary(self, source: SummarizerInput, budget_tokens: int) -> Summary | str:
        """What the summarizer makes of what leaves, or what is wrong with it."""
        try:
            summary = self.summarizer(source, budget_tokens=budget_tokens)
            return _fault(summary, source) or summary
        except Exception as error:  # a summarizer is the caller's code: whatever it raises, the history stays
            return f"the summarizer failed: {type(error).__name__}: {error}"

    def _source(self, state: State, choice: CompactionChoice) -> SummarizerInput:
        dropped = {group.first for group in choice.drop}
        masked = {group.first for group in choice.mask}
        leaving: list[SourceMessage] = []
        visible: list[SourceMessage] = []
        for group in state.groups:
            for entry in group.entries:
                item = SourceMessage(ref=entry.ref, message=entry.message, ts=entry.event.ts)
                gone = group.first in dropped or (group.first in masked and bool(entry.message.tool_results))
                (leaving if gone else visible).append(item)
        return SummarizerInput(
            messages=tuple(leaving),
            standing=(*state.bullets, *state.reserve),
            visible=tuple(visible),
            count_tokens=self.counter.text,
            uses=self.uses,
        )

    def _assemble(
        self,
        state: State,
        window: Window,
        choice: CompactionChoice,
        summary: Summary | None,
        share: int,
        frame: int,
        address: Callable[[str, bytes], str],
        findings: list[Finding],
    ) -> WindowCompacted | CompactionRefused:
        after, before = self._after(state, choice), state.left_out_tokens
        carried = rules_to_carry(state, {entry.ordinal for entry in after.gone}, rule_reader())
        rules = {"rules": [list(rule) for rule in carried]} if carried else {}
        fixed_tokens = after.tokens + window.notes_tokens + window.context_tokens
        progress = int(window.section_tokens * (1 - MIN_PROGRESS_FRACTION)) - fixed_tokens
        # More bullets than that would undo what the compaction saves; those left out wait in reserve.
        room = min(share, progress if window.over else max(progress, share // 2)) - frame
        bullets, reserve, lost_bullets = state.bullets, state.reserve, list[Bullet]()
        if summary is not None:
            most = min(progress, self.budgets.dynamic_tokens - fixed_tokens) - frame
            for_rules = max(room, min(room + int(self.budgets.history_tokens * RULES_FRACTION), most))
            bullets, reserve, lost_bullets = self._fit_bullets(state, summary, room, for_rules, after.gone, carried)
        text = bullets_text(state, bullets, after.compacted_to) if bullets else ""
        pre, post = window.section_tokens, fixed_tokens + (self.counter.framed(text) if text else 0)
        if pre - post < pre * MIN_PROGRESS_FRACTION and not (window.forced and post < pre):
            return _refuse(window, f"it would save {pre - post} of {pre} tokens", findings)
        report = CompressionReport(
            id="",
            section="dynamic",
            pre_tokens=pre,
            post_tokens=post,
            losses=tuple(account(after.hidden, bullets, after.shown, lost_bullets)),
            kept_refs=kept_refs(bullets, after.kept),
            policy=f"{self.policy.name} {choice.detail}".rstrip(),
            source_addresses=tuple(entry.event.address for entry in after.gone),
            artifact="",
            created_at=self.now() if self.now else None,
            origin=None if summary is None else summary.origin,
        )
        event = WindowCompacted(
            bullets=bullets,
            reserve=reserve,
            kept=tuple(group.ordinals for group in after.kept),
            masked=tuple(sorted(after.masked)),
            shortened=after.shortened,
            reply_tokens=self._reply_tokens,
            report=report,
            checkpoint={
                **state.checkpoint(),
                "compacted_to": after.compacted_to,
                "left_out_tokens": None if before is None else before + sum(e.tokens(self.counter) for e in after.gone),
                **rules,
            },
        )
        name = address("compaction", canonical(event))
        compaction = replace(event, report=report.model_copy(update={"id": name, "artifact": name}))
        from ctxsteward.schemas.publish import validate

        try:
            validate("compression_report", compaction.report.model_dump(mode="json"))
        except InputError as error:
            return _refuse(window, str(error), findings)
        findings += _rules_left_out(lost_bullets, len(summary.superseded) if summary else 0)
        return compaction

    def _after(self, state: State, choice: CompactionChoice) -> _After:
        """The window's groups once a choice is carried out."""
        dropped = {group.first for group in choice.drop}
        kept = [group for group in state.groups if group.first not in dropped]
        masked = (state.masked | {group.first for group in choice.mask}) & {group.first for group in kept}
        gone = [entry for group in choice.drop for entry in group.entries]
        short = {**state.shortened, **{group.first: tokens for group, tokens in choice.shorten}}
        replies = self._reply_tokens
        for group in kept:
            if group.last != state.last_text and state.will_be_short(group, replies):
                short[group.first] = replies
        short = {group.first: short[group.first] for group in kept if group.first in short}
        cap = self.budgets.cap_tokens
        shapes = [
            RenderOptions(cap_tokens=cap, masked=group.first in masked, text_tokens=short.get(group.first))
            for group in kept
        ]
        since = {
            first for first in short if first in state.shortened_since or short[first] != state.shortened.get(first)
        }
        texts = [group.entries[0] for group in kept if group.first in since]
        return _After(
            kept=kept,
            masked=masked,
            shortened=short,
            gone=gone,
            hidden=[*gone, *texts, *(e for group in choice.mask for e in group.entries if e.message.tool_results)],
            compacted_to=max([state.compacted_to, *(entry.ordinal for entry in gone)]),
            fragments=[
                group_fragment(group, shape, state.nonce, self.counter)
                for group, shape in zip(kept, shapes, strict=True)
            ],
        )

    def _fit_bullets(
        self,
        state: State,
        summary: Summary,
        room: int,
        for_rules: int,
        gone: Sequence[LogEntry],
        rules: Sequence[HeldRule],
    ) -> tuple[tuple[Bullet, ...], tuple[Bullet, ...], list[Bullet]]:
        """Return the bullets shown, those in reserve, and those of the standing ones that are shown no more.

        The most valuable that fit `room` tokens are shown. The others are in reserve as far as all together fit the
        budget of bullets: one long turn leaves little room, and the next one more. A rule that stands and that none of
        them says is shown beside them, as far as `for_rules` tokens reach.
        """
        standing = (*state.bullets, *state.reserve)
        # Each rule in a bullet of its own, which no other text weakens.
        held, before = ([one_line(rule_bullet(rule)) for rule in of] for of in (rules, state.rules))
        if not self.keeps_rules:  # else they stand even if a newer statement seems to replace them
            left = [row for n, row in enumerate(standing) if n not in summary.superseded]
            leaving = {entry.ref for entry in gone}
            held = [rule for rule in held if rule.citations[0] in leaving or _says(left, rule)]
        superseded = {
            n for n, row in enumerate(standing) if row in before or (n in summary.superseded and row not in held)
        }
        lost = [row for n, row in enumerate(state.bullets) if n in superseded and row not in held]
        rows = [bullet for index, bullet in enumerate(state.bullets) if index not in superseded]
        shown_before = len(rows)
        rows += (bullet for index, bullet in enumerate(state.reserve, len(state.bullets)) if index not in superseded)
        reserved = range(shown_before, len(rows))
        rows += [one_line(bullet) for bullet in summary.bullets if bullet.text.strip()]
        rows += held if self.keeps_rules else ()
        task = next((entry for entry in gone if entry.ordinal == state.task), None)
        task_ref = f"§{state.task}"
        if task is not None and not any(task_ref in bullet.citations for bullet in rows):
            goal = one_line(task_bullet(task, self.counter, max(16, min(self.budgets.task_tokens, room // 2))))
            rows.append(goal.model_copy(update={"section": "intent"}) if heading_lines(rows) else goal)
        costs = [self.counter.text(bullet_line(bullet)) for bullet in rows]
        used = sum(costs) + self.counter.text(heading_lines(rows))
        task_gone = task is not None or all(state.task not in group.ordinals for group in state.groups)
        order = sorted(range(len(rows)), key=lambda index: (rows[index].value, _newest_original(rows[index]), index))
        holders = [index for index in range(len(rows)) if task_ref in rows[index].citations] if task_gone else []
        protected = {max(holders, key=lambda index: rows[index].value, default=-1)}
        protected |= {index for index, row in enumerate(rows) if row in held}
        out: list[int] = []
        for index in order:
            if used <= room:
                break
            if index in protected:
                continue
            out.append(index)
            used -= costs[index]
        spare = self.budgets.bullets_tokens - used
        reserve: list[Bullet] = []
        for index in reversed(out):
            spare -= costs[index]
            if spare < 0:
                break
            reserve.append(rows[index])
        lost += [rows[index] for index in sorted(out) if index not in reserved]
        shown = [bullet for index, bullet in enumerate(rows) if index not in out]
        for rule in held:
            if _says(shown, rule):
                continue
            cost = self.counter.text(bullet_line(rule))
            if used + cost <= for_rules:
                used += cost
                shown.append(rule)
                lost = [row for row in lost if (row.text, row.citations) != (rule.text, rule.citations)]
            else:
                reserve.append(rule)
                lost += [rule] if rule in state.bullets else []
        return tuple(sorted(shown, key=_newest_original)), tuple(reserve), lost


def _says(rows: Iterable[Bullet], rule: Bullet) -> bool:
    return any(rule.text in row.text and rule.citations[0] in row.citations for row in rows)


def _refuse(window: Window, reason: str, findings: list[Finding]) -> CompactionRefused:
    text = f"a compaction was due at {window.section_tokens} tokens and not made: {reason}; the history stays"
    findings.append(Finding(kind="compaction_refused", field="dynamic", text=text))
    return CompactionRefused(reason=reason, section_tokens=window.section_tokens)


def task_bullet(task: LogEntry, counter: Counter, room_tokens: int) -> Bullet:
    """The beginning of the task, for a task too long to stay verbatim that no bullet cites."""
    text = " ".join(task.message.text.split())
    tokens = counter.text(text)
    if tokens > room_tokens:
        text = text[: max(8, int(len(text) * room_tokens / tokens * 0.95))].rstrip()
    return Bullet(text=text or "(no text)", citations=(task.ref,), kind="open_item", value=100.0)


def rule_bullet(rule: HeldRule) -> Bullet:
    """A user's rule in its own words."""
    return Bullet(text=rule.text, citations=(f"§{rule.ordinal}",), kind="constraint", value=100.0)


def kept_refs(bullets: Sequence[Bullet], kept: Sequence[ToolGroup]) -> tuple[str, ...]:
    refs = {Ref.parse(ref).ordinal for bullet in bullets for ref in bullet.citations}
    refs.update(ordinal for group in kept for ordinal in group.ordinals)
    return tuple(f"§{ordinal}" for ordinal in sorted(refs))


def _rules_left_out(lost: Sequence[Bullet], superseded: int) -> Iterator[Finding]:
    """A rule that went for want of room is worth a person's eye."""
    refs = [ref for bullet in lost[superseded:] if bullet.kind == "constraint" for ref in bullet.citations]
    if refs:
        text = f"rules no longer fit the bullets: {', '.join(refs)}; raise `budgets.dynamic_tokens`, or pin them"
        yield Finding(kind="constraint_left_out", ref=refs[0], field="budgets.dynamic_tokens", text=text)


def _fault(summary: object, source: SummarizerInput) -> str:
    """Why a summary cannot be used; empty where it can."""
    if not isinstance(summary, Summary):
        return f"the summarizer returned {type(summary).__name__}, not a Summary"
    from ctxsteward.schemas.publish import validate

    try:
        validate("summary", summary.model_dump(mode="json", warnings=False), "the summarizer returned no summary")
    except InputError as error:
        return str(error)
    known = {item.ref for item in (*source.messages, *source.visible)}
    known |= {f"§{Ref.parse(ref).ordinal}" for bullet in source.standing for ref in bullet.citations}
    for bullet in summary.bullets:
        for ref in bullet.citations:
            if f"§{Ref.parse(ref).ordinal}" not in known:
                return f"the summarizer cites {ref}, which it was not shown"
    if any(not 0 <= index < len(source.standing) for index in summary.superseded):
        return f"the summarizer supersedes bullet {max(summary.superseded)} of {len(source.standing)}"
    return ""


def _beside(ahead: Summary, now: Summary | str) -> Summary | str:
    """A summary that was made ahead, and that of what came to it since."""
    if isinstance(now, str):
        return now
    superseded = tuple(sorted({*ahead.superseded, *now.superseded}))
    bullets = sorted((*ahead.bullets, *now.bullets), key=lambda bullet: Ref.parse(bullet.citations[0]).ordinal)
    return ahead.model_copy(update={"bullets": tuple(bullets), "superseded": superseded})


def _newest_original(bullet: Bullet) -> int:
    return max(Ref.parse(ref).ordinal for ref in bullet.citations)


def canonical(event: WindowCompacted) -> bytes:
    bullets = "".join(bullet.model_dump_json() for bullet in event.bullets)
    reserve = "".join(bullet.model_dump_json() for bullet in event.reserve)
    shortened = event.shortened or ""
    replies = event.reply_tokens or ""
    return f"{event.report.model_dump_json()}{bullets}{reserve}{event.kept}{event.masked}{shortened}{replies}".encode()


Shortened = Literal["dynamic", "meta"]
"""Sections that are ever made smaller; system and static never are."""


def summarizers_of(named: str | Summarizer | Mapping[Shortened, str | Summarizer]) -> dict[Shortened, Summarizer]:
    """The summarizer of each section that has one; dynamic always has one, by default the extractive.

    Raises `InputError` for a section that is never shortened, and for what is neither a name nor a callable.
    """
    by_section: Mapping[Any, Any] = named if isinstance(named, Mapping) else {"dynamic": named}
    summarizers: dict[Shortened, Summarizer] = {}
    for section, summarizer in {"dynamic": "extractive", **by_section}.items():
        if section not in get_args(Shortened):
            raise InputError(f"summarizer[{section!r}]: only {' and '.join(get_args(Shortened))} are ever shortened")
        if not isinstance(summarizer, str) and not callable(summarizer):
            what = f"summarizer[{section!r}] is {type(summarizer).__name__}"
            raise InputError(
                f"{what}; give the name of one that is installed, or a callable (source, *, budget_tokens)"
            )
        summarizers[section] = load_summarizer(summarizer) if isinstance(summarizer, str) else summarizer
    return summarizers


def load_summarizer(name: str) -> Summarizer:
    """The summarizer installed under this name (entry-point group ``ctxsteward.summarizers``)."""
    found: Summarizer = _installed("ctxsteward.summarizers", "summarizer", name)
    return found


def replacing_reader() -> ReplacementReader:
    """A new reader of what replaces what, for one session."""
    made: ReplacementReader = _installed("ctxsteward.replacing", "reader of replacements", "extractive")()
    return made


@cache
def rule_reader() -> RuleReader:
    """What reads users' messages for rules."""
    made: RuleReader = _installed("ctxsteward.rules", "reader of rules", "extractive")()
    return made


@cache
def _installed(group: str, what: str, name: str) -> Any:
    from importlib.metadata import entry_points

    found = entry_points(group=group)
    for point in found:
        if point.name == name:
            return point.load()
    known = ", ".join(sorted(point.name for point in found)) or "none"
    raise InputError(f"no {what} named {name!r} is installed; known: {known}; or pass a callable")
