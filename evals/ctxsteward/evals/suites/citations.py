"""Citations: whatever was said stays reachable under its reference, to the byte, for as long as the session lives.

Conversations full of tool outputs (one or several a message, short, over the arrival cap, said twice, of several
kinds, in both dialects) over several days, compacted again and again. At seeded places somebody asks to have the n-th
tool output or a stretch of messages quoted; on the way the session is forked, and reopened cold from its store. Every
bullet must cite, every citation resolve to what was said, and everything quoted (bullets, losses with their spans,
recalled messages, excerpts of long results) stand in the original.

Source: the layered-envelope design (acceptance: “引用第 3 条工具输出”; citations to full logs on demand).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ctxsteward.schemas import Wire

from .citations_played import play_citations
from .outputs import exchange, outputs_of
from .scenario import Ask, Draw, Scenario, Split
from .scoring import Metric
from .suite import Suite
from .talk import Talk, assistant, user

OUTPUTS: dict[Split, dict[str, tuple[str, ...]]] = {
    "docs": {
        "en": (
            "Quote the {nth} tool output word for word.", "What exactly did tool output {n} say?",
            "Show me the {nth} tool result again, please.", "Cite tool output number {n}.",
        ),
        "zh": ("引用第 {n} 条工具输出", "把第{n}个工具返回的原文给我看一下。", "第 {n} 次工具调用的结果原文是什么？"),
    },
    "ci": {
        "en": (
            "Can you paste what came back from the {nth} tool call?", "Repeat tool output #{n} verbatim.",
            "I need the {nth} tool's answer again, unabridged.", "Go back to tool result {n} and quote it.",
        ),
        "zh": ("请逐字引用第{n}条工具结果", "再贴一遍第 {n} 个工具输出，不要删减。", "第{n}条工具输出里具体写了什么？"),
    },
}  # fmt: skip
STRETCHES: dict[Split, dict[str, tuple[str, ...]]] = {
    "docs": {
        "en": ("What did we say from §{a} to §{b}?", "Read §{a}-§{b} again."),
        "zh": ("§{a} 到 §{b} 我们说了什么？",),
    },
    "ci": {
        "en": ("Go through §{a}-§{b} once more.", "Quote §{a} through §{b}."),
        "zh": ("把 §{a}-§{b} 的内容再念一遍。",),
    },
}
ASKED_EVERY = 8
"""User turns between two askings, about."""
TOOL_SHARE = 0.4
"""Of the turns."""
MANY_COMPACTIONS = 5

METRICS = (
    Metric(name="bullets_cited", about="Bullets, and the lines they are shown as, that cite at least one original."),
    Metric(name="citations_resolve", about="Citations that give the bytes that were said, at every compaction."),
    Metric(name="accounted", about="Calls after which every message is in the window, cited, or a recorded loss."),
    Metric(name="quotes_match", about="Quotes in bullets, losses, recall and excerpts that stand in the original."),
    Metric(name="tool_outputs", about="The n-th tool output, by tool:n, reference and the model's tool, as it was."),
    Metric(name="outputs_shown", about="Questions for the n-th tool output whose envelope shows it whole."),
    Metric(name="ranges_resolve", about="Ranges, those of day lines too, that give just their messages, whole."),
    Metric(name="forks_resolve", about="Citations and outputs of forks: shared below the fork, their own above it."),
    Metric(name="reopened_resolve", about="Citations and outputs after a cold reopening, and the same envelope again."),
    Metric(name="compactions", about=f"Compactions a scenario went through; wanted: {MANY_COMPACTIONS}.", kind="mean"),
)  # fmt: skip


def make(draw: Draw) -> Scenario:
    """A conversation with many tool outputs, and questions for them."""
    talk, rng = Talk.of(draw), draw.random("citations")
    anthropic = rng.random() < 0.4
    messages: list[Wire] = []
    asks: list[Ask] = []
    until = rng.randint(4, ASKED_EVERY)
    for turn in range(draw.turns):
        messages.append(user(talk.user()))
        if rng.random() < TOOL_SHARE or turn < 2:
            messages += exchange(rng, draw.language, messages, anthropic=anthropic)
        elif not anthropic and rng.random() < 0.1:
            messages += talk.tools()
        messages.append(assistant(talk.assistant()))
        if turn == until:
            until += rng.randint(ASKED_EVERY - 3, ASKED_EVERY + 3)
            asks.append(_ask(rng, draw, messages))
    return Scenario(
        draw=draw, messages=tuple(messages), asks=tuple(asks), tags={"dialect": "anthropic" if anthropic else "openai"}
    )


def _ask(rng: Random, draw: Draw, messages: Sequence[Wire]) -> Ask:
    found = outputs_of(messages)
    if rng.random() < 0.25:
        first = rng.randint(1, max(1, len(messages) - 12))
        last = first + rng.randint(1, 11)
        texts = STRETCHES[draw.split][draw.language]
        question = rng.choice(texts).format(a=first, b=min(last, len(messages)))
        return Ask(
            metric="ranges_resolve",
            after=len(messages),
            question=question,
            wants=(),
            kind=f"{first}-{min(last, len(messages))}",
        )
    number = rng.choice((rng.randint(1, len(found)), min(3, len(found)), len(found)))
    question = rng.choice(OUTPUTS[draw.split][draw.language]).format(n=number, nth=_nth(number))
    return Ask(
        metric="tool_outputs", after=len(messages), question=question, wants=(found[number - 1].text,), kind=str(number)
    )


def _nth(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


SUITE = Suite(
    name="citations",
    about="Whatever is cited, quoted or asked for by its number is word for word what was said.",
    metrics=METRICS,
    make=make,
    play=play_citations,
)
