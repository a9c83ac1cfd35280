"""Run by the tests in an environment that has Inspect: a task with its mock model, and what came of it as JSON.

The model is scripted: right answers, answers with one value changed, silence, by turns.
"""

from __future__ import annotations

import json
import sys

from inspect_ai import eval as run
from inspect_ai.model import ModelOutput, get_model

from ctxsteward.evals import inspect_tasks as inspecting


def main(suite: str, folder: str) -> None:
    task = inspecting.task_of(suite, scenarios=2, asks=6)
    answers = []
    for number, sample in enumerate(task.dataset):
        wanted = list(sample.target)
        texts = (" ".join(["Certainly:", *wanted]), " ".join(["Certainly:", *wanted[1:], "8949"]), "")
        answers.append(ModelOutput.from_content("mockllm/model", texts[number % 3]))
    model = get_model("mockllm/model", custom_outputs=answers)
    (log,) = run(task, model=model, log_dir=folder, display="none", max_connections=1)
    samples = sorted(log.samples or [], key=lambda sample: [one.id for one in task.dataset].index(sample.id))
    scores = [next(iter(sample.scores.values())) if sample.scores else None for sample in samples]
    results = log.results.scores if log.results else ()
    told = {
        "status": log.status,
        "error": log.error and log.error.message,
        "scores": [score.value if score else None for score in scores],
        "why": [score.explanation if score else None for score in scores],
        "roles": sorted({message.role for sample in task.dataset for message in sample.input}),
        "ids": [sample.id for sample in samples],
        "metrics": {name: one.value for score in results for name, one in score.metrics.items()},
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
