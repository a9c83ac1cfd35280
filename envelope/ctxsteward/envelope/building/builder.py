"""The builder makes an envelope from a session.

`build` reads other writers' records, makes at most one compaction and, at the first build of a user turn, one
selection. It lays the envelope out and writes its manifest (`assembly`). All its decisions are in the log and a builder
has only configuration, so two workers with the same configuration build the same bytes.

`EnvelopeBuilder.from_manifest` makes the builder that laid a past envelope out (`rebuild`).

Raises `UnknownModel`, `InvalidBudget`, `BudgetExceeded`, `WindowExceeded`, `RulesNotVisible`, `StoreError`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ctxsteward.schemas import (
    BudgetExceeded,
    CompressionReport,
    Finding,
    InputError,
    StoreError,
    Summarizer,
)
from ctxsteward.schemas.arguments import check_argument, check_callable, known_options
from ctxsteward.schemas.errors import Conflict
from ctxsteward.schemas.message import Wire
from ctxsteward.store.deadline import Deadline

from ..compaction.ahead import PrefixedSummarizer, SummaryAhead
from ..compaction.compactor import Compactor, Shortened, replacing_reader, summarizers_of
from ..compaction.policy import Policy
from ..envelope import PROVIDERS, Envelope
from ..history.head_check import still_told
from ..history.session import MemoryScope, Session, check_memory
from ..layout.composition import DynamicLayout, HeadLayout
from ..layout.meta_section import ChooseRecords, as_kept, by_summarizer, by_value
from ..layout.rows import FORMS
from ..recall.facts import speaker_of
from ..recall.heuristic import Heuristic, SupersessionIndex
from ..recall.selection import Selector
from ..telemetry.spans import API, LOGGER, BuildSpan
from ..tokens.budgets import (
    Budgets,
    BuildTarget,
    Scale,
    budgets_within,
    dynamic_room,
    guarded_room,
    limited_notice,
    target_of,
)
from ..tokens.models import Prices, prices_of
from ..tokens.tokenizer import Counter, Tokenizer, prompt_tokens_of
from .assembly import (
    address_in,
    assemble_envelope,
    configuration,
    head_of,
    keep_manifest,
    keep_meta_report,
    keep_over_report,
    overflow_finding,
    sections_of,
    standing_rules,
    with_rule_findings,
)
from .decider import BuildProgress, Decider
from .newest_part import left_out_finding, newest_groups, showing

if TYPE_CHECKING:
    from ctxsteward.schemas.cascade import PolicyName, SelectorName

_TRIES = 100
_NEVER = Policy(name="none", due=lambda window: False)
ENOUGH_STEP_TOKENS = 50
"""Step to which a suggested budget is rounded up."""
WIDEST_DYNAMIC_TOKENS = 1_000_000
"""Budget of dynamic so large that a larger one would leave no more results whole on arrival."""
SELECTOR_HINT = "pass 'heuristic', 'semantic', 'hybrid', a callable (request) -> ranking, or None"


class EnvelopeBuilder:
    """A builder of envelopes for one model and one set of budgets."""

    @known_options()
    def __init__(
        self,
        model: str | None = None,
        *,
        tokenizer: str | Tokenizer | None = None,
        window_tokens: int | None = None,
        output_reserve_tokens: int | None = None,
        budgets: Budgets | None = None,
        summarizer: str | Summarizer | Mapping[Shortened, str | Summarizer] = "extractive",
        selector: Selector | SelectorName | None = "heuristic",
        policy: Policy | PolicyName | None = None,
        ahead: PrefixedSummarizer | SummaryAhead | None = None,
        now: Callable[[], str] | None = None,
        memory: MemoryScope | None = None,
        require_rules: bool = False,
    ) -> None:
        """`summarizer` shortens dynamic; a mapping names one for dynamic and one for meta.

        Without `budgets` they follow from the model's window (`Budgets.default`).
        A summarizer for meta chooses among whole records (`by_summarizer`); without it records stay by value.
        `ahead` (a `ModelSummarizer`) makes summaries in the background: builds do not wait for it, and use `summarizer`
        if it is late or fails. With ``memory="principal"`` each user turn also searches its principal's earlier
        sessions. With `require_rules` compactions keep users' rules in their own words, and a build whose request does
        not show every standing rule raises `RulesNotVisible`.
        """
        check_memory(memory)
        check_argument("budgets", budgets, Budgets, "pass Budgets(dynamic_tokens=4000)", optional=True)
        if isinstance(policy, str):
            from ..compaction.importance import policy_named

            policy = policy_named(policy)
        _check_policy(policy)
        if not isinstance(selector, str):
            check_callable("selector", selector, SELECTOR_HINT, optional=True)
        if not isinstance(ahead, SummaryAhead):
            check_callable("ahead", ahead, "pass a ModelSummarizer, or SummaryAhead(…)", optional=True)
        check_callable("now", now, "pass a function without arguments that returns the time as text", optional=True)
        check_argument("require_rules", require_rules, bool, "pass True or False")
        self.model = model
        self.require_rules: bool = require_rules
        self._target = target_of(model, tokenizer, window_tokens, output_reserve_tokens)
        self.budgets: Budgets = budgets or Budgets.default(self._target.usable_tokens)
        asked: Selector | None = _selector_named(selector) if isinstance(selector, str) else selector
        stated = self.budgets if asked is not None else self.budgets.without_recall()
        within, self._notices = budgets_within(self._target, stated)
        self._scale = Scale(within)
        by_section = summarizers_of(summarizer)
        meta = by_section.get("meta")
        ahead = SummaryAhead(ahead) if ahead is not None and not isinstance(ahead, SummaryAhead) else ahead
        if ahead is not None and ahead.provider not in (None, *PROVIDERS):
            raise InputError(f"ahead: unknown provider {ahead.provider!r:.40}; one of: {', '.join(PROVIDERS)}")
        self._choose: ChooseRecords = by_value if meta is None else by_summarizer(meta)
        compactor = Compactor(
            policy=policy or Policy(),
            summarizer=by_section["dynamic"],
            counter=self.counter,
            budgets=self._scale.effective,
            now=now,
            keeps_rules=require_rules,
        )
        self._decider = Decider(
            compactor=compactor,
            selector=asked,
            budgets=self._scale.effective,
            counter=self.counter,
            histories=SupersessionIndex(replacing_reader, self.counter),
            ahead=ahead,
            memory=memory,
            prices=prices_of(model) or Prices(),
        )
        self._configured: tuple[float, str] | None = None
        """Calibration, and the configuration under it in the form of manifests."""
        self._estimated_tokens = 0
        """Estimated tokens of the newest envelope."""
        self._shown_groups: frozenset[int] | None = None
        """Tool groups that a rebuilt request showed, from its manifest; None for all of them."""
        self._sent_as: tuple[str, int] | None = None
        """Session and position of a rebuilt envelope when it was sent, if its turns have moved into a fork since."""

    def __repr__(self) -> str:
        return f"<EnvelopeBuilder {self.model or self.counter.name}: dynamic_tokens={self.budgets.dynamic_tokens:,}>"

    @property
    def counter(self) -> Counter:
        """Counter of this builder's tokens."""
        return self._target.counter

    @property
    def window_tokens(self) -> int | None:
        """The model's window, or None for no limit."""
        return self._target.window_tokens

    @property
    def output_reserve_tokens(self) -> int:
        """Tokens of the window that are reserved for the output."""
        return self._target.output_reserve_tokens

    @property
    def selector(self) -> Selector | None:
        """Selector that ranks originals for a user turn; None means that no more originals are recalled."""
        return self._decider.selector

    @selector.setter
    def selector(self, selector: Selector | None) -> None:
        check_callable("selector", selector, SELECTOR_HINT, optional=True)
        self._decider = replace(self._decider, selector=selector)

    @property
    def prices(self) -> Prices | None:
        """Published prices of the model, or None without a model or for one of your own."""
        return prices_of(self.model)

    @property
    def policy(self) -> Policy:
        """Policy of when a compaction is due and which groups leave the window."""
        return self._decider.compactor.policy

    @property
    def calibration(self) -> float:
        """Provider-reported tokens per estimated token; see `calibrate`."""
        return self._scale.calibration

    def provider_tokens(self, tokens: int) -> int:
        """Convert tokens of this builder's counter into the provider's, by the calibration."""
        return self._scale.provider_tokens(tokens)

    @property
    def effective_budgets(self) -> Budgets:
        """Budgets in this builder's own estimated tokens: the caller's budgets divided by the calibration.

        Without a selector nothing is recalled, so the history gets recall's share (unless the caller set it).
        """
        return self._scale.effective

    # -- the main job -------------------------------------------------------------------------------------------

    def build(
        self, session: Session, *, policy: Policy | None = None, deadline_seconds: float | None = None
    ) -> Envelope:
        """Build the envelope for the session's next model call; `policy` replaces the builder's for this call.

        After `deadline_seconds` nothing more is compacted or recalled for this envelope: the history stays as it is,
        and the finding `build_deadline` reports it. If the model's window cannot take that history, the request shows
        only its newest part, and the finding `history_left_out` reports that.
        """
        _check_session(session)
        _check_policy(policy)
        with session.lock, Deadline(deadline_seconds) as deadline:
            if not _is_recorded():
                return self._built(session, policy, deadline)
            reserve = self.output_reserve_tokens
            prompt_tokens = self.window_tokens and self.window_tokens - reserve
            window = self.window_tokens
            with BuildSpan(self.model, self.counter.name, self.calibration, prompt_tokens, window) as span:
                envelope = self._built(session, policy, deadline)
                span.built(session, envelope)
        return envelope

    def _built(self, session: Session, policy: Policy | None, deadline: Deadline) -> Envelope:
        started = time.perf_counter()
        progress = BuildProgress(deadline=deadline)
        for _ in range(_TRIES):
            session.refresh()
            if (again := _before_answer(session)) is not None:
                before, finding = again
                layout = self._decider_under(self._head(before)).lay(before, before.state)
                with suppress(Conflict):
                    return self._envelope(before, layout, BuildProgress(findings=[finding]), started, keep=True)
                continue
            try:  # a head that does not fit raises before anything is decided
                head = self._head(session)
            except BudgetExceeded as error:
                with suppress(Conflict):  # without a report of records that were replaced meanwhile
                    error.report_id = keep_over_report(session, error, self._decider.compactor.now or session.now)
                raise
            with suppress(Conflict):
                decider = self._decider_under(head)
                decider = decider if policy is None else decider.with_policy(policy)
                decider = decider.dated_by(session.now)
                layout = decider.run(session, progress, head.estimated_tokens, self._guard_tokens(head))
                groups = self._newest_groups(session, decider, layout, head, progress)
                envelope = self._envelope(session, layout, progress, started, keep=True, groups=groups)
                if decider.ahead is not None and groups is None:
                    own, window = decider.beside_log(session, layout, head.estimated_tokens)
                    plan = partial(own.planned, session, window)
                    decider.ahead.consider(session, window, plan, envelope.render)
                session.findings[:] = still_told(session.findings)
                return envelope
        raise Conflict(session.id, session.state.position)

    def show_again(self, session: Session) -> Envelope:
        """Undo the session's newest compaction: show the messages again that it took out of the window.

        It is decided once and written to the log, so the next builds show them, too; called again, it goes one
        compaction further back. The envelope has its report. Raises `InputError` where nothing is left to undo, or
        where the next build would compact the messages again: then a builder with a larger budget can show them.
        """
        _check_session(session)
        started = time.perf_counter()
        with session.lock:
            for _ in range(_TRIES):
                session.refresh()
                head = self._head(session)
                decider = self._decider_under(head).dated_by(session.now)
                with suppress(Conflict):
                    event = decider.show_again(session, head.estimated_tokens, self._guard_tokens(head))
                    progress = BuildProgress(compacted=True, reports=(event.report,))
                    return self._envelope(session, decider.lay(session, session.state), progress, started, keep=True)
            raise Conflict(session.id, session.state.position)

    def preview(
        self,
        session: Session,
        user_turn: str | object | None = None,
        *,
        policy: Policy | None = None,
        compact: bool = True,
        deadline_seconds: float | None = None,
    ) -> Envelope:
        """Build the envelope as if `user_turn` were the next user message, but write nothing; see also `build`.

        With `compact=False` nothing is compacted, and the envelope may exceed the model's window: it shows how much the
        session needs at present.
        """
        _check_session(session)
        _check_policy(policy)
        with Deadline(deadline_seconds) as deadline:
            return self._previewed(session, user_turn, policy, compact, BuildProgress(deadline=deadline))

    def _previewed(
        self,
        session: Session,
        user_turn: str | object | None,
        policy: Policy | None,
        compact: bool,
        progress: BuildProgress,
    ) -> Envelope:
        scratch = session.draft()
        if user_turn is not None:
            asked = {"role": "user", "content": user_turn} if isinstance(user_turn, str) else user_turn
            scratch.append(asked, principal=speaker_of(scratch, scratch.state))
        head = self._head(scratch)
        decider = self._decider_under(head)
        if not compact:
            layout = decider.with_policy(_NEVER).run(scratch, progress, head.estimated_tokens)
            return self._envelope(scratch, layout, replace(progress, selection_seconds=0.0), sealed=False, fits=False)
        decider = decider if policy is None else decider.with_policy(policy)
        layout = decider.run(scratch, progress, head.estimated_tokens, self._guard_tokens(head))
        groups = self._newest_groups(scratch, decider, layout, head, progress)
        return self._envelope(scratch, layout, replace(progress, selection_seconds=0.0), sealed=False, groups=groups)

    def rebuild(
        self,
        session: Session,
        *,
        reports: tuple[CompressionReport, ...] = (),
        findings: tuple[Finding, ...] = (),
    ) -> Envelope:
        """Lay out a session at its position without decisions: no summarizer, no selector, no clock."""
        with session.lock:
            session.reread()
            new_findings = [finding for finding in findings if finding not in session.findings]
            layout = self._decider_under(self._head(session)).lay(session, session.state)
            fault = _seal_fault(session)
            if fault is not None:  # the envelope can be read and compared without the key that sealed it
                new_findings.append(Finding(kind="seal_key_wrong", field="seal", text=fault))
            progress = BuildProgress(reports=reports, findings=new_findings)
            return self._envelope(session, layout, progress, sealed=fault is None, groups=self._shown_groups)

    def calibrate(self, usage: object, envelope: Envelope | None = None, *, prompt_tokens: int | None = None) -> float:
        """Correct the estimates by the provider's usage report for `envelope` (default: the newest one).

        Pass the envelope if the builder serves several sessions. Envelopes that were already sent keep their bytes.

        Returns the new factor: provider tokens per estimated token, between 0.5 and 2.
        """
        estimated = self._estimated_tokens if envelope is None else int(envelope.metrics["estimated_tokens"])
        if prompt_tokens is not None:
            estimated = prompt_tokens
        self._scale = self._scale.corrected(prompt_tokens_of(usage), estimated)
        self._decider = self._decider.with_budgets(self._scale.effective)
        return self.calibration

    # -- parts of a build ---------------------------------------------------------------------------------------

    def _head(self, session: Session) -> HeadLayout:
        fixed, renderer = self.budgets.model_fields_set, self._decider.form.renderer
        return head_of(session, self._scale, self._target.counter, fixed, self._choose, renderer)

    def _scale_under(self, head: HeadLayout) -> Scale:
        """Return the scale with dynamic limited to the room that a head over its budget leaves."""
        if not any(f.kind == "head_budget_grown" for f in head.findings):
            return self._scale
        return self._scale.limited(dynamic_room(self._target, head.tokens))

    def _decider_under(self, head: HeadLayout) -> Decider:
        scale = self._scale_under(head)
        return self._decider if scale is self._scale else self._decider.with_budgets(scale.effective)

    def _guard_tokens(self, head: HeadLayout) -> int | None:
        """Return the largest dynamic, in our own tokens, with which the request passes the window's guard."""
        room = guarded_room(self._target, head.tokens)
        return None if room is None else int(room / self.calibration)

    def _envelope(
        self,
        session: Session,
        layout: DynamicLayout,
        decided: BuildProgress,
        started: float | None = None,
        *,
        keep: bool = False,
        sealed: bool = True,
        groups: frozenset[int] | None = None,
        fits: bool = True,
    ) -> Envelope:
        """Assemble an envelope; `groups` are the tool groups that the request shows, or None for all of them.

        An envelope that `fits` must not exceed the model's window.
        """
        head = self._head(session)
        scale = self._scale_under(head)
        whole = session
        if groups is not None:
            session = showing(whole, groups)
            layout = self._decider_under(head).lay(session, session.state)
        notices = self._notices
        if scale is not self._scale:
            notices = (*notices, limited_notice(self._target, scale.stated, self._scale.stated))
        target = self._target if fits else self._target._replace(window_tokens=None)
        sections = sections_of(session, head, layout, target, scale)
        if not whole.state.ordinal and not whole.state.notes:
            text = f"session {whole.id!r} has no message to answer; append the user's message first: session.append(…)"
            notices = (*notices, Finding(kind="nothing_to_answer", text=text))
        if sections["dynamic"].overflow_tokens:
            enough = self._enough_tokens(session, scale)
            notices = (*notices, overflow_finding(sections["dynamic"], enough, self.window_tokens))
        renderer = self._decider.form.renderer
        sent_as = self._sent_as or (session.id, session.state.position)
        address = address_in(session, sent_as[0], sections, head.tools_digest, renderer)
        if keep:
            decided = self._with_meta_report(whole, head, decided)
        build_seconds = 0.0 if started is None else time.perf_counter() - started
        envelope = assemble_envelope(
            session,
            head,
            layout,
            sections,
            address,
            decided,
            scale,
            notices,
            self._target,
            sent_as=sent_as,
            standing=standing_rules(whole),
            sealed=sealed,
            build_seconds=build_seconds,
            renderer=renderer,
            model=self.model,
        )
        envelope = with_rule_findings(envelope, whole.state, required=self.require_rules)
        if keep:
            kept = None if head.cut is None or self._choose is by_value else head.cut.kept
            configured = self._configuration()
            keep_manifest(whole, address, configured, decided.reports, decided.findings, kept, groups)
            self._estimated_tokens = int(envelope.metrics["estimated_tokens"])
        return envelope

    def _newest_groups(
        self, session: Session, decider: Decider, layout: DynamicLayout, head: HeadLayout, progress: BuildProgress
    ) -> frozenset[int] | None:
        """Return the tool groups to show if a due compaction was not made and the window cannot take all of them.

        Return None if all are shown; otherwise add a finding to `progress`.
        """
        room = dynamic_room(self._target, head.tokens)
        scale = self._scale_under(head)
        if room is None or scale.provider_tokens(layout.tokens) <= room:
            return None
        state = session.state
        if not progress.is_late and state.refused is None:
            return None
        _, window = decider.beside_log(session, layout, head.estimated_tokens)
        groups = newest_groups(window, int(room / scale.calibration) - layout.observations_tokens)
        if len(groups) == len(state.groups):
            return None
        progress.findings.append(left_out_finding(state, groups, self.window_tokens))
        return groups

    def _enough_tokens(self, session: Session, scale: Scale) -> int | None:
        """Return a budget of dynamic that its present content fits, or None if the model's window leaves less.

        Content that is never cut grows with the budget, because longer results stay whole on arrival. The layout under
        the widest budget therefore bounds the need, and the layout under that bound gives a lower one.
        """
        kept = session.cache.setdefault(("widest layout", self.counter.name), {})
        assert isinstance(kept, dict)
        tokens = WIDEST_DYNAMIC_TOKENS
        for cache in (kept, {}):  # reused between builds: each group is laid out once for the widest layout
            decider = self._decider.with_budgets(scale.with_dynamic(tokens).effective)
            tokens = _holding(decider.lay(session, session.state, cache), scale)
        room = dynamic_room(self._target, self._head(session).tokens)
        rounded = -(-tokens // ENOUGH_STEP_TOKENS) * ENOUGH_STEP_TOKENS
        return rounded if room is None or rounded <= room else None

    def _with_meta_report(self, session: Session, head: HeadLayout, decided: BuildProgress) -> BuildProgress:
        """Add the report of records that meta left out, in the first build that leaves them out."""
        if head.cut is None:
            return decided
        report = keep_meta_report(session, head.cut, self._decider.compactor.now or session.now)
        return decided if report is None else replace(decided, reports=(*decided.reports, report))

    def _configuration(self) -> str:
        if self._configured is None or self._configured[0] != self.calibration:
            renderer = self._decider.form.renderer
            text = configuration(self.model, self._target, self.budgets, self.calibration, renderer)
            self._configured = (self.calibration, text)
        return self._configured[1]

    # -- from a manifest ----------------------------------------------------------------------------------------

    @classmethod
    def from_manifest(cls, manifest: Wire) -> EnvelopeBuilder:
        """Return the builder that an envelope's manifest describes; it rebuilds and decides nothing."""
        version = manifest.get("renderer")
        make = RENDERERS.get(version) if isinstance(version, int) else None
        if make is None:
            kept = ", ".join(map(str, sorted(RENDERERS)))
            raise InputError(f"the envelope was made by renderer {version!r}; this version has {kept}")
        return make(manifest)

    @classmethod
    def _from_manifest(cls, manifest: Wire) -> EnvelopeBuilder:
        """Return the builder for a manifest of any version in `FORMS`."""
        builder = cls(
            tokenizer=manifest["tokenizer"],
            window_tokens=manifest["window_tokens"],
            output_reserve_tokens=manifest["output_reserve_tokens"],
            budgets=Budgets.from_document(manifest["budgets"]),
            summarizer=_undecided,
        )
        builder.model = manifest["model"]  # its prices and window have been looked up already
        counter = Counter(builder.counter.tokenizer, manifest["images"])
        if "meta_kept" in manifest:
            builder._choose = as_kept(frozenset(manifest["meta_kept"]))
        if "groups" in manifest:
            builder._shown_groups = frozenset(manifest["groups"])
        if "sent_as" in manifest:
            builder._sent_as = (manifest["sent_as"][0], manifest["sent_as"][1])
        builder._target = BuildTarget(counter, builder.window_tokens, builder.output_reserve_tokens)
        builder._scale = Scale(builder._scale.stated, manifest["calibration"])
        builder._decider = replace(builder._decider, form=FORMS[manifest["renderer"]])
        return builder


RENDERERS: Mapping[int, Callable[[Wire], EnvelopeBuilder]] = dict.fromkeys(FORMS, EnvelopeBuilder._from_manifest)
"""Makers of rebuilding builders by renderer version: the current version and the two before it."""


def _before_answer(session: Session) -> tuple[Session, Finding] | None:
    """Return the session before its newest answer, if the user turn that it answers was just sent again.

    A caller that lost the answer asks again with the same id. It gets the first request, not one that ends in its own
    answer. Returns None if nothing was sent again or the turn has no answer yet.
    """
    with session.lock:
        state = session.state
        answer = state.groups[-1].first if state.groups else 0
        is_answered = state.last_text == answer > state.last_user and not state.open_calls
        if not is_answered or not state.last_user or session.sent_again != state.last_user:
            return None
        before = session.past(answer - 1)
    text = f"this user turn was sent again after §{answer} had answered it: the request is the one before that answer"
    return before, Finding(kind="turn_already_answered", ref=f"§{answer}", text=text)


def _seal_fault(session: Session) -> str | None:
    """Return why envelopes of this session cannot be sealed, or None if they can."""
    try:
        _ = session.seal_key
    except StoreError as error:
        return f"the envelope has no seal: {error}"[:500]
    return None


def _selector_named(name: str) -> Selector:
    if name == "heuristic":
        return Heuristic()
    from ..recall.strategies import selector_named

    return selector_named(name)


def _check_policy(policy: object) -> None:
    check_argument("policy", policy, Policy, "pass Policy(…), or a name of PolicyName", optional=True)


def _holding(layout: DynamicLayout, scale: Scale) -> int:
    """Return the least budget of dynamic for this layout with all the bullets that it may have under that budget."""
    bullets_tokens = 0 if layout.bullets is None else layout.bullets.tokens
    tokens = scale.provider_tokens(layout.tokens)
    while True:  # ends, because bullets take only a fraction of the budget
        wider = scale.with_dynamic(tokens)
        more_tokens = max(0, wider.effective.bullets_tokens - bullets_tokens)
        needed = wider.provider_tokens(layout.tokens + more_tokens)
        if needed <= tokens:
            return tokens
        tokens = needed


def _check_session(session: object) -> None:
    if not isinstance(session, Session):
        what = "a list of messages" if isinstance(session, (list, tuple)) else type(session).__name__
        hint = 'session = store.session("s-1"); session.extend(messages); builder.build(session)'
        raise InputError(f"an envelope is built of a session, not of {what}; write: {hint}")


def _is_recorded() -> bool:
    """Return whether builds are recorded: the process has loaded OpenTelemetry, or the log of builds is on."""
    logging = sys.modules.get("logging")
    return API in sys.modules or (logging is not None and logging.getLogger(LOGGER).isEnabledFor(logging.INFO))


def _undecided(source: object, *, budget_tokens: int) -> Any:
    raise InputError("a builder made from a manifest rebuilds; it makes no new compactions")
