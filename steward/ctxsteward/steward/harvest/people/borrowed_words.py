"""Drop claims in words that a person did not write.

People paste text of tools and of the assistant. Such text is not their claim. A claim is borrowed if a text that no
person wrote had most of its runs of three words first (characters, in Chinese and Japanese). The text after a colon is
also judged alone, because people introduce what they paste. A changed value breaks the runs.

Source: the state design (derived text has the least trust of its sources; origin is bound where text is written).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ctxsteward.schemas.summary import Trust

from ...artifacts.artifact import cut
from ...observations.observation import KINDS, Observation
from ...observations.transcript import ReplayedTranscript, ReplayedUtterance

BORROWED_EXTRACTOR = "borrowed/1"
RUN_WORDS = 3
BORROWED_FRACTION = 0.7
_COLON = re.compile(r"[:：]\s")
_PEOPLE: tuple[Trust, ...] = ("operator", "user")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")

Run = tuple[str, ...]
"""`RUN_WORDS` words in a row."""


def without_borrowed(observations: Sequence[Observation], replayed: ReplayedTranscript) -> list[Observation]:
    """Return the observations whose claims are in the person's own words."""
    if not observations or all(utterance.trust in _PEOPLE for utterance in replayed.utterances):
        return list(observations)
    utterances = {utterance.ref: utterance for utterance in replayed.utterances}
    parts = [_parts(observation, utterances[observation.places[0].ref]) for observation in observations]
    trusts = _first_trusts({run for each in parts for runs in each for run in runs}, replayed.utterances)
    return [
        observation
        for observation, each in zip(observations, parts, strict=True)
        if not any(_is_borrowed(runs, trusts) for runs in each)
    ]


def _parts(observation: Observation, utterance: ReplayedUtterance) -> list[list[Run]]:
    """Return the runs of a claim and those of its text after a colon, or nothing if no person's trust is at stake."""
    if KINDS[observation.kind].is_template or utterance.trust not in _PEOPLE:
        return []
    place = observation.places[0]
    text = cut(utterance.text, place.start, place.stop) or ""
    return [list(_runs(part)) for part in (text, *_COLON.split(text, maxsplit=1)[1:])]


def _is_borrowed(runs: Sequence[Run], trusts: dict[Run, Trust]) -> bool:
    borrowed = sum(trusts[run] not in _PEOPLE for run in runs)
    return bool(runs) and borrowed >= BORROWED_FRACTION * len(runs)


def _first_trusts(wanted: set[Run], utterances: Iterable[ReplayedUtterance]) -> dict[Run, Trust]:
    """Return the trust of the first utterance that has each run."""
    trusts: dict[Run, Trust] = {}
    lengths = sorted({len(run) for run in wanted})
    for utterance in utterances:
        words = _WORD.findall(utterance.text.casefold())
        for length in lengths:
            for run in wanted.intersection(_in_a_row(words, length)):
                trusts.setdefault(run, utterance.trust)
    return trusts


def _runs(text: str) -> Iterator[Run]:
    """Yield all runs of words; a text shorter than a run is one run of at least two words."""
    words = _WORD.findall(text.casefold())
    return _in_a_row(words, min(RUN_WORDS, max(2, len(words))))


def _in_a_row(words: Sequence[str], length: int) -> Iterator[Run]:
    return zip(*(words[at:] for at in range(length)), strict=False)
