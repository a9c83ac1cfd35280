"""Try ctxsteward on a user's own transcripts: what several budgets save, show and hide, and which one to take.

Each transcript is replayed at each budget, call by call, and compared with sending everything under the same head.
Prompts are priced as in `prompt_cost`, with the model's own cache prices and its price in dollars.

What was compacted away is counted three ways. *Losses* are things that compactions left out; each has a reference, and
`unresolved` counts references that do not resolve. *Asks* are drafted by rule (`suite_files.drafts`): a value that a
person said early, asked for at the end of the transcript with the words around it; it is in the window already, brought
back by the question, or reachable by its reference alone. *Used values* are those that later replies took from results
of tools (`replay.AgentRun.found_values`); `unseen` are those that the prompt of their call did not show.

Transcripts mostly of tool loops are tried with results whole on arrival up to three quarters of dynamic, as
`Budgets.agent` has it.

The recommendation is the budget of the lowest bill among those that hide little: at most `HIDDEN` of the used values,
at most `OVER` of the calls over budget, and asks within `HIDDEN` of the best budget. Among bills within `SAME` of each
other the larger budget is taken; the budgets that the builder chooses itself count as the largest. If no budget hides
little, it is the one that hides least; if none is cheaper than sending everything by `SAME`, and the builder's own not
at all, sending everything is recommended.

Raises `InputError` if there is nothing to try.
"""

from __future__ import annotations

import math
from collections import Counter as Count
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session
from ctxsteward.envelope.layout.rows import fenced_rows
from ctxsteward.envelope.render.text import section_text
from ctxsteward.envelope.tokens.budgets import WHOLE_RESULT_FRACTION
from ctxsteward.envelope.tokens.models import dollars_of
from ctxsteward.envelope.transcripts.files import formats_with, read_transcripts
from ctxsteward.envelope.transcripts.transcript import Transcript
from ctxsteward.schemas import ContextError, InputError, Message
from ctxsteward.store.names import checked_name

from .canaries import normalize, shows
from .prompt_cost import Bill, Prices, Sizer
from .replay import REPLY_ROLES, everything, files_of, read_run
from .suite_files.drafts import DraftedAsk, drafted

BUDGETS_TOKENS = (1_000, 2_000, 4_000, 8_000, 16_000)
ASKS = 5
"""Most asks of a transcript."""
HIDDEN, OVER, SAME = 0.02, 0.05, 0.02
LITTLE = (
    f"(at most {HIDDEN:.0%} of the used values unseen, at most {OVER:.0%} of the calls over budget, and within "
    f"{HIDDEN:.0%} of the best at early statements)"
)
"""What hides little, in words."""
NAMED = 5
"""Examples of each kind that a result keeps."""


class UnseenValue(NamedTuple):
    """A value that a reply used, and its prompt did not show."""

    value: str
    transcript: str


class SkippedFile(NamedTuple):
    """A file that cannot be read as a transcript."""

    path: str
    why: str


@dataclass(slots=True, kw_only=True)
class BudgetTrial:
    """The figures of one budget over all transcripts."""

    dynamic_tokens: int | None
    """None: the budgets that the builder chooses itself, by the model's window."""
    bill: Bill = field(default_factory=Bill)
    losses: int = 0
    originals: int = 0
    """Messages that the losses refer to."""
    unresolved: int = 0
    asks: int = 0
    shown_before: int = 0
    """Asked values that the window shows without the question."""
    brought_back: int = 0
    """Asked values that the question brings back."""
    unseen: list[UnseenValue] = field(default_factory=list)

    @property
    def hidden(self) -> float:
        """Share of the used values that their prompts did not show."""
        return len(self.bill.values_unseen) / self.bill.values_used if self.bill.values_used else 0.0

    @property
    def over(self) -> float:
        """Share of the calls whose newest messages alone exceed the budget."""
        return self.bill.over_budget / self.bill.calls

    @property
    def answered(self) -> float:
        """Share of the asked values that the prompt of their question shows."""
        return (self.shown_before + self.brought_back) / self.asks if self.asks else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The recommended budget, and the reason for it."""

    dynamic_tokens: int | None
    """Tokens of the recommended budget; None for the builder's own, or to send everything."""
    is_default: bool = False
    """Whether the builder's own budgets are recommended."""
    reason: str
    code: str
    """The budget as Python code for the builder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Results of trying several budgets on a user's transcripts."""

    model: str
    dollars_per_million: float | None
    transcripts: int
    formats: dict[str, int]
    longest_tokens: int
    """History of the longest transcript."""
    is_tool_loop: bool
    everything: Bill
    budgets: tuple[BudgetTrial, ...]
    skipped: tuple[SkippedFile, ...]
    silent: int
    """Transcripts without a reply of a model, which are left out."""
    recommendation: Recommendation

    def dollars(self, priced_tokens: float) -> float | None:
        """Return the price of tokens at full price, or None if it is not known."""
        return None if self.dollars_per_million is None else priced_tokens * self.dollars_per_million / 1_000_000

    @property
    def chosen(self) -> BudgetTrial:
        """The recommended budget, else the largest that was tried."""
        advised = self.recommendation
        named = [row for row in self.budgets if row.dynamic_tokens == advised.dynamic_tokens]
        return named[0] if named and (advised.is_default or advised.dynamic_tokens) else self.budgets[-1]

    def document(self) -> dict[str, Any]:
        """Return the figures with stable keys."""
        return {
            "model": self.model,
            "dollars_per_million": self.dollars_per_million,
            "transcripts": self.transcripts,
            "formats": self.formats,
            "without_reply": self.silent,
            "skipped": [skipped._asdict() for skipped in self.skipped],
            "calls": self.everything.calls,
            "longest_tokens": self.longest_tokens,
            "tool_loops": self.is_tool_loop,
            "everything": self._bill(self.everything),
            "budgets": [
                {
                    "dynamic_tokens": row.dynamic_tokens,
                    **self._bill(row.bill),
                    "compactions": row.bill.rewrites,
                    "calls_over_budget": row.bill.over_budget,
                    "losses": row.losses,
                    "originals": row.originals,
                    "unresolved": row.unresolved,
                    "asks": row.asks,
                    "shown_before": row.shown_before,
                    "brought_back": row.brought_back,
                    "values_used": row.bill.values_used,
                    "values_unseen": len(row.bill.values_unseen),
                    "unseen": [value._asdict() for value in row.unseen],
                }
                for row in self.budgets
            ],
            "recommendation": {
                "dynamic_tokens": self.recommendation.dynamic_tokens,
                "is_default": self.recommendation.is_default,
                "reason": self.recommendation.reason,
                "code": self.recommendation.code,
            },
        }

    def _bill(self, bill: Bill) -> dict[str, Any]:
        dollars = self.dollars(bill.priced)
        return {
            "prompt_tokens": bill.tokens,
            "cached_tokens": bill.cached_tokens,
            "priced_tokens": round(bill.priced, 1),
            "dollars": None if dollars is None else round(dollars, 6),
            "saved": round(1 - bill.priced / self.everything.priced, 4),
        }


def try_transcripts(
    paths: Sequence[str | Path],
    *,
    model: str,
    budgets_tokens: Sequence[int] = (),
    dollars_per_million: float | None = None,
    tell: Callable[[str, float], None] = lambda text, share: None,
) -> Trial:
    """Replay the transcripts in files and folders at several budgets; `tell` gets the current step and the share done.

    Without `budgets_tokens`, it tries those of `BUDGETS_TOKENS` that the longest transcript exceeds, the next one, and
    the budgets that the builder chooses itself.
    """
    counter = EnvelopeBuilder(model).counter
    tell("reading", 0.0)
    transcripts, skipped, silent = _read(paths)
    rows = [[Message.from_wire(entry.wire) for entry in transcript.entries()] for transcript in transcripts]
    tokens = [sum(map(counter.message, messages)) for messages in rows]
    is_tool_loop = 2 * sum(any(message.tool_results for message in messages) for messages in rows) > len(rows)
    # By default the budgets that the longest history exceeds, and the next larger one.
    exceeded = [budget for budget in BUDGETS_TOKENS if budget < max(tokens)]
    tried = tuple(sorted(set(budgets_tokens)))
    chosen: tuple[int | None, ...] = tried or (*BUDGETS_TOKENS[: len(exceeded) + 1], None)
    builders = {str(budget): EnvelopeBuilder(model, budgets=_budgets_of(budget, is_tool_loop)) for budget in chosen}
    prices = builders[str(chosen[0])].prices or Prices()
    trials = {str(budget): BudgetTrial(dynamic_tokens=budget) for budget in chosen}
    whole, sizer, done = Bill(), Sizer(counter), 0
    for transcript, messages, size in zip(transcripts, rows, tokens, strict=True):
        asks = _asks(transcript, messages)
        tell(f"{transcript.session}, {len(messages)} messages", done / max(1, sum(tokens)))

        def ended(name: str, session: Session, asks: Sequence[DraftedAsk] = asks) -> None:
            _examine(trials[name], builders[name], session, asks)

        run = read_run(transcript, builders, sizer, ended=ended)
        whole.add(run.bill(everything(run), sizer, prices, budget_tokens=max(tokens)))
        for name, trial in trials.items():
            bill = run.bill(run.ours[name], sizer, prices, budget_tokens=builders[name].budgets.most_tokens)
            trial.bill.add(bill)
            for value in dict.fromkeys(bill.values_unseen):
                if len(trial.unseen) < NAMED and not any(known.value == value for known in trial.unseen):
                    trial.unseen.append(UnseenValue(value, run.name))
        done += size
    tell("done", 1.0)
    return Trial(
        model=model,
        dollars_per_million=dollars_of(model, 1_000_000) if dollars_per_million is None else dollars_per_million,
        transcripts=len(transcripts),
        formats=dict(sorted(Count(transcript.format for transcript in transcripts).items())),
        longest_tokens=max(tokens),
        is_tool_loop=is_tool_loop,
        everything=whole,
        budgets=tuple(trials.values()),
        skipped=tuple(skipped),
        silent=silent,
        recommendation=recommended(tuple(trials.values()), whole, model=model, is_tool_loop=is_tool_loop),
    )


def _read(paths: Sequence[str | Path]) -> tuple[list[Transcript], list[SkippedFile], int]:
    """Return transcripts with a reply, files that cannot be read, and the number of transcripts without a reply."""
    read: list[Transcript] = []
    skipped: list[SkippedFile] = []
    silent = 0
    files = files_of(paths)
    for file in files:
        try:
            for transcript in read_transcripts(file):
                checked_name("session", transcript.session)
                wires = [entry.wire for entry in transcript.entries()]
                has_reply = any(wire.get("role") in REPLY_ROLES for wire in wires[1:])
                silent += not has_reply
                read += [transcript] if has_reply else []
        except (ContextError, OSError) as error:
            skipped.append(SkippedFile(str(file), str(error)))
    if not read and skipped:
        first = f"{skipped[0].why}; {len(skipped)} of {len(files)} files cannot be read"
        raise InputError(first if len(files) > 1 else skipped[0].why)
    if not read:
        places = ", ".join(map(str, paths))
        raise InputError(f"{places}: no reply of a model in {silent} transcripts; pass transcripts with replies")
    return read, skipped, silent


def _budgets_of(dynamic_tokens: int | None, is_tool_loop: bool) -> Budgets | None:
    if dynamic_tokens is None:
        return None
    if not is_tool_loop:
        return Budgets(dynamic_tokens=dynamic_tokens)
    whole_tokens = max(16, int(WHOLE_RESULT_FRACTION * dynamic_tokens))  # the least that `Budgets` takes
    return Budgets(dynamic_tokens=dynamic_tokens, arrival_cap_tokens=whole_tokens)


def _asks(transcript: Transcript, messages: Sequence[Message]) -> list[DraftedAsk]:
    """Draft asks for what people said; in a talk between people both sides are people."""
    rows = [
        {"role": "tool", "content": "\n".join(result.text for result in message.tool_results)}
        if message.tool_results
        else {"role": message.role, "content": message.text}
        for message in messages
    ]
    people = ("user", "assistant") if transcript.format in formats_with("is_between_people") else ("user",)
    return drafted(rows, [row["role"] in people for row in rows], most=ASKS)


def _examine(trial: BudgetTrial, builder: EnvelopeBuilder, session: Session, asks: Sequence[DraftedAsk]) -> None:
    """Count the losses of a session's compactions, and ask for early statements."""
    losses = [loss for event in session.compactions() for loss in event.report.losses]
    refs = {loss.ref for loss in losses}
    trial.losses += len(losses)
    trial.originals += len(refs)
    for ref in refs:
        try:
            session.resolve(ref)
        except ContextError:
            trial.unresolved += 1
    for ask in asks:
        envelope = builder.preview(session, ask.question)
        context = envelope.dynamic.context
        recalled = fenced_rows(envelope.nonce, context.text) if context else []
        window = [fragment for fragment in envelope.section("dynamic").fragments if fragment is not context]
        whole = normalize("\n".join((envelope.section("dynamic").text, *recalled)))
        before = shows(normalize(section_text(window)), ask.value)
        trial.asks += 1
        trial.shown_before += before
        trial.brought_back += not before and shows(whole, ask.value)


def _fault(trial: BudgetTrial, best_answers: float) -> str:
    """Return what a budget hides too much of; empty if it hides little."""
    if trial.hidden > HIDDEN:
        return f"hide {trial.hidden:.1%} of the used values"
    if trial.over > OVER:
        return f"are exceeded by {trial.over:.0%} of the calls"
    if trial.answered < best_answers - HIDDEN:
        return f"find {trial.answered:.0%} of the early statements, the best {best_answers:.0%}"
    return ""


def recommended(trials: Sequence[BudgetTrial], whole: Bill, *, model: str, is_tool_loop: bool) -> Recommendation:
    """Recommend a budget by the rules in the module's docstring."""
    best_answers = max(trial.answered for trial in trials)
    good = [trial for trial in trials if not _fault(trial, best_answers)]
    if good:
        least = min(trial.bill.priced for trial in good)
        trial = max(
            (trial for trial in good if trial.bill.priced <= (1 + SAME) * least),
            key=lambda trial: trial.dynamic_tokens or math.inf,
        )
        why = f"it has the lowest bill of the budgets that hide little {LITTLE}"
    else:
        trial = min(trials, key=lambda trial: (trial.hidden + trial.over + 1 - trial.answered, trial.bill.priced))
        least = trial.bill.priced
        why = f"no budget here hides little {LITTLE}, and this one hides least; try larger ones with --budgets"
    is_default = trial.dynamic_tokens is None
    if trial.bill.priced >= whole.priced if is_default else least > (1 - SAME) * whole.priced:
        return Recommendation(
            dynamic_tokens=None,
            reason=f"budgets that hide little {LITTLE} save at most {max(0.0, 1 - least / whole.priced):.1%} of what "
            "sending everything costs",
            code="send the whole history",
        )
    saved = 1 - trial.bill.priced / whole.priced
    parts = [why, f"it saves {saved:.0%} of what sending everything costs"]
    if trial.bill.values_used:
        parts.append(f"its prompts show {1 - trial.hidden:.1%} of the values that later replies used")
    if trial.asks:
        found = trial.shown_before + trial.brought_back
        parts.append(f"{found} of {trial.asks} early statements are in the prompt when asked for")
    parts.append(f"{trial.over:.0%} of the calls exceed it")
    chosen_tokens = trial.dynamic_tokens or math.inf
    smaller = [other for other in trials if other.dynamic_tokens and other.dynamic_tokens < chosen_tokens]
    if good and smaller:
        next_smaller = max(smaller, key=lambda other: other.dynamic_tokens or 0)
        why_not = _fault(next_smaller, best_answers) or f"do not cost {SAME:.0%} less"
        parts.append(f"{next_smaller.dynamic_tokens:,} tokens {why_not}")
    budgets = _budgets_of(trial.dynamic_tokens, is_tool_loop)
    cap = f", arrival_cap_tokens={budgets.arrival_cap_tokens}" if budgets and is_tool_loop else ""
    code = f"Budgets(dynamic_tokens={trial.dynamic_tokens}{cap})" if budgets else f'EnvelopeBuilder("{model}")'
    return Recommendation(
        dynamic_tokens=trial.dynamic_tokens, is_default=is_default, reason="; ".join(parts), code=code
    )
