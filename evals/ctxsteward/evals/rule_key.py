"""Compare the lines that a night makes from agent runs with a key of the rules that their environment enforces.

A key lists rules that the environment is known to enforce, each with the tools that enforce it and a pattern of the
answers that show it. The runs are harvested as at night, without a model. A line *states* a rule if it is about one of
the rule's tools and shows the pattern, or has all values and half of the words of the rule's statement.

    learnt    rules that at least `OFTEN` runs show and a line states: in force, as a question to people, or as a hint
    false     lines in force that state no rule of the key
    named     lines that rest on answers that show a rule, and that state this rule
    blamed    lines that rest on such answers, do not state the rule, and name an argument
    beside    lines that rest on no answer that shows a rule of the key

Two baselines are scored, too: one repeats the message of each refused call, the other always names the most frequent
argument of the refusing tool's calls.

Raises `InputError` for a key without rules, and if no run shows any rule of the key, because nothing was examined then.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from ctxsteward.envelope import Store
from ctxsteward.language.words import STOP, stem
from ctxsteward.schemas import InputError, MetaRecommendation
from ctxsteward.schemas.frozen import FrozenModel
from ctxsteward.steward import Ledger
from ctxsteward.steward.admission import is_asked, is_hint
from ctxsteward.steward.artifacts.artifact import Artifact
from ctxsteward.steward.artifacts.storage import ArtifactStore
from ctxsteward.steward.harvest.tools.calls import steps
from ctxsteward.steward.ingest.items import LoadedItem
from ctxsteward.steward.ingest.pipeline import ingest
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.night.batch_harvest import HarvestWorker
from ctxsteward.steward.observations.transcript import ReplayedTranscript
from ctxsteward.store import MasterKeys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects

OFTEN = 3
"""Runs that must show a rule before a night should learn it."""
MOST_OF_STATEMENT = 0.5
TENANT = "eval"
KEYS = MasterKeys(b"evals of rules".ljust(32, b"."))
"""The same keys in every run, because they determine the ids that break ties."""
_WORD = re.compile(r"[^\W\d_]{2,}")


class KeyRule(FrozenModel):
    """One rule that an environment enforces."""

    id: str
    statement: str
    tools: tuple[str, ...]
    shown_by: str
    """Regular expression that is found in answers of the tools that show the rule."""
    values: tuple[str | int | float, ...] = ()
    function: str = ""
    seen: int | None = None
    """Number of runs that show it, according to the key; not used."""

    def is_shown_by(self, tool: str | None, text: str) -> bool:
        return tool in self.tools and re.search(self.shown_by, text) is not None

    def is_stated_by(self, line: RuleLine) -> bool:
        if line.tool not in self.tools:
            return False
        if re.search(self.shown_by, line.text):
            return True
        low, words = line.text.casefold(), _stems(self.statement)
        has_values = all(str(value).casefold() in low for value in self.values)
        return has_values and len(words & _stems(line.text)) >= max(2, MOST_OF_STATEMENT * len(words))


class RuleLine(NamedTuple):
    """One line of a night, or of a baseline."""

    text: str
    tool: str | None
    argument: str | None
    standing: str
    """One of ``in force``, ``asked``, ``hint`` and ``held``."""
    rests_on: tuple[str, ...]
    """Answers, or spans of answers, from which it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleScore:
    """Figures of the night or of one baseline."""

    strategy: str
    lines: int
    learnt: int
    """Rules that `OFTEN` runs show and that a line in force, a question or a hint states."""
    in_force: int
    """Rules that `OFTEN` runs show and that a line in force states."""
    false: int
    named: int
    examined: int
    """Lines that rest on answers that show a rule."""
    blamed: int
    beside: int
    held: int
    """Rules that `OFTEN` runs show and that only a line with the standing ``held`` states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReport:
    """Comparison of a night and the baselines with a key."""

    runs: int
    rules: int
    shown: int
    """Rules that any run shows."""
    shown_often: int
    scores: tuple[RuleScore, ...]
    """Score of the night, then those of the baselines."""
    missed: tuple[str, ...]
    """Ids of rules that `OFTEN` runs show and that no line of the night states, except those that are ``held``."""
    lines: tuple[RuleLine, ...]
    """Lines of the night."""


def read_key(path: Path) -> tuple[KeyRule, ...]:
    """Read the rules of a key file (YAML)."""
    try:
        rules = TypeAdapter(tuple[KeyRule, ...]).validate_python(YAML(typ="safe").load(path.read_text("utf-8")) or ())
        for rule in rules:
            re.compile(rule.shown_by)
    except OSError as error:
        raise InputError(f"--key {path}: {error.strerror or error}; name a file of rules") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InputError(f"--key {path}: rule {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (YAMLError, UnicodeDecodeError, re.error) as error:
        raise InputError(f"--key {path}: {' '.join(str(error).split())[:200]}; write a list of rules") from error
    if not rules:
        raise InputError(f"--key {path}: it has no rule; write at least one")
    return rules


def examine(paths: Sequence[Path], rules: Sequence[KeyRule]) -> RuleReport:
    """Harvest runs as a night does, and compare the resulting lines with a key."""
    worker = HarvestWorker(key=KEYS.address_key(TENANT))
    items = [LoadedItem(source=path.name, name=path.name, data=_as_transcripts(path)) for path in _files(paths)]
    runs = [run for item in items for run in ingest(item, worker.settings) if isinstance(run, ReplayedTranscript)]
    shown = _runs_that_show(runs, rules)
    if not any(shown.values()):
        raise InputError(f"{len(runs)} runs show none of the {len(rules)} rules of the key; do they belong together?")
    often = [rule for rule in rules if shown[rule.id] >= OFTEN]
    ours = tuple(_lines_of_night(artifact for item in items for artifact in worker.artifacts(item)))
    scores = (
        _scored("night", ours, rules, often),
        _scored("repeats refusals", tuple(_refusals(runs)), rules, often),
        _scored("names the usual argument", tuple(_arguments(runs)), rules, often),
    )
    used = [line for line in ours if line.standing != "held"]
    return RuleReport(
        runs=len(runs),
        rules=len(rules),
        shown=sum(map(bool, shown.values())),
        shown_often=len(often),
        scores=scores,
        missed=tuple(rule.id for rule in often if not any(map(rule.is_stated_by, used))),
        lines=ours,
    )


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(one for one in path.iterdir() if one.suffix in (".json", ".jsonl"))
        elif path.is_file():
            yield path
        else:
            raise InputError(f"{path}: no such file or folder; name files of runs")


def _as_transcripts(path: Path) -> bytes:
    """Return the bytes of a file; runs whose calls contain their results are rewritten as transcripts."""
    data = path.read_bytes()
    try:
        runs = [json.loads(line) for line in data.splitlines() if line.strip()]
    except ValueError:
        return data
    if not runs or not all(isinstance(run, dict) and isinstance(run.get("conversation"), list) for run in runs):
        return data
    return "\n".join(json.dumps(_transcript(run)) for run in runs).encode()


def _transcript(run: dict[str, Any]) -> dict[str, Any]:
    """Convert a run to a chat: the calls of a message, their results, then its text."""
    messages: list[dict[str, Any]] = []
    for message in run["conversation"]:
        calls: list[dict[str, Any]] = []
        results: list[dict[str, Any]] = []
        for call in message.get("tool_calls") or ():
            id_ = f"call_{len(messages)}_{len(calls)}"
            function = {"name": call["name"], "arguments": json.dumps(call.get("arguments") or {})}
            calls.append({"id": id_, "type": "function", "function": function})
            result = call.get("result")
            text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
            results.append({"role": "tool", "tool_call_id": id_, "content": text})
        if calls:
            messages += [{"role": "assistant", "content": None, "tool_calls": calls}, *results]
        messages.append({"role": message["role"], "content": message.get("content") or ""})
    task = run.get("task")
    return {"messages": messages, "ctxsteward": {} if task is None else {"task": str(task), "principal": str(task)}}


def _runs_that_show(runs: Iterable[ReplayedTranscript], rules: Sequence[KeyRule]) -> dict[str, int]:
    counts = dict.fromkeys((rule.id for rule in rules), 0)
    for run in runs:
        answers = [(said.tool, _readable(said.text)) for said in run.utterances if said.role == "tool"]
        for rule in rules:
            counts[rule.id] += any(rule.is_shown_by(tool, text) for tool, text in answers)
    return counts


def _readable(text: str) -> str:
    """Return JSON without escapes, so that patterns match the characters that people read."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return text


def _lines_of_night(artifacts: Iterable[Artifact]) -> Iterator[RuleLine]:
    """Yield the records that a night makes as lines; stores are in memory."""
    with (
        Store(MemoryJournal(), MemoryObjects(), KEYS, uri="memory:") as store,
        Ledger.open(":memory:", store, TENANT, "agent") as ledger,
    ):
        kept = ArtifactStore(store, TENANT)
        for artifact in artifacts:
            kept.put(artifact)
            ledger.absorb(artifact)
        for record in ledger.records(JudgementContext()):
            spans = tuple(quote.text for quote in ledger.why(record.id) if quote.text)
            argument = re.search(r" arg:(\S+)", record.trigger or "")
            yield RuleLine(record.text, record.scope.tool, argument[1] if argument else None, _standing(record), spans)


def _standing(record: MetaRecommendation) -> str:
    if record.status == "active":
        return "in force"
    return "hint" if is_hint(record) else "asked" if is_asked(record) else "held"


def _refusals(runs: Iterable[ReplayedTranscript]) -> Iterator[RuleLine]:
    """Yield the lines of the baseline that repeats the message of each refused call."""
    told = {
        (step.tool, " ".join(step.failure.message.split()))
        for run in runs
        for step in steps(run)
        if step.failure is not None
    }
    return (RuleLine(text, tool, None, "asked", (text,)) for tool, text in sorted(told))


def _arguments(runs: Iterable[ReplayedTranscript]) -> Iterator[RuleLine]:
    """Yield the lines of the baseline that always names the most frequent argument of a tool's calls."""
    used: dict[str, Counter[str]] = defaultdict(Counter)
    refused: dict[str, dict[str, None]] = defaultdict(dict)
    for run in runs:
        for step in steps(run):
            used[step.tool].update(list(step.arguments or ()))
            if step.failure is not None:
                refused[step.tool][" ".join(step.failure.message.split())] = None
    for tool, texts in sorted(refused.items()):
        argument = min(((-count, name) for name, count in used[tool].items()), default=(0, None))[1]
        yield from (RuleLine(f"check {argument}", tool, argument, "asked", (text,)) for text in texts)


def _scored(name: str, lines: Sequence[RuleLine], rules: Sequence[KeyRule], often: Sequence[KeyRule]) -> RuleScore:
    used = [line for line in lines if line.standing != "held"]
    in_force = [line for line in lines if line.standing == "in force"]
    examined = [line for line in used if _shown_to(line, rules)]
    named = [line for line in examined if any(rule.is_stated_by(line) for rule in _shown_to(line, rules))]
    learnt = [rule for rule in often if any(map(rule.is_stated_by, used))]
    return RuleScore(
        strategy=name,
        lines=len(used),
        learnt=len(learnt),
        in_force=sum(any(map(rule.is_stated_by, in_force)) for rule in often),
        false=sum(not any(rule.is_stated_by(line) for rule in rules) for line in in_force),
        named=len(named),
        examined=len(examined),
        blamed=sum(line.argument is not None and line not in named for line in examined),
        beside=len(used) - len(examined),
        held=sum(rule not in learnt and any(map(rule.is_stated_by, lines)) for rule in often),
    )


def _shown_to(line: RuleLine, rules: Sequence[KeyRule]) -> list[KeyRule]:
    return [rule for rule in rules if any(rule.is_shown_by(line.tool, text) for text in line.rests_on)]


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in _WORD.findall(text.casefold()) if word not in STOP)
