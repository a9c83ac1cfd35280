"""Fit the worth of users' sentences (`summarizers/need_weights.json`) on the development halves of talks with a key.

    python -m benchmarks.need_weights FOLDER > summarizers/ctxsteward/summarizers/need_weights.json   # BEAM chats

The talks are those of `ctxsteward evals survival` and the split ``docs`` of compression and goal-continuity. Each
sentence of a user has the features that it has when it leaves the window, which is taken to be `MESSAGES_LATER`
messages after it was said. Weights are good if the sentences of most worth, as many as fit the room, show most of what
is needed and no old value alone. The value is the mean over kinds of talk of the share shown, at the budgets of the
suite, less `RULE_COST` for rules that are lost; chats count most, because only they are real. A (1, λ) evolution
strategy with fixed seeds changes all weights: the same talks give the same file. Five minutes on a quiet core.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ctxsteward.envelope import Budgets, Counter, load_tokenizer
from ctxsteward.evals.asked_chats import read_chats
from ctxsteward.evals.suites import compression, goal_continuity
from ctxsteward.evals.suites.kit.suite import drawn
from ctxsteward.evals.survival.chats import chat_talk
from ctxsteward.evals.survival.measure import BUDGETS
from ctxsteward.evals.survival.rules import rule_talks
from ctxsteward.evals.survival.talk_generators import generated_talks
from ctxsteward.evals.survival.talks import Talk, UserStatement, line_shows, window_lines
from ctxsteward.language.word_uses import WordUses
from ctxsteward.summarizers.extraction import StatementText, source_statements
from ctxsteward.summarizers.salience import NeedFeatures, need_features

ABOUT = "Worth of a user's sentence, in points; the output of `python -m benchmarks.need_weights FOLDER`."
MESSAGES_LATER = 12
SUITE_TALKS = 26
SUITE_BUDGETS = (0.05,)
ROOM_FRACTION = 0.75
"""Of a compaction's target, what bullets take; the rest is the newest messages."""
KIND_WEIGHTS = {"chats": 2.5, "rules": 1.0, "updates": 1.0, "dense": 1.0, "compression": 1.0, "goals": 1.0}
RULE_COST = 2.0
"""Cost of the share of the suites' rules that is lost, because one that is lost fails their gates."""
STALE_COST = 0.5
SHRINKAGE = 0.002
SEARCHES, GENERATIONS, OFFSPRING = 4, 120, 20
TYPICAL_WORTH, SPREAD_WORTH = 60.0, 10.0
"""Median and standard deviation of the worth over all sentences."""


class KeyedTalk(NamedTuple):
    """A talk of a kind, and the positions of its statements that must not be lost."""

    kind: str
    talk: Talk
    rules: frozenset[int] = frozenset()


class Example(NamedTuple):
    """The sentences of one talk."""

    kind: str
    features: np.ndarray[Any, Any]
    tokens: np.ndarray[Any, Any]
    shows: np.ndarray[Any, Any]
    """Statement × sentence: whether the sentence shows the statement."""
    shows_stale: np.ndarray[Any, Any]
    is_rule: np.ndarray[Any, Any]
    """Whether a statement is a rule that must not be lost."""
    rooms_tokens: tuple[float, ...]


def suite_talks() -> Iterator[KeyedTalk]:
    """Yield conversations of the suites' split ``docs`` with what must be shown at their end."""
    for draw in drawn("compression", "docs", SUITE_TALKS):
        scenario = compression.make(draw)
        *_, last = (ask for ask in scenario.asks if isinstance(ask, compression.CanaryQuestion))
        planted = [(canary.kind, (canary.value,), canary.stale[-1:]) for canary, _ in last.planted]
        yield _suite_talk("compression", draw.id, scenario.messages, planted)
    for draw in drawn("goal-continuity", "docs", SUITE_TALKS):
        scenario = goal_continuity.make(draw)
        asks = [ask for ask in scenario.asks if isinstance(ask, goal_continuity.Checkpoint)]
        newest = {(aim.kind, aim.key): aim for ask in asks for aim in ask.aims}
        aims = [(aim.kind, aim.wants[:1], aim.outdated[-1:]) for aim in newest.values() if aim.is_open]
        yield _suite_talk("goals", draw.id, scenario.messages, aims)


def _suite_talk(
    kind: str,
    name: str,
    messages: Sequence[dict[str, Any]],
    wanted: Sequence[tuple[str, tuple[str, ...], tuple[str, ...]]],
) -> KeyedTalk:
    statements = tuple(UserStatement(text=words[0], words=words, stale=stale) for _, words, stale in wanted)
    said = ({"role": wire["role"], "content": wire["content"] or ""} for wire in messages)
    rules = frozenset(place for place, (what, _, _) in enumerate(wanted) if what == "safety_rule")
    return KeyedTalk(kind, Talk(name=name, messages=tuple(said), statements=statements), rules)


def talks(folder: Path) -> Iterator[KeyedTalk]:
    """Yield the talks of all kinds."""
    chats = read_chats(folder)
    yield from (KeyedTalk("chats", chat_talk(chat)) for chat in chats)
    for start in range(len(chats)):  # the same rules in other talk
        yield from (KeyedTalk("rules", talk) for talk in rule_talks("dev", chats[start:]))
    yield from (KeyedTalk("updates", talk) for talk in generated_talks("updates", "dev"))
    yield from (KeyedTalk("dense", talk) for talk in generated_talks("dense", "dev"))
    yield from suite_talks()


def example(keyed: KeyedTalk, counter: Counter) -> Example:
    """Return the features of a talk's sentences, and what each shows."""
    kind, talk, rules = keyed
    messages = [*talk.messages, *(talk.idle() for _ in range(160 if talk.idle else 0) if talk.idle)]
    users = [(number, str(wire["content"])) for number, wire in enumerate(messages, 1) if wire["role"] == "user"]
    uses, read = WordUses(), 0
    rows: dict[str, NeedFeatures] = {}
    for number, text in users:
        while read < len(users) and users[read][0] <= number + MESSAGES_LATER:
            uses.read(users[read][1], users[read][0])
            read += 1
        for statement in source_statements([StatementText(text, "user", f"§{number}", number, 0)]):
            if statement.reading.subject and statement.reading.text not in rows:
                rows[statement.reading.text] = need_features(statement, uses)
    lines = [window_lines(line) for line in rows]
    shows = [[line_shows(line, statement.words) for line in lines] for statement in talk.statements]
    stale = [[bool(s.stale) and line_shows(line, s.stale) for line in lines] for s in talk.statements]
    size = sum(counter.text(str(wire["content"])) for wire in talk.messages)
    budgets = dict(BUDGETS).get(kind, SUITE_BUDGETS)  # type: ignore[call-overload]
    rooms = (
        ROOM_FRACTION * Budgets(dynamic_tokens=int(b if b >= 1 else size * b), recall_fraction=0).target_tokens
        for b in budgets
    )
    tokens = np.array([counter.text(line) + 5 for line in rows])
    is_rule = np.array([place in rules for place in range(len(talk.statements))])
    return Example(kind, np.array(list(rows.values())), tokens, np.array(shows), np.array(stale), is_rule, tuple(rooms))


def value(weights: np.ndarray[Any, Any], examples: Sequence[Example]) -> float:
    """Return the weighted mean over kinds of the share of statements shown, less stale values and large weights."""
    shown: dict[str, list[float]] = {}
    rules_kept: list[np.ndarray[Any, Any]] = []
    for one in examples:
        order = np.argsort(-(one.features @ weights), kind="stable")
        filled = np.cumsum(one.tokens[order])
        for room in one.rooms_tokens:
            for factor in (0.8, 1.0, 1.25):  # a little more or less room: a smoother function
                taken = order[: int(np.searchsorted(filled, room * factor, side="right"))]
                new = one.shows[:, taken].any(axis=1)
                old = one.shows_stale[:, taken].any(axis=1) & ~new
                shown.setdefault(one.kind, []).append(float((new - STALE_COST * old).mean()))
                rules_kept.append(np.extract(one.is_rule, new))
    total = sum(KIND_WEIGHTS[kind] for kind in shown)
    mean = sum(KIND_WEIGHTS[kind] * float(np.mean(shares)) for kind, shares in shown.items()) / total
    kept = np.concatenate(rules_kept)
    lost = 1 - float(kept.mean()) if len(kept) else 0.0
    return mean - RULE_COST * lost - SHRINKAGE * float(weights @ weights) / len(weights)


def fitted(examples: Sequence[Example], seed: int = 0) -> np.ndarray[Any, Any]:
    """Return the best weights of standardized features that the search found."""
    rng = np.random.default_rng(seed)
    best = np.zeros(examples[0].features.shape[1])
    best[0], step, most = 1.0, 0.5, -np.inf
    for _ in range(GENERATIONS):
        tries = best + step * rng.standard_normal((OFFSPRING, len(best)))
        values = [value(weights, examples) for weights in tries]
        top = int(np.argmax(values))
        step *= 1.15 if values[top] > most else 0.92
        if values[top] > most:
            best, most = tries[top], values[top]
    return best


def main(folder: str) -> None:
    """Fit and print the weights."""
    counter = Counter(load_tokenizer("o200k_base"))
    examples = [example(keyed, counter) for keyed in talks(Path(folder)) if keyed.talk.statements]
    everything = np.vstack([one.features for one in examples])
    mean, spread = everything.mean(axis=0), everything.std(axis=0) + 1e-9
    scaled = [one._replace(features=(one.features - mean) / spread) for one in examples]
    # the optimum is flat: the mean of several searches leans less on the chance of one
    searches = [fitted(scaled, seed) for seed in range(SEARCHES)]
    weights = np.mean([found / np.linalg.norm(found) for found in searches], axis=0)
    scores = ((everything - mean) / spread) @ weights
    points = SPREAD_WORTH / float(scores.std())
    base = TYPICAL_WORTH - points * float(np.median(scores) + (weights * mean / spread).sum())
    document = {
        "about": ABOUT,
        "base": round(base, 2),
        "weights": {
            name: round(float(points * weight / size), 2)
            for name, weight, size in zip(NeedFeatures._fields, weights, spread, strict=True)
        },
    }
    print(json.dumps(document, indent=2))
    print(f"value {value(weights, scaled):.4f}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
