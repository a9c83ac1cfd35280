"""The builder: a session in, an envelope out.

`build` reads what other writers appended, makes at most one compaction and, first in a user turn, one selection,
writes the envelope's manifest, and lays out. All it decides is in the log; all it holds is configuration, so two
workers with the same configuration build the same bytes.

What the journal lost is regenerated where it can be and flagged where it cannot: see `DEGRADED` and `session`.

Raises `UnknownModel`, `InvalidBudget`, `BudgetExceeded`, `WindowExceeded`, `StoreError`.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import Any, Literal, NamedTuple

from ctxsteward.schemas import (
    CompressionReport,
    Conflict,
    Damaged,
    Erased,
    Finding,
    InputError,
    InvalidBudget,
    ReferenceNotFound,
    Replacing,
    Summarizer,
    UnknownModel,
    WindowExceeded,
    Wire,
)
from ctxsteward.schemas.seal import SealDocument

from . import telemetry
from .budgets import HEAD_SECTIONS, Budgets
from .compaction import Compactor
from .counting import Counter
from .envelope import RENDERER_VERSION, Envelope, Section, digest_behind, head_digested
from .events import Compacted, Selected
from .facts.choosing import offer, with_facts
from .facts.known import lines_of, speaker_of
from .groups import FINDING_TEXTS
from .history import Histories
from .images import ImageRule
from .keys import address_of
from .layout import META_STABLE_COMPACTIONS, DynamicLayout, HeadLayout, lay_dynamic, lay_head, window_findings
from .models import ModelInfo, model_info
from .policy import Policy, Window
from .ranking.heuristic import Heuristic
from .records import coded_manifest
from .seal import seal_envelope
from .selection import Selector, select, verbatim
from .session import Session
from .spans import BuildSpan
from .state import State
from .store import Store
from .tokens import REPLY_PRIMING_TOKENS, Tokenizer, load_tokenizer, prompt_tokens_of

CALIBRATION_WEIGHT = 0.3
"""How much one reported usage moves the estimate."""
CALIBRATION_RANGE = (0.5, 2.0)
_TRIES = 100

DEGRADED = frozenset(("original_damaged", "record_damaged", "rebuilt_differs"))
"""Kinds of findings that say something is truly gone: `metrics["degraded"]` is 1."""


@dataclass(slots=True)
class _Made:
    """What one call of `build` has written so far."""

    compacted: bool = False
    reports: tuple[CompressionReport, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    selection_seconds: float = 0.0


class _Decided(NamedTuple):
    """A layout and what was decided on the way to it."""

    layout: DynamicLayout
    reports: tuple[CompressionReport, ...]
    findings: list[Finding]
    selection_seconds: float = 0.0


class _Head(NamedTuple):
    """The head as it stands, laid out once a change."""

    layout: HeadLayout
    sections: dict[str, Section]
    tokens: int
    estimated: int
    """Before calibration."""
    version: str | None
    digested: bytes
    """Its part of the envelope's digest."""


class EnvelopeBuilder:
    """Builds envelopes for one model with one set of budgets."""

    def __init__(
        self,
        model: str | None = None,
        *,
        tokenizer: str | Tokenizer | None = None,
        window_tokens: int | None = None,
        output_reserve_tokens: int | None = None,
        budgets: Budgets | None = None,
        summarizer: str | Summarizer = "extractive",
        selector: Selector | Literal["heuristic"] | None = "heuristic",
        policy: Policy | None = None,
        now: Callable[[], str] | None = None,
    ) -> None:
        info = _model(model, tokenizer)
        self.model = model
        if window_tokens is not None and window_tokens < 1:
            raise InvalidBudget("window_tokens", window_tokens, "at least 1 token, or None for no limit")
        if output_reserve_tokens is not None and output_reserve_tokens < 0:
            raise InvalidBudget("output_reserve_tokens", output_reserve_tokens, "0 or more tokens")
        self.window_tokens = window_tokens or (info.window_tokens if info else None)
        if output_reserve_tokens and self.window_tokens is not None and output_reserve_tokens >= self.window_tokens:
            raise InvalidBudget("output_reserve_tokens", output_reserve_tokens, f"less than {self.window_tokens}")
        if output_reserve_tokens is not None:
            reserve = output_reserve_tokens
        else:
            published = info.output_reserve_tokens if info else 0
            reserve = published if window_tokens is None else min(published, window_tokens // 2)
        self.output_reserve_tokens = reserve
        self.budgets = budgets or Budgets()
        self.counter = _make_counter(tokenizer, info)
        self.policy = policy or Policy()
        self.selector: Selector | None = Heuristic() if selector == "heuristic" else selector
        self._histories = Histories(_replacing, self.counter)
        self.calibration = 1.0
        """Provider-reported tokens per estimated token; see `calibrate`."""
        self._stated = self._effective = self._stated_budgets()
        self._compactor = Compactor(
            policy=self.policy,
            summarizer=load_summarizer(summarizer) if isinstance(summarizer, str) else summarizer,
            counter=self.counter,
            budgets=self._effective,
            now=now,
        )

    # -- the main job -------------------------------------------------------------------------------------------

    def build(self, session: Session) -> Envelope:
        """The envelope for the next model call of this session."""
        with session.lock, BuildSpan(self) as span:
            envelope = self._built(session)
            span.built(session, envelope)
        return envelope

    def _built(self, session: Session) -> Envelope:
        started = time.perf_counter()
        made = _Made()
        for _ in range(_TRIES):
            session.refresh()
            self._head(session, session.state)  # a head that does not fit says so before anything is decided
            with suppress(Conflict):
                decided = self._decide(session, made)
                return self._envelope(session, session.state, decided, started, keep=True)
        raise Conflict(session.id, session.state.position)

    def preview(self, session: Session, user_turn: str | object | None = None) -> Envelope:
        """The envelope as if `user_turn` were the next user message; writes nothing."""
        scratch = session.draft()
        if user_turn is not None:
            asked = {"role": "user", "content": user_turn} if isinstance(user_turn, str) else user_turn
            scratch.append(asked, principal=speaker_of(scratch, scratch.state))
        return self._envelope(scratch, scratch.state, self._decide(scratch, _Made()), sealed=False)

    def rebuild(
        self,
        session: Session,
        *,
        reports: tuple[CompressionReport, ...] = (),
        findings: tuple[Finding, ...] = (),
    ) -> Envelope:
        """Lay out a session as it stands, deciding nothing: no summarizer, no selector, no clock."""
        with session.lock:
            told = [finding for finding in findings if finding not in session.findings]
            decided = _Decided(self._lay(session, session.state), reports, told)
            return self._envelope(session, session.state, decided)

    def calibrate(self, usage: object, envelope: Envelope | None = None, *, prompt_tokens: int | None = None) -> float:
        """Correct the estimates by what the provider reported for `envelope` (default: the one built last).

        Pass the envelope where a builder serves several sessions. Bytes already sent are never laid out anew for it.

        Returns the factor now in force: provider tokens per estimated token, within 0.5 and 2.
        """
        reported = prompt_tokens_of(usage)
        estimated = prompt_tokens if prompt_tokens is not None else self._last_estimate(envelope)
        if estimated > 0 and reported > 0:
            low, high = CALIBRATION_RANGE
            ratio = min(high, max(low, reported / estimated))
            moved = self.calibration + CALIBRATION_WEIGHT * (ratio - self.calibration)
            self.calibration = round(moved, 4)
            self._effective = self._stated.scaled(1 / self.calibration)
            self._compactor = self._compactor.with_budgets(self._effective)
        return self.calibration

    @property
    def effective_budgets(self) -> Budgets:
        """Budgets in this builder's own estimated tokens: the caller's, divided by the calibration.

        Without a selector nothing is ever recalled, so the history gets recall's share (unless the caller set it).
        """
        return self._effective

    def _stated_budgets(self) -> Budgets:
        """In the provider's tokens: the caller's, within the model's window."""
        budgets = self.budgets if self.selector is not None else self.budgets.without_recall()
        if self.window_tokens is not None:
            head = sum(getattr(budgets, f"{name}_tokens") for name in HEAD_SECTIONS) + (budgets.tools_tokens or 0)
            room = self.window_tokens - self.output_reserve_tokens - head - REPLY_PRIMING_TOKENS
            if 0 < room < budgets.dynamic_tokens:  # with no room at all, the build says so
                text = (
                    f"the window of {self.window_tokens} tokens leaves {room} for dynamic, not {budgets.dynamic_tokens}"
                )
                self._notices = (Finding(kind="budget_limited_by_window", field="budgets.dynamic_tokens", text=text),)
                budgets = budgets.limited(room)
        return budgets

    # -- deciding -----------------------------------------------------------------------------------------------

    def _decide(self, session: Session, made: _Made) -> _Decided:
        """Compact and select where due; `made` remembers over a retry what this build has already written."""
        state = session.state
        layout = self._lay(session, state)
        window = Window(state, layout, self._effective)
        if not made.compacted and self.policy.due(window):
            place = b"%d\x00" % state.position  # one that is made again after damage goes by another address
            outcome = self._compactor.run(
                state, window, lambda kind, data: address_of(session.address_key, session.id, kind, place + data)
            )
            if outcome.event is not None:
                session.commit(outcome.event)
            made.compacted = True
            made.findings += outcome.findings
            if isinstance(outcome.event, Compacted):
                made.reports += (outcome.event.report,)
                layout = self._lay(session, state)
                window = Window(state, layout, self._effective)
        if self._select(session, window, made):
            layout = self._lay(session, state)
        return _Decided(layout, made.reports, made.findings, made.selection_seconds)

    def _select(self, session: Session, window: Window, made: _Made) -> bool:
        """Recall for this user turn, or give up what was recalled where there is no room any more."""
        state = session.state
        if state.recalled is not None:
            over = window.context_tokens and window.section_tokens > self._effective.dynamic_tokens
            if not over and made.compacted and (left := _still_paired(state.recalled, state)) is not state.recalled:
                session.commit(left)
                return True
            if not over:
                return False
            text = "the history left no room for recalled messages"
            session.commit(Selected(turn=state.last_user, refs=(), log={}))
            made.findings.append(Finding(kind="recall_dropped", field="dynamic", text=text))
            return True
        if self.selector is None or not self.budgets.recall_fraction or not state.last_user:
            return False
        if state.in_loop and not made.compacted:
            return False  # what a turn did not need at its first call it gets only where the prefix is new anyway
        budgets = self._effective
        room = budgets.dynamic_tokens - max(budgets.history_tokens, window.history_tokens)
        started = time.perf_counter()
        facts = offer(session, state, room, self.counter, budgets.facts_fraction)
        recalled: Selected | None = None
        findings: tuple[Finding, ...] = ()
        try:
            picked = select(self.selector, session, state, room - facts.tokens, self.counter, self._histories)
            if picked is not None:
                recalled, findings = picked.event, picked.findings
        except Exception as error:  # a selector is the caller's code: whatever it raises, the call goes on without
            text = f"nothing was recalled: the selector failed: {type(error).__name__}: {error}"
            recalled = Selected(turn=state.last_user, refs=(), log={})
            findings = (Finding(kind="selection_failed", field="dynamic", text=text),)
        event = with_facts(facts, recalled, session, state, room, self.counter)
        made.selection_seconds += time.perf_counter() - started
        if event is None:
            made.findings += facts.findings
            return False
        session.commit(event)
        made.findings += [*findings, *facts.findings]
        return True

    # -- laying out ---------------------------------------------------------------------------------------------

    def _lay(self, session: Session, state: State) -> DynamicLayout:
        return lay_dynamic(
            state, self._effective, self.counter, session.shown, session.cache, partial(lines_of, session)
        )

    def _head(self, session: Session, state: State) -> _Head:
        fixed = frozenset(self.budgets.model_fields_set)
        stable = state.compactions <= META_STABLE_COMPACTIONS
        key = (state.head_at, self.counter.name, self._effective, fixed, self.calibration, stable)
        found = session.cache.get("head")
        if isinstance(found, tuple) and found[0] == key:
            head: _Head = found[1]
            return head
        layout = lay_head(state.head, self._effective, self.counter, state.compactions)
        epoch = max(0, state.heads - 1)
        sections = {name: self._head_section(name, layout, epoch) for name in HEAD_SECTIONS}
        if not stable:
            before = lay_head(state.head, self._effective, self.counter, 0)
            if [f.digest for f in before.meta] != [f.digest for f in layout.meta]:
                sections["meta"] = replace(sections["meta"], epoch=epoch + 1)
        tokens = sum(section.tokens for section in sections.values()) + self._provider_tokens(layout.tools_tokens)
        profile = state.head.profile
        version = None if profile is None else _profile_version(session, profile)
        estimated = sum(f.tokens for name in HEAD_SECTIONS for f in layout.section(name)) + layout.tools_tokens
        digested = head_digested(session.tenant, session.id, version, sections)
        head = _Head(layout, sections, tokens, estimated, version, digested)
        session.cache["head"] = (key, head)
        return head

    def _head_section(self, name: str, layout: HeadLayout, epoch: int) -> Section:
        fragments = layout.section(name)
        tokens = sum(fragment.tokens for fragment in fragments)
        content = hashlib.sha256(b"".join(fragment.digest for fragment in fragments)).digest()
        return Section(
            name=name, source=layout, budget_tokens=self._stated_tokens(name, layout), epoch=epoch,
            tokens=self._provider_tokens(tokens), content=content,
        )  # fmt: skip

    def _stated_tokens(self, name: str, layout: HeadLayout) -> int:
        """A head budget as the caller knows it, or what it grew to."""
        stated: int = getattr(self._stated, f"{name}_tokens")
        grown = layout.budgets[name]
        unchanged = grown == getattr(self._effective, f"{name}_tokens")
        return stated if unchanged else max(stated, self._provider_tokens(grown))

    def _provider_tokens(self, tokens: int) -> int:
        return tokens if self.calibration == 1.0 else round(tokens * self.calibration)

    def _envelope(
        self,
        session: Session,
        state: State,
        decided: _Decided,
        started: float | None = None,
        *,
        keep: bool = False,
        sealed: bool = True,
    ) -> Envelope:
        head, dynamic = self._head(session, state), decided.layout
        section = Section(
            name="dynamic",
            source=dynamic,
            budget_tokens=self._stated.dynamic_tokens,
            epoch=state.compactions,
            tokens=self._provider_tokens(dynamic.tokens), content=dynamic.digest(),
        )  # fmt: skip
        sections = {**head.sections, "dynamic": section}
        prompt = head.tokens + section.tokens + REPLY_PRIMING_TOKENS
        estimated = head.estimated + dynamic.tokens + REPLY_PRIMING_TOKENS
        if self.window_tokens is not None and prompt > self.window_tokens - self.output_reserve_tokens:
            raise WindowExceeded(prompt, self.window_tokens, self.output_reserve_tokens)
        digest = digest_behind(head.digested, section, head.layout.tools_digest)
        findings = [*self._notices, *session.findings, *head.layout.findings, *decided.findings, *dynamic.findings]
        if state.repaired or state.open_calls:
            findings += window_findings(state)
        if session.missing and dynamic.context is not None:
            findings += _damaged(n for n in dynamic.context.refs if n in session.missing)
        address = address_of(session.address_key, session.id, "envelope", digest)
        if keep:
            self._keep_manifest(session, address, decided, estimated)
        return Envelope(
            tenant=session.tenant,
            session=session.id,
            nonce=state.nonce,
            profile_version=head.version,
            head=head.layout,
            dynamic=dynamic,
            sections=sections,
            reports=decided.reports,
            findings=tuple(findings),
            metrics={
                "prompt_tokens": prompt,
                "estimated_tokens": estimated,
                "stable_tokens": head.tokens + self._provider_tokens(dynamic.prefix_tokens),
                "tools_tokens": self._provider_tokens(head.layout.tools_tokens),
                "messages": state.ordinal,
                "compactions": state.compactions,
                "degraded": int(bool(findings) and any(finding.kind in DEGRADED for finding in findings)),
            },
            address=address,
            position=state.position,
            seal=self._seal(session, state, head.version, address) if sealed else None,
            build_ms=0.0 if started is None else _ms(time.perf_counter() - started - decided.selection_seconds),
            selection_ms=0.0 if started is None else _ms(decided.selection_seconds),
        )

    def _seal(self, session: Session, state: State, version: str | None, address: str) -> SealDocument:
        return seal_envelope(
            session.seal_key, tenant=session.tenant, session=session.id, profile_version=version,
            position=state.position, address=address,
        )  # fmt: skip

    # -- manifests ----------------------------------------------------------------------------------------------

    def _keep_manifest(self, session: Session, address: str, decided: _Decided, estimated: int) -> None:
        """Write down what is needed to lay this envelope out again: where in the log, with which configuration."""
        made = ""
        if decided.reports or decided.findings or session.findings:
            reports = [report.id for report in decided.reports]
            findings = [finding.model_dump() for finding in (*session.findings, *decided.findings)]
            made = f'"reports":{json.dumps(reports)},"findings":{json.dumps(findings)},'
        fields = f'"session":{_quoted(session.id)},"position":{session.state.position},{made}{self._manifest_tail()}'
        session.journal.put_manifest(session.key, address, coded_manifest(session.address_key, address, fields))
        self._estimate = estimated

    def _manifest_tail(self) -> str:
        if self._tail is None or self._tail[0] != self.calibration:
            fields: Wire = {
                "renderer": RENDERER_VERSION,
                "model": self.model,
                "tokenizer": self.counter.tokenizer.name,
                "images": self.counter.images,
                "window_tokens": self.window_tokens,
                "output_reserve_tokens": self.output_reserve_tokens,
                "budgets": self.budgets.document(),
                "calibration": self.calibration,
            }
            self._tail = (self.calibration, json.dumps(fields)[1:-1])
        return self._tail[1]

    _notices: tuple[Finding, ...] = ()
    _tail: tuple[float, str] | None = None
    _estimate: int = 0

    def _last_estimate(self, envelope: Envelope | None) -> int:
        return int(envelope.metrics["estimated_tokens"]) if envelope is not None else self._estimate

    @classmethod
    def from_manifest(cls, manifest: Wire) -> EnvelopeBuilder:
        """The builder that an envelope's manifest describes; it can rebuild, and decides nothing."""
        version = manifest.get("renderer")
        make = RENDERERS.get(version) if isinstance(version, int) else None
        if make is None:
            kept = ", ".join(map(str, sorted(RENDERERS)))
            raise InputError(f"the envelope was made by renderer {version!r}; this version has {kept}")
        return make(manifest)

    @classmethod
    def _from_manifest(cls, manifest: Wire) -> EnvelopeBuilder:
        """Renderer 1."""
        builder = cls(
            tokenizer=manifest["tokenizer"],
            window_tokens=manifest["window_tokens"],
            output_reserve_tokens=manifest["output_reserve_tokens"],
            budgets=Budgets.from_document(manifest["budgets"]),
            summarizer=_undecided,
        )
        builder.output_reserve_tokens = manifest["output_reserve_tokens"]
        builder.counter = Counter(builder.counter.tokenizer, manifest["images"])
        builder.calibration = manifest["calibration"]
        if builder.calibration != 1.0:
            builder._effective = builder._stated.scaled(1 / builder.calibration)
        return builder


RENDERERS: Mapping[int, Callable[[Wire], EnvelopeBuilder]] = {
    RENDERER_VERSION: EnvelopeBuilder._from_manifest,
}
"""What rebuilds an envelope, by the renderer that made it: this major version and the one before are kept."""


def rebuild(store: Store, address: str, *, tenant: str = "default") -> Envelope:
    """A past envelope again, byte for byte, out of the log and its manifest alone.

    Where the log no longer holds what the envelope was laid out from (something was damaged, or forgotten), the result
    has another address and the finding ``rebuilt_differs``.

    Raises `ReferenceNotFound` for an address that was never built here, `Damaged` where its manifest is, `Erased` for a
    session that was forgotten.
    """
    try:
        manifest = store.manifest(address, tenant=tenant)
    except Damaged:
        telemetry.cache_miss("manifest")
        raise
    builder = EnvelopeBuilder.from_manifest(manifest)
    session = store.at(tenant, manifest["session"], manifest["position"])
    reports, lost = _reports(store, manifest.get("reports", ()), tenant)
    findings = tuple(Finding.model_validate(finding) for finding in manifest.get("findings", ()))
    envelope = builder.rebuild(session, reports=reports, findings=findings)
    if envelope.address == address and not lost:
        return envelope
    telemetry.cache_miss("envelope")
    what = f"; its compactions {', '.join(id[:16] + '…' for id in lost)} cannot be read" if lost else ""
    text = f"the log no longer holds all that envelope {address[:16]}… was laid out from: this is another one{what}"
    differs = Finding(kind="rebuilt_differs", text=text)
    return replace(envelope, findings=(*envelope.findings, differs), metrics={**envelope.metrics, "degraded": 1})


def _reports(store: Store, ids: Sequence[str], tenant: str) -> tuple[tuple[CompressionReport, ...], list[str]]:
    """The reports of these compactions, and the ids of those that cannot be read any more."""
    reports: list[CompressionReport] = []
    lost: list[str] = []
    for id in ids:
        try:
            reports.append(store.compaction(id, tenant=tenant).report)
        except (Damaged, Erased, ReferenceNotFound):
            lost.append(id)
    return tuple(reports), lost


def _damaged(ordinals: Iterator[int]) -> Iterator[Finding]:
    for ordinal in ordinals:
        yield Finding(kind="original_damaged", ref=f"§{ordinal}", text=FINDING_TEXTS["original_damaged"])


def _undecided(source: object, *, budget_tokens: int) -> Any:
    raise InputError("a builder made from a manifest rebuilds; it makes no new compactions")


def load_summarizer(name: str) -> Summarizer:
    """The summarizer installed under this name (entry-point group ``ctxsteward.summarizers``)."""
    found: Summarizer = _installed("ctxsteward.summarizers", "summarizer", name)
    return found


def _replacing() -> Replacing:
    """A new reader of what replaces what, for one session."""
    made: Replacing = _installed("ctxsteward.replacing", "reader of replacements", "extractive")()
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


def _model(model: str | None, tokenizer: str | Tokenizer | None) -> ModelInfo | None:
    """What is published of a model; None for one of the caller's own, which brings a tokenizer."""
    if model is None:
        if tokenizer is None:
            raise InputError("give the builder model='gpt-4o' (or another), or tokenizer= and window_tokens=")
        return None
    try:
        return model_info(model)
    except UnknownModel:
        if tokenizer is None:
            raise
        return None


def _still_paired(recalled: Selected, state: State) -> Selected:
    """What was recalled, without messages whose later ones a compaction has taken out of the window."""
    here = verbatim(state).union(recalled.refs)
    alone = {old for old, newer in recalled.superseded.items() if not here.issuperset(newer)}
    if not alone:
        return recalled
    refs = tuple(ordinal for ordinal in recalled.refs if ordinal not in alone)
    superseded = {old: newer for old, newer in recalled.superseded.items() if old not in alone}
    return _still_paired(replace(recalled, refs=refs, superseded=superseded), state)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _make_counter(tokenizer: str | Tokenizer | None, info: ModelInfo | None) -> Counter:
    images: ImageRule = info.images if info else "openai-tiles"
    if tokenizer is None:
        assert info is not None
        tokenizer = info.encoding
    return Counter(load_tokenizer(tokenizer) if isinstance(tokenizer, str) else tokenizer, images)


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return json.dumps(text)


def _profile_version(session: Session, profile: Wire) -> str:
    found = session.cache.get("profile_version")
    if isinstance(found, tuple) and found[0] is profile:
        version: str = found[1]
        return version
    data = json.dumps(profile, sort_keys=True, ensure_ascii=False).encode()
    version = address_of(session.address_key, session.tenant, "profile", data)
    session.cache["profile_version"] = (profile, version)
    return version


__all__ = ["EnvelopeBuilder", "load_summarizer", "rebuild"]
