"""How often `blame` names the piece of a prompt that carries a reply's words.

    python -m benchmarks.blame FOLDER [--cases 500]   # folder of public transcripts

Each case takes a call of a real transcript and a real sentence of another one. In three of five cases the sentence is
planted in a message of the call's history, where it may leave the window, become a bullet or come back by recall; the
reply says it in other order, without three of ten words and with some of the transcript's own. In the others nothing is
planted. The bounds were chosen on transcripts of even number; figures are of the odd ones. Beside ours stand three
baselines that always name somebody.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.envelope.audit.blame import PromptSource, TermIndex, sources_of
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.language.words import sentences, terms
from ctxsteward.schemas.message import Wire

from .transcripts import SETS

MIN_WORDS, MIN_TERMS, MAX_TERMS = 8, 6, 30
SAID_FRACTION = 0.5
"""A sentence of whose terms a message of the host has so many is not taken: it would have two causes, or one."""
PLANTED_FRACTION = 0.6
KEPT_FRACTION = 0.7
ADDED_FRACTION = 0.15
DYNAMIC_TOKENS = (1_000, 2_500)


class BlameCase(NamedTuple):
    """A prompt, what a reply says, and which message it comes from."""

    sources: list[PromptSource]
    phrase: str
    ref: str
    """Empty: from none that the prompt shows."""


Namer = Callable[[BlameCase, random.Random], PromptSource | None]


def histories(data: Path) -> list[list[Wire]]:
    """The transcripts, each as the messages that have text of their own."""
    found: list[list[Wire]] = []
    for name in SETS.values():
        for path in sorted(data.glob(name)):
            for transcript in read_transcripts(path):
                wires = [dict(entry.wire) for entry in transcript.entries()]
                kept = [wire for wire in wires if isinstance(wire.get("content"), str) and wire["content"].strip()]
                plain = [
                    {"role": wire["role"], "content": wire["content"]} for wire in kept if wire["role"] != "system"
                ]
                texts = [{**wire, "role": "user" if wire["role"] == "tool" else wire["role"]} for wire in plain]
                if len(texts) >= 8:
                    found.append(texts)
    return found


def donors(history: Sequence[Wire]) -> list[str]:
    """Sentences that say something."""
    texts = [wire["content"] for wire in history]
    spans = ((text, span) for text in texts for span in sentences(text[:4_000]))
    said = {text[span.start : span.stop].strip() for text, span in spans}
    return sorted(
        each for each in said if len(each.split()) >= MIN_WORDS and MIN_TERMS <= len(set(terms(each))) <= MAX_TERMS
    )


def is_said(sentence: str, history: Sequence[Wire]) -> bool:
    """Whether a message says so much of a sentence that it is a cause itself."""
    wanted = set(terms(sentence))
    return any(len(wanted & set(terms(wire["content"]))) >= SAID_FRACTION * len(wanted) for wire in history)


def reworded(rng: random.Random, sentence: str, others: Sequence[str]) -> str:
    """The sentence with words left out, others put in, and its halves swapped."""
    words = sentence.split()
    kept = [word for word in words if rng.random() < KEPT_FRACTION] or words
    for _ in range(round(ADDED_FRACTION * len(words))):
        kept.insert(rng.randrange(len(kept) + 1), rng.choice(others))
    half = rng.randrange(len(kept))
    return " ".join([*kept[half:], *kept[:half]])


def blame_case(rng: random.Random, history: Sequence[Wire], said: Sequence[str]) -> BlameCase | None:
    """Make a case of a host's history and sentences of others; None where the host says all of them."""
    wires = [dict(wire) for wire in history[: rng.randrange(8, min(len(history), 80) + 1)]]
    donor = next((each for each in rng.sample(said, min(50, len(said))) if not is_said(each, wires)), None)
    if donor is None:
        return None
    planted = rng.random() < PLANTED_FRACTION
    place = rng.randrange(len(wires) - 1)
    if planted:
        wires[place]["content"] = f"{wires[place]['content'][:3_000]} {donor}"
    session = open_store("memory:").session("s")
    builder = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=rng.choice(DYNAMIC_TOKENS)))
    for number, wire in enumerate(wires):
        session.append(wire)
        if number % 4 == 3:
            builder.build(session)
    asked = " ".join(rng.sample(donor.split(), min(3, len(donor.split()))))
    asks = planted and rng.random() < 0.5  # so that recall brings it back
    session.append({"role": "user", "content": f"What about {asked}?" if asks else "Go on, please."})
    sources = sources_of(builder.build(session))
    others = [word for wire in rng.sample(wires, min(5, len(wires))) for word in wire["content"].split()[:200]] or [
        "and"
    ]
    wanted, ref = set(terms(donor)), f"§{place + 1}"
    shown = any(ref in source.refs and len(wanted & set(terms(source.text))) >= 0.9 * len(wanted) for source in sources)
    return BlameCase(sources, reworded(rng, donor, others), ref if planted and shown else "")


def ours(case: BlameCase, rng: random.Random) -> PromptSource | None:
    return TermIndex(case.sources).blame(case.phrase).source


def newest(case: BlameCase, rng: random.Random) -> PromptSource | None:
    return case.sources[-1]


def longest_overlap(case: BlameCase, rng: random.Random) -> PromptSource | None:
    words = set(case.phrase.lower().split())
    return max(case.sources, key=lambda source: len(words & set(source.text.lower().split())))


def at_random(case: BlameCase, rng: random.Random) -> PromptSource | None:
    return rng.choice(case.sources)


NAMERS: dict[str, Namer] = {
    "ours": ours,
    "longest overlap": longest_overlap,
    "newest message": newest,
    "at random": at_random,
}


def cases(data: Path, count: int, half: int) -> Iterator[BlameCase]:
    """Cases on transcripts of even (0) or odd (1) number."""
    every = histories(data)
    said = [donors(history) for history in every]
    hosts = [number for number in range(len(every)) if number % 2 == half]
    rng, made = random.Random(f"blame {half}"), 0
    while made < count:
        host = rng.choice(hosts)
        other = rng.choice([n for n in range(len(every)) if n != host and said[n]])
        case = blame_case(rng, every[host], said[other])
        if case is not None:
            made += 1
            yield case


def scored(made: Sequence[BlameCase], namer: Namer) -> Counter[str]:
    """Count what a namer does."""
    counts: Counter[str] = Counter()
    for number, case in enumerate(made):
        source = namer(case, random.Random(number))
        counts["planted" if case.ref else "none"] += 1
        if source is None:
            counts["not told" if case.ref else "rightly not told"] += 1
        elif case.ref and case.ref in source.refs:
            counts["found"] += 1
        else:
            counts["wrong"] += 1
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blame", description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, metavar="FOLDER")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--half", type=int, choices=(0, 1), default=1, help="0: those that bounds were chosen on")
    options = parser.parse_args(arguments)
    made = list(cases(options.data, options.cases, options.half))
    for name, namer in NAMERS.items():
        counts = scored(made, namer)
        if not counts["planted"] or not counts["none"]:
            sys.exit(f"{options.data}: no cases of both kinds; pass the folder of public transcripts")
        print(
            f"{name:16} found {counts['found']:4} of {counts['planted']:4} ({counts['found'] / counts['planted']:6.1%})"
            f"   cannot tell {counts['rightly not told']:4} of {counts['none']:4}"
            f" ({counts['rightly not told'] / counts['none']:6.1%})"
            f"   wrong {counts['wrong']:4} of {len(made):4} ({counts['wrong'] / len(made):6.1%})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
