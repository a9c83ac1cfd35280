"""Judging the drafts of a ledger, and what their records rest on: spans, runs, people.

Drafts are judged each by itself, then those together that contest each other (`admission.settle_contests`).

`basis_of` counts what people are told of a record before they decide: runs, by what was done and how they ended.

`support` names everybody behind a draft, in addresses of subjects, because forgetting asks about it: a place is gone
with its session and with anybody whose words the observation is made of. A record that a person approved needs one
voice; a fix as many principals as its gate wants recoveries; any other as many principals as its gate wants. Names that
look alike are one voice.

Source: the state design (k independent principals; erasure).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ctxsteward.schemas.recommendation import Review
from ctxsteward.store.crypto.keyring import subject_of

from ..admission import AdmissionPolicy, RecordStanding, admission_verdict, settle_contests
from ..erasure import RecordSupport, SupportPlace, support_of
from ..observations.observation import KINDS
from ..reconcile.claims import IndexedObservation, ObservationBrief, voice_of
from ..reconcile.draft import Draft
from .database import LedgerDatabase, observations
from .reconciliation import Reconciliation


class JudgedDraft(NamedTuple):
    """A draft that makes a record."""

    draft: Draft
    standing: RecordStanding
    review: Review | None
    """What people said of it, under any of its ids."""


def judged(
    found: Reconciliation, policy: AdmissionPolicy, now_seconds: float | None, reviews: Mapping[str, Review]
) -> list[JudgedDraft]:
    """Judge all drafts that make a record, by id."""
    said = _by_component(found, reviews)
    decided = {label: draft for label in said if (draft := found.draft(label)) is not None}
    shown = {label: draft for label, draft in (decided | dict(found.drafts)).items() if label not in found.flaws}
    verdicts = {
        draft.id: admission_verdict(draft, policy, now_seconds, said.get(label)) for label, draft in shown.items()
    }
    opposed = {
        draft.id: {shown[other].id for other in found.opposed.get(label, ()) if other in shown}
        for label, draft in shown.items()
    }
    standing = settle_contests(list(shown.values()), verdicts, opposed)
    every = (JudgedDraft(draft, standing[draft.id], said.get(label)) for label, draft in shown.items())
    return sorted(every, key=lambda one: one.draft.id)


def _by_component(found: Reconciliation, reviews: Mapping[str, Review]) -> dict[str, Review]:
    """Reviews by the component they are of; a rejection under one id outweighs an approval under another."""
    said: dict[str, Review] = {}
    for id_, review in sorted(reviews.items()):
        label = found.labels.get(id_)
        if label is not None and (label not in said or review.state == "rejected"):
            said[label] = review
    return said


Address = Callable[[str], str]
"""Address of a subject in the store."""


def support(
    draft: Draft, seen: Iterable[IndexedObservation], policy: AdmissionPolicy, address: Address, *, approved: bool
) -> RecordSupport | None:
    """The voices behind a draft, out of the observations that support it; None where its gate counts no voices."""
    gate = KINDS[draft.kind].gate
    if gate == "fix":
        met = list(seen)
        worked = [one for one in met if one.observation.strength == "recovered"]
        least, counted = policy.recoveries, worked or (met if approved else [])
    elif gate == "seen":
        least, counted = policy.independent_principals, list(seen)
    else:
        least, counted = policy.independent_principals, [one for one in seen if one.is_said]
    voices: dict[tuple[str, str], list[SupportPlace]] = defaultdict(list)
    for one in counted:
        who = voice_of(one.observation.principal)
        # runs count by their tasks at this gate, not by who speaks: those of unknown speakers count one by one
        run = one.session if gate == "seen" and not who else ""
        voices[who, run].append(_place(one, address))
    return support_of(voices, 1 if approved else least) if voices else None


def _place(one: IndexedObservation, address: Address) -> SupportPlace:
    session = one.session
    people = {one.observation.principal, *(span.principal for span in one.spans)}
    return tuple(sorted({address(session), *(address(subject_of(session, who)) for who in people)}))


EvidenceKind = Literal["said", "confirmed", "worked", "failed", "from_tool"]
"""What speaks for or against a record: a person's word, an internal tool's answer, runs in which a fix was done that
succeeded or failed, and a tool's text alone."""


class TriedFix(NamedTuple):
    """What was done about one tool error, in how many runs of each end."""

    action: str
    succeeded: int
    failed: int
    untold: int
    """Nobody says how they ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBasis:
    """What stands behind a record, counted over all of its observations."""

    names: tuple[str, ...]
    """All ids that its claims have."""
    kinds: tuple[EvidenceKind, ...]
    transcripts: int
    """Those in which it came up."""
    read: int
    """All that were read."""
    voices: int
    """Independent ones."""
    helped: int
    """Those for whom a fix worked, in runs that succeeded."""
    tried: tuple[TriedFix, ...]
    """Of a tool error, the most often done first; of anything else nothing."""


def basis_of(draft: Draft, read: int, lending: Iterable[ObservationBrief], database: LedgerDatabase) -> RecordBasis:
    """What stands behind a record; `read`: transcripts in all, `lending`: the observations that support it."""
    backing = draft.backing
    counts: dict[EvidenceKind, int] = {
        "said": backing.said,
        "confirmed": backing.confirmed,
        "worked": backing.obeyed_succeeded,
        "failed": backing.obeyed_failed,
        "from_tool": backing.from_tool,
    }
    return RecordBasis(
        names=draft.names,
        kinds=tuple(kind for kind, count in counts.items() if count),
        transcripts=backing.sessions,
        read=read,
        voices=backing.principals,
        helped=backing.helped,
        tried=_tried(lending, database) if KINDS[draft.kind].gate == "fix" else (),
    )


def _tried(lending: Iterable[ObservationBrief], database: LedgerDatabase) -> tuple[TriedFix, ...]:
    """By what was done: in how many runs."""
    by_text: dict[str, list[ObservationBrief]] = defaultdict(list)
    for one in lending:
        by_text[one.text].append(one)
    first = {text: min(one.id for one in tries) for text, tries in by_text.items()}
    seen = observations(database, first.values())

    def runs(tries: Iterable[ObservationBrief]) -> int:
        return len({one.session for one in tries})

    tried = (
        TriedFix(
            seen[first[text]].observation.action or "",
            runs(one for one in tries if one.strength == "recovered"),
            runs(one for one in tries if one.strength == "failed"),
            runs(one for one in tries if one.strength not in ("recovered", "failed")),
        )
        for text, tries in by_text.items()
    )
    return tuple(sorted(tried, key=lambda one: (-sum(one[1:]), one.action)))
