"""Which piece of a prompt carries the words of a reply, found by the overlap of content, or by asking a model again.

`sources_of` takes a request apart into what a person can name: a line of the head, a record, a bullet, a recalled
message, a message, a tool result. `blame` weighs the index terms of a phrase by how few sources hold them, and names
the source that holds most of that weight; where none holds enough, or two hold different parts of it, it cannot tell.
Both bounds are calibrated on planted causes (`python -m benchmarks.blame`).

`bisect` needs no shared words: it asks a model again without half of the sources, goes on with the half without which
the reply no longer says the phrase, and ends with one source.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from ctxsteward.language.words import terms
from ctxsteward.schemas.message import Wire

from ..envelope import Envelope, Provider
from ..layout.rows import cited, raw_rows, rows_of, unescape
from ..render.parts import ExpectedPart, expected_parts

MIN_SHARE = 0.6
"""Of the weight of a phrase's terms that its source holds."""
MIN_RARE_TERMS = 2
"""Terms of the phrase that its source holds and at most `RARE` sources do."""
RARE = 2
MIN_LEAD = 1.1
"""How many times as much as any other source it holds, unless that one says the same."""
ECHO = 0.8
"""A source that shares this part of the same terms repeats them."""
LEFT_OUT = "(left out)"

SourceKind = Literal["line", "record", "tool schema", "bullet", "recalled", "earlier", "note", "message", "result"]
_ROW = re.compile(r"(§[1-9]\d*)(?:\.\d+(?:-\d+)?)? (\w+)(?:, superseded by [^:]*)?: ", re.ASCII)
_RECORD = re.compile(r"\[([^\[\]\s]+)\]$")  # without "[" inside, because "[[[[" took quadratic time


class PromptSource(NamedTuple):
    """A piece of a prompt that a person can name."""

    kind: SourceKind
    name: str
    """``§12``, a record's reference, or a section with the number of its line."""
    refs: tuple[str, ...]
    """Originals that it shows or cites."""
    speaker: str
    """The role that said it, or ``operator``; empty for a bullet, whose originals say."""
    text: str
    unit: str = ""
    """Text of the content block of the request that it stands in."""
    piece: str = ""
    """Its own characters there."""

    def stands_in(self, shown: Sequence[PromptSource]) -> bool:
        """Return whether another prompt's sources have this one's original, or the same text."""
        if self.refs:
            return not set(self.refs).isdisjoint(ref for each in shown for ref in each.refs)
        return (self.kind, self.text) in {(each.kind, each.text) for each in shown}


class Blame(NamedTuple):
    """What carries a phrase of a reply."""

    phrase: str
    source: PromptSource | None
    """None: it cannot be told."""
    share: float
    """Of the phrase's weight, in the source that holds most."""
    terms: tuple[str, ...]
    """Index terms that both have."""
    repeats: tuple[PromptSource, ...] = ()
    """Other sources that say the same."""
    why: str = ""
    """Why it cannot be told."""


def sources_of(envelope: Envelope) -> list[PromptSource]:
    """Return what a call was shown, in its order."""
    parts = expected_parts(envelope, "openai-chat", envelope.render("openai-chat", cache=False))
    return [source for part in parts for source in _sources(part, envelope.nonce) if source.text.strip()]


def _sources(part: ExpectedPart, nonce: str) -> Iterator[PromptSource]:
    text = part.unit.text
    if part.section == "tools":
        yield PromptSource("tool schema", part.unit.frame.removeprefix("tool "), (), "operator", text)
    elif part.section != "dynamic":
        for number, line in enumerate(text.split("\n"), 1):
            record = _RECORD.search(line) if part.section == "meta" else None
            name = record[1] if record else f"{part.section} line {number}"
            yield PromptSource("record" if record else "line", name, (), "operator", line, text, line)
    elif part.block == "messages":
        if part.unit.call_id:
            yield PromptSource("result", part.ref or "", _refs(part), "tool", text, text, text)
        else:
            frame = json.loads(part.unit.frame)
            yield PromptSource("message", part.ref or "", _refs(part), str(frame.get("role", "")), text, text, text)
    else:
        try:
            rows = raw_rows(nonce, text)
        except ValueError:  # not a block of ours, or without its fence
            rows = [text]
        for row in rows:
            source = _row_source(part.block, rows_of(unescape(nonce, row))[0])
            yield source._replace(unit=text, piece=row)


def _refs(part: ExpectedPart) -> tuple[str, ...]:
    return () if part.ref is None else (part.ref,)


def _row_source(block: str, row: str) -> PromptSource:
    if block in ("bullets", "observations"):
        bullet = cited(row)
        return PromptSource("bullet", " ".join(bullet.citations), bullet.citations, "", bullet.text)
    if block == "notes":
        name, _, text = row.partition(": ")
        return PromptSource("note", name, (), "application", text)
    match = _ROW.match(row)
    if match is None:
        return PromptSource("earlier", "", (), "user", row)
    return PromptSource("recalled", match[1], (match[1],), match[2], row[match.end() :])


class TermIndex:
    """The index terms of a prompt's sources."""

    def __init__(self, sources: Sequence[PromptSource]) -> None:
        self.sources: Sequence[PromptSource] = sources
        self._terms = [frozenset(terms(source.text)) for source in sources]
        families = [
            source.refs[0].partition(".")[0] if source.refs else f"#{index}" for index, source in enumerate(sources)
        ]  # sources that show the same original are one; a bullet of several goes with its first
        held = {(term, family) for own, family in zip(self._terms, families, strict=True) for term in own}
        self._spread = Counter(term for term, _ in held)
        self._families = families
        self._count = len(set(families))

    def blame(self, phrase: str) -> Blame:
        """Name the source of a phrase, or say why it cannot be told."""
        weights = self._weights(phrase)
        wanted, whole = weights.keys(), math.fsum(weights.values()) or 1.0
        shared = [wanted & own for own in self._terms]
        shares = [math.fsum(weights[term] for term in both) / whole for both in shared]
        order = sorted(range(len(shares)), key=lambda index: (-shares[index], index))
        if not order or not shares[order[0]]:
            return Blame(phrase, None, 0.0, (), why="nothing in the prompt has its words")
        best = order[0]
        same = [n for n in order[1:] if self._families[n] == self._families[best]]
        others = [n for n in order if n != best and n not in same and shares[n] * MIN_LEAD > shares[best]]
        echoes = [n for n in others if len(shared[n] & shared[best]) >= ECHO * len(shared[n] | shared[best])]
        # Of sources that say the same, the oldest original said it; what is no message stood before all of them.
        ordinals = {n: int((self.sources[n].refs or ("§0",))[0][1:].partition(".")[0]) for n in (best, *echoes)}
        first = min(ordinals, key=lambda n: (ordinals[n], n))
        rare = [term for term in shared[best] if self._spread[term] <= RARE + min(len(echoes), RARE)]
        why = ""
        if shares[best] < MIN_SHARE:
            why = "no piece of the prompt has enough of its words"
        elif len(rare) < MIN_RARE_TERMS:
            why = "its words stand in many pieces of the prompt"
        elif len(echoes) < len(others):
            why = "several pieces of the prompt have different parts of it"
        found = tuple(sorted(shared[first]))
        repeats = tuple(self.sources[n] for n in sorted({best, *echoes, *same} - {first}) if shares[n] >= MIN_SHARE)
        return Blame(phrase, None if why else self.sources[first], round(shares[best], 3), found, repeats, why)

    def share(self, phrase: str, text: str) -> float:
        """Return which part of a phrase's weight a text has, from 0 to 1."""
        weights, said = self._weights(phrase), frozenset(terms(text))
        return math.fsum(weight for term, weight in weights.items() if term in said) / (sum(weights.values()) or 1.0)

    def _weights(self, phrase: str) -> dict[str, float]:
        return {term: math.log(1 + self._count / (1 + self._spread[term])) for term in frozenset(terms(phrase))}


# -- with a model --------------------------------------------------------------------------------------------------


class Bisection(NamedTuple):
    """What a model says when sources of a phrase are left out of its prompt."""

    blame: Blame
    calls: int
    """Of the model: one with the whole prompt, then at most two for each halving of the sources."""
    reply: str
    """The last one; without the source, if there is one."""


def bisect(envelope: Envelope, provider: Provider, phrase: str, ask: Callable[[Wire], str]) -> Bisection:
    """Name the one source without which the model no longer says the phrase.

    `ask` sends a request in the provider's form and returns the reply's text. The newest user message is the question
    and stays; tool schemas stay. A reply says the phrase if it has `MIN_SHARE` of the weight of its terms.
    """
    request, sources = envelope.render(provider, cache=False), sources_of(envelope)
    index, calls, reply = TermIndex(sources), 0, ""

    def says_it_without(left_out: Sequence[PromptSource]) -> bool:
        nonlocal calls, reply
        calls, reply = calls + 1, ask(without(request, left_out))
        return index.share(phrase, reply) >= MIN_SHARE

    def told(source: PromptSource | None, why: str = "") -> Bisection:
        text = "" if source is None else source.text
        both = tuple(sorted(set(terms(phrase)).intersection(terms(text))))
        return Bisection(Blame(phrase, source, round(index.share(phrase, text), 3), both, why=why), calls, reply)

    if not says_it_without(()):
        return told(None, "asked again with the same prompt, the model does not say it")
    question = max(
        (n for n, each in enumerate(sources) if (each.kind, each.speaker) == ("message", "user")), default=-1
    )
    rest = [each for n, each in enumerate(sources) if n != question and without(request, [each]) != request]
    # the likeliest first: then most halvings take one call
    likeliest = sorted(rest, key=lambda source: -index.share(phrase, source.text))
    group: Sequence[PromptSource] | None = likeliest
    while group:
        middle = len(group) // 2
        halves = [half for half in (group[:middle], group[middle:]) if half]
        group = next((half for half in halves if not says_it_without(half)), None)
        if group is not None and len(group) == 1:
            return told(group[0])
    if says_it_without(likeliest):
        return told(None, "the model says it without any of these sources")
    return told(None, "the model says it without either half of the sources: several of them suffice")


def without(request: Wire, sources: Sequence[PromptSource]) -> Wire:
    """Return the request with `LEFT_OUT` in the place of each source; calls and roles stay as they are."""
    units: dict[str, str] = {}
    for source in sources:
        units[source.unit] = units.get(source.unit, source.unit).replace(source.piece, LEFT_OUT, 1)
    heads = {source.unit for source in sources if source.kind in ("line", "record")}

    def kept(value: Any) -> Any:
        if isinstance(value, str):
            if value in units:
                return units[value]
            for head in heads:  # several texts of the head may be one string
                value = value.replace(head, units[head], 1)
            return value
        if isinstance(value, dict):
            return {key: kept(each) for key, each in value.items()}
        return [kept(each) for each in value] if isinstance(value, list) else value

    cut: Wire = kept(request)
    return cut
