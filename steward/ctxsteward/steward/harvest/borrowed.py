"""Whose words a claim is made of: what a tool or the assistant said first stays theirs, whoever repeats it.

A person who pastes what a tool returned, or what the assistant made of it, says it in a message of their own; the
trust of that message is not the trust of those words. A claim is *borrowed* where most of its runs of three words (of
Chinese and Japanese, characters), or of those behind a colon, were said first, earlier in the transcript, by somebody
who is no person. Whoever changes a value in a sentence breaks its runs there, and says a sentence of their own.
What a person says first, and a tool or the assistant echoes, stays the person's, however often either repeats it.

Linear in the transcript: only runs of the claims themselves are looked for.

Source: the state design (derived text has the least trust of its sources; origin is bound where text is written).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..artifacts.artifact import cut
from ..observation import Observation
from ..replayed import Replayed, Utterance

BORROWED_EXTRACTOR = "borrowed/1"
RUN = 3
BORROWED_FRACTION = 0.7
_INTRODUCED = re.compile(r"[:：]\s")
_PEOPLE = ("operator", "user")
TEMPLATED = ("eval_failure",)
"""Kinds whose words are ours; what they cite is only where they were seen."""
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")

Run = tuple[str, ...]


def own_words(observations: Sequence[Observation], replayed: Replayed) -> list[Observation]:
    """Those that are in words of whoever claims them."""
    if not observations or all(said.trust in _PEOPLE for said in replayed.utterances):
        return list(observations)
    places = {said.ref: at for at, said in enumerate(replayed.utterances)}
    claims = [(one, _parts(_claimed(one, replayed, places))) for one in observations]
    first = _first({run for _, parts in claims for runs in parts for run in runs}, replayed.utterances)
    return [
        one
        for one, parts in claims
        if one.kind in TEMPLATED
        or not any(_is_borrowed(runs, places[one.places[0].ref], first, replayed) for runs in parts)
    ]


def _claimed(one: Observation, replayed: Replayed, places: dict[str, int]) -> str:
    ref, start, stop, _ = one.places[0]
    return cut(replayed.utterances[places[ref]].text, start, stop) or ""


def _parts(text: str) -> list[list[Run]]:
    """The runs of a claim, and of what it introduces."""
    introduced = _INTRODUCED.split(text, maxsplit=1)[1:]
    return [list(_runs(part)) for part in (text, *introduced)]


def _is_borrowed(runs: Sequence[Run], at: int, first: dict[Run, int], replayed: Replayed) -> bool:
    if replayed.utterances[at].trust not in _PEOPLE:
        return False  # trusted as little as it may be already
    others = sum(replayed.utterances[first[run]].trust not in _PEOPLE for run in runs)
    return bool(runs) and others >= BORROWED_FRACTION * len(runs)


def _first(wanted: set[Run], utterances: Iterable[Utterance]) -> dict[Run, int]:
    """Where each of these runs is said first."""
    first: dict[Run, int] = {}
    for at, said in enumerate(utterances):
        for run in _runs(said.text):
            if run in wanted:
                first.setdefault(run, at)
    return first


def _runs(text: str) -> Iterator[Run]:
    """All runs of words; a shorter text is one run, of two words at least."""
    words = _WORD.findall(text.casefold())
    if 2 <= len(words) < RUN:
        yield tuple(words)
    yield from zip(*(words[at:] for at in range(RUN)), strict=False)
