"""Play a talk, and compare the window at its end with the choices of trivial strategies from the same talk.

A strategy takes whole sentences in its own order, as many as fit into the tokens that a compaction may leave
(`Budgets.target_tokens`); each also costs the mark and reference of a bullet. It chooses from the whole talk, while the
builder sees each message once. Strategies read users' sentences, or, with *anyone*, those of all roles. *In our room*
means our window with the strategy's sentences instead of our bullets, in as many tokens.

The oracle takes the statements themselves, the shortest first, which is nearly the most that fits. Recall is off, no
question is asked, and the summarizer is the builder's default.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from math import log
from typing import NamedTuple

from ctxsteward.envelope import Budgets, Counter as TokenCounter, Envelope, EnvelopeBuilder, load_tokenizer, open_store
from ctxsteward.envelope.render.text import section_text
from ctxsteward.language.words import sentences
from ctxsteward.schemas.message import Wire

from .talks import Talk, line_shows, window_lines

OURS = "ours"
BULLET_TOKENS = 5
FRAME_TOKENS = 25
"""Tokens of the fence and the heading around bullets."""
IN_OUR_ROOM = ("oracle", "rare words", "random")
IDLE_PASSES = 5
IDLE_MESSAGES = 2_000
"""Idle talk ends after so many messages, even if it caused fewer than `IDLE_PASSES` compactions."""
TOKENIZER = "o200k_base"
_WORD = re.compile(r"[^\W_]+")
_OBLIGED = re.compile(r"\d|\b(?:must|never|always|only|no|not)\b", re.IGNORECASE)


class SurvivalRow(NamedTuple):
    """One strategy on one kind of talk at one budget; counts over its talks."""

    kind: str
    budget: float
    """Dynamic tokens; below 1, a fraction of the talk's tokens."""
    strategy: str
    statements: int
    shown: int
    updates: int
    resolved: int
    """Updates whose newest value is shown and whose older one is not."""
    stale_alone: int
    user_turns: int = 0
    compactions: int = 0
    filled_after_passes: float = 0.0
    """Sum over compactions of the fraction of the dynamic budget that is filled afterwards."""
    talks: int = 1
    filled_at_end: float = 0.0
    """Sum over talks of the fraction of the dynamic budget that is filled at the end."""
    builds: int = 0
    cpu_ms: float = 0.0
    """CPU milliseconds of all builds."""

    def plus(self, other: SurvivalRow) -> SurvivalRow:
        """Add the counts of another row of the same kind, budget and strategy."""
        return SurvivalRow._make((*self[:3], *(a + b for a, b in zip(self[3:], other[3:], strict=True))))


def play(talk: Talk, kind: str, budget: float) -> Iterator[SurvivalRow]:
    """Yield a row for our window at the end of a talk, then one for each strategy."""
    size = sum(_tokens(str(wire["content"])) for wire in talk.messages)
    dynamic_tokens = int(budget) if budget >= 1 else max(100, int(size * budget))
    builder = EnvelopeBuilder(tokenizer=TOKENIZER, budgets=Budgets(dynamic_tokens=dynamic_tokens, recall_fraction=0))
    played = _played(talk, builder)

    def row(strategy: str, text: str) -> SurvivalRow:
        lines = window_lines(text)
        shown = [line_shows(lines, statement.words) for statement in talk.statements]
        # A line that names the older value beside the newest is not stale.
        stale = [
            bool(s.stale) and line_shows([line for line in lines if not line_shows([line], s.words)], s.stale)
            for s in talk.statements
        ]
        return SurvivalRow(
            kind=kind,
            budget=budget,
            strategy=strategy,
            statements=len(shown),
            shown=sum(shown),
            updates=sum(bool(s.stale) for s in talk.statements),
            resolved=sum(
                bool(s.stale) and new and not old for s, new, old in zip(talk.statements, shown, stale, strict=True)
            ),
            stale_alone=sum(old and not new for new, old in zip(shown, stale, strict=True)),
        )

    section = played.window.section("dynamic")
    fragments = section.fragments
    yield row(OURS, section_text(fragments))._replace(
        user_turns=sum(wire["role"] == "user" for wire in played.said),
        compactions=len(played.filled),
        filled_after_passes=sum(played.filled),
        filled_at_end=section.tokens / dynamic_tokens,
        builds=played.builds,
        cpu_ms=played.cpu_ms,
    )
    verbatim = section_text([fragment for fragment in fragments if fragment.kind != "bullets"])
    bullets_tokens = sum(fragment.tokens for fragment in fragments if fragment.kind == "bullets")
    for name, lines in _strategies(talk, played.said).items():
        yield row(name, "\n".join(_fill(lines, builder.budgets.target_tokens)))
        if name in IN_OUR_ROOM:
            chosen = _fill(lines, bullets_tokens - FRAME_TOKENS)
            yield row(f"{name}, in our room", "\n".join((verbatim, *chosen)))


class _PlayedTalk(NamedTuple):
    said: Sequence[Wire]
    window: Envelope
    filled: Sequence[float]
    """Fraction of the dynamic budget that is filled after each compaction."""
    builds: int
    cpu_ms: float


def _played(talk: Talk, builder: EnvelopeBuilder) -> _PlayedTalk:
    """Build at each user turn and at the end."""
    said: list[Wire] = []
    filled: list[float] = []
    builds = passes = 0
    cpu = 0.0
    with open_store("memory:") as store:
        session = store.session(talk.name)

        def build() -> Envelope:
            nonlocal cpu, builds
            started = time.process_time()
            envelope = builder.build(session)
            cpu += time.process_time() - started
            builds += 1
            filled.extend(report.post_tokens / builder.budgets.dynamic_tokens for report in envelope.reports)
            return envelope

        fresh: Sequence[Wire] = talk.messages
        while fresh:
            for wire in fresh:
                session.append(wire)
                if wire["role"] == "user":
                    reports = build().reports
                    passes += len(reports) if said else 0
            said += fresh
            fresh = ()
            if talk.idle and passes < IDLE_PASSES and len(said) < len(talk.messages) + IDLE_MESSAGES:
                fresh = (talk.idle(), talk.idle())
        window = build()
    return _PlayedTalk(said, window, filled, builds, cpu * 1000)


def _strategies(talk: Talk, said: Sequence[Wire]) -> Mapping[str, Iterable[str]]:
    """Return the sentences of each strategy, the first choice first."""
    spoken = [(wire["role"], _spoken(str(wire["content"]))) for wire in said]
    anyone = list(dict.fromkeys(line for _, lines in spoken for line in lines))
    users = list(dict.fromkeys(line for role, lines in spoken if role == "user" for line in lines))
    firsts = dict.fromkeys(lines[0] for role, lines in spoken if role == "user" and lines)
    spread = Counter(word for wire in said for word in _words(str(wire["content"])))

    def worth(line: str) -> float:
        return sum(log(len(said) / spread[word]) for word in _words(line)) / (_tokens(line) + BULLET_TOKENS)

    return {
        "oracle": sorted((s.text for s in talk.statements), key=_tokens),
        "rare words": sorted(users, key=worth, reverse=True),
        "newest": users[::-1],
        "random": random.Random(len(users)).sample(users, len(users)),
        "first sentences": firsts,
        "keyword pin": [line for line in users[::-1] if _OBLIGED.search(line)],
        "random, anyone": random.Random(len(anyone)).sample(anyone, len(anyone)),
        "rare words, anyone": sorted(anyone, key=worth, reverse=True),
    }


@lru_cache(maxsize=10_000)
def _spoken(text: str) -> tuple[str, ...]:
    return tuple(text[span.start : span.stop] for span in sentences(text))


@cache
def _counter() -> TokenCounter:
    return TokenCounter(load_tokenizer(TOKENIZER))


# Each budget asks again for the same sentences, and tokenizing them takes longer than playing the talk.
@lru_cache(maxsize=100_000)
def _tokens(text: str) -> int:
    return _counter().text(text)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _fill(lines: Iterable[str], room_tokens: int) -> Iterator[str]:
    for line in lines:
        tokens = _tokens(line) + BULLET_TOKENS
        if tokens <= room_tokens:
            room_tokens -= tokens
            yield line
