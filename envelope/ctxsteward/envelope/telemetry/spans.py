"""One span and one log record per build, with the envelope's address, which connects a request to its envelope.

The span ``context.build`` is the current one while a build runs, so that spans of a selector's or summarizer's own
model calls are its children. Attributes:

    gen_ai.request.model       as given to the builder; left out without one
    gen_ai.conversation.id     address of the session, as stores show it
    gen_ai.conversation.compacted      true once the session was compacted; else left out
    gen_ai.context.compilation.id      the envelope's address, too
    gen_ai.context.compilation.trigger role of the newest message, which caused the request
    gen_ai.context.window_size         of the model, in tokens; left out if not known
    context.envelope.address   context.prompt_tokens   context.prefix_tokens
    context.profile.version    context.overflow_tokens   context.findings   context.degraded   if there are any

Events: ``context.section`` for each section whose bytes begin a new epoch (`section`, `epoch`, `tokens`). A session's
first build in a process has one for each section; later ones are churn. ``context.prefix_break`` (`section`).
``context.compaction`` (`report`, `pre_tokens`, `post_tokens`, `losses`). ``context.guard`` (`prompt_tokens`,
`percent`) from 80 % of the prompt tokens that the window allows. A build that raises ends in an error with the name of
its class, never its text.

Once a provider reports the usage of a call, the span ``context.usage`` has it, with the same conversation and
compilation (`usage_reported`): ``gen_ai.usage.input_tokens``, ``gen_ai.usage.cache_read.input_tokens``,
``gen_ai.usage.cache_creation.input_tokens``, if the report has them. Adapters call it.

`spanned` is a span around longer work: ``context.run``, ``context.phase`` and ``context.efficiency`` of cascades.
`ctxsteward.store.memory_spans` has the spans of recall, commits and erasures.

The log record (logger ``ctxsteward.envelope``, level INFO) carries the same attributes and, inside a trace, `trace_id`
and `span_id`. Neither contains ids of sessions and tenants, or texts.

The OpenTelemetry API and `logging` are used only if the process has already loaded them.

Sources: OpenTelemetry semantic conventions for generative AI (``gen_ai.context`` is an extension that others use);
OpenTelemetry "Trace Context in non-OTLP Log Formats".

`first_prefix_break` compares one envelope of a session with the next. A provider's cache serves their unchanged
beginning: tool schemas, system, static, meta, bullets, closed turns and so on, in the order of the prompt. The prefix
*breaks* if this beginning is shorter than the earlier prompt's part before its turn context, which a layout promises
not to change between compactions. Tokens are the builder's own, before calibration. Of bullets that differ, the common
beginning counts too, by `count_tokens` or else by its share of the text.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..envelope import Envelope
from ..instruments import GUARDS, METER, PLACES, Labels, Measurement, Outcome, board, lasted
from ..layout.composition import DynamicLayout, HeadLayout
from ..layout.fragments import Fragment
from ..tokens.budgets import HEAD_SECTIONS, SECTIONS
from ..tokens.tokenizer import REPLY_PRIMING_TOKENS

if TYPE_CHECKING:
    from contextvars import Token
    from logging import Logger

    from opentelemetry.trace import Span, Tracer

    from ..envelope import Envelope
    from ..history.session import Session

NAME = "context.build"
LOGGER = "ctxsteward.envelope"
API = "opentelemetry.trace"
_INFO = 20
"""Value of `logging.INFO`."""
Attributes = dict[str, str | int | bool]
_NONE: Labels = ()
_COUNTED = {"compaction_refused": "context.compress.refused", "rule_not_visible": "context.rules_missing"}
"""Metrics that count findings, by kind."""
_SECTION: dict[str, Labels] = {name: (name,) for name in PLACES}


class BuildSpan:
    """Span, log record and metrics of one build: enter it before the build, and call `built` with the envelope."""

    def __init__(
        self,
        model: str | None,
        tokenizer: str,
        calibration: float,
        prompt_tokens: int | None,
        window_tokens: int | None = None,
    ) -> None:
        """`prompt_tokens` is the model's window, `window_tokens`, less the output reserve; None if not known."""
        self.model: str | None = model
        self.tokenizer: str = tokenizer
        self.calibration: float = calibration
        self.prompt_tokens: int | None = prompt_tokens
        self.window_tokens: int | None = window_tokens
        self._span: Span | None = None
        self._token: Token[Any] | None = None

    def __enter__(self) -> BuildSpan:
        self._started = time.perf_counter()
        if API in sys.modules:
            from opentelemetry import context, trace

            span = _tracer().start_span(NAME)
            if span.is_recording():
                self._span = span
                self._token = context.attach(trace.set_span_in_context(span))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:
            lasted("failed", time.perf_counter() - self._started)
        if self._span is not None and self._token is not None:
            from opentelemetry import context

            context.detach(self._token)
            if kind is not None:
                _failed(self._span, kind)
            self._span.end()

    def built(self, session: Session, envelope: Envelope) -> None:
        """Record the envelope that was built."""
        log = _heard()
        churned = _churned(session, envelope, self.tokenizer, self.calibration)
        _count(envelope, churned, self.prompt_tokens)
        outcome: Outcome = "compacted" if envelope.reports else "built"
        lasted(outcome, envelope.build_ms / 1000, envelope.selection_ms / 1000)
        if self._span is None and log is None:
            return
        attributes = _attributes(self.model, session, envelope, churned)
        if self.window_tokens:
            attributes["gen_ai.context.window_size"] = self.window_tokens
        if self._span is not None:
            self._span.set_attributes(attributes)
            _tell_events(self._span, envelope, churned)
            if self.prompt_tokens and envelope.tokens >= GUARDS[0][0] * self.prompt_tokens:
                percent = 100 * envelope.tokens // self.prompt_tokens
                self._span.add_event("context.guard", {"prompt_tokens": envelope.tokens, "percent": percent})
        if log is not None:
            _log(log, attributes, self._span)


@contextmanager
def spanned(name: str, attributes: Attributes) -> Iterator[Callable[[Attributes], None]]:
    """Open a span around longer work if OpenTelemetry is loaded; yield a function that sets its attributes."""
    if API not in sys.modules:
        yield lambda told: None
        return
    with _tracer().start_as_current_span(name, attributes=attributes, record_exception=False) as span:
        yield lambda told: span.set_attributes(told)


def usage_reported(
    session: Session,
    envelope: Envelope,
    model: str | None,
    *,
    input_tokens: int,
    cache_read: int | None,
    cache_creation: int | None,
) -> None:
    """Record a provider's usage for this envelope if OpenTelemetry is loaded; tokens, None if not reported."""
    if API not in sys.modules:
        return
    usage = {
        "input_tokens": input_tokens,
        "cache_read.input_tokens": cache_read,
        "cache_creation.input_tokens": cache_creation,
    }
    attributes: Attributes = {
        "gen_ai.conversation.id": session.address,
        "gen_ai.context.compilation.id": envelope.address,
        **({} if model is None else {"gen_ai.request.model": model}),
        **{f"gen_ai.usage.{name}": tokens for name, tokens in usage.items() if tokens is not None},
    }
    with spanned("context.usage", attributes):
        pass


def _count(envelope: Envelope, churned: PrefixBreak, window_tokens: int | None) -> None:
    """Count a build; `window_tokens` is the model's limit for a prompt, None if not known."""
    prompt = envelope.tokens
    counts: list[Measurement] = [("context.prompt_tokens", prompt, _NONE)]
    counts.append(("context.prefix_tokens", churned.prefix_tokens, _NONE))
    gauges: list[Measurement] = []
    for name, section in envelope.sections.items():
        label, tokens, budget = _SECTION[name], section.tokens, section.budget_tokens
        counts.append(("context.section_tokens", tokens, label))
        gauges.append(("context.tokens_by_section", tokens, label))
        gauges.append(("context.section_budget", budget, label))
        gauges.append(("context.section_utilization", tokens / (budget or 1), label))
        if tokens > budget:
            counts.append(("context.overflow", 1, label))
    if churned.broke_in:
        counts.append(("context.prefix_break", 1, _SECTION[churned.broke_in]))
    if envelope.reports or envelope.findings:
        counts += _happened(envelope, churned)
    if window_tokens:
        counts += [("context.guard", 1, (level,)) for share, level in GUARDS if prompt >= share * window_tokens]
    board().tell(counts, gauges)


def _happened(envelope: Envelope, churned: PrefixBreak) -> Iterator[Measurement]:
    if envelope.reports and churned.lost_tokens:
        yield "context.compress.tokens_rewritten", churned.lost_tokens, _NONE
    for report in envelope.reports:
        section = (report.section,)
        yield "context.compress.count", 1, section
        yield "context.compress.tokens_saved", max(0, report.pre_tokens - report.post_tokens), section
        for loss in report.losses:
            yield "context.losses", 1, (loss.kind,)
    for finding in envelope.findings:
        if (counted := _COUNTED.get(finding.kind)) is not None:
            yield counted, 1, _NONE
    if envelope.metrics["degraded"]:
        yield "context.degraded", 1, _NONE


def _churned(session: Session, envelope: Envelope, tokenizer: str, calibration: float) -> PrefixBreak:
    """Compare with the last envelope of this session counted with this tokenizer, because other models have other
    prompts."""
    key, now = ("told", tokenizer), Layouts.of(envelope)
    before = session.cache.get(key)
    session.cache[key] = now
    churned = first_prefix_break(before if isinstance(before, Layouts) else None, now)
    if calibration == 1.0:
        return churned
    prefix_tokens, lost_tokens = (round(n * calibration) for n in (churned.prefix_tokens, churned.lost_tokens))
    return churned._replace(prefix_tokens=prefix_tokens, lost_tokens=lost_tokens)


def _attributes(model: str | None, session: Session, envelope: Envelope, churned: PrefixBreak) -> Attributes:
    metrics = envelope.metrics
    attributes: Attributes = {
        "gen_ai.conversation.id": session.address,
        "gen_ai.context.compilation.id": envelope.address,
        "context.envelope.address": envelope.address,
        "context.prompt_tokens": int(metrics["prompt_tokens"]),
        "context.prefix_tokens": churned.prefix_tokens,
    }
    if model is not None:
        attributes["gen_ai.request.model"] = model
    if envelope.profile_version is not None:
        attributes["context.profile.version"] = envelope.profile_version
    if overflow := sum([section.overflow_tokens for section in envelope.sections.values()]):
        attributes["context.overflow_tokens"] = overflow
    if envelope.findings:
        attributes["context.findings"] = len(envelope.findings)
    if metrics["degraded"]:
        attributes["context.degraded"] = True
    if session.state.compactions:
        attributes["gen_ai.conversation.compacted"] = True
    if session.state.groups:
        attributes["gen_ai.context.compilation.trigger"] = session.state.groups[-1].entries[-1].message.role
    return attributes


def _tell_events(span: Span, envelope: Envelope, churned: PrefixBreak) -> None:
    for name, epoch in churned.changed:
        tokens = envelope.sections[name].tokens
        span.add_event("context.section", {"section": name, "epoch": epoch, "tokens": tokens})
    if churned.broke_in:
        span.add_event("context.prefix_break", {"section": churned.broke_in})
    for report in envelope.reports:
        told: Attributes = {"report": report.id, "losses": len(report.losses)}
        told |= {"pre_tokens": report.pre_tokens, "post_tokens": report.post_tokens}
        span.add_event("context.compaction", told)


def _failed(span: Span, kind: type[BaseException]) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", kind.__name__)
    span.set_status(Status(StatusCode.ERROR, kind.__name__))


def _log(log: Logger, attributes: Attributes, span: Span | None) -> None:
    where: Attributes = {}
    if span is not None:
        at = span.get_span_context()
        where = {"trace_id": f"{at.trace_id:032x}", "span_id": f"{at.span_id:016x}"}
    log.info("built envelope %s", attributes["context.envelope.address"], extra={**attributes, **where})


def _heard() -> Logger | None:
    """Return the logger that takes a build's record; None if none is set up for it."""
    logging = sys.modules.get("logging")
    log: Logger | None = None if logging is None else logging.getLogger(LOGGER)
    return log if log is not None and log.isEnabledFor(_INFO) else None


@cache
def _tracer() -> Tracer:
    from opentelemetry.trace import get_tracer

    return get_tracer(METER)


CountTokens = Callable[[str], int]


class Layouts(NamedTuple):
    """The parts of an envelope with which the next one is compared."""

    head: HeadLayout
    dynamic: DynamicLayout
    epochs: tuple[int, ...]
    """Epochs in the order of `SECTIONS`."""
    head_tokens: int

    @classmethod
    def of(cls, envelope: Envelope) -> Layouts:
        """Take the layouts of an envelope."""
        dynamic = envelope.dynamic
        head_tokens = int(envelope.metrics["estimated_tokens"]) - dynamic.tokens - REPLY_PRIMING_TOKENS
        return cls(
            envelope.head, dynamic, tuple([section.epoch for section in envelope.sections.values()]), head_tokens
        )


class PrefixBreak(NamedTuple):
    """The difference between two envelopes of one session."""

    prefix_tokens: int
    """Tokens of the unchanged beginning."""
    broke_in: str | None
    """The part that broke, one of `PLACES`; None without a break."""
    changed: tuple[tuple[str, int], ...]
    """Sections in a new epoch, with its number."""
    lost_tokens: int = 0
    """Tokens that the layout before promised to keep, and that are not in the unchanged beginning."""


def first_prefix_break(before: Layouts | None, now: Layouts, count_tokens: CountTokens | None = None) -> PrefixBreak:
    """Return the difference; without an earlier envelope every section is in a new epoch."""
    if before is None:
        return PrefixBreak(0, None, tuple(zip(SECTIONS, now.epochs, strict=True)))
    changed = () if before.epochs == now.epochs else tuple(_changed(before.epochs, now.epochs))
    if before.head is not now.head:
        place, shared = _head_shared(before.head, now.head)
        if place is not None:
            return PrefixBreak(shared, place, changed)
    tokens = _dynamic_shared(before.dynamic, now.dynamic, count_tokens)
    lost = max(0, before.dynamic.prefix_tokens - tokens)
    return PrefixBreak(now.head_tokens + tokens, "dynamic" if lost else None, changed, lost)


def prefix_tokens(before: Envelope | None, now: Envelope, count_tokens: CountTokens) -> int:
    """Return the tokens of the beginning that `now` shares with `before`."""
    return (
        first_prefix_break(Layouts.of(before), Layouts.of(now), count_tokens).prefix_tokens if before is not None else 0
    )


def _changed(before: tuple[int, ...], now: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    for name, old, new in zip(SECTIONS, before, now, strict=True):
        if old != new:
            yield name, new


def _head_shared(before: HeadLayout, now: HeadLayout) -> tuple[str | None, int]:
    """Return the section where two heads begin to differ (None if equal), and the tokens before the difference."""
    if before.tools_digest != now.tools_digest:
        return "tools", 0
    tokens = now.tools_tokens
    for name in HEAD_SECTIONS:
        old, new = before.section(name), now.section(name)
        tokens += _shared(old, new)
        if [fragment.digest for fragment in old] != [fragment.digest for fragment in new]:
            return name, tokens
    return None, tokens


def _dynamic_shared(before: DynamicLayout, now: DynamicLayout, count_tokens: CountTokens | None) -> int:
    old, new = before.derived, now.derived
    is_same = [fragment.digest for fragment in old] == [fragment.digest for fragment in new]
    if is_same and before.strip is now.strip and before.task_upto == now.task_upto:
        return sum(fragment.tokens for fragment in new) + _strip_shared(before, now)
    tokens = 0
    for one, other in zip(before.fragments, now.fragments, strict=False):
        if one.digest != other.digest:
            if one in old and other in new and one.kind == other.kind:
                common = common_beginning(one.text, other.text)
                share = other.tokens * len(common) // (len(other.text) or 1)
                tokens += count_tokens(common) if count_tokens else share
            break
        tokens += other.tokens
    return tokens


def _strip_shared(before: DynamicLayout, now: DynamicLayout) -> int:
    """Return the shared tokens of two layouts over one strip, which differ in the fragments inserted into it."""
    old, new = _between(before), _between(now)
    tokens, same = 0, 0
    for (place, one), (other_place, other) in zip(old, new, strict=False):
        if place != other_place or one.digest != other.digest:
            break
        tokens, same = tokens + one.tokens, same + 1
    rest = [place for place, _ in (*old[same : same + 1], *new[same : same + 1])]
    return tokens + now.strip.tokens[min(before.stop, now.stop, *rest)]


def _between(layout: DynamicLayout) -> list[tuple[int, Fragment]]:
    """Return the fragments inserted into the strip, each with the place before which it is inserted."""
    places = ((layout.live_from, layout.context), (layout.after_from, layout.notes))
    return [(place, fragment) for place, fragment in places if fragment is not None]


def _shared(before: tuple[Fragment, ...], now: tuple[Fragment, ...]) -> int:
    tokens = 0
    for old, new in zip(before, now, strict=False):
        if old.digest != new.digest:
            break
        tokens += new.tokens
    return tokens


def common_beginning(one: str, other: str) -> str:
    """Return the beginning that two texts share.

    >>> common_beginning("- a\\n- b", "- a\\n- cc")
    '- a\\n- '
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return one[:low]
