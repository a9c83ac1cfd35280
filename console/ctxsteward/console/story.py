"""The demo's story: the shipped incident replayed, and what it claims checked against the shipped file.

Everything a person or ``demo --json`` sees is computed here from the run. The places are message numbers of
`data/demo.jsonl`, whose system message takes none. Tokens are the builder's, `_ms` milliseconds of wall time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import NamedTuple

from ctxsteward.envelope import (
    PROVIDERS,
    Budgets,
    Envelope,
    EnvelopeBuilder,
    Profile,
    Session,
    Store,
    rebuild,
)
from ctxsteward.envelope.readers import Transcript, parse_transcripts
from ctxsteward.evals.validity import anthropic_faults, openai_faults
from ctxsteward.schemas import CompressionReport

from .replaying import Replayed, Tally, replay_calls
from .transcripts import open_session, unused_id

MODEL = "gpt-4o"
DYNAMIC_TOKENS = 2000
ASKED_AT = 250
"""The user asks again for a decision of the morning that was changed since."""
RULE = (10, "customer emails never go into tickets")
OLD_DECISION = (81, "keep it at 5")
NEW_DECISION = (196, "retry budget is 2")
TOOL_OUTPUT = 3


class Shipped(NamedTuple):
    """The demo's data."""

    transcript: Transcript
    profile: Profile
    lines: tuple[str, ...]
    """The file's messages as they stand on disk; line n is message n."""

    @property
    def tool_outputs(self) -> list[str]:
        return [line for line in self.lines if json.loads(line)["role"] == "tool"]


class Check(NamedTuple):
    """One claim of the demo."""

    name: str
    passed: bool


@dataclass(slots=True)
class Run:
    """What the replay came to."""

    session: str
    tally: Tally
    losses: int = 0
    openai_valid_calls: int = 0
    anthropic_valid_calls: int = 0
    refs_resolved: int = 0
    asked: Envelope | None = None
    """Of the call that answers `ASKED_AT`."""
    last: Envelope | None = None
    checks: list[Check] = field(default_factory=list)


def load_shipped() -> Shipped:
    """Read the data that the package carries."""
    data = files("ctxsteward.console") / "data"
    text = (data / "demo.jsonl").read_text(encoding="utf-8")
    (transcript,) = parse_transcripts(text, "demo.jsonl")
    profile = Profile.from_yaml((data / "demo-profile.yaml").read_text(encoding="utf-8"), "demo-profile.yaml")
    return Shipped(transcript, profile, tuple(text.splitlines()[len(transcript.system) :]))


def make_builder() -> EnvelopeBuilder:
    """The builder of the demo."""
    return EnvelopeBuilder(model=MODEL, budgets=Budgets(dynamic_tokens=DYNAMIC_TOKENS))


def replay_shipped(
    shipped: Shipped,
    builder: EnvelopeBuilder,
    store: Store,
    tenant: str,
    on_compaction: Callable[[Replayed, CompressionReport], None],
) -> tuple[Run, Session]:
    """Replay every call, telling of each compaction as it happens."""
    transcript = shipped.transcript
    id = unused_id(store, transcript.session, tenant)
    session = open_session(store, transcript, id, tenant=tenant, profile=shipped.profile, counter=builder.counter)
    run = Run(id, Tally.for_builder(builder))
    run.tally.transcripts = 1
    for replayed in replay_calls(builder, session, transcript):
        envelope = run.last = replayed.envelope
        run.tally.add(replayed)
        run.openai_valid_calls += not openai_faults(envelope.render("openai-chat"))
        run.anthropic_valid_calls += not anthropic_faults(envelope.render("anthropic"))
        if len(session) == ASKED_AT:
            run.asked = envelope
        for report in envelope.reports:
            run.losses += len(report.losses)
            on_compaction(replayed, report)
    return run, session


def check_window(run: Run) -> None:
    """The rule of the morning is still shown, and the changed decision never by its old value alone."""
    for envelope, when in ((run.asked, "when it is asked for"), (run.last, "at the last call")):
        text = "" if envelope is None else envelope.section("dynamic").text
        run.checks.append(Check(f"the rule stated once, in §{RULE[0]}, is shown {when}", RULE[1] in text))
        marked = f"§{OLD_DECISION[0]} user, superseded by §{NEW_DECISION[0]}: "
        changed = NEW_DECISION[1] in text and (OLD_DECISION[1] not in text or marked in text)
        run.checks.append(Check(f"an old value of the changed decision is never alone {when}", changed))


def check_calls(run: Run) -> None:
    """Every call within its budgets and valid for both providers."""
    calls = run.tally.calls
    run.checks += [
        Check("every call is within its budgets", run.tally.over_budget_calls == 0),
        Check("every request is valid for OpenAI", run.openai_valid_calls == calls),
        Check("every request is valid for Anthropic", run.anthropic_valid_calls == calls),
    ]


def check_originals(run: Run, session: Session, shipped: Shipped) -> None:
    """Every message resolves to the bytes of the file, and so does a tool output by its number."""
    run.refs_resolved = sum(wire_text(session, f"§{number}") == line for number, line in enumerate(shipped.lines, 1))
    whole = wire_text(session, f"tool:{TOOL_OUTPUT}") == shipped.tool_outputs[TOOL_OUTPUT - 1]
    run.checks += [
        Check("every message resolves, byte for byte", run.refs_resolved == len(shipped.lines)),
        Check(f"tool output {TOOL_OUTPUT} resolves, byte for byte", whole),
    ]


def check_rebuild(run: Run, store: Store, tenant: str) -> None:
    """The last envelope, out of the log alone, is the same for every provider."""
    assert run.last is not None
    again = rebuild(store, run.last.address, tenant=tenant)
    same = again.document() == run.last.document() and all(
        json.dumps(again.render(provider)) == json.dumps(run.last.render(provider)) for provider in PROVIDERS
    )
    run.checks.append(Check("the last envelope rebuilds, byte for byte", same))


def wire_text(session: Session, ref: str) -> str:
    """The original as JSON text, with the keys in the order in which they came."""
    return json.dumps(session.resolve(ref).wire, ensure_ascii=False)


def summary(run: Run, shipped: Shipped) -> dict[str, object]:
    """What ``demo --json`` prints."""
    tally = run.tally
    return {
        "session": run.session,
        "messages": len(shipped.lines),
        "calls": tally.calls,
        "compactions": tally.compactions,
        "losses": run.losses,
        "full_history_tokens": tally.full_tokens,
        "sent_tokens": tally.sent_tokens,
        "full_history_priced_tokens": round(tally.full_priced),
        "sent_priced_tokens": round(tally.sent_priced),
        "over_budget_calls": tally.over_budget_calls,
        "openai_valid_calls": run.openai_valid_calls,
        "anthropic_valid_calls": run.anthropic_valid_calls,
        "refs_resolved": run.refs_resolved,
        "build_ms_p50": tally.build_ms_at(0.5),
        "build_ms_p95": tally.build_ms_at(0.95),
        "last_envelope": run.last.address if run.last else None,
        "checks": [{"name": check.name, "passed": check.passed} for check in run.checks],
        "passed": all(check.passed for check in run.checks),
    }
