"""Talks that are written from sentences: statements every few messages, some with a new value later.

`dense`: four ways to talk (memos, slang, labelled lines, prose), each statement about an invented name, and idle talk
behind them for a few compactions. `updates`: everyday facts of which two in three get a new value. Names, numbers and
order are drawn anew for each talk.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import cycle, permutations
from typing import Literal, NamedTuple

from pydantic import TypeAdapter
from ruamel.yaml import YAML

from ctxsteward.schemas.message import Wire

from ..canaries import Half
from ..phrasings import Phrasings, Texts
from .talks import Talk, UserStatement, marked_statement

GeneratedKind = Literal["dense", "updates"]
SYLLABLES = "ba do fe ga hu ki lo mu na pe ri so ta vu zo qua bri cle dro sna".split()  # noqa: SIM905


class TalkTexts(Phrasings):
    """Sentences of one way to talk; a line shows a statement if it has the words of ``{name}`` and ⟦…⟧."""

    statements: Texts
    rules: Texts
    updates: Texts
    """``older || newer``."""
    user: Texts
    assistant: Texts
    words: Texts
    """Words of idle talk."""


class TalkShape(NamedTuple):
    """Number of statements in a talk, and the exchanges between them."""

    statements: int
    order: tuple[str, ...]
    """Kinds of texts, in rotation."""
    exchanges: tuple[int, ...]
    """Numbers of exchanges, one of which is drawn after each statement."""
    seeds: int
    """Talks of each way to talk."""
    idle: bool


SHAPES: Mapping[GeneratedKind, TalkShape] = {
    "dense": TalkShape(24, ("statements", "updates", "statements", "rules"), (2, 3, 3), 3, True),
    "updates": TalkShape(12, ("updates", "updates", "statements"), (1, 2, 2), 2, False),
}


@cache
def talk_texts(kind: GeneratedKind, half: Half) -> Mapping[str, TalkTexts]:
    """Read the sentences of a kind, by way to talk."""
    text = files(__package__).joinpath(f"{kind}_{half}.yaml").read_text(encoding="utf-8")
    return TypeAdapter(Mapping[str, TalkTexts]).validate_python(YAML(typ="safe").load(text))


def generated_talks(kind: GeneratedKind, half: Half) -> Iterator[Talk]:
    """Yield all talks of a kind."""
    for way in talk_texts(kind, half):
        for seed in range(SHAPES[kind].seeds):
            yield generated_talk(kind, way, seed, half)


def generated_talk(kind: GeneratedKind, way: str, seed: int, half: Half) -> Talk:
    """Write one talk; the same for the same arguments."""
    texts, shape = talk_texts(kind, half)[way], SHAPES[kind]
    rng = random.Random(f"{kind} {way} {seed} {half}")
    names = rng.sample(["".join(parts).capitalize() for parts in permutations(SYLLABLES, 3)], shape.statements)
    decks: dict[str, list[str]] = {}
    said: list[UserStatement] = []
    replaced: list[UserStatement] = []
    later: list[tuple[int, UserStatement]] = []
    for index, name in enumerate(names):
        sort = shape.order[index % len(shape.order)]
        if not decks.get(sort):
            decks[sort] = rng.sample(getattr(texts, sort), len(getattr(texts, sort)))
        form = decks[sort].pop()
        old, new = (str(number) for number in rng.sample(range(13, 990), 2))
        filled = form.replace("{name}", f"⟦{name}⟧").replace("{n}", old).replace("{m}", new)
        first, *newer = map(marked_statement, filled.split(" || "))
        said.append(first)
        for statement in newer:
            replaced.append(first)
            again = replace(statement, stale=first.words)
            later.append((min(shape.statements, index + rng.randint(1, 9)), again))
    for place, statement in reversed(later):
        said.insert(place, statement)

    def filler(role: str) -> Wire:
        first, second = rng.sample(texts.words, 2)
        text = rng.choice(texts.user if role == "user" else texts.assistant)
        return {"role": role, "content": text.replace("{a}", first).replace("{b}", second)}

    messages: list[Wire] = [filler("user"), filler("assistant")]
    for statement in said:
        messages.append({"role": "user", "content": statement.text})
        for _ in range(rng.choice(shape.exchanges)):
            messages += [filler("assistant"), filler("user")]
        messages.append(filler("assistant"))
    return Talk(
        name=f"{kind} {way} {seed + 1}",
        messages=tuple(messages),
        statements=tuple(statement for statement in said if statement not in replaced),
        idle=_in_turn(filler) if shape.idle else None,
    )


def _in_turn(filler: Callable[[str], Wire]) -> Callable[[], Wire]:
    """Return a user's filler, then an assistant's, and so on."""
    roles = cycle(("user", "assistant"))
    return lambda: filler(next(roles))
