"""Judge the drafts of a ledger, and count the people and runs behind a record.

Each draft is judged alone, then drafts that contest each other are settled (`admission.settle_contests`).

`basis_of` counts what reviewers see before they decide: runs, by action and end.

`support` lists the voices behind a draft for erasures, as addresses of subjects. A place is lost with its session, or
with anybody whose words the observation quotes. A record that a person approved needs one voice, a fix as many
principals as its gate requires recoveries, and any other record as many principals as its gate requires. Look-alike
names are one voice.

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
    reconciliation: Reconciliation, policy: AdmissionPolicy, now_seconds: float | None, reviews: Mapping[str, Review]
) -> list[Draft]:
    """Judge all drafts that the schema of records accepts; return them sorted by id."""
    by_label: dict[str, Review] = {}
    for id_, review in sorted(reviews.items()):
        label = reconciliation.labels.get(id_)
        # A claim may have been reviewed under several ids: a rejection under one outweighs an approval under another.
        if label is not None and (label not in by_label or review.state == "rejected"):
            by_label[label] = review
    reviewed = {label: draft for label in by_label if (draft := reconciliation.draft(label)) is not None}
    drafts = {
        label: draft for label, draft in (reviewed | reconciliation.drafts).items() if label not in reconciliation.flaws
    }
    verdicts = {
        draft.id: admission_verdict(draft, policy, now_seconds, by_label.get(label)) for label, draft in drafts.items()
    }
    opposed = {
        draft.id: {drafts[other].id for other in reconciliation.opposed.get(label, ()) if other in drafts}
        for label, draft in drafts.items()
    }
    standing = settle_contests(list(drafts.values()), verdicts, opposed)
    return sorted(
        (replace(draft, standing=standing[draft.id], review=by_label.get(label)) for label, draft in drafts.items()),
        key=lambda draft: draft.id,
    )


Address = Callable[[str], str]
"""Return the address of a subject in the store."""


def support(
    draft: Draft, seen: Iterable[IndexedObservation], policy: AdmissionPolicy, address: Address, *, approved: bool
) -> RecordSupport | None:
    """Return the voices behind a draft from its supporting observations, or None if its gate counts no voice."""
    gate, seen = KINDS[draft.kind].gate, list(seen)
    least, counted = policy.independent_principals, seen
    if gate == "fix":
        worked = [indexed for indexed in seen if indexed.observation.strength == "recovered"]
        least, counted = policy.recoveries, worked or (seen if approved else [])
    elif gate != "seen":
        counted = [indexed for indexed in seen if indexed.is_said]
    voices: dict[tuple[str, str], list[SupportPlace]] = defaultdict(list)
    for indexed in counted:
        session, who = indexed.session, voice_of(indexed.observation.principal)
        # The gate "seen" counts tasks, not speakers: sessions of unknown speakers count one by one.
        run = session if gate == "seen" and not who else ""
        people = {indexed.observation.principal, *(span.principal for span in indexed.spans)}
        subjects = {session, *(subject_of(session, person) for person in people)}
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


def basis_of(draft: Draft, read: int, seen: Iterable[ObservationBrief], database: LedgerDatabase) -> RecordBasis:
    """Count the observations of a draft; `read` is the number of transcripts, `seen` its supporting observations."""
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
        tried=_tried(seen, database) if KINDS[draft.kind].gate == "fix" else (),
    )


def _tried(seen: Iterable[ObservationBrief], database: LedgerDatabase) -> tuple[TriedFix, ...]:
    """Count runs by action."""
    by_text: dict[str, list[ObservationBrief]] = defaultdict(list)
    for brief in seen:
        by_text[brief.text].append(brief)
    first = {text: min(brief.id for brief in briefs) for text, briefs in by_text.items()}
    quoted = observations(database, first.values())

    def runs(briefs: Iterable[ObservationBrief]) -> int:
        return len({brief.session for brief in briefs})

    tried = (
        TriedFix(
            quoted[first[text]].observation.action or "",
            runs(brief for brief in briefs if brief.strength == "recovered"),
            runs(brief for brief in briefs if brief.strength == "failed"),
            runs(brief for brief in briefs if brief.strength not in ("recovered", "failed")),
        )
        for text, briefs in by_text.items()
    )
    return tuple(sorted(tried, key=lambda fix: (-sum(fix[1:]), fix.action)))
