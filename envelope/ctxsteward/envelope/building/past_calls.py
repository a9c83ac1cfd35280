"""The past calls of a session in numbers: one row for each built envelope, from manifests and log alone.

`past_calls` lays the envelopes out again in order. It goes through the log once: between two calls a session only reads
on, and the layout extends the last one, so a call costs well under a millisecond. The rows are kept with the journal
(`DerivedFile`), without any text of the session; a repeated query costs only the new calls. If the file is damaged or
an erasure replaced records, they are laid out anew.

An envelope built twice has one manifest and one row. Each call is compared with the one before it if that was for the
same model, because models share no prefix. Tokens are the provider's as estimated. A call that can no longer be laid
out keeps its row, and `fault` gives the reason.

Raises `Erased` for a forgotten session, `StoreError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict

from ctxsteward.schemas import ContextError, Finding
from ctxsteward.schemas.message import Wire
from ctxsteward.store.addresses import META_REPORT
from ctxsteward.store.derived_files import DerivedFile
from ctxsteward.store.journal.log import read_manifest
from ctxsteward.store.journal.port import Manifest

from ..envelope import Envelope
from ..history.session import Session
from ..history.state import State
from ..store import Store
from ..telemetry.spans import Layouts, PrefixBreak, first_prefix_break
from .builder import EnvelopeBuilder

FILE, VERSION = "calls", 3
SOURCES = ("tools", "system", "static", "meta", "task", "bullets", "verbatim", "recall", "live", "notes")
"""Sources of a prompt's tokens, in order. Those from `task` on form the dynamic section."""
_OF_THE_CALL = ("session", "position", "reports", "findings", "mac")
"""Fields of a manifest that do not describe the builder."""


class CallCompaction(NamedTuple):
    """A compaction that a call made, or a reduction of meta."""

    report: str
    """Id of the report."""
    pre_tokens: int
    post_tokens: int
    losses: int
    section: str = "dynamic"


class PastCall(BaseModel):
    """Numbers of one past model call."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    number: int
    """Number in the session, from 1."""
    address: str
    """Address of the envelope."""
    position: int
    """Position in the log."""
    model: str | None
    """Name of the model, or None if the builder named a tokenizer."""
    fault: str = ""
    """Why it cannot be laid out as it was; empty if it can. Figures are 0 if it cannot be laid out at all."""
    turn: int = 0
    messages: int = 0
    prompt_tokens: int = 0
    tools_tokens: int = 0
    system_tokens: int = 0
    static_tokens: int = 0
    meta_tokens: int = 0
    task_tokens: int = 0
    """Tokens of the task; like the next five figures, a part of dynamic."""
    bullets_tokens: int = 0
    """Tokens of bullets, and of an earlier version's observation log."""
    verbatim_tokens: int = 0
    """Tokens of closed turns."""
    recall_tokens: int = 0
    """Tokens of facts and recalled originals."""
    live_tokens: int = 0
    notes_tokens: int = 0
    new_tokens: int = 0
    """Tokens of what was said since the call before and stands in this one, with replies whole."""
    limit_tokens: int = 0
    """Most tokens of the prompt: the head as it is plus the budget of dynamic."""
    threshold_tokens: int = 0
    """Prompt tokens, head included, from which dynamic is compacted."""
    overflow_tokens: int = 0
    prefix_tokens: int = 0
    """Tokens of the beginning that is unchanged since the call before."""
    unwritten_tokens: int = 0
    """Tokens of the end that the provider is told not to write to its cache."""
    broke_in: str | None = None
    """Section in which the prefix broke: tools, system, static, meta or dynamic; None if it did not."""
    findings: int = 0
    rules: int = 0
    """Standing rules that were not lifted."""
    rules_missing: int = 0
    """Those of them that the request did not show."""
    compactions: tuple[CallCompaction, ...] = ()

    @property
    def sources(self) -> tuple[tuple[str, int], ...]:
        """Tokens by source, in the order of the prompt."""
        return tuple((source, getattr(self, f"{source}_tokens")) for source in SOURCES)

    @property
    def broke_at(self) -> str | None:
        """The source in which the prefix broke; None if it did not."""
        ends = accumulate(tokens for _, tokens in self.sources)
        places = (source for source, end in zip(SOURCES, ends, strict=True) if end > self.prefix_tokens)
        return next(places, SOURCES[-1]) if self.broke_in else None

    @property
    def dynamic_tokens(self) -> int:
        dynamic = self.task_tokens + self.bullets_tokens + self.verbatim_tokens + self.recall_tokens
        return dynamic + self.live_tokens + self.notes_tokens


def past_calls(store: Store, session: str, *, tenant: str = "default") -> tuple[PastCall, ...]:
    """Return all calls of an existing session, oldest first."""
    read = store.at(tenant, session)
    manifests = [one for one in read.journal.manifests(read.key) if META_REPORT not in one.body]
    file = read.derived_file()
    known = _known(file, read.generation, manifests)
    if len(known) < len(manifests):
        known += _laid_out(store, read, manifests, len(known))
        if file is not None:
            rows = [[getattr(call, name) for name in PastCall.model_fields] for call in known]
            file.write(FILE, [VERSION, read.generation, rows])
    return tuple(known)


def _known(file: DerivedFile | None, generation: int, manifests: Sequence[Manifest]) -> list[PastCall]:
    """Return the stored rows of these manifests, or none if the file has rows of others."""
    stored = None if file is None else file.read(FILE)
    if stored is None or stored[:2] != [VERSION, generation]:
        return []
    known = [_call(row) for row in stored[2]]
    asked = [one.address for one in manifests[: len(known)]]
    return known if asked == [call.address for call in known] else []


def _call(row: Sequence[Any]) -> PastCall:
    fields = dict(zip(PastCall.model_fields, row, strict=True))
    fields["compactions"] = tuple(CallCompaction(*one) for one in fields["compactions"])
    return PastCall.model_construct(**fields)


def _laid_out(store: Store, read: Session, manifests: Sequence[Manifest], start: int) -> Iterator[PastCall]:
    """Yield the calls from `start` on; the one before them is laid out too, for the comparison."""
    builders: dict[str, EnvelopeBuilder] = {}
    session: Session | None = None
    before: tuple[str | None, Layouts] | None = None
    told: dict[int, int] = {}
    """Tokens of each group of the call before, by its first ordinal."""
    for number, manifest in enumerate(manifests[max(0, start - 1) :], max(1, start)):
        fields: Wire = {}
        try:
            fields = read_manifest(read.address_key, manifest.address, manifest.body)
            session = read_on(store, read, session, fields["position"])
            configured = {name: value for name, value in fields.items() if name not in _OF_THE_CALL}
            key = json.dumps(configured)
            builder = builders.get(key) or builders.setdefault(key, EnvelopeBuilder.from_manifest(fields))
            findings = tuple(Finding.model_validate(finding) for finding in fields.get("findings", ()))
            envelope = builder.rebuild(session, findings=findings)
            if envelope.address != manifest.address:  # records may have been replaced: read the session anew
                session = store.at(read.tenant, read.id, fields["position"])
                envelope = builder.rebuild(session, findings=findings)
            reports = [store.report(id, tenant=read.tenant) for id in fields.get("reports", ())]
            made = tuple(
                CallCompaction(one.id, one.pre_tokens, one.post_tokens, len(one.losses), one.section) for one in reports
            )
        except ContextError as error:
            session = None  # its state may be half read
            call = PastCall(
                number=number,
                address=manifest.address,
                position=fields.get("position", 0),
                model=fields.get("model"),
                fault=str(error),
            )
        else:
            same = before[1] if before is not None and before[0] == fields["model"] else None
            call = _summary(number, fields, manifest.address, envelope, session.state, same, builder)
            groups = dict(zip([g.first for g in session.state.groups], envelope.dynamic.strip.fragments, strict=False))
            now = {first: fragment.tokens for first, fragment in groups.items()}
            new_tokens = sum(
                tokens - told.get(first, 0) for first, tokens in now.items() if first >= max(told, default=0)
            )
            call = call.model_copy(update={"compactions": made, "new_tokens": builder.provider_tokens(new_tokens)})
            told = now
            before = fields["model"], Layouts.of(envelope)
        if number > start:
            yield call


def read_on(store: Store, read: Session, session: Session | None, position: int) -> Session:
    """Return the session as it was at this position, by reading on if the position lies ahead."""
    if session is None or position < session.state.position:
        return store.at(read.tenant, read.id, position)
    session.replica.advance(position)  # no other code uses this session
    return session


def _summary(
    number: int,
    fields: Wire,
    address: str,
    envelope: Envelope,
    state: State,
    before: Layouts | None,
    builder: EnvelopeBuilder,
) -> PastCall:
    broken = first_prefix_break(before, Layouts.of(envelope), builder.counter.text)
    provider = builder.provider_tokens
    sections, metrics = envelope.sections, envelope.metrics
    dynamic = sections["dynamic"]
    head_tokens = int(metrics["prompt_tokens"]) - dynamic.tokens
    layout = envelope.dynamic
    group_tokens = layout.strip.tokens
    task_upto = layout.task_upto or int(holds_task_first(envelope, state))
    live_from = max(layout.live_from, task_upto)
    return PastCall(
        number=number,
        address=address,
        position=fields["position"],
        model=fields["model"],
        turn=state.turns,
        messages=state.ordinal,
        prompt_tokens=envelope.tokens,
        tools_tokens=int(metrics["tools_tokens"]),
        system_tokens=sections["system"].tokens,
        static_tokens=sections["static"].tokens,
        meta_tokens=sections["meta"].tokens,
        task_tokens=provider(group_tokens[task_upto]),
        bullets_tokens=provider(layout.bullets_tokens + layout.observations_tokens),
        verbatim_tokens=provider(group_tokens[live_from] - group_tokens[task_upto]),
        recall_tokens=provider(layout.context_tokens),
        live_tokens=provider(group_tokens[layout.stop] - group_tokens[live_from]),
        notes_tokens=provider(layout.notes_tokens),
        limit_tokens=head_tokens + dynamic.budget_tokens,
        threshold_tokens=head_tokens + int(dynamic.budget_tokens * builder.budgets.compact_at_fraction),
        overflow_tokens=sum(section.overflow_tokens for section in sections.values()),
        prefix_tokens=provider(broken.prefix_tokens),
        unwritten_tokens=envelope.unwritten_tokens,
        broke_in=broken.broke_in,
        findings=len(envelope.findings),
        rules=sum(rule.lifted_by is None for rule in envelope.standing),
        rules_missing=sum(finding.kind == "rule_not_visible" for finding in envelope.findings),
        fault="" if envelope.address == address else _DIFFERS,
    )


_DIFFERS = "the log no longer holds all that it was laid out from"


def prefix_between(before: Envelope, now: Envelope, builder: EnvelopeBuilder) -> PrefixBreak:
    """Return how much of their beginning two envelopes share, in the provider's tokens, and where they differ."""
    broken = first_prefix_break(Layouts.of(before), Layouts.of(now), builder.counter.text)
    return broken._replace(prefix_tokens=builder.provider_tokens(broken.prefix_tokens))


def holds_task_first(envelope: Envelope, state: State) -> bool:
    """Return whether the task is the first of the closed turns and nothing behind it was compacted yet."""
    layout = envelope.dynamic
    first = layout.strip.fragments[0].refs if layout.live_from else ()
    return first == (state.task,)
