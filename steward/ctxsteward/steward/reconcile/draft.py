"""A draft: one record made from a component of claims, before it is judged.

A draft has all fields that depend only on its observations: id, words, evidence, support, trust. `admission` adds
status, rivals and age. The id is that of the earliest claim, so that later evidence does not change it; the ids of all
claims are its `names`.

The words are those of the observation with the strongest cue, then the most frequent words (for a fix: by successful
minus failed runs), then the highest score, then the first in order. The evidence is up to eight spans from as many
principals and sessions as possible, for a fix from successful and failed runs. Sensitivity is the highest of the
observations, trust the lowest of the evidence.

`summarize_draft` weighs the briefs of all observations; `draw_draft` then gets the few observations that it quotes.

Support (`backing`) counts a principal once, in any spelling of the name (`names.skeleton`). All unknown speakers count
as one principal, because they may be one person. A session that was shown the record counts for nothing. A gate counts
people's own claims; for a fix it counts successful runs and their principals; for sentences of tools it counts tasks.

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
    """Counts of the support of one claim."""

    events: int
    sessions: int
    principals: int
    """Independent principals."""
    said: int
    """Principals who made the claim themselves."""
    votes: int
    """Principals whose word suffices, because the claim is not about the world (`KINDS`)."""
    confirmed: int
    """Principals in whose session an internal tool's answer says the same."""
    denied: int
    """Principals in whose session an internal tool's answer contradicts it."""
    recovered: int
    """Events with any fix of the error in runs that succeeded."""
    helped: int
    """Principals of these events."""
    accepted: int
    """Events with the record's fix in runs with an unknown end."""
    obeyed_succeeded: int
    """Events with the record's fix in runs that succeeded."""
    obeyed_failed: int
    """Events with the record's fix in runs that failed."""
    from_tool: bool
    """Whether only tools say it."""
    tasks: int = 0
    """Tasks in whose runs a tool said it."""
    alike: bool = False
    """Whether people mean the same in different words."""


def supporting(
    members: Iterable[tuple[str, ObservationBrief]], echoes: Collection[str] = ()
) -> list[tuple[str, ObservationBrief]]:
    """Return the observations, each with its claim, that support a record.

    `echoes` are ids of observations whose sessions were shown the record. If people made the claim, text of tools and
    of the assistant does not support it.
    """
    supports = [(claim, brief) for claim, brief in members if brief.id not in echoes]
    if supports and KINDS[supports[0][1].kind].is_template:
        return supports
    return [(claim, brief) for claim, brief in supports if brief.is_said] or supports


def backing(seen: Collection[ObservationBrief], *, advice: str = "", alike: bool = False) -> ClaimSupport:
    """Count the observations that support a claim; `advice` is the text of a fix."""
    by_tools = [brief for brief in seen if KINDS[brief.kind].gate == "seen"]
    said = [brief for brief in seen if brief.is_said]
    worked = [brief for brief in seen if brief.strength == "recovered"]
    return ClaimSupport(
        events=len({brief.place for brief in seen}),
        sessions=len({brief.session for brief in seen}),
        principals=len({brief.voice for brief in seen}),
        said=len({brief.voice for brief in said}),
        votes=len({brief.voice for brief in said if KINDS[brief.kind].votes_suffice and not brief.is_own_words}),
        confirmed=len({brief.voice for brief in said if brief.is_confirmed}),
        denied=len({brief.voice for brief in said if brief.is_denied}),
        recovered=len({brief.place for brief in worked}),
        helped=len({brief.voice for brief in worked}),
        accepted=len({brief.place for brief in seen if (brief.strength, brief.text) == ("accepted", advice)}),
        obeyed_succeeded=len({brief.place for brief in seen if (brief.strength, brief.text) == ("recovered", advice)}),
        obeyed_failed=len({brief.place for brief in seen if (brief.strength, brief.text) == ("failed", advice)}),
        from_tool=all(brief.is_told_by_tool for brief in seen),
        alike=alike or all(brief.is_own_words for brief in seen),
        tasks=len({task_in(brief.run) for brief in by_tools}),  # all runs without a task count as one task
    )


def wilson_lower95(confirming: int, contradicting: int) -> float:
    """Return the lower end of the 95 % Wilson interval of a share.

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
"""Trigger and action of a fix."""


class RecordStanding(NamedTuple):
    """Status of a draft, with its reasons and the records that contest it."""

    status: Status
    reasons: tuple[str, ...]
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    replaced_at: str | None = None
    """Time of the first observation of the record that supersedes it."""
    conflicts: tuple[str, ...] = ()
    contradicts: int = 0
    """Number of independent voices that say the opposite."""


UNJUDGED = RecordStanding("candidate", ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A record in the making: summarized from observations, then drawn (`draw_draft`), then judged."""

    id: str
    """Id of the earliest claim."""
    kind: RecommendationKind
    first: str | None
    """Time of the first observation, as written; None if no time is known."""
    last: str | None
    moment: ObservationTime
    """Sort key of the newest observation."""
    score: float
    sensitivity: str
    backing: ClaimSupport
    spoken: str
    """Id of the observation with the draft's words."""
    holder: str
    """Id of the observation with the draft's slot and value."""
    chosen: tuple[str, ...]
    """Ids of the observations that are evidence."""
    names: tuple[str, ...] = ()
    """Sorted ids of all claims."""
    group: str = ""
    """Key of records that exclude each other, or an empty text."""
    said: dict[str, Any] = field(default_factory=dict)
    """Fields of the record that depend on its words."""
    evidence: tuple[dict[str, Any], ...] = ()
    standing: RecordStanding = UNJUDGED
    """Result of `admission`."""
    review: Review | None = None
    """Review of people under any of its ids."""

    @property
    def advice(self) -> FixAdvice:
        return self.said.get("trigger"), self.said.get("action")

    @property
    def quoted(self) -> frozenset[str]:
        return frozenset((self.spoken, self.holder, *self.chosen))


def summarize_draft(members: Iterable[tuple[str, ObservationBrief]], *, alike: bool = False) -> Draft | None:
    """Weigh one or more observations, each with its claim.

    Return None for a tool's sentence in too few tasks or sessions, because it might show one person's words to others.
    """
    ordered = sorted(((brief.moment, claim, brief) for claim, brief in members), key=itemgetter(0))
    seen = [brief for _, _, brief in ordered]
    spoken = _spoken(seen)
    support = backing(seen, advice=spoken.text, alike=alike)
    if KINDS[seen[0].kind].gate == "seen" and min(support.tasks, support.sessions) < QUOTED_PRINCIPALS:
        return None
    dated = [brief.ts for brief in seen if brief.ts is not None]
    holder = spoken if spoken.is_single else next((brief for brief in seen if brief.is_single), spoken)
    return Draft(
        id=ordered[0][1],
        kind=seen[0].kind,
        first=dated[0] if dated else None,
        last=dated[-1] if dated else None,
        moment=seen[-1].moment,
        score=max(brief.score for brief in seen),
        sensitivity=max((brief.sensitivity for brief in seen), key=_SENSITIVITIES.index),
        backing=support,
        spoken=spoken.id,
        holder=holder.id,
        chosen=tuple(brief.id for brief in _chosen(seen, spoken)),
    )


def _spoken(seen: Sequence[ObservationBrief]) -> ObservationBrief:
    """Return the observation with the draft's words, from sorted observations."""
    if len(seen) == 1:
        return seen[0]
    # People's words rank before others, then stronger cues before weaker ones.
    ranks = [(0 if brief.is_said else 100) + _STRENGTHS.index(brief.strength) for brief in seen]
    least, times = min(ranks), Counter(brief.text for brief in seen if brief.strength != "failed")
    strongest = [brief for brief, rank in zip(seen, ranks, strict=True) if rank == least]
    failed = Counter(brief.text for brief in seen if brief.strength == "failed")
    return min(strongest, key=lambda brief: (failed[brief.text] - times[brief.text], -brief.score, brief.text))


def _chosen(seen: Sequence[ObservationBrief], spoken: ObservationBrief) -> list[ObservationBrief]:
    """Choose the evidence: `spoken`, then new principals and sessions first; ties go by strength, then by time."""
    chosen = [spoken]
    waiting = sorted(
        (brief for brief in seen if brief.id != spoken.id), key=lambda brief: _STRENGTHS.index(brief.strength)
    )
    principals, sessions = Counter((spoken.principal,)), Counter((spoken.session,))
    while waiting and len(chosen) < MAX_EVIDENCE:
        brief = waiting.pop(_next(waiting, principals, sessions))
        chosen.append(brief)
        principals[brief.principal] += 1
        sessions[brief.session] += 1
    return chosen


def _next(
    waiting: Sequence[ObservationBrief], principals: Mapping[str | None, int], sessions: Mapping[str, int]
) -> int:
    """Return the index of the observation whose principal, then session, was chosen least often."""
    best, least = 0, (MAX_EVIDENCE, MAX_EVIDENCE)
    for at, brief in enumerate(waiting):
        times = principals[brief.principal], sessions[brief.session]
        if times < least:
            best, least = at, times
            if times == (0, 0):
                break
    return best


def draw_draft(draft: Draft, seen: Mapping[str, IndexedObservation], names: Iterable[str], group: str) -> Draft:
    """Add words and evidence to a draft; `seen` has the observations that it quotes, `names` the ids of its claims."""
    chosen = [seen[id_] for id_ in draft.chosen]
    evidence = tuple(_evidence(chosen))
    spoken = seen[draft.spoken].observation
    said = _said(spoken, seen[draft.holder].observation, evidence)
    said |= _written(spoken, _quotable(chosen, draft.backing), chosen)
    said["sensitivity"] = draft.sensitivity
    return replace(draft, names=tuple(sorted(names)), group=group, said=said, evidence=evidence)


def _said(observation: Observation, holder: Observation, evidence: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields of the words' observation, with slot and value of the holder."""
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
        "trust": max((span["trust"] for span in evidence), key=TRUST.index),
        "extractor": {"name": name or "unnamed", "version": version or "0"},
    }


def _written(spoken: Observation, words: str, chosen: Sequence[IndexedObservation]) -> dict[str, Any]:
    """Return the text of a record about tools, written out from the observation's short form."""
    if spoken.slot.attribute == STATEMENT:
        sentences = [indexed.observation.text.split('"', 1)[1].removesuffix('"') for indexed in chosen]
        line = statement(sentences, spoken.cause or "")
        return {"text": f'`{spoken.tool}` says "{line}"'} if line else {}
    trigger, fixes = parse_trigger(spoken.trigger or ""), parse_action(spoken.action or "")
    if KINDS[spoken.kind].gate != "fix" or trigger is None or not fixes:
        return {}
    line = sentence(trigger, fixes, words=words)
    return {"text": line} if len(line) <= MAX_TEXT_CHARS else {}


def _quotable(chosen: Sequence[IndexedObservation], support: ClaimSupport) -> str:
    """Return the words of an error that may be quoted to everybody, or an empty text.

    Text of external tools is never quoted. Of internal tools, only words in the errors of enough principals are quoted,
    so that a name in an answer to one person is not shown to others.
    """
    is_internal = all(span.trust == "tool_internal" for indexed in chosen for span in indexed.spans)
    if not is_internal or support.principals < QUOTED_PRINCIPALS:
        return ""
    causes = Counter(indexed.observation.cause or "" for indexed in chosen)
    uses = {
        (word, indexed.observation.principal)
        for indexed in chosen
        for word in (indexed.observation.cause or "").split()
    }
    principals = Counter(word for word, _ in uses)
    most = min(causes, key=lambda cause: (-causes[cause], len(cause), cause))
    words = [word for word in most.split() if principals[word] >= QUOTED_PRINCIPALS]
    return " ".join(words) if 1 < len(words) <= MAX_QUOTED_WORDS else ""


def _evidence(chosen: Sequence[IndexedObservation]) -> list[dict[str, Any]]:
    """Return the first spans of all observations, then their further spans, up to `MAX_EVIDENCE`."""
    first = [(indexed, 0) for indexed in chosen]
    rest = [(indexed, at) for indexed in chosen for at in range(1, len(indexed.spans))]
    spans: dict[tuple[str, str, int, int], dict[str, Any]] = {}
    for indexed, at in (*first, *rest):
        source, session = indexed.source, indexed.session
        ref, start, stop, address, role, trust, principal, ts, relation = indexed.spans[at]
        place = (session, ref, start, stop)
        if place not in spans:
            spans[place] = {
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
    return list(spans.values())[:MAX_EVIDENCE]
