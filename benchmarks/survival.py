"""What survives compaction in dense talk: a statement worth keeping every few messages, then idle talk for five passes.

Four generators write sessions (`dense_*.yaml` here: formal memos, slang, labelled lines, prose); a fifth takes the
user turns of BEAM chats that its questions need, among the other turns of the same chat. Names and numbers are drawn
anew for each session, so nobody shows them without having been told. A statement survives where one line of the window
holds its name and its newest value. *Stale alone*: the window shows an older value of it and not the newest.

Beside our builder stand strategies that choose whole sentences from all that was said, in the tokens that a pass may
leave (`Budgets.target_tokens`): the most statements that fit (oracle), the rarest words per token, the newest, any, and
those with a number or a word of obligation, the newest first. They know every sentence at once; the builder sees each
one once. All are counted with the same tokens for a bullet's mark and reference. The window must also hold the task,
the last turn and its own frame; *in our room* a strategy has what these leave. Recall is off.

The words of the half ``held_out`` are other words with other seeds: look at it once, when nothing is to be changed.
Source of the chats: BEAM (ICLR 2026). Raises `InputError` for a folder without chats.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from itertools import cycle, permutations
from math import log
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from ruamel.yaml import YAML

from ctxsteward.envelope import Budgets, Counter as TokenCounter, EnvelopeBuilder, load_tokenizer, open_store
from ctxsteward.evals.asked_chats import unmarked
from ctxsteward.evals.canaries import Half, normalize, shows
from ctxsteward.evals.documents import table
from ctxsteward.evals.phrasings import Phrasings, Texts
from ctxsteward.evals.survival import measure as measured
from ctxsteward.language.words import sentences
from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire

from .report import progress, publish, script

STATEMENTS = 24
IDLE_PASSES = 5
IDLE_MESSAGES = 2_000
"""Idle talk ends here even where fewer passes were made."""
BUDGETS: tuple[float | int, ...] = (0.1, 0.2, 0.4, 200, 500, 1_000, 2_000)
"""Below 1: of the session's tokens."""
BULLET_TOKENS = 5
FRAME_TOKENS = 25
"""Of the fence and the heading around bullets."""
IN_OUR_ROOM = ("oracle", "rare words")
SYLLABLES = "ba do fe ga hu ki lo mu na pe ri so ta vu zo qua bri cle dro sna".split()  # noqa: SIM905
_MARKED = re.compile(r"⟦(.+?)⟧")
_OBLIGED = re.compile(r"\d|\b(?:must|never|always|only|no|not)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_VALUE = re.compile(r"[$€£]?\d[\d,.:/-]*\d%?|\d%?")


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseStatement:
    """Something said once, or said anew, and what shows it."""

    name: str
    value: str
    stale: str = ""
    """The older value."""
    rule: bool = False
    text: str
    """The newest sentence that says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseSession:
    """A session, what it states, and what is said afterwards."""

    generator: str
    messages: tuple[Wire, ...]
    statements: tuple[DenseStatement, ...]
    idle: Callable[[], Wire] = field(repr=False)
    """The next idle message."""


class SurvivalRow(NamedTuple):
    """One strategy on one generator at one budget; counts over its sessions."""

    generator: str
    budget: float
    strategy: str
    statements: int
    survived: int
    rules: int
    rules_shown: int
    stale_alone: int
    updates: int
    resolved: int
    """Updates of which the newest value is shown and the older one is not."""
    compactions: int


class DenseTalk(Phrasings):
    """Statements worth keeping, and the talk between them, of one generator."""

    statements: Texts
    rules: Texts
    updates: Texts
    user: Texts
    assistant: Texts
    words: Texts


@cache
def _talk(half: Half) -> Mapping[str, DenseTalk]:
    """The words of each generator."""
    text = files(__package__).joinpath(f"dense_{half}.yaml").read_text(encoding="utf-8")
    return TypeAdapter(Mapping[str, DenseTalk]).validate_python(YAML(typ="safe").load(text))


def dense_session(generator: str, seed: int, half: Half) -> DenseSession:
    """A session of a generator that writes."""
    words = _talk(half)[generator]
    rng = random.Random(f"dense {generator} {seed} {half}")
    every = ["".join(parts).capitalize() for parts in permutations(SYLLABLES, 3)]
    names = rng.sample(every, STATEMENTS)
    said: list[DenseStatement] = []
    later: list[tuple[int, DenseStatement]] = []
    for index in range(STATEMENTS):
        kind = ("statements", "updates", "statements", "rules")[index % 4]
        name = names[index]
        old, new = rng.sample(range(13, 990), 2)
        forms = rng.choice(getattr(words, kind)).split(" || ")
        texts = [form.replace("{name}", name).replace("{n}", str(old)).replace("{m}", str(new)) for form in forms]
        values = [_MARKED.findall(text)[0] for text in texts]
        shown = [_MARKED.sub(r"\1", text) for text in texts]
        said.append(DenseStatement(name=name, value=values[0], rule=kind == "rules", text=shown[0]))
        if len(values) > 1:
            newer = DenseStatement(name=name, value=values[1], stale=values[0], text=shown[1])
            later.append((min(STATEMENTS, index + rng.randint(1, 9)), newer))
    for place, newer in reversed(later):
        said.insert(place, newer)

    def filler(role: str) -> Wire:
        first, second = rng.sample(words.words, 2)
        text = rng.choice(words.user if role == "user" else words.assistant)
        return {"role": role, "content": text.replace("{a}", first).replace("{b}", second)}

    messages: list[Wire] = [filler("user"), filler("assistant")]
    for statement in said:
        messages.append({"role": "user", "content": statement.text})
        for _ in range(rng.choice((2, 3, 3))):
            messages += [filler("assistant"), filler("user")]
        messages.append(filler("assistant"))

    newest = {statement.name: statement for statement in said}
    return DenseSession(
        generator=generator, messages=tuple(messages), statements=tuple(newest.values()), idle=_in_turn(filler)
    )


def beam_session(folder: Path, number: int, half: Half) -> DenseSession:
    """Sentences with a value out of user turns that questions need, among other turns; the halves are other chats."""
    chats = sorted(folder.glob("*-chat.json"))[0 if half == "dev" else 1 :: 2]
    if not chats:
        raise InputError(f"{folder}: no *-chat.json there; pass the folder of BEAM chats")
    path = chats[number % len(chats)]
    turns = [turn for batch in json.loads(path.read_text(encoding="utf-8")) for row in batch["turns"] for turn in row]
    questions = json.loads(path.with_name(path.name.replace("-chat", "-probing_questions")).read_text(encoding="utf-8"))
    needed = {one for rows in questions.values() for row in rows for one in _ids(row.get("source_chat_ids"))}
    stated: list[DenseStatement] = []
    fillers: dict[str, list[str]] = {"user": [], "assistant": []}
    for turn in turns:
        text = unmarked(turn["content"])
        lines = [text[piece.start : piece.stop] for piece in sentences(text)]
        named = (line for line in lines if 20 < len(line) < 300 and _VALUE.search(line))
        line = next(named, None) if turn["role"] == "user" and turn["id"] in needed else None
        if line is not None and (value := _VALUE.search(line)) is not None:
            around = [word for word in _WORD.findall(line) if not any(char.isdigit() for char in word)]
            stated.append(DenseStatement(name=max(around, key=len), value=value.group(), text=line))
        elif lines and turn["id"] not in needed:
            fillers[turn["role"]].append(" ".join(lines[:2])[:300])
    return _beam_dialogue(path.name, stated, fillers, random.Random(f"beam {number} {half}"))


def _beam_dialogue(
    name: str, stated: list[DenseStatement], fillers: dict[str, list[str]], rng: random.Random
) -> DenseSession:
    stated = [stated[place] for place in sorted(rng.sample(range(len(stated)), min(STATEMENTS, len(stated))))]
    talk = {role: iter(rng.sample(lines, len(lines))) for role, lines in fillers.items()}

    def filler(role: str) -> Wire:
        return {"role": role, "content": next(talk[role], None) or rng.choice(fillers[role])}

    messages: list[Wire] = [filler("user"), filler("assistant")]
    for statement in stated:
        messages.append({"role": "user", "content": statement.text})
        for _ in range(2):
            messages += [filler("assistant"), filler("user")]
        messages.append(filler("assistant"))

    return DenseSession(generator="beam", messages=tuple(messages), statements=tuple(stated), idle=_in_turn(filler))


def _in_turn(filler: Callable[[str], Wire]) -> Callable[[], Wire]:
    """A user's filler, then an assistant's, and so on."""
    roles = cycle(("user", "assistant"))
    return lambda: filler(next(roles))


def _ids(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, Mapping):
        yield from (found for one in value.values() for found in _ids(one))
    elif isinstance(value, list):
        yield from (found for one in value for found in _ids(one))


def play(session: DenseSession, budget: float, summarizer: str = "extractive") -> tuple[SurvivalRow, ...]:
    """Our window after the last idle pass, and what each baseline chooses from the same messages."""
    counter = TokenCounter(load_tokenizer("o200k_base"))
    sizes = [counter.text(str(wire["content"])) for wire in session.messages]
    tokens = int(budget) if budget >= 1 else max(100, int(sum(sizes) * budget))
    budgets = Budgets(dynamic_tokens=tokens, recall_fraction=0)
    builder = EnvelopeBuilder(tokenizer="o200k_base", budgets=budgets, summarizer=summarizer)
    said: list[Wire] = []
    compactions = passes = 0
    with open_store("memory:") as store:
        opened = store.session("dense")
        fresh: Sequence[Wire] = session.messages
        while passes < IDLE_PASSES and len(said) < len(session.messages) + IDLE_MESSAGES:
            for wire in fresh:
                opened.append(wire)
                if wire["role"] == "user":
                    envelope = builder.build(opened)
                    compactions += len(envelope.reports)
                    passes += len(envelope.reports) if said else 0
            said += fresh
            fresh = (session.idle(), session.idle())
        text = envelope.section("dynamic").text
    rows = [_row(session, budget, "ours", text, compactions)]
    target = builder.budgets.target_tokens
    kept = [next(wire for wire in said if wire["role"] == "user"), *said[-2:]]
    ours = target - FRAME_TOKENS - sum(counter.text(str(wire["content"])) + BULLET_TOKENS for wire in kept)
    for name, fill in _strategies(session, said, counter.text).items():
        rows.append(_row(session, budget, name, "\n".join(fill(target)), 0))
        if name in IN_OUR_ROOM:
            rows.append(_row(session, budget, f"{name}, in our room", "\n".join(fill(ours)), 0))
    return tuple(rows)


def _strategies(
    session: DenseSession, said: Sequence[Wire], count: Callable[[str], int]
) -> Mapping[str, Callable[[int], list[str]]]:
    """What each baseline chooses, of so many tokens."""
    lines = list(
        dict.fromkeys(
            text[p.start : p.stop] for wire in said for text in [str(wire["content"])] for p in sentences(text)
        )
    )
    words = {line: set(_WORD.findall(line.casefold())) for line in lines}
    spread = Counter(word for wire in said for word in set(_WORD.findall(str(wire["content"]).casefold())))
    cost = {line: count(line) + BULLET_TOKENS for line in (*lines, *(s.text for s in session.statements))}
    rare = {line: sum(log(len(said) / spread[word]) for word in words[line]) / cost[line] for line in lines}
    newest = lines[::-1]
    ranked = {
        "oracle": sorted((s.text for s in session.statements), key=cost.__getitem__),
        "rare words": sorted(newest, key=lambda line: -rare[line]),
        "newest": newest,
        "random": random.Random(len(lines)).sample(lines, len(lines)),
        "keyword pin": [line for line in newest if _OBLIGED.search(line)],
    }
    return {name: partial(_fill, chosen, cost) for name, chosen in ranked.items()}


def _fill(lines: Sequence[str], cost: Mapping[str, int], room: int) -> list[str]:
    chosen = []
    for line in lines:
        if cost[line] <= room:
            chosen.append(line)
            room -= cost[line]
    return chosen


def _row(session: DenseSession, budget: float, strategy: str, text: str, compactions: int) -> SurvivalRow:
    lines = [normalize(line) for line in text.splitlines()]
    about = [[line for line in lines if shows(line, statement.name)] for statement in session.statements]
    shown = [any(shows(line, s.value) for line in found) for s, found in zip(session.statements, about, strict=True)]
    stale = [
        bool(s.stale) and any(shows(line, s.stale) for line in found)
        for s, found in zip(session.statements, about, strict=True)
    ]
    of = list(zip(session.statements, shown, stale, strict=True))
    return SurvivalRow(
        generator=session.generator,
        budget=budget,
        strategy=strategy,
        statements=len(of),
        survived=sum(shown),
        rules=sum(s.rule for s, _, _ in of),
        rules_shown=sum(s.rule and new for s, new, _ in of),
        stale_alone=sum(old and not new for _, new, old in of),
        updates=sum(bool(s.stale) for s, _, _ in of),
        resolved=sum(bool(s.stale) and new and not old for s, new, old in of),
        compactions=compactions,
    )


def measure(
    *,
    half: Half = "dev",
    seeds: int = 3,
    budgets: Sequence[float] = BUDGETS,
    beam: Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[SurvivalRow]:
    """Every generator at every budget, summed over seeds."""
    names = [*_talk(half), *(["beam"] if beam else [])]
    sums: dict[tuple[str, float, str], SurvivalRow] = {}
    for name in names:
        for budget in budgets:
            for seed in range(seeds):
                tell(f"{name}, {budget:g}, session {seed + 1} of {seeds}")
                made = beam_session(beam, seed, half) if beam and name == "beam" else dense_session(name, seed, half)
                for row in play(made, budget):
                    key = row[:3]
                    known = sums.get(key)
                    sums[key] = (
                        row if known is None else SurvivalRow(*key, *map(sum, zip(known[3:], row[3:], strict=True)))
                    )
    return list(sums.values())


BLOCK = "survival"
ALL = "all"


def totals(rows: Sequence[SurvivalRow]) -> dict[tuple[str, str], SurvivalRow]:
    """Sums over budgets by generator and strategy; those of all generators under `ALL`."""
    found: dict[tuple[str, str], SurvivalRow] = {}
    for row in rows:
        for generator in (row.generator, ALL):
            known = found.get((generator, row.strategy))
            counts = row[3:] if known is None else tuple(map(sum, zip(known[3:], row[3:], strict=True)))
            found[generator, row.strategy] = SurvivalRow(generator, 0, row.strategy, *counts)
    return found


HEAD = ("strategy", "survived", "of the oracle", "rules", "stale alone", "resolved", "compactions")


def cells(rows: Sequence[SurvivalRow]) -> list[list[str]]:
    """A line of the table for each strategy: `HEAD`, then each generator's part of the oracle; percent."""
    found = totals(rows)
    generators = dict.fromkeys(row.generator for row in rows)
    lines = []
    for strategy in dict.fromkeys(row.strategy for row in rows):
        row = found[ALL, strategy]
        lines.append(
            [
                strategy,
                _percent(row.survived, row.statements),
                _percent(row.survived, found[ALL, "oracle"].survived),
                _percent(row.rules_shown, row.rules),
                f"{row.stale_alone}",
                _percent(row.resolved, row.updates),
                f"{row.compactions:,}" if row.compactions else "-",
                *(_percent(found[one, strategy].survived, found[one, "oracle"].survived) for one in generators),
            ]
        )
    return lines


def survival_block(rows: Sequence[SurvivalRow]) -> list[str]:
    """The table for a document."""
    head = [*HEAD, *dict.fromkeys(row.generator for row in rows)]
    return [
        "Percent, but for counts of statements with a stale value alone and of compactions.",
        "",
        *table(head, cells(rows)),
    ]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, or write it into the page."""
    parser = script(__doc__)
    parser.add_argument("--beam", type=Path, help="folder of BEAM chats; without it that generator is left out")
    parser.add_argument("--held-out", action="store_true", help="the words and seeds to look at once, when all is done")
    parser.add_argument("--seeds", type=int, default=3, help="sessions of each kind")
    parser.add_argument(
        "--shown",
        nargs="*",
        choices=measured.KINDS,
        help="instead: what questions need of whole BEAM chats, rules that last; default: both",
    )
    parser.add_argument("--chats", type=int, help="with --shown: how many BEAM chats")
    options = parser.parse_args(argv)
    half: Half = "held_out" if options.held_out else "dev"

    def block() -> Sequence[str]:
        return survival_block(measure(half=half, seeds=options.seeds, beam=options.beam, tell=progress))

    def shown_block() -> Iterator[str]:
        kinds = options.shown or measured.KINDS
        rows = measured.measure(options.beam, half=half, kinds=kinds, chats=options.chats, tell=progress)
        for kind in kinds:
            of_kind = [row for row in rows if row.kind == kind]
            if of_kind:
                budgets = dict.fromkeys(f"{row.budget:,g}" for row in of_kind)
                yield f"{kind}: {of_kind[0].statements} statements, percent shown"
                yield from table(["strategy", *budgets], measured.shown_cells(of_kind))
                yield from table(["ours", *budgets], measured.work_cells(of_kind))

    return publish(parser, options, {BLOCK: block if options.shown is None else shown_block})


if __name__ == "__main__":
    raise SystemExit(main())
