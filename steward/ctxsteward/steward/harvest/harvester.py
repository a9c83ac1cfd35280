"""The harvest of one transcript: run all harvesters, and return their observations.

`night.batch_harvest` calls `harvest` in its worker processes. It reads people's sentences once for all their
harvesters, then the tool calls. It is pure, uses no model, and takes time linear in the text.

A sentence gives each claim once. Claims in borrowed words are dropped (`people.borrowed_words`), and answers of tools
confirm or deny the others (`tools.confirmation`). Claims for the session, the project or the speaker alone only measure
how the session went (`usage`), and are not stored (`lasting`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from ..observations.observation import KINDS, Observation
from ..observations.transcript import ReplayedTranscript
from .people.borrowed_words import BORROWED_EXTRACTOR, without_borrowed
from .people.corrections import CORRECTIONS_EXTRACTOR, corrections
from .people.eval_failures import EVAL_FAILURES_EXTRACTOR, eval_failures
from .people.own_words import OWN_WORDS, OWN_WORDS_EXTRACTOR, sentences_of_people
from .people.preferences import PREFERENCES_EXTRACTOR, preferences
from .people.utterances import Sentence, listen
from .tools.confirmation import CONFIRMED_EXTRACTOR, confirmed
from .tools.errors import TOOL_ERRORS_EXTRACTOR, tool_errors
from .tools.statements import STATEMENTS_EXTRACTOR, statements

SentenceHarvester = Callable[[Sequence[Sentence]], list[Observation]]
"""Find observations in the sentences of people; pure, and linear in their text."""
ToolHarvester = Callable[[ReplayedTranscript], Sequence[Observation]]
"""Find observations in the tool calls of a transcript; pure, and linear in its text."""

SENTENCE_HARVESTERS: Mapping[str, tuple[str, SentenceHarvester]] = MappingProxyType(
    {
        "corrections": (CORRECTIONS_EXTRACTOR, corrections),
        "preferences": (PREFERENCES_EXTRACTOR, preferences),
        "eval_failures": (EVAL_FAILURES_EXTRACTOR, eval_failures),
        "own_words": (OWN_WORDS_EXTRACTOR, sentences_of_people),
    }
)
"""Harvesters with the versions of their rules."""
TOOL_HARVESTERS: Mapping[str, tuple[str, ToolHarvester]] = MappingProxyType(
    {
        "tool_errors": (TOOL_ERRORS_EXTRACTOR, tool_errors),
        "statements": (STATEMENTS_EXTRACTOR, statements),
    }
)

EXTRACTOR = ",".join(
    (
        *(version for version, _ in (*SENTENCE_HARVESTERS.values(), *TOOL_HARVESTERS.values())),
        BORROWED_EXTRACTOR,
        CONFIRMED_EXTRACTOR,
    )
)
"""Versions of all rules. A changed rule raises its version, and transcripts are harvested again."""


def harvest(replayed: ReplayedTranscript) -> tuple[Observation, ...]:
    """Return all observations of a transcript, each claim of a sentence once."""
    sentences = listen(replayed)
    claims = [claim for _, harvester in SENTENCE_HARVESTERS.values() for claim in harvester(sentences)]
    claims = confirmed(without_borrowed(_once(claims), replayed), replayed)
    cues = {
        claim.places[0].ref: claim.places[0] for claim in claims if claim.reach == "shared" and not is_own_words(claim)
    }
    remaining = []
    for claim in claims:
        place = claim.places[0]
        is_covered = place.ref in cues and place.overlaps(cues[place.ref])
        if not (is_covered and is_own_words(claim)):  # a cue found the same words
            remaining.append(claim)
    from_tools = [observation for _, harvester in TOOL_HARVESTERS.values() for observation in harvester(replayed)]
    return (*remaining, *from_tools)


def is_own_words(observation: Observation) -> bool:
    """Whether no cue found an observation, so that it counts only if several people say alike."""
    return observation.slot.attribute == OWN_WORDS


def lasting(observations: Iterable[Observation]) -> list[Observation]:
    """Return the observations that may hold for everybody."""
    return [observation for observation in observations if observation.reach == "shared"]


def _once(observations: Sequence[Observation]) -> list[Observation]:
    """Keep each claim of a sentence once, a strict one before a broad one."""
    retained: dict[str, list[Observation]] = {}
    dropped = set()
    claims = [pair for pair in enumerate(observations) if not KINDS[pair[1].kind].is_template]
    for number, claim in sorted(claims, key=lambda pair: pair[1].strength != "strict"):
        others = retained.setdefault(claim.places[0].ref, [])
        if any(_is_repeated(claim, other) for other in others):
            dropped.add(number)
        else:
            others.append(claim)
    return [observation for number, observation in enumerate(observations) if number not in dropped]


def _is_repeated(claim: Observation, other: Observation) -> bool:
    """Whether another claim of the same sentence makes a claim redundant."""
    mine, theirs = claim.places[0], other.places[0]
    goes_on = mine.start <= theirs.start and mine.stop > theirs.stop + 1
    return mine.overlaps(theirs) and not goes_on and claim.slot.attribute == other.slot.attribute
