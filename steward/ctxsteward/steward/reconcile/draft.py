"""A draft: a component of claims as one record, before anybody has judged it.

All that depends on its observations alone is decided here: id, words, evidence, support, trust. Status, rivals and ages
come later (`admission`). The id is that of its first claim in time, so that later evidence keeps it; ids of all its
claims are its `names`.

Words: of the strongest cue, said most often (of a fix: done more often in
runs that succeeded than in runs that failed), scored highest, then the first in order. Evidence: up to eight spans, of
as many principals and sessions as there are; of a fix, of runs that succeeded and of runs that failed. Sensitivity is
the greatest, trust the least of the evidence.

`summarize_draft` weighs all observations by what the ledger keeps in short of them; `draw_draft` is then given the few
that it quotes.

How much stands behind a claim (`backing`) is counted so that repeating oneself counts once: each principal, whichever
way the name is written (`names.skeleton`); speakers that nobody knows count as one principal together, because they may
be one. A session that was shown the record lends it nothing. Only what a person said counts towards a gate; of a fix
that recovered an error both are counted, how often it did in runs that succeeded, and for how many principals; of what
tools show, tasks.

Source: Wilson 1927 (score interval); the state design (k independent principals).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, NamedTuple

from ctxsteward.schemas.recommendation import MAX_EVIDENCE, RecommendationKind, Review, Status
from ctxsteward.schemas.summary import TRUST

from ..harvest.tools.statements import STATEMENT, statement, task_in
from ..harvest.tools.templates import parse_action, parse_trigger, sentence
from ..observations.observation import KINDS, Observation
from .claims import IndexedObservation, ObservationBrief, ObservationTime

Z95 = 1.959963984540054
MAX_TEXT_CHARS = 280
QUOTED_PRINCIPALS = 3
MAX_QUOTED_WORDS = 8
_STRENGTHS = ("strict", "recovered", "accepted", "broad", "failed")
_SENSITIVITIES = ("none", "personal", "sensitive")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSupport:
    """What stands behind one claim."""

    events: int
    sessions: int
    principals: int
    """Independent ones."""
    said: int
    """Of these, ones that said it themselves."""
    votes: int
    """Of these, ones whose word suffices for others: of a kind that claims nothing of the world (`KINDS`)."""
    confirmed: int
    """Of these, ones in whose session an internal tool's answer says the same."""
    denied: int
    """Of these, ones in whose session one says otherwise."""
    recovered: int
    """Events in which a fix worked, in runs that succeeded."""
    helped: int
    """Independent ones for whom it worked."""
    accepted: int
    """Events in which what it says was accepted, in runs of which nobody says how they ended."""
    obeyed_succeeded: int
    """Of a fix: events in which what it says was done, in runs that succeeded."""
    obeyed_failed: int
    """The same in runs that failed."""
    from_tool: bool
    """Nothing but what a tool returned."""
    tasks: int = 0
    """Of what tools show: tasks in whose runs they did."""
    alike: bool = False
    """People mean it alike, in words of their own that do not say the very same."""


def supporting(
    members: Iterable[tuple[str, ObservationBrief]], echoes: Collection[str] = ()
) -> list[tuple[str, ObservationBrief]]:
    """Those, each with its claim, that lend a record support; `echoes`: ids of those whose sessions were shown it.

    Where people said it, what only a tool or the assistant said lends nothing.
    """
    lending = [(claim, one) for claim, one in members if one.id not in echoes]
    if lending and KINDS[lending[0][1].kind].is_template:
        return lending
    return [(claim, one) for claim, one in lending if one.is_said] or lending


def backing(seen: Collection[ObservationBrief], *, advice: str = "", alike: bool = False) -> ClaimSupport:
    """What stands behind a claim that these support; `advice`: the words of a fix."""
    shown = [one for one in seen if KINDS[one.kind].gate == "seen"]
    said = [one for one in seen if one.is_said]
    worked = [one for one in seen if one.strength == "recovered"]
    return ClaimSupport(
        events=len({one.place for one in seen}),
        sessions=len({one.session for one in seen}),
        principals=len({one.voice for one in seen}),
        said=len({one.voice for one in said}),
        votes=len({one.voice for one in said if KINDS[one.kind].votes_suffice and not one.is_own_words}),
        confirmed=len({one.voice for one in said if one.is_confirmed}),
        denied=len({one.voice for one in said if one.is_denied}),
        recovered=len({one.place for one in worked}),
        helped=len({one.voice for one in worked}),
        accepted=len({one.place for one in seen if (one.strength, one.text) == ("accepted", advice)}),
        obeyed_succeeded=len({one.place for one in seen if (one.strength, one.text) == ("recovered", advice)}),
        obeyed_failed=len({one.place for one in seen if (one.strength, one.text) == ("failed", advice)}),
        from_tool=all(one.is_told_by_tool for one in seen),
        alike=alike or all(one.is_own_words for one in seen),
        tasks=len({task_in(one.run) for one in shown}),  # runs without a task are of one
    )


def wilson_lower95(confirming: int, contradicting: int) -> float:
    """Lower end of the 95 % interval of the share of confirming ones.

    >>> [round(wilson_lower95(n, 0), 3) for n in (0, 1, 3, 10)]
    [0.0, 0.207, 0.439, 0.722]
    """
    n = confirming + contradicting
    if n == 0:
        return 0.0
    p, z2 = confirming / n, Z95 * Z95
    centre = p + z2 / (2 * n)
    spread = Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return max(0.0, min(1.0, (centre - spread) / (1 + z2 / n)))


FixAdvice = tuple[str | None, str | None]
"""The trigger of a fix of a tool error, and what it says to do."""


class RecordStanding(NamedTuple):
    """How far a draft has come, why, and which records contest it."""

    status: Status
    reasons: tuple[str, ...]
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    replaced_at: str | None = None
    """When what supersedes it was first said."""
    conflicts: tuple[str, ...] = ()
    contradicts: int = 0
    """Independent voices that say the opposite."""


UNJUDGED = RecordStanding("candidate", ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A record that grows: weighed out of its observations, then written (`draw_draft`), then judged."""

    id: str
    """That of its claim that was first in time."""
    kind: RecommendationKind
    first: str | None
    """When it was said first, as told; None: nobody told a time."""
    last: str | None
    moment: ObservationTime
    """Of its newest observation."""
    score: float
    sensitivity: str
    backing: ClaimSupport
    spoken: str
    """Id of the observation whose words it has."""
    holder: str
    """Whose slot and value."""
    chosen: tuple[str, ...]
    """Its evidence."""
    names: tuple[str, ...] = ()
    """Ids of all its claims, sorted."""
    group: str = ""
    """Records of one group cannot all hold; empty: it has no rivals."""
    said: dict[str, Any] = field(default_factory=dict)
    """Fields of a record that its words decide."""
    evidence: tuple[dict[str, Any], ...] = ()
    standing: RecordStanding = UNJUDGED
    """What admission says of it (`admission`)."""
    review: Review | None = None
    """What people said of it, under any of its ids."""

    @property
    def advice(self) -> FixAdvice:
        return self.said.get("trigger"), self.said.get("action")

    @property
    def quoted(self) -> frozenset[str]:
        return frozenset((self.spoken, self.holder, *self.chosen))


def summarize_draft(members: Iterable[tuple[str, ObservationBrief]], *, alike: bool = False) -> Draft | None:
    """Weigh observations, at least one, each with its claim.

    None: too few runs say it, so that it would tell one person's words to others.
    """
    ordered = sorted(((one.moment, claim, one) for claim, one in members), key=itemgetter(0))
    seen = [one for _, _, one in ordered]
    summed = _summed(ordered[0][1], seen, _spoken(seen), alike=alike)
    is_told = KINDS[seen[0].kind].gate == "seen"
    return None if is_told and min(summed.backing.tasks, summed.backing.sessions) < QUOTED_PRINCIPALS else summed


def _summed(claim: str, seen: Sequence[ObservationBrief], spoken: ObservationBrief, *, alike: bool) -> Draft:
    """All that observations, in their order, come to in the words of one of them."""
    dated = [one.ts for one in seen if one.ts is not None]
    holder = spoken if spoken.is_single else next((one for one in seen if one.is_single), spoken)
    return Draft(
        id=claim,
        kind=seen[0].kind,
        first=dated[0] if dated else None,
        last=dated[-1] if dated else None,
        moment=seen[-1].moment,
        score=max(one.score for one in seen),
        sensitivity=max((one.sensitivity for one in seen), key=_SENSITIVITIES.index),
        backing=backing(seen, advice=spoken.text, alike=alike),
        spoken=spoken.id,
        holder=holder.id,
        chosen=tuple(one.id for one in _chosen(seen, spoken)),
    )


def _spoken(seen: Sequence[ObservationBrief]) -> ObservationBrief:
    """Whose words are shown, of observations in their order."""
    if len(seen) == 1:
        return seen[0]
    ranks = [_rank(one) for one in seen]
    least, times = min(ranks), Counter(one.text for one in seen if one.strength != "failed")
    strongest = [one for one, rank in zip(seen, ranks, strict=True) if rank == least]
    failed = Counter(one.text for one in seen if one.strength == "failed")
    return min(strongest, key=lambda one: (failed[one.text] - times[one.text], -one.score, one.text))


def _rank(one: ObservationBrief) -> int:
    """How strongly it was said, the least first: by a person, with a strict cue."""
    return (0 if one.is_said else 100) + _STRENGTHS.index(one.strength)


def _chosen(seen: Sequence[ObservationBrief], spoken: ObservationBrief) -> list[ObservationBrief]:
    """The representative, then by turns of principals and sessions; of equals the strongest, then the first in time."""
    chosen = [spoken]
    waiting = sorted((one for one in seen if one.id != spoken.id), key=lambda one: _STRENGTHS.index(one.strength))
    principals, sessions = Counter((spoken.principal,)), Counter((spoken.session,))
    while waiting and len(chosen) < MAX_EVIDENCE:
        one = waiting.pop(_next(waiting, principals, sessions))
        chosen.append(one)
        principals[one.principal] += 1
        sessions[one.session] += 1
    return chosen


def _next(
    waiting: Sequence[ObservationBrief], principals: Mapping[str | None, int], sessions: Mapping[str, int]
) -> int:
    """Whose principal, then session, was heard least often; of equals the first."""
    best, least = 0, (MAX_EVIDENCE, MAX_EVIDENCE)
    for at, one in enumerate(waiting):
        heard = principals[one.principal], sessions[one.session]
        if heard < least:
            best, least = at, heard
            if heard == (0, 0):
                break
    return best


def draw_draft(draft: Draft, seen: Mapping[str, IndexedObservation], names: Iterable[str], group: str) -> Draft:
    """The draft with its words; `seen` has the observations that it quotes, `names` are ids of all its claims."""
    chosen = [seen[id_] for id_ in draft.chosen]
    evidence = tuple(_evidence(chosen))
    spoken = seen[draft.spoken].observation
    said = _said(spoken, seen[draft.holder].observation, evidence)
    said |= _written(spoken, _quotable(chosen, draft.backing), chosen)
    said["sensitivity"] = draft.sensitivity
    return replace(draft, names=tuple(sorted(names)), group=group, said=said, evidence=evidence)


def _said(observation: Observation, holder: Observation, evidence: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """In the words of one observation, with the slot and value of one whose slot holds one value."""
    name, _, version = observation.extractor.partition("/")
    return {
        "slot": holder.slot.model_dump(),
        "tool": observation.tool,
        "text": observation.text,
        "value": holder.value,
        "unit": holder.unit,
        "polarity": observation.polarity,
        "modality": observation.modality,
        "trigger": observation.trigger,
        "action": observation.action,
        "trust": max((one["trust"] for one in evidence), key=TRUST.index),
        "extractor": {"name": name or "unnamed", "version": version or "0"},
    }


def _written(spoken: Observation, words: str, chosen: Sequence[IndexedObservation]) -> dict[str, Any]:
    """The words of a record about tools, written out of what its observation says in short."""
    if spoken.slot.attribute == STATEMENT:
        told = [one.observation.text.split('"', 1)[1].removesuffix('"') for one in chosen]
        line = statement(told, spoken.cause or "")
        return {"text": f'`{spoken.tool}` says "{line}"'} if line else {}
    trigger, fixes = parse_trigger(spoken.trigger or ""), parse_action(spoken.action or "")
    if KINDS[spoken.kind].gate != "fix" or trigger is None or not fixes:
        return {}
    written = sentence(trigger, fixes, words=words)
    return {"text": written} if len(written) <= MAX_TEXT_CHARS else {}


def _quotable(chosen: Sequence[IndexedObservation], support: ClaimSupport) -> str:
    """The words that an error says to everybody: of tools that are the operator's own alone; empty: none may be quoted.

    Text from outside never stands in a line for everybody, however often it comes. Of one's own tools a word does that
    stands in the errors of enough principals: a name that a tool says to one person is not told to others.
    """
    trusted = all(span.trust == "tool_internal" for one in chosen for span in one.spans)
    if not trusted or support.principals < QUOTED_PRINCIPALS:
        return ""
    causes = Counter(one.observation.cause or "" for one in chosen)
    heard = {(word, one.observation.principal) for one in chosen for word in (one.observation.cause or "").split()}
    times = Counter(word for word, _ in heard)
    most = min(causes, key=lambda cause: (-causes[cause], len(cause), cause))
    words = [word for word in most.split() if times[word] >= QUOTED_PRINCIPALS]
    return " ".join(words) if 1 < len(words) <= MAX_QUOTED_WORDS else ""


def _evidence(chosen: Sequence[IndexedObservation]) -> list[dict[str, Any]]:
    """The first spans of all of them; what is left over goes to their context."""
    first = [(one, 0) for one in chosen]
    rest = [(one, at) for one in chosen for at in range(1, len(one.spans))]
    found: dict[tuple[str, str, int, int], dict[str, Any]] = {}
    for one, at in (*first, *rest):
        source, session = one.source, one.session
        ref, start, stop, address, role, trust, principal, ts, relation = one.spans[at]
        place = (session, ref, start, stop)
        if place not in found:
            found[place] = {
                "source": source,
                "session": session,
                "ref": ref,
                "span": (start, stop),
                "span_address": address,
                "role": role,
                "trust": trust,
                "principal": principal,
                "ts": ts,
                "relation": relation,
            }
    return list(found.values())[:MAX_EVIDENCE]
