"""Which piece of a prompt carries the words of a reply, found by the overlap of content, without a model.

`sources_of` takes a request apart into what a person can name: a line of the head, a record, a bullet, a recalled
message, a message, a tool result. `blame` weighs the index terms of a phrase by how few sources hold them, and names
the source that holds most of that weight; where none holds enough, or two hold different parts of it, it cannot tell.
Both bounds are calibrated on planted causes (`python -m benchmarks.blame`).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from ctxsteward.language.words import terms

from ..envelope import Envelope
from ..layout.rows import cited, rows_of, unfenced
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

SourceKind = Literal["line", "record", "tool schema", "bullet", "recalled", "earlier", "note", "message", "result"]
_ROW = re.compile(r"(§[1-9]\d*)(?:\.\d+(?:-\d+)?)? (\w+)(?:, superseded by [^:]*)?: ", re.ASCII)
_RECORD = re.compile(r"\[([^\]\s]+)\]$")


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
            yield PromptSource("record" if record else "line", name, (), "operator", line)
    elif part.block == "messages":
        if part.unit.call_id:
            yield PromptSource("result", part.ref or "", _refs(part), "tool", text)
        else:
            frame = json.loads(part.unit.frame)
            yield PromptSource("message", part.ref or "", _refs(part), str(frame.get("role", "")), text)
    else:
        for row in _rows(nonce, text):
            yield _row_source(part.block, row)


def _refs(part: ExpectedPart) -> tuple[str, ...]:
    return () if part.ref is None else (part.ref,)


def _rows(nonce: str, text: str) -> list[str]:
    try:
        return rows_of(unfenced(nonce, text).text)
    except ValueError:
        return [text]


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
        families = [_family(source, index) for index, source in enumerate(sources)]
        held = {(term, family) for own, family in zip(self._terms, families, strict=True) for term in own}
        self._spread = Counter(term for term, _ in held)
        self._families = families
        self._count = len(set(families))

    def blame(
        self,
        phrase: str,
        *,
        min_share: float = MIN_SHARE,
        min_rare: int = MIN_RARE_TERMS,
        min_lead: float = MIN_LEAD,
    ) -> Blame:
        """Name the source of a phrase, or say why it cannot be told."""
        wanted = frozenset(terms(phrase))
        weights = {term: math.log(1 + self._count / (1 + self._spread[term])) for term in wanted}
        whole = math.fsum(weights.values()) or 1.0
        shared = [wanted & own for own in self._terms]
        shares = [math.fsum(weights[term] for term in both) / whole for both in shared]
        order = sorted(range(len(shares)), key=lambda index: (-shares[index], index))
        if not order or not shares[order[0]]:
            return Blame(phrase, None, 0.0, (), why="nothing in the prompt has its words")
        best = order[0]
        same = [n for n in order[1:] if self._families[n] == self._families[best]]
        others = [n for n in order if n != best and n not in same and shares[n] * min_lead > shares[best]]
        echoes = [n for n in others if len(shared[n] & shared[best]) >= ECHO * len(shared[n] | shared[best])]
        # of sources that say the same, the first one said it
        first = min([best, *echoes], key=lambda n: (_order(self.sources[n]), n))
        rare = [term for term in shared[best] if self._spread[term] <= RARE + min(len(echoes), RARE)]
        why = ""
        if shares[best] < min_share:
            why = "no piece of the prompt has enough of its words"
        elif len(rare) < min_rare:
            why = "its words stand in many pieces of the prompt"
        elif len(echoes) < len(others):
            why = "several pieces of the prompt have different parts of it"
        found = tuple(sorted(shared[first]))
        repeats = tuple(self.sources[n] for n in sorted({best, *echoes, *same} - {first}) if shares[n] >= min_share)
        return Blame(phrase, None if why else self.sources[first], round(shares[best], 3), found, repeats, why)


def _family(source: PromptSource, index: int) -> str:
    """What shows the same original is one; a bullet of several goes with its first."""
    return source.refs[0].partition(".")[0] if source.refs else f"#{index}"


def _order(source: PromptSource) -> int:
    """Ordinal of the original; what is no message stood before all of them."""
    return int(source.refs[0][1:].partition(".")[0]) if source.refs else 0
