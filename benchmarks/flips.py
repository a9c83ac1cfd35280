"""The drift report as a guard of locked lines: the share of reversed rules, and of harmless edits, that it blocks.

Lines are those of two public agent policies, all locked, and some of our own in English and Chinese. They are
reversed or harmlessly edited by hand (``rewordings*.yaml``) and by a seeded generator (``mutations.yaml``). The drift
rules were written with the first half: one policy and ``rewordings.yaml``. The other policy and
``rewordings_held_out.yaml``, which is older than the rules, are the held-out half: read its figures, not its cases.

Blocked: the report's level is BLOCK. Asked: blocked, or two people must approve. In place: the text replaces the locked
line under its key. Beside: it is a new line without a lock, and the locked line stays. Baselines beside: block each
text that shares words with a locked line. Baselines in place: block by edit distance, block every change.

`data` has the public transcripts; the policies are in a folder ``policies`` in it, or in ``sets`` next to it. Without
them, only the wordings of our own lines are measured.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ruamel.yaml import YAML

from ctxsteward.schemas.profile import ProfileDocument, ProfileEntry
from ctxsteward.steward.drift.report import report
from ctxsteward.steward.release.approvals import people_needed

from .rows import BenchmarkRow, row

NAME = "flips"
Half = Literal["developed on", "held out"]
SOURCES: Mapping[Half, tuple[str, str]] = {
    "developed on": ("rewordings.yaml", "airline"),
    "held out": ("rewordings_held_out.yaml", "retail"),
}
MIN_WORDS = 6
"""Least words of a policy's line that has enough content to be reversed."""
A_KIND = 30
"""Most cases of one mutation, per policy."""


class LockedLineCase(NamedTuple):
    """A locked line, and a text that someone makes of it."""

    line: str
    text: str
    is_flip: bool
    by: str
    """Name of the mutation, or ``hand``."""


class LockedLineVerdict(NamedTuple):
    """The drift report's verdict on a case."""

    blocked: bool
    asked: bool


def run(data: Path | None = None) -> Iterator[BenchmarkRow]:
    """Yield the figures of both halves."""
    folder = next((each for each in _folders(data) if each.is_dir()), None)
    for half in SOURCES:
        lines, found = cases(half, folder)
        yield from _rows(half, lines, found, is_held_to=half == "held out" and folder is not None)


def cases(half: Half, policies: Path | None = None) -> tuple[tuple[str, ...], list[LockedLineCase]]:
    """Return the locked lines of a half, and its cases."""
    wordings, name = SOURCES[half]
    policy = () if policies is None else lines_of((policies / f"{name}.md").read_text(encoding="utf-8"))
    told = _read(wordings)
    found: list[LockedLineCase] = []
    own: list[str] = []
    for each in told:
        line = each.get("line") or _named(each["policy"], policy)
        if line is None:
            continue
        own += [line] if "line" in each else []
        for kind, is_flip in (("flips", True), ("benign", False)):
            found += [LockedLineCase(line, text, is_flip, "hand") for text in each.get(kind, ())]
    return (*policy, *own), [*found, *mutated(policy, half)]


def _read(file: str) -> Any:
    """Read a YAML file of this folder."""
    return YAML(typ="safe").load(files(__package__).joinpath(file).read_text(encoding="utf-8"))


def lines_of(text: str) -> tuple[str, ...]:
    """Return the rules of a policy in Markdown, each once."""
    plain = (line.replace("**", "").strip() for line in text.splitlines() if not line.startswith("#"))
    bare = (re.sub(r"^- ", "", line) for line in plain)
    return tuple(dict.fromkeys(line for line in bare if len(line.split()) >= MIN_WORDS and not line.endswith(":")))


def judge(lines: Sequence[str], case: LockedLineCase, *, beside: bool) -> LockedLineVerdict:
    """Return the drift report's verdict on a case among all lines of its half, each of them locked."""
    entries = [ProfileEntry(id=f"rule-{n}", text=line, locked=True) for n, line in enumerate(lines)]
    place = lines.index(case.line)
    if beside:
        after = [*entries, ProfileEntry(id="new", text=case.text)]
    else:
        after = [*entries]
        after[place] = entries[place].model_copy(update={"text": case.text})
    old, new = (ProfileDocument(name="desk", policies=tuple(each)) for each in (entries, after))
    found = report(old, new)
    return LockedLineVerdict(found.level == "BLOCK", people_needed(found) >= 2)


# -- generated cases of a policy -------------------------------------------------------------------------------

Mutations = Sequence[tuple[str, str]]
"""Patterns and their replacements."""


def mutated(policy: Sequence[str], half: Half, seed: int = 7) -> list[LockedLineCase]:
    """Return the generator's cases from a policy's lines: flips and harmless edits, at most `A_KIND` of each kind."""
    chance = random.Random(f"{seed} {half}")
    read = _read("mutations.yaml")
    own = read[half]

    def sampled(by: str, make: Callable[[str], Iterable[str]], *, is_flip: bool) -> list[LockedLineCase]:
        made = [LockedLineCase(line, text, is_flip, by) for line in policy for text in make(line)]
        found = [case for case in made if case.text not in ("", case.line)]
        return chance.sample(found, min(A_KIND, len(found)))

    made: list[LockedLineCase] = []
    for by, mutations in {**read["flips"], "exchanged": own["exchanged"]}.items():
        made += sampled(by, partial(_replaced, mutations), is_flip=True)
    made += sampled("excepted", partial(_ended, own["excepted"]), is_flip=True)
    for by, mutations in read["benign"].items():
        made += sampled(by, partial(_replaced, mutations), is_flip=False)
    made += sampled("misspelled", lambda line: [_misspelled(line, chance)], is_flip=False)
    made += sampled("added to", partial(_ended, own["added to"]), is_flip=False)
    return made


def _replaced(mutations: Mutations, line: str) -> Iterator[str]:
    for pattern, instead in mutations:
        made = re.sub(pattern, instead, line, count=1)
        if made != line:
            yield made[:1].upper() + _INSIDE.sub(lambda match: match[0].lower(), made[1:])


_INSIDE = re.compile(r"(?<=\w )(?:If|After|Before|Once) (?!.*\bIf\b)")


def _ended(endings: Sequence[str], line: str) -> Iterator[str]:
    return (line.rstrip(".! ") + ending for ending in endings)


def _misspelled(line: str, chance: random.Random) -> str:
    """Return the line with two neighbouring letters of one long word exchanged, or one left out."""
    words = list(re.finditer(r"[a-z]{7,}", line))
    if not words:
        return ""
    word = chance.choice(words)
    place = word.start() + chance.randrange(2, len(word.group()) - 2)
    kept = line[place + 1] + line[place] if chance.random() < 0.5 else line[place]
    return line[:place] + kept + line[place + 2 :]


# -- figures ---------------------------------------------------------------------------------------------------


def _rows(
    half: Half, lines: Sequence[str], found: Sequence[LockedLineCase], *, is_held_to: bool
) -> Iterator[BenchmarkRow]:
    for beside in (False, True):
        where = "beside it" if beside else "in its place"
        judged = [(case, judge(lines, case, beside=beside)) for case in found]
        for is_flip, what in ((True, "flips"), (False, "harmless edits")):
            these = [(case, each) for case, each in judged if case.is_flip is is_flip]
            label = f"{half}, {where}: {len(these)} {what}"
            bars: dict[str, float] = {}
            if is_held_to and not beside:
                bars = {"at_least": 95} if is_flip else {"at_most": 2}
            yield row(NAME, f"{label}, blocked", _share(each.blocked for _, each in these), "%", **bars)
            yield row(NAME, f"{label}, blocked or two asked", _share(each.asked for _, each in these), "%")
            kinds = sorted({case.by for case, _ in these})
            told = ", ".join(
                f"{by} {sum(e.blocked for c, e in these if c.by == by)}/{sum(c.by == by for c, _ in these)}"
                for by in kinds
            )
            yield BenchmarkRow(bench=NAME, what=f"  {told}", value="")
            for name, rule in BASELINES[beside].items():
                share = _share(rule(lines, case) for case, _ in these)
                yield row(NAME, f"  {label}, blocked by: {name}", share, "%")


def _share(values: Iterable[bool]) -> float:
    told = list(values)
    return round(100 * sum(told) / max(1, len(told)), 1)


def _far(lines: Sequence[str], case: LockedLineCase) -> bool:
    return SequenceMatcher(None, case.line, case.text, autojunk=False).ratio() < 0.8


def _touching(lines: Sequence[str], case: LockedLineCase) -> bool:
    mine = _words(case.text)
    return any(len(mine & _words(line)) >= min(3, len(mine)) for line in lines)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]{4,}|[\u4e00-\u9fff]{2}", text.lower()))


BASELINES: Mapping[bool, Mapping[str, Callable[[Sequence[str], LockedLineCase], bool]]] = {
    False: {"every change": lambda lines, case: True, "edit distance over a fifth": _far},
    True: {"three words of a locked line": _touching},
}


def _folders(data: Path | None) -> Iterator[Path]:
    if data is not None:
        yield from (data / "policies", data.parent / "sets" / "policies")


def _named(told: str, policy: Sequence[str]) -> str | None:
    """Return the line to which a wording belongs, such as ``airline: Basic economy flights``."""
    start = re.sub(r"^\w+: (?:- )?", "", told)
    return next(islice((line for line in policy if line.startswith(start)), 1), None)
