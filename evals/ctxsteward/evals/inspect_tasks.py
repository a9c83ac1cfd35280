"""Run the suites as Inspect tasks: a model answers the questions of their scenarios.

    inspect eval ctxsteward/verbatim --model openai/gpt-4o -T scenarios=4
    inspect eval ctxsteward/goal_continuity --model anthropic/claude-sonnet-4-5 -T split=docs -T dynamic_tokens=4000

A sample is one question at one place of a conversation: its input is the envelope of the real builder for the question,
its target the values that the answer must say. The scorer applies the suites' check of envelopes (`canaries.shows`) to
the answer. An answer that is empty, or was cut by the provider's filter, is unscored, not 0.

`scenarios` and `split` choose conversations, `dynamic_tokens` sets their budget, `asks` bounds the questions taken from
each. Needs the extra `inspect`; with it, Inspect finds the tasks by name.

Source: Inspect (UK AI Security Institute), "Tasks", "Scorers" and "Extensions" in its documentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, ci_wilson, grouped, scorer, stderr
from inspect_ai.solver import TaskState, generate

from ctxsteward.envelope import Budgets

from .canaries import normalize, shows
from .inspect_messages import messages_of
from .suites.catalogue import suite_named
from .suites.kit.play import AskMoment, play, request_of
from .suites.kit.suite import DYNAMIC_TOKENS, Ask, PlayCounts, Scenario, Setup, Split, drawn, refuse_sealed

SCENARIOS, ASKS = 4, 10
"""Default number of scenarios of a task, and of questions per scenario."""


@task
def verbatim(**options: Any) -> Task:
    """Ask for the last turn, word for word."""
    return task_of("verbatim", **options)


@task
def goal_continuity(**options: Any) -> Task:
    """Ask for goals, constraints, decisions, and open and done tasks."""
    return task_of("goal-continuity", **options)


@task
def compression(**options: Any) -> Task:
    """Ask for planted values after many compactions, each in its newest version."""
    return task_of("compression", **options)


@task
def citations(**options: Any) -> Task:
    """Ask for tool outputs by their number, and for ranges of messages."""
    return task_of("citations", **options)


def task_of(
    suite: str,
    *,
    scenarios: int = SCENARIOS,
    split: Split = "docs",
    asks: int = ASKS,
    dynamic_tokens: int = DYNAMIC_TOKENS,
) -> Task:
    """Make a task from a suite; raise `InputError` for an unknown name, and for the sealed split."""
    refuse_sealed(split)
    setup = Setup(budgets=Budgets(dynamic_tokens=dynamic_tokens))
    conversations = (suite_named(suite).make(draw) for draw in drawn(suite, split, scenarios))
    samples = [sample for scenario in conversations for sample in samples_of(scenario, setup, asks)]
    return Task(dataset=MemoryDataset(samples, name=suite), solver=generate(), scorer=said(), name=suite)


def samples_of(scenario: Scenario, setup: Setup, asks: int = ASKS) -> Iterator[Sample]:
    """Yield a sample for each question of a scenario, at most `asks`, evenly spread."""
    moments = [moment for moment in play(scenario, setup, PlayCounts()) if isinstance(moment, AskMoment)]
    step = max(1, -(-len(moments) // asks))
    for number, moment in enumerate(moments[::step]):
        ask = moment.ask
        yield Sample(
            id=f"{scenario.id}#{number}",
            input=messages_of(request_of(moment)["messages"]),
            target=list(answer_of(ask)),
            metadata={"metric": ask.metric, "kind": ask.kind, "after": ask.after, "avoids": list(ask.avoids)},
        )


def answer_of(ask: Ask) -> tuple[str, ...]:
    """Return the values that a model's answer must say."""
    return ask.answer or ask.wants


@scorer(metrics=[accuracy(), stderr(), ci_wilson(level=0.95), grouped(accuracy(), "metric", all=False)])
def said() -> Scorer:
    """Score whether the answer says every wanted value instead of an outdated one."""

    async def score(state: TaskState, target: Target) -> Score | None:
        text = state.output.completion if state.output.choices else ""
        if not text.strip() or state.output.stop_reason == "content_filter":
            return None
        return judge(text, list(target), state.metadata.get("avoids", ()))

    return score


def judge(text: str, wants: Sequence[str], avoids: Sequence[str]) -> Score:
    """Judge one answer."""
    answer = normalize(text)
    missing = [value for value in wants if not shows(answer, value)]
    outdated = [value for value in avoids if missing and shows(answer, value)]
    why = "; ".join([f"not said: {value!r}" for value in missing] + [f"outdated: {value!r}" for value in outdated])
    return Score(value=INCORRECT if missing else CORRECT, answer=text, explanation=why or "all of it is said")
