"""Who stands behind a draft, as its gate counts them, in addresses of subjects: what forgetting asks about a record.

A place is gone with anybody whose words the observation is made of, and with its session. A record that a person
approved needs one voice, a fix as many principals as its gate wants recoveries for, a record for many as many
principals as its own; names that look alike are one voice. Of what is for one person alone nothing is told.

Source: the state design (k independent principals; erasure).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from ctxsteward.envelope.supports import Place, Support, support_of

from ..admission.policy import AdmissionPolicy
from ..artifacts.artifact import subject_for
from ..reconcile.claims import OWN
from ..reconcile.draft import Draft
from ..reconcile.seen import Seen
from ..reconcile.support import voice_of

Address = Callable[[str], str]
"""Address of a subject in the store."""


def support(
    draft: Draft, seen: Iterable[Seen], policy: AdmissionPolicy, address: Address, *, approved: bool
) -> Support | None:
    """The voices behind a draft, out of the observations that support it; None where its gate counts no voices."""
    if draft.kind == "tool_fix":
        least, counted = policy.recoveries, [one for one in seen if one.observation.strength == "recovered"]
    elif draft.audience.width not in OWN:
        least, counted = policy.independent_principals, [one for one in seen if one.is_said]
    else:
        return None
    voices: dict[str, list[Place]] = defaultdict(list)
    for one in counted:
        who = voice_of(one.observation.principal, one.origin.session)
        voices[who].append(_place(one, address))
    return support_of(voices, 1 if approved else least) if voices else None


def _place(one: Seen, address: Address) -> Place:
    session = one.origin.session
    people = {one.observation.principal, *(span.principal for span in one.spans)}
    return tuple(sorted({address(session), *(address(subject_for(session, who)) for who in people)}))
