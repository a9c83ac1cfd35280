"""Judge the drafts of a ledger, and count the people and runs behind a record.

Each draft is judged alone, then drafts that contest each other are settled (`admission.settle_contests`).

`basis_of` counts what reviewers see before they decide: runs, by action and end.

`support` lists the voices behind a draft for erasures, as addresses of subjects. A place is lost with its session, or
with anybody whose words the observation quotes. A record that a person approved needs one voice, a fix as many
principals as its gate wants recoveries, and any other record as many principals as its gate wants. Look-alike names are
one voice.

Source: the state design (k independent principals; erasure).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ctxsteward.schemas.recommendation import Review
from ctxsteward.store.crypto.keyring import subject_of

from ..admission import AdmissionPolicy, admission_verdict, settle_contests
from ..erasure import RecordSupport, SupportPlace, support_of
from ..observations.observation import KINDS
from ..reconcile.claims import IndexedObservation, ObservationBrief, voice_of
from ..reconcile.draft import Draft
from .database import LedgerDatabase, observations
from .reconciliation import Reconciliation


def judged(
    found: Reconciliation, policy: AdmissionPolicy, now_seconds: float | None, reviews: Mapping[str, Review]
) -> list[Draft]:
    """Judge all drafts that the schema of records accepts; return them sorted by id."""
    said: dict[str, Review] = {}
    for id_, review in sorted(reviews.items()):
        label = found.labels.get(id_)
        # A claim may have been reviewed under several ids: a rejection under one outweighs an approval under another.
        if label is not None and (label not in said or review.state == "rejected"):
            said[label] = review
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
    every = (replace(draft, standing=standing[draft.id], review=said.get(label)) for label, draft in shown.items())
    return sorted(every, key=lambda draft: draft.id)


Address = Callable[[str], str]
"""Returns the address of a subject in the store."""


def support(
    draft: Draft, seen: Iterable[IndexedObservation], policy: AdmissionPolicy, address: Address, *, approved: bool
) -> RecordSupport | None:
    """Return the voices behind a draft from its supporting observations; None if its gate counts none of them."""
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
        # This gate counts tasks, not speakers: sessions of unknown speakers count one by one.
        run = one.session if gate == "seen" and not who else ""
        people = {one.observation.principal, *(span.principal for span in one.spans)}
        subjects = {one.session, *(subject_of(one.session, person) for person in people)}
        voices[who, run].append(tuple(sorted(map(address, subjects))))
    return support_of(voices, 1 if approved else least) if voices else None


EvidenceKind = Literal["said", "confirmed", "worked", "failed", "from_tool"]
"""Evidence for or against a record: a person's word, an internal tool's answer, successful or failed runs with the fix,
or only a tool's text."""


class TriedFix(NamedTuple):
    """An action after one tool error, and the number of runs by end."""

    action: str
    succeeded: int
    failed: int
    untold: int
    """Runs with an unknown end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBasis:
    """Counts over all observations of a record."""

    names: tuple[str, ...]
    """All ids of its claims."""
    kinds: tuple[EvidenceKind, ...]
    transcripts: int
    """Transcripts with the claim."""
    read: int
    """All transcripts read."""
    voices: int
    """Independent voices."""
    helped: int
    """Independent voices for whom a fix worked, in runs that succeeded."""
    tried: tuple[TriedFix, ...]
    """Actions after the record's tool error, most frequent first; empty for other records."""


def basis_of(draft: Draft, read: int, lending: Iterable[ObservationBrief], database: LedgerDatabase) -> RecordBasis:
    """Count the observations of a draft; `read` is the number of transcripts, `lending` its supporting observations."""
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
    """Count runs by action."""
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
