"""The suites as Inspect tasks: the same scenarios, with a model that answers what is asked in them.

    inspect eval ctxsteward/verbatim --model openai/gpt-4o -T scenarios=4
    inspect eval ctxsteward/goal_continuity --model anthropic/claude-sonnet-4-5 -T split=docs -T dynamic_tokens=4000

A sample is one question at one place of a conversation: its input is the envelope that the real builder makes for it,
its target what the answer must say. The scorer is the pure check that suites make on an envelope (`canaries.shows`),
here on the answer. An answer that is empty, or was cut by the provider's filter, is unscored: it is not 0.

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
from .sealed_openings import refuse_sealed
from .suites.catalogue import suite_named
from .suites.kit.play import AskMoment, play, request_of
from .suites.kit.suite import DYNAMIC_TOKENS, Ask, PlayCounts, Scenario, Setup, Split, drawn

SCENARIOS, ASKS = 4, 10
"""Of a task, and questions of each scenario, where nothing else is asked for."""


@task
def verbatim(**options: Any) -> Task:
    """What was said last, word for word."""
    return task_of("verbatim", **options)


@task
def goal_continuity(**options: Any) -> Task:
    """Goals, constraints, decisions, what is done and what is not."""
    return task_of("goal-continuity", **options)


@task
def compression(**options: Any) -> Task:
    """Planted values after many compactions, each in its newest version."""
    return task_of("compression", **options)


@task
def citations(**options: Any) -> Task:
    """Tool outputs by their number, and what bullets cite."""
    return task_of("citations", **options)


def task_of(
    suite: str,
    *,
    scenarios: int = SCENARIOS,
    split: Split = "docs",
    asks: int = ASKS,
    dynamic_tokens: int = DYNAMIC_TOKENS,
) -> Task:
    """One suite as a task; raises `InputError` for an unknown name, and for the sealed split."""
    refuse_sealed(split)
    setup = Setup(budgets=Budgets(dynamic_tokens=dynamic_tokens))
    conversations = (suite_named(suite).make(draw) for draw in drawn(suite, split, scenarios))
    samples = [sample for scenario in conversations for sample in samples_of(scenario, setup, asks)]
    return Task(dataset=MemoryDataset(samples, name=suite), solver=generate(), scorer=said(), name=suite)


def samples_of(scenario: Scenario, setup: Setup, asks: int = ASKS) -> Iterator[Sample]:
    """A sample for each question of a scenario, evenly spread where there are more than `asks`."""
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
    """What a model's answer must say."""
    return ask.answer or ask.wants


@scorer(metrics=[accuracy(), stderr(), ci_wilson(level=0.95), grouped(accuracy(), "metric", all=False)])
def said() -> Scorer:
    """Whether the answer says what is wanted, and nothing outdated instead of it."""

    async def score(state: TaskState, target: Target) -> Score | None:
        text = state.output.completion if state.output.choices else ""
        if not text.strip() or state.output.stop_reason == "content_filter":
            return None
        return judge(text, list(target), state.metadata.get("avoids", ()))

    return score


def judge(text: str, wants: Sequence[str], avoids: Sequence[str]) -> Score:
    """The check itself, on one answer."""
    answer = normalize(text)
    missing = [value for value in wants if not shows(answer, value)]
    outdated = [value for value in avoids if missing and shows(answer, value)]
    why = "; ".join([f"not said: {value!r}" for value in missing] + [f"outdated: {value!r}" for value in outdated])
    return Score(value=INCORRECT if missing else CORRECT, answer=text, explanation=why or "all of it is said")
