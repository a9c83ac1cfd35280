"""Harvest: what one transcript says that is worth keeping, as observations; no model, nothing trained.

`harvest` runs all harvesters and hears the transcript once for those that read what people say. It is pure: the same
transcript gives the same observations in the same order, and its time is linear in the text. `EXTRACTOR` names the
rules; whoever changes one raises its harvester's version, and transcripts are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ..observation import Harvester, Observation
from ..replayed import Replayed
from .borrowed import BORROWED_EXTRACTOR, own_words
from .corrections import EXTRACTOR as CORRECTIONS_EXTRACTOR
from .corrections import corrections
from .decisions import DECISIONS_EXTRACTOR, decisions
from .eval_failures import EVAL_FAILURES_EXTRACTOR, eval_failures
from .facts import EXTRACTOR as FACTS_EXTRACTOR
from .facts import MIN_SCORE, facts
from .hearing import Conversation, listen
from .preferences import EXTRACTOR as PREFERENCES_EXTRACTOR
from .preferences import preferences
from .scoring import LIKING, share_of
from .tool_errors import EXTRACTOR as TOOL_ERRORS_EXTRACTOR
from .tool_errors import tool_errors

MIN_FACT_SCORE = share_of(MIN_SCORE + LIKING)
Hearing = Callable[[Conversation], list[Observation]]
"""A harvester of what people say."""

_HEARD: Mapping[str, Hearing] = MappingProxyType(
    {
        "corrections": corrections,
        "preferences": preferences,
        "decisions": decisions,
        "facts": facts,
        "eval_failures": eval_failures,
    }
)
_STRUCTURAL: Mapping[str, Harvester] = MappingProxyType({"tool_errors": tool_errors})


def _alone(hearing: Hearing) -> Harvester:
    return lambda replayed: tuple(hearing(listen(replayed)))


HARVESTERS: Mapping[str, Harvester] = MappingProxyType(
    {**{name: _alone(hearing) for name, hearing in _HEARD.items()}, **_STRUCTURAL}
)
"""Each alone, by name."""
EXTRACTOR_VERSION = ",".join(
    (
        CORRECTIONS_EXTRACTOR,
        PREFERENCES_EXTRACTOR,
        DECISIONS_EXTRACTOR,
        FACTS_EXTRACTOR,
        EVAL_FAILURES_EXTRACTOR,
        TOOL_ERRORS_EXTRACTOR,
    )
)
"""Changes with the rules of harvesters."""
EXTRACTOR = f"{EXTRACTOR_VERSION},{BORROWED_EXTRACTOR}"
"""Changes with any rule."""


def harvest(replayed: Replayed) -> tuple[Observation, ...]:
    """All observations of a transcript; a sentence that gave a strict claim gives no scored fact beside it."""
    conversation = listen(replayed)
    heard = [observation for hearing in _HEARD.values() for observation in hearing(conversation)]
    structural = [observation for harvester in _STRUCTURAL.values() for observation in harvester(replayed)]
    kept = own_words(_once(heard), replayed)
    return (*(map(_for_oneself, kept) if conversation.between_people else kept), *structural)


def _for_oneself(observation: Observation) -> Observation:
    """What two people tell each other is told to no agent: it is for nobody but the one who said it."""
    if observation.kind == "eval_failure" or observation.reach not in ("project", "shared"):
        return observation
    return replace(observation, reach="user")


def _once(observations: Iterable[Observation]) -> list[Observation]:
    """Each sentence told once: strict before scored, and never the same claim twice in one place.

    A liking that scores is a fact where it would score without it, else the wish that it is, which needs company.
    """
    kept: list[Observation] = []
    told = [(one, one.places[0][:3]) for one in observations]
    strict = {place for one, place in told if one.strength == "strict"}
    facts = {place for one, place in told if one.strength == "scored" and one.score >= MIN_FACT_SCORE}
    wishes = {place for one, place in told if one.kind == "preference" and one.strength == "broad"}
    seen = set()
    for one, place in told:
        claim = (place, one.slot.attribute)
        if one.kind != "eval_failure" and (
            claim in seen
            or (one.strength == "scored" and (place in strict or (place in wishes and place not in facts)))
            or (one.kind == "preference" and one.strength == "broad" and place in facts - strict)
        ):
            continue
        seen.add(claim)
        kept.append(one)
    return kept
