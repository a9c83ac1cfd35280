"""Tool calls and their outputs, of many kinds and sizes, for the conversations of the suite ``citations``.

`exchange` makes an assistant message with one to three calls and their results: in the OpenAI dialect one message a
result, in the Anthropic dialect one message with all of them (``§n.1``, ``§n.2``). Now and then a result repeats an
earlier one word for word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from ctxsteward.schemas import Ref, Wire, take_wire

from ..phrasings import Texts, texts
from .kit import Language, Split, answer, calls, sealed_formats

LONG_SHARE = 0.25
"""Of the outputs: several times as long, mostly over the arrival cap."""
AGAIN_SHARE = 0.08

_NAMES = ("read_page", "query_rows", "tail_log", "get_config", "list_files", "run_check", "fetch_diff")
_SEALED_NAMES = ("open_folio", "poll_sensor", "dump_queue", "lookup_owner", "export_sheet", "probe_host")


class Vocabulary(NamedTuple):
    """What outputs are made of."""

    language: Language
    split: Split = "docs"

    def words(self, language: Language | None = None) -> Texts:
        return texts("tool_outputs", "words", language or self.language, self.split)

    @property
    def names(self) -> Texts:
        """Of what has a name: English words."""
        return self.words("en")

    @property
    def sentences(self) -> Texts:
        return texts("tool_outputs", "sentences", self.language, self.split)


@dataclass(frozen=True, slots=True)
class ScriptedToolOutput:
    """A tool output of a conversation."""

    place: Ref
    text: str


def outputs_of(messages: Sequence[Wire]) -> list[ScriptedToolOutput]:
    """All tool outputs in order; the n-th is ``tool:n``."""
    found: list[ScriptedToolOutput] = []
    for ordinal, wire in enumerate(messages, 1):
        results = take_wire(wire)[1].tool_results if _may_hold(wire) else ()
        found += [ScriptedToolOutput(Ref(ordinal, part), result.text) for part, result in enumerate(results, 1)]
    return found


def _may_hold(wire: Wire) -> bool:
    return wire["role"] == "tool" or (wire["role"] == "user" and not isinstance(wire["content"], str))


def exchange(rng: Random, said: Vocabulary, before: Sequence[Wire], *, anthropic: bool) -> list[Wire]:
    """One round of calls and their results."""
    made = [
        (f"call_{len(before)}_{k}_{rng.randrange(16**5):05x}", *_made(rng, said, before))
        for k in range(rng.choice((1, 1, 1, 2, 3)))
    ]
    if anthropic:
        uses = [{"type": "tool_use", "id": id, "name": name, "input": {"target": key}} for id, name, key, _ in made]
        results = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, _, _, text in made]
        return [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    called = calls(*((id, name, {"target": key}) for id, name, key, _ in made))
    return [called, *(answer(id, text) for id, _, _, text in made)]


def _made(rng: Random, said: Vocabulary, before: Sequence[Wire]) -> tuple[str, str, str]:
    """Tool name, argument, output."""
    names, kinds = (_SEALED_NAMES, _SEALED_KINDS) if said.split == "sealed" else (_NAMES, _KINDS)
    name, key = rng.choice(names), f"{rng.choice(said.names)}-{rng.randint(10, 9999)}"
    earlier = [wire for wire in before if wire["role"] == "tool"] if rng.random() < AGAIN_SHARE else []
    if earlier:
        return name, key, take_wire(rng.choice(earlier))[1].tool_results[0].text
    size = rng.randint(25, 60) if rng.random() < LONG_SHARE else rng.randint(2, 9)
    return name, key, rng.choice(kinds)(rng, said, size)


def _prose(rng: Random, said: Vocabulary, size: int) -> str:
    sentences, words = said.sentences, said.words()
    rows = []
    for _ in range(size):
        a, b = rng.sample(words, 2)
        rows.append(rng.choice(sentences).format(a=a, b=b, n=rng.randint(2, 99), m=rng.randint(100, 9999)))
    return (" " if said.language == "en" else "").join(rows)


def _rows(rng: Random, said: Vocabulary, size: int) -> str:
    words = said.words()
    found = [
        {
            "id": f"{rng.choice('QRT')}-{rng.randint(1000, 99999)}",
            "name": rng.choice(words),
            "price": rng.randint(1, 999) / 4,
        }
        for _ in range(size)
    ]
    return json.dumps({"rows": found, "next": None}, ensure_ascii=rng.random() < 0.3, indent=rng.choice((None, 1)))


def _log(rng: Random, said: Vocabulary, size: int) -> str:
    rows = [
        f"12:{rng.randint(10, 59)}:0{rng.randint(0, 9)} INFO {rng.choice(said.names)} took {rng.randint(3, 900)} ms"
        for _ in range(size * 2)
    ]
    if rng.random() < 0.5:
        wrong = "Error: connection refused by {}" if said.language == "en" else "错误：{} 连接被拒绝"
        rows.insert(rng.randrange(len(rows)), "12:44:01 " + wrong.format(rng.choice(said.names)))
    return "\n".join(rows) + "\n"


def _table(rng: Random, said: Vocabulary, size: int) -> str:
    head = "item | count | place" if said.language == "en" else "品名 | 数量 | 位置"
    words = said.words()
    return "\n".join(
        [head, *(f"{rng.choice(words)} | {rng.randint(1, 999)} | §{rng.randint(1, 40)}" for _ in range(size))]
    )


def _config(rng: Random, said: Vocabulary, size: int) -> str:
    names = said.names
    rows = [
        f"{rng.choice(names)}_{n}:\n  limit: {rng.randint(1, 9999)}\n  path: /srv/{rng.choice(names)}/{n}.yaml"
        for n in range(size)
    ]
    return "# " + ("settings" if said.language == "en" else "设置") + "\n" + "\n".join(rows)


def _bare(rng: Random, said: Vocabulary, size: int) -> str:
    """Little, odd or nothing at all."""
    return rng.choice(
        ("ok", "", "0", "\n\n", "null", "[]", "完成" if said.language == "zh" else "done", "§3", "\t…\u200b")
    )


def _sealed(kind: str) -> Kind:
    return lambda rng, said, size: sealed_formats.FORMATS[kind](rng, said.words(), size)


Kind = Callable[[Random, Vocabulary, int], str]
_KINDS: tuple[Kind, ...] = (_prose, _rows, _log, _table, _config, _bare)
_SEALED_KINDS: tuple[Kind, ...] = (_prose, _prose, _bare, *map(_sealed, sealed_formats.FORMATS))
