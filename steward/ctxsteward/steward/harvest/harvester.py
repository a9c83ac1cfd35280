"""The harvest of one transcript: all harvesters run, and what is worth keeping remains as observations.

`harvest` reads what people say once for all harvesters that need it, then the tool calls. It is pure, uses no model,
and its time is linear in the text. `EXTRACTOR` names the rules: whoever changes one raises its harvester's version,
and transcripts are read again. Two rules are here because they concern all harvesters:

    borrowed words   A person who pastes what a tool or the assistant said does not make it a person's claim. A claim is
                     borrowed where most of its runs of three words (characters, in Chinese and Japanese), or of those
                     after a colon, were said earlier by somebody who is no person. A changed value breaks the runs.
    one claim        A sentence that gave a strict claim gives no scored fact beside it.

An eval failure is a record about the agent: a template over a failed scorer's name and reason
(`ReplayedTranscript.eval_failures`: ``SCORER: REASON`` or ``SCORER``), with the user's last request as its evidence.

Source: the state design (derived text has the least trust of its sources; origin is bound where text is written).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ctxsteward.schemas.recommendation import Slot

from ..artifacts.artifact import cut
from ..kinds import KINDS
from ..observation import Harvester, Observation
from ..transcript import ReplayedTranscript, ReplayedUtterance
from .people.claims import MAX_TEXT_CHARS
from .people.corrections import EXTRACTOR as CORRECTIONS_EXTRACTOR
from .people.corrections import corrections
from .people.facts import EXTRACTOR as FACTS_EXTRACTOR
from .people.facts import LIKING, MIN_SCORE, facts, share_of
from .people.preferences import DECISIONS_EXTRACTOR, decisions, preferences
from .people.preferences import EXTRACTOR as PREFERENCES_EXTRACTOR
from .people.utterances import Conversation, Sentence, listen
from .tools.errors import EXTRACTOR as TOOL_ERRORS_EXTRACTOR
from .tools.errors import tool_errors

BORROWED_EXTRACTOR = "borrowed/1"
RUN = 3
BORROWED_FRACTION = 0.7
_INTRODUCED = re.compile(r"[:：]\s")
_PEOPLE = ("operator", "user")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")

Run = tuple[str, ...]


def own_words(observations: Sequence[Observation], replayed: ReplayedTranscript) -> list[Observation]:
    """Those that are in words of whoever claims them."""
    if not observations or all(said.trust in _PEOPLE for said in replayed.utterances):
        return list(observations)
    places = {said.ref: at for at, said in enumerate(replayed.utterances)}
    claims = [(one, _parts(_claimed(one, replayed, places))) for one in observations]
    first = _first({run for _, parts in claims for runs in parts for run in runs}, replayed.utterances)
    return [
        one
        for one, parts in claims
        if KINDS[one.kind].is_template
        or not any(_is_borrowed(runs, places[one.places[0].ref], first, replayed) for runs in parts)
    ]


def _claimed(one: Observation, replayed: ReplayedTranscript, places: dict[str, int]) -> str:
    ref, start, stop, _ = one.places[0]
    return cut(replayed.utterances[places[ref]].text, start, stop) or ""


def _parts(text: str) -> list[list[Run]]:
    """The runs of a claim, and of what it introduces."""
    introduced = _INTRODUCED.split(text, maxsplit=1)[1:]
    return [list(_runs(part)) for part in (text, *introduced)]


def _is_borrowed(runs: Sequence[Run], at: int, first: dict[Run, int], replayed: ReplayedTranscript) -> bool:
    if replayed.utterances[at].trust not in _PEOPLE:
        return False  # trusted as little as it may be already
    others = sum(replayed.utterances[first[run]].trust not in _PEOPLE for run in runs)
    return bool(runs) and others >= BORROWED_FRACTION * len(runs)


def _first(wanted: set[Run], utterances: Iterable[ReplayedUtterance]) -> dict[Run, int]:
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


EVAL_FAILURES_EXTRACTOR = "eval_failures/1"
MAX_NAME_CHARS = 80
_NOT_NAME = re.compile(r"[^\w.@/-]+")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff<>`\[\]{}]+")


def eval_failures(conversation: Conversation) -> list[Observation]:
    """One observation for each scorer that failed; none without a user's words to cite."""
    sentences = [sentence for sentence in conversation.sentences if sentence.said.role == "user"]
    if not sentences:
        return []
    seen: dict[str, Observation] = {}
    for failure in conversation.replayed.eval_failures:
        name, _, reason = failure.partition(":")
        scorer = _NOT_NAME.sub("-", name.strip()).strip("-")[:MAX_NAME_CHARS].lower()
        if scorer and scorer not in seen:
            seen[scorer] = _observation(scorer, " ".join(_UNSAFE.sub(" ", reason).split()), sentences[-1], conversation)
    return list(seen.values())


def _observation(scorer: str, reason: str, cited: Sentence, conversation: Conversation) -> Observation:
    text = f"The eval {scorer} failed" + (f": {reason}" if reason else ".")
    replayed = conversation.replayed
    return Observation(
        kind="eval_failure",
        text=text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1].rstrip() + "…",
        slot=Slot(subject="agent", attribute=f"eval:{scorer}", cardinality="many"),
        places=(cited.place(),),
        strength="strict",
        score=1.0,
        reach="shared",
        principal=replayed.principal,
        polarity="negative",
        trigger=f"eval:{scorer}",
        ts=cited.said.ts or replayed.started,
        extractor=EVAL_FAILURES_EXTRACTOR,
    )


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


def harvest(replayed: ReplayedTranscript) -> tuple[Observation, ...]:
    """All observations of a transcript; a sentence that gave a strict claim gives no scored fact beside it."""
    conversation = listen(replayed)
    heard = [observation for hearing in _HEARD.values() for observation in hearing(conversation)]
    structural = [observation for harvester in _STRUCTURAL.values() for observation in harvester(replayed)]
    kept = own_words(_once(heard), replayed)
    return (*(map(_for_oneself, kept) if conversation.between_people else kept), *structural)


def _for_oneself(observation: Observation) -> Observation:
    """What two people tell each other is told to no agent: it is for nobody but the one who said it."""
    if KINDS[observation.kind].is_template or observation.reach not in ("project", "shared"):
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
        if not KINDS[one.kind].is_template and (
            claim in seen
            or (one.strength == "scored" and (place in strict or (place in wishes and place not in facts)))
            or (one.kind == "preference" and one.strength == "broad" and place in facts - strict)
        ):
            continue
        seen.add(claim)
        kept.append(one)
    return kept
