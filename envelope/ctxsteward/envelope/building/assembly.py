"""One build: what it decides and writes to the log, and the envelope put together.

The builder calls the parts in this order: `build_head_sections`, `Decider.run`, `measure_envelope`, `keep_manifest`,
`assemble_envelope`. At most one compaction is decided and, first in a user turn, one selection. Each decision is an
event, so that a rebuild from the log decides nothing. `BuildProgress` remembers over a retry what was already written.

`build_head_sections` lays out, counts and digests system, static and meta. The result is cached until one of these
changes: the head event in the log, the budgets, the calibration, and, once in a session's life, whether dynamic has
been compacted so often that meta over its trigger is left with fewer records (`layout.meta_section`).
`measure_envelope` gives tokens and address; between that and `assemble_envelope` a build writes the manifest.

A manifest is what is needed to lay a built envelope out again: a JSON object, sealed by its code, with session,
position, ids of the compactions and findings that the build made, and the builder's configuration, which is written
once and reused. Reports of meta stand beside the manifests, in the same form, each at its own address.

Raises `BudgetExceeded`, `WindowExceeded` (the prompt leaves the output less than its reserve), what the journal raises.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import NamedTuple

from ctxsteward.schemas import LOSSES, CompressionReport, Finding, WindowExceeded, Wire, fixed_finding
from ctxsteward.store import RecallSelected, WindowCompacted, address_of, coded_manifest

from ..compaction import Compactor, Policy, SummaryAhead, Window
from ..envelope import Envelope, Section, digest_behind, head_digested, seal_envelope
from ..history import Session, State
from ..layout import (
    FORM,
    FORMS,
    META_STABLE_COMPACTIONS,
    RENDERER_VERSION,
    ChooseRecords,
    DynamicLayout,
    HeadLayout,
    LayoutForm,
    MetaCut,
    lay_dynamic,
    lay_head,
    report_of,
    window_findings,
)
from ..recall import (
    LEAST_EXCERPT_TOKENS,
    Recall,
    Selector,
    SupersessionIndex,
    lines_of,
    named_now,
    offer,
    select,
    verbatim,
    with_facts,
)
from ..tokens import (
    HEAD_SECTIONS,
    MIN_PROGRESS_FRACTION,
    REPLY_PRIMING_TOKENS,
    Budgets,
    BuildTarget,
    Counter,
    Scale,
    guard_notice,
)


@dataclass(slots=True)
class BuildProgress:
    """What one call of `build` has decided and written so far."""

    compacted: bool = False
    reports: tuple[CompressionReport, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    selection_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Decides as one builder is set up."""

    compactor: Compactor
    selector: Selector | None
    """None: nothing is recalled, neither messages nor facts."""
    budgets: Budgets
    counter: Counter
    histories: SupersessionIndex
    ahead: SummaryAhead | None = None
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
        window = Window(session.state, layout, self.budgets, head_tokens)
        if not progress.compacted:
            decider = self if self.compactor.policy.due(window) else self._guarding(window, guard_tokens)
            if decider is not None and decider._compact(session, window, progress):
                layout = self.lay(session, session.state)
                window = Window(session.state, layout, self.budgets, head_tokens)
        if self._select(session, window, progress):
            layout = self.lay(session, session.state)
        return layout

    def _guarding(self, window: Window, guard_tokens: int | None) -> Decider | None:
        """This one with no more dynamic than the guard leaves; None where it has nothing to do, or did just now.

        A compaction that could not save a tenth of the section is not tried, nor one after which less than a tenth was
        said: what stands in the way has not left.
        """
        state, tokens = window.state, window.section_tokens
        if guard_tokens is None or not 0 < guard_tokens < min(tokens, self.budgets.dynamic_tokens):
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
        return replace(self, budgets=budgets, compactor=self.compactor.with_budgets(budgets))

    def with_policy(self, policy: Policy) -> Decider:
        """The same with another compaction policy."""
        return replace(self, compactor=replace(self.compactor, policy=policy))

    def lay(self, session: Session, state: State) -> DynamicLayout:
        """The dynamic section of a session as it stands, deciding nothing."""
        facts = partial(lines_of, session)
        return lay_dynamic(state, self.budgets, self.counter, session.shown, session.cache, facts, self.form)

    # -- compacting ---------------------------------------------------------------------------------------------

    def _compact(self, session: Session, window: Window, progress: BuildProgress) -> bool:
        """Try one compaction; whether the window is another one now."""
        session.branch()
        key, place = session.address_key, b"%d\x00" % session.state.position  # made again after damage: another address
        if window.budgets is not self.budgets:
            window = Window(session.state, window.layout, self.budgets, window.head_tokens)
        prepared = None if self.ahead is None else self.ahead.landing(session, window)
        event, findings = self.compactor.run(
            session.state, window, lambda kind, data: address_of(key, session.id, kind, place + data), prepared
        )
        session.commit(event)
        if self.ahead is not None:
            self.ahead.settle(session, event)
        progress.compacted = True
        progress.findings += findings
        progress.reports += (event.report,) if isinstance(event, WindowCompacted) else ()
        return isinstance(event, WindowCompacted)

    # -- recalling ----------------------------------------------------------------------------------------------

    def _select(self, session: Session, window: Window, progress: BuildProgress) -> bool:
        """Recall for this user turn, or give up what was recalled where there is no room any more."""
        state = session.state
        if state.recalled is not None:
            return self._keep(session, window, state.recalled, progress)
        if self.selector is None or not self.budgets.recall_fraction or not state.last_user:
            return False
        if state.in_loop and not progress.compacted:
            return False  # what a turn did not need at its first call it gets only where the prefix is new anyway
        started = time.perf_counter()
        event, findings = self._chosen(session, window, self.selector)
        progress.selection_seconds += time.perf_counter() - started
        if event is not None:
            session.commit(event)
        progress.findings += findings
        return event is not None

    def _keep(self, session: Session, window: Window, recalled: RecallSelected, progress: BuildProgress) -> bool:
        """Leave what was recalled as it is, or write what is left of it; whether that is less."""
        state = session.state
        if window.context_tokens and window.section_tokens > self.budgets.dynamic_tokens:
            least = self._least(session, recalled)
            if least.refs == recalled.refs and least.excerpts == recalled.excerpts and not recalled.facts:
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
        """Facts and messages for this user turn, in what room the history leaves; None: there is nothing to recall."""
        state = session.state
        history_tokens = max(self.budgets.history_tokens, window.history_tokens + window.calls_tokens)
        room = self.budgets.dynamic_tokens - history_tokens
        if session.fact_lookup is None or state.head.profile is None:  # facts are a profile's
            return self._messages(selector, session, state, room) or (None, ())
        facts, tokens, fact_findings = offer(session, state, self._facts_room(state, room), self.counter)
        recalled, findings = self._messages(selector, session, state, room - tokens) or (None, ())
        event = with_facts(facts, recalled, session, state, room, self.counter)
        return event, (*findings, *fact_findings)

    def _facts_room(self, state: State, room_tokens: int) -> int:
        """What facts may take of the room: their part; before the first compaction, no message needs the rest."""
        budgets = self.budgets
        if state.compactions:
            return int(room_tokens * budgets.facts_fraction)
        return min(room_tokens, int(budgets.recall_tokens * budgets.facts_fraction))

    def _messages(self, selector: Selector, session: Session, state: State, room_tokens: int) -> Recall | None:
        from ctxsteward.schemas import validate_quickly

        try:
            cap = self.budgets.cap_tokens
            picked = select(selector, session, state, room_tokens, self.counter, self.histories, cap)
            if picked is not None and picked[0].log:
                validate_quickly("selection_log", picked[0].log)
            return picked
        except Exception as error:  # a selector is the caller's code: whatever it raises, the call goes on without
            text = f"nothing was recalled: the selector failed: {type(error).__name__}: {error}"
            failed = Finding(kind="selection_failed", field="dynamic", text=text)
            return RecallSelected(turn=state.last_user, refs=(), log={}), (failed,)


def _still_paired(recalled: RecallSelected, state: State) -> RecallSelected:
    """What was recalled, without messages whose later ones a compaction has taken out of the window."""
    here = verbatim(state).union(recalled.refs)
    alone = {old for old, newer in recalled.superseded.items() if not here.issuperset(newer)}
    if not alone:
        return recalled
    refs = tuple(ordinal for ordinal in recalled.refs if ordinal not in alone)
    superseded = {old: newer for old, newer in recalled.superseded.items() if old not in alone}
    return _still_paired(replace(recalled, refs=refs, superseded=superseded), state)


# -- the envelope put together ------------------------------------------------------------------------------------


class HeadSections(NamedTuple):
    """The head as it stands."""

    layout: HeadLayout
    sections: dict[str, Section]
    tokens: int
    """Tool schemas included."""
    estimated_tokens: int
    """Before calibration."""
    version: str | None
    """Address of the profile."""
    digested: bytes
    """Its part of the envelope's digest."""


def build_head_sections(
    session: Session,
    scale: Scale,
    counter: Counter,
    fixed: Set[str],
    choose: ChooseRecords,
    renderer: int = RENDERER_VERSION,
) -> HeadSections:
    """Lay out a session's head, or find it as it was laid out; `fixed` are the budgets that the caller set."""
    state = session.state
    stable = state.head.profile is None or state.compactions <= META_STABLE_COMPACTIONS
    key = (state.head_at, counter.name, scale.effective, frozenset(fixed), scale.calibration, stable, choose, renderer)
    entry = session.cache.get("head")
    if isinstance(entry, tuple) and entry[0] == key:
        known: HeadSections = entry[1]
        return known
    layout = lay_head(state.head, scale.effective, counter, state.compactions, choose, FORMS[renderer])
    epoch = max(0, state.heads - 1)
    sections = {name: _section(name, layout, epoch, scale) for name in HEAD_SECTIONS}
    if not stable:
        before = lay_head(state.head, scale.effective, counter, 0, choose, FORMS[renderer])
        if [f.digest for f in before.meta] != [f.digest for f in layout.meta]:
            sections["meta"] = replace(sections["meta"], epoch=epoch + 1)
    profile = state.head.profile
    version = None if profile is None else _profile_version(session, profile)
    head = HeadSections(
        layout=layout,
        sections=sections,
        tokens=sum(section.tokens for section in sections.values()) + scale.provider_tokens(layout.tools_tokens),
        estimated_tokens=sum(fragment.tokens for fragment in layout.fragments) + layout.tools_tokens,
        version=version,
        digested=head_digested(session.tenant, session.id, version, sections, renderer),
    )
    session.cache["head"] = (key, head)
    return head


def _section(name: str, layout: HeadLayout, epoch: int, scale: Scale) -> Section:
    fragments = layout.section(name)
    tokens = sum(fragment.tokens for fragment in fragments)
    content = hashlib.sha256(b"".join(fragment.digest for fragment in fragments)).digest()
    return Section(
        name=name, source=layout, budget_tokens=_budget_tokens(name, layout, scale), epoch=epoch,
        tokens=scale.provider_tokens(tokens), content=content,
    )  # fmt: skip


def _budget_tokens(name: str, layout: HeadLayout, scale: Scale) -> int:
    """A head budget as the caller knows it, or what it grew to."""
    stated: int = getattr(scale.stated, f"{name}_tokens")
    grown = layout.budgets[name]
    unchanged = grown == getattr(scale.effective, f"{name}_tokens")
    return stated if unchanged else max(stated, scale.provider_tokens(grown))


def _profile_version(session: Session, profile: Wire) -> str:
    data = json.dumps(profile, sort_keys=True, ensure_ascii=False).encode()
    return address_of(session.address_key, session.tenant, "profile", data)


class EnvelopeSize(NamedTuple):
    """An envelope to be: its dynamic section, its tokens, its address."""

    dynamic: Section
    prompt_tokens: int
    """The provider's."""
    estimated_tokens: int
    """Before calibration."""
    address: str


def measure_envelope(
    session: Session, head: HeadSections, layout: DynamicLayout, target: BuildTarget, scale: Scale
) -> EnvelopeSize:
    """Count and address what was laid out."""
    dynamic = Section(
        name="dynamic", source=layout, budget_tokens=scale.stated.dynamic_tokens, epoch=session.state.compactions,
        tokens=scale.provider_tokens(layout.tokens), content=layout.digest(),
    )  # fmt: skip
    prompt_tokens = head.tokens + dynamic.tokens + REPLY_PRIMING_TOKENS
    if target.window_tokens is not None and prompt_tokens > target.window_tokens - target.output_reserve_tokens:
        raise WindowExceeded(prompt_tokens, target.window_tokens, target.output_reserve_tokens)
    digest = digest_behind(head.digested, dynamic, head.layout.tools_digest)
    return EnvelopeSize(
        dynamic=dynamic,
        prompt_tokens=prompt_tokens,
        estimated_tokens=head.estimated_tokens + layout.tokens + REPLY_PRIMING_TOKENS,
        address=address_of(session.address_key, session.id, "envelope", digest),
    )


def assemble_envelope(
    session: Session,
    head: HeadSections,
    dynamic: DynamicLayout,
    decided: BuildProgress,
    size: EnvelopeSize,
    scale: Scale,
    notices: Sequence[Finding],
    target: BuildTarget,
    *,
    sealed: bool,
    build_seconds: float,
    renderer: int,
) -> Envelope:
    """The envelope of a session as it stands; `notices` are findings about the builder itself."""
    state = session.state
    findings = [*notices, *session.findings, *head.layout.findings, *decided.findings, *dynamic.findings]
    if state.repaired or state.open_calls:
        findings += window_findings(state)
    if session.missing and dynamic.context is not None:
        lost = (n for n in dynamic.context.refs if n in session.missing)
        findings += [fixed_finding("original_damaged", f"§{n}") for n in lost]
    if (notice := guard_notice(size.prompt_tokens, target)) is not None:
        findings.append(notice)
    seal = None
    if sealed:
        seal = seal_envelope(
            session.seal_key, tenant=session.tenant, session=session.id, profile_version=head.version,
            position=state.position, address=size.address, renderer=renderer,
        )  # fmt: skip
    return Envelope(
        tenant=session.tenant,
        session=session.id,
        nonce=state.nonce,
        profile_version=head.version,
        head=head.layout,
        dynamic=dynamic,
        sections={**head.sections, "dynamic": size.dynamic},
        reports=decided.reports,
        findings=tuple(findings),
        metrics={
            "prompt_tokens": size.prompt_tokens,
            "estimated_tokens": size.estimated_tokens,
            "stable_tokens": head.tokens + scale.provider_tokens(dynamic.prefix_tokens),
            "tools_tokens": scale.provider_tokens(head.layout.tools_tokens),
            "messages": state.ordinal,
            "compactions": state.compactions,
            "degraded": int(bool(findings) and any(finding.kind in LOSSES for finding in findings)),
        },
        address=size.address,
        position=state.position,
        renderer=renderer,
        seal=seal,
        build_ms=round((build_seconds - decided.selection_seconds) * 1000, 3),
        selection_ms=round(decided.selection_seconds * 1000, 3),
    )


# -- its manifest -------------------------------------------------------------------------------------------------


def configuration(
    model: str | None, target: BuildTarget, budgets: Budgets, calibration: float, renderer: int = RENDERER_VERSION
) -> str:
    """What of a builder an envelope's bytes depend on, as JSON fields."""
    fields: Wire = {
        "renderer": renderer,
        "model": model,
        "tokenizer": target.counter.tokenizer.name,
        "images": target.counter.images,
        "window_tokens": target.window_tokens,
        "output_reserve_tokens": target.output_reserve_tokens,
        "budgets": budgets.document(),
        "calibration": calibration,
    }
    return json.dumps(fields)[1:-1]


def keep_manifest(
    session: Session,
    address: str,
    configured: str,
    reports: Sequence[CompressionReport],
    findings: Sequence[Finding],
    meta_kept: Sequence[str] | None = None,
) -> None:
    """Write down how the envelope at this address was made; `findings` are those of the build, not of the session.

    `meta_kept` are ids of records that something else than their value has chosen.
    """
    decided = "" if meta_kept is None else f'"meta_kept":{json.dumps(list(meta_kept))},'
    if reports or findings or session.findings:
        ids = [report.id for report in reports]
        all_findings = [finding.model_dump() for finding in (*session.findings, *findings)]
        decided += f'"reports":{json.dumps(ids)},"findings":{json.dumps(all_findings)},'
    fields = f'"session":{_quoted(session.id)},"position":{session.state.position},{decided}{configured}'
    session.journal.put_manifest(session.key, address, coded_manifest(session.address_key, address, fields))


def keep_meta_report(session: Session, cut: MetaCut, now: Callable[[], str] | None) -> CompressionReport | None:
    """Keep the report of what meta was left without, once for ever; None: it is there already."""
    asked = (session.state.head_at, cut)
    if session.cache.get("meta_report") == asked:
        return None
    key = session.address_key
    report = report_of(cut, key, session.id, session.state.head_at)
    report = report.model_copy(update={"created_at": now() if now else None})  # a caller's clock: checked below
    is_new = session.journal.get_manifest(session.tenant, report.id) is None
    if is_new:
        from ctxsteward.schemas import validate

        where = f"session {session.id!r}: report of meta"
        validate("compression_report", report.model_dump(mode="json", warnings=False), where)
        fields = f'"session":{_quoted(session.id)},"position":{session.state.position}'
        body = f'{fields},"meta_report":{report.model_dump_json()}'
        session.journal.put_manifest(session.key, report.id, coded_manifest(key, report.id, body))
    session.cache["meta_report"] = asked
    return report if is_new else None


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return json.dumps(text)
