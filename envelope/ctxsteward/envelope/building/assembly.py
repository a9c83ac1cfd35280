"""Assemble an envelope around the decisions of a build (`decider`).

The builder calls the parts in this order: `head_of`, `Decider.run`, `sections_of`, `address_in`, `keep_manifest`,
`assemble_envelope`.

`head_of` lays out and counts system, static and meta. Its result is cached until one of these changes: the head event
in the log, the budgets, the calibration, or, once in a session's life, the rule for meta: after enough compactions of
dynamic, records are left out if meta is over its trigger (`layout.meta_section`).

A manifest has everything needed to lay a built envelope out again: a JSON object, sealed by its code, with session,
position, ids of the build's compactions, its findings, and the builder's configuration, which is written once and
reused. Reports of meta are stored with the manifests, in the same form, each at its own address.

Raises `BudgetExceeded`, `WindowExceeded` (the prompt leaves the output less than its reserve) and the journal's errors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import lru_cache, partial

from ctxsteward.schemas import BudgetExceeded, CompressionReport, Finding, WindowExceeded
from ctxsteward.schemas.errors import RulesNotVisible
from ctxsteward.schemas.findings import LOSSES, fixed_finding
from ctxsteward.schemas.message import Wire
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.profiles.text import Profile

from ..compaction.compactor import rule_reader
from ..envelope import PROVIDERS, Envelope, Section, digest_of, seal_envelope
from ..history.session import Session
from ..history.standing_rules import StandingRule, held_rules_finding, profile_rules, session_rules
from ..history.state import State
from ..layout.composition import DynamicLayout, HeadLayout, lay_head, window_findings
from ..layout.fragments import MessageStep, cached
from ..layout.meta_section import META_STABLE_COMPACTIONS, ChooseRecords, MetaCut, report_of
from ..layout.rows import FORMS, RENDERER_VERSION
from ..tokens.budgets import HEAD_SECTIONS, Budgets, BuildTarget, Scale, guard_notice
from ..tokens.tokenizer import REPLY_PRIMING_TOKENS, Counter
from .decider import BuildProgress

# -- the envelope -------------------------------------------------------------------------------------------------


def head_of(
    session: Session,
    scale: Scale,
    counter: Counter,
    fixed: Set[str],
    choose: ChooseRecords,
    renderer: int = RENDERER_VERSION,
) -> HeadLayout:
    """Return a session's head layout, cached if nothing changed; `fixed` are the budgets that the caller set."""
    state = session.state
    stable = state.head.profile is None or state.compactions <= META_STABLE_COMPACTIONS
    key = (state.head_at, counter.name, scale.effective, frozenset(fixed), scale.calibration, stable, choose, renderer)
    entry = session.cache.get("head")
    if isinstance(entry, tuple) and entry[0] == key:
        known: HeadLayout = entry[1]
        return known
    form, epoch = FORMS[renderer], max(0, state.heads - 1)
    head = lay_head(state.head, scale, counter, state.compactions, choose, form, epoch)
    if not stable:
        before = lay_head(state.head, scale, counter, 0, choose, form, epoch)
        if [f.digest for f in before.meta] != [f.digest for f in head.meta]:
            head = replace(head, epochs=head.epochs | {"meta": epoch + 1})
    session.cache["head"] = (key, head)
    return head


def profile_version(session: Session) -> str | None:
    """Return the address of the profile that a session pins, or None."""
    profile = session.state.head.profile
    if profile is None:
        return None

    def address() -> str:
        data = json.dumps(profile, sort_keys=True, ensure_ascii=False).encode()
        return address_of(session.address_key, session.tenant, "profile", data)

    return cached(session.cache, "profile_version", session.state.head_at, address)


def sections_of(
    session: Session, head: HeadLayout, dynamic: DynamicLayout, target: BuildTarget, scale: Scale
) -> dict[str, Section]:
    """Return the sections with their tokens and digests; raise `WindowExceeded`."""
    basis = head, scale.calibration
    sections = dict(cached(session.cache, "head sections", basis, partial(_head_sections, head, scale)))
    tokens = scale.provider_tokens(dynamic.tokens)
    sections["dynamic"] = Section(
        name="dynamic",
        source=dynamic,
        budget_tokens=scale.stated.limit_of(tokens),
        epoch=session.state.compactions,
        tokens=tokens,
        content=dynamic.digest(),
    )
    prompt_tokens = head.tokens + sections["dynamic"].tokens + REPLY_PRIMING_TOKENS
    if target.window_tokens is not None and prompt_tokens > target.window_tokens - target.output_reserve_tokens:
        raise WindowExceeded(prompt_tokens, target.window_tokens, target.output_reserve_tokens, head.tokens)
    return sections


def _head_sections(head: HeadLayout, scale: Scale) -> dict[str, Section]:
    return {
        name: Section(
            name=name,
            source=head,
            budget_tokens=head.budgets[name],
            epoch=head.epochs[name],
            tokens=scale.provider_tokens(sum(fragment.tokens for fragment in head.section(name))),
            content=hashlib.sha256(b"".join(fragment.digest for fragment in head.section(name))).digest(),
        )
        for name in HEAD_SECTIONS
    }


def address_in(session: Session, name: str, sections: dict[str, Section], tools_digest: bytes, renderer: int) -> str:
    """Return the address of an envelope with these sections; `name` is the session's when it was sent."""
    digest = digest_of(session.tenant, name, profile_version(session), sections, tools_digest, renderer)
    return address_of(session.address_key, name, "envelope", digest)


def assemble_envelope(
    session: Session,
    head: HeadLayout,
    dynamic: DynamicLayout,
    sections: dict[str, Section],
    address: str,
    decided: BuildProgress,
    scale: Scale,
    notices: Sequence[Finding],
    target: BuildTarget,
    *,
    sent_as: tuple[str, int],
    standing: tuple[StandingRule, ...],
    sealed: bool,
    build_seconds: float,
    renderer: int,
    model: str | None,
) -> Envelope:
    """Return the envelope of a session at its current position; `notices` are findings about the builder itself.

    `sent_as` has the session's name and the position when the envelope was sent.
    """
    state = session.state
    prompt_tokens = head.tokens + sections["dynamic"].tokens + REPLY_PRIMING_TOKENS
    findings = [*notices, *session.findings, *head.findings, *decided.findings, *dynamic.findings]
    if state.repaired or state.open_calls:
        findings += window_findings(state)
    if state.shortened:
        findings += shortened_findings(state, dynamic)
    if session.missing and dynamic.context is not None:
        lost = (n for n in dynamic.context.refs if n in session.missing)
        findings += [fixed_finding("original_damaged", f"§{n}") for n in lost]
    if (notice := guard_notice(prompt_tokens, target)) is not None:
        findings.append(notice)
    version = profile_version(session)
    seal = None
    if sealed:
        seal = seal_envelope(
            session.seal_key,
            tenant=session.tenant,
            session=sent_as[0],
            profile_version=version,
            position=sent_as[1],
            address=address,
            renderer=renderer,
        )
    return Envelope(
        tenant=session.tenant,
        session=sent_as[0],
        nonce=state.nonce,
        profile_version=version,
        head=head,
        dynamic=dynamic,
        sections=sections,
        reports=decided.reports,
        findings=tuple(findings),
        metrics={
            "prompt_tokens": prompt_tokens,
            "estimated_tokens": head.estimated_tokens + dynamic.tokens + REPLY_PRIMING_TOKENS,
            "stable_tokens": head.tokens + scale.provider_tokens(dynamic.prefix_tokens),
            "tools_tokens": scale.provider_tokens(head.tools_tokens),
            "messages": state.ordinal,
            "compactions": state.compactions,
            "degraded": int(bool(findings) and any(finding.kind in LOSSES for finding in findings)),
        },
        address=address,
        position=sent_as[1],
        renderer=renderer,
        standing=standing,
        model=model,
        seal=seal,
        build_ms=round((build_seconds - decided.selection_seconds) * 1000, 3),
        selection_ms=round(decided.selection_seconds * 1000, 3),
    )


def standing_rules(session: Session) -> tuple[StandingRule, ...]:
    """Return the rules that the next call of a session has to show, and those that are lifted in its window."""
    state = session.state

    def of_profile() -> tuple[StandingRule, ...]:
        if state.head.profile is None:
            return ()
        return profile_rules(Profile.model_validate(state.head.profile), (profile_version(session) or "")[:16])

    head_rules = cached(session.cache, "profile rules", state.head_at, of_profile)
    return (*head_rules, *session_rules(state, rule_reader()))


def with_rule_findings(envelope: Envelope, state: State, *, required: bool) -> Envelope:
    """Add findings about standing rules that the request does not show.

    With `required` the requests for all providers are read, and `RulesNotVisible` is raised instead. Otherwise one is
    read, and only where a rule may be missing: the operator's sections are never cut.
    """
    findings = [] if (full := held_rules_finding(state)) is None else [full]
    may_miss = required or any(rule.kind in ("user", "pin") for rule in envelope.standing)
    providers = PROVIDERS if required else PROVIDERS[:1]
    statements = [envelope.rules_in(provider) for provider in providers] if may_miss else []
    missing = dict.fromkeys(rule for statement in statements for rule in statement.missing)
    if missing and required:
        raise RulesNotVisible([rule.ref for rule in missing])
    for rule in missing:
        text = f"the rule {rule.id} ({rule.ref}) stands, and the request does not show its words"
        ref = rule.ref if rule.ref.startswith("§") else None
        findings.append(Finding(kind="rule_not_visible", ref=ref, field="dynamic", text=text))
    return replace(envelope, findings=(*envelope.findings, *findings)) if findings else envelope


def shortened_findings(state: State, dynamic: DynamicLayout) -> list[Finding]:
    """Return findings about messages of the last turn of both sides, and the task, that are shown shortened.

    Older shortened texts get no finding: the window has their references, as it has those of compacted messages.
    """
    told = {state.last_user, state.last_text, state.answered, state.task}
    counter = dynamic.strip.counter
    findings: list[Finding] = []
    for group, fragment in zip(state.groups, dynamic.strip.fragments, strict=True):
        original = group.entries[0]
        if group.first not in state.shortened or original.ordinal not in told:
            continue
        shown = next((one.entry for one in fragment.steps if isinstance(one, MessageStep)), original)
        if shown.is_shortened and shown.ordinal == original.ordinal:
            text = (
                f"{original.ref} ({original.message.role}) is shown shortened to {shown.tokens(counter)} of its "
                f"{original.tokens(counter)} tokens; the original is {original.ref}"
            )
            findings.append(Finding(kind="message_shortened", ref=original.ref, text=text))
    return findings


def overflow_finding(section: Section, enough_tokens: int | None, window_tokens: int | None) -> Finding:
    """Report that dynamic exceeds its budget by messages that are never cut; a budget of `enough_tokens` fits them."""
    over = f"{section.overflow_tokens} over its budget of {section.budget_tokens}"
    text = f"dynamic takes {section.tokens} tokens, {over}"
    if enough_tokens is None:
        hint = f"the model's window of {window_tokens} leaves no more; take a model with a larger one"
    else:
        hint = f"set dynamic_tokens={enough_tokens}, or shorten the newest messages"
    why = "the newest messages and results, what is pinned, and what a refused compaction left are not cut"
    text = f"{text}: {why}; {hint}"
    return Finding(kind="dynamic_over_budget", field="budgets.dynamic_tokens", text=text)


# -- the manifest -------------------------------------------------------------------------------------------------


def configuration(
    model: str | None, target: BuildTarget, budgets: Budgets, calibration: float, renderer: int = RENDERER_VERSION
) -> str:
    """Return the builder's settings that an envelope's bytes depend on, as JSON fields."""
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
    groups: Set[int] | None = None,
) -> None:
    """Store the manifest of the envelope at this address; `findings` are the build's, without the session's.

    `meta_kept` are ids of records that were chosen otherwise than by value. `groups` are first ordinals of the tool
    groups that the envelope shows, if it does not show all of them.
    """
    decided = "" if meta_kept is None else f'"meta_kept":{json.dumps(list(meta_kept))},'
    decided += "" if groups is None else f'"groups":{json.dumps(sorted(groups))},'
    if reports or findings or session.findings:
        ids = [report.id for report in reports]
        all_findings = [finding.model_dump() for finding in (*session.findings, *findings)]
        decided += f'"reports":{json.dumps(ids)},"findings":{json.dumps(all_findings)},'
    fields = f'"session":{_quoted(session.id)},"position":{session.state.position},{decided}{configured}'
    session.replica.put_manifest(address, fields)


def keep_meta_report(session: Session, cut: MetaCut, now: Callable[[], str] | None) -> CompressionReport | None:
    """Store the report of records that meta left out, once for ever; return None if it is stored already."""
    asked = (session.state.head_at, cut)
    if session.cache.get("meta_report") == asked:
        return None
    key = session.address_key
    report = report_of(cut, key, session.id, session.state.head_at)
    report = report.model_copy(update={"created_at": now() if now else None})  # a caller's clock: checked below
    is_new = _keep_report(session, report)
    session.cache["meta_report"] = asked
    return report if is_new else None


NOT_SHORTENED = "over, not shortened"
"""Policy in the report of a section that is never cut."""


def keep_over_report(session: Session, error: BudgetExceeded, now: Callable[[], str] | None) -> str | None:
    """Store the report of a head section that does not fit, once for ever; return its address, or None for tools."""
    if error.section not in ("system", "static"):
        return None
    facts = [session.state.head_at, error.section, error.tokens, error.budget_tokens]
    name = address_of(session.address_key, session.id, "head_report", json.dumps(facts).encode())
    report = CompressionReport(
        id=name,
        section="system" if error.section == "system" else "static",
        pre_tokens=error.tokens,
        post_tokens=error.tokens,
        losses=(),
        kept_refs=(),
        policy=f"{NOT_SHORTENED} (budget {error.budget_tokens})",
        source_addresses=(),
        artifact=name,
        created_at=now() if now else None,
    )
    _keep_report(session, report)
    return name


def _keep_report(session: Session, report: CompressionReport) -> bool:
    """Store a report with the manifests, at its own address; return False if it is stored already."""
    if session.journal.get_manifest(session.tenant, report.id) is not None:
        return False
    from ctxsteward.schemas.publish import validate

    where = f"session {session.id!r}: report of {report.section}"
    validate("compression_report", report.model_dump(mode="json", warnings=False), where)
    fields = f'"session":{_quoted(session.id)},"position":{session.state.position}'
    session.replica.put_manifest(report.id, f'{fields},"meta_report":{report.model_dump_json()}')
    return True


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return json.dumps(text)
