"""Rows of the index as JSON: claims, observations and drafts, and back. All of it can be derived again."""

from __future__ import annotations

import json
from typing import Any

from ctxsteward.envelope.slices import canonical

from ..artifacts.form import observation_fields, observation_of
from ..artifacts.spans import Pointed
from ..reconcile.claims import Audience, Claim, Origin
from ..reconcile.draft import Draft
from ..reconcile.seen import Moment, Seen
from ..reconcile.support import Backing
from ..reconcile.wording import Wording

_SETS = ("content", "values", "names", "openers", "limits", "contrasts")
_CLAIM = tuple(name for name in Claim.__slots__ if name not in ("audience", "wording"))


def claim_row(claim: Claim) -> str:
    """A claim as text."""
    fields: dict[str, Any] = {name: getattr(claim, name) for name in _CLAIM}
    fields["audience"] = claim.audience
    if (wording := claim.wording) is not None:
        fields["wording"] = {name: sorted(getattr(wording, name)) for name in _SETS} | {
            "tokens": wording.tokens,
            "frame": wording.frame,
            "negative": wording.negative,
        }
    return canonical(fields).decode()


def claim_of(row: str) -> Claim:
    """The inverse of `claim_row`."""
    fields = json.loads(row)
    said = fields.pop("wording", None)
    wording = None
    if said is not None:
        sets = {name: frozenset(said[name]) for name in _SETS}
        wording = Wording(tokens=tuple(said["tokens"]), frame=tuple(said["frame"]), negative=said["negative"], **sets)
    return Claim(**{**fields, "audience": Audience(*fields["audience"]), "wording": wording})


def seen_row(seen: Seen) -> str:
    """An observation as text."""
    fields = [seen.id, observation_fields(seen.observation), seen.origin, seen.spans, sorted(seen.shown)]
    return canonical(fields).decode()


def seen_of(row: str) -> Seen:
    """The inverse of `seen_row`."""
    id_, observation, origin, spans, shown = json.loads(row)
    return Seen(
        id=id_, observation=observation_of(observation), origin=Origin(*origin),
        spans=tuple(Pointed(*span) for span in spans), shown=frozenset(shown),
    )  # fmt: skip


def draft_row(draft: Draft) -> str:
    """A draft as text; a time that was not told is null."""
    fields = {name: getattr(draft, name) for name in Draft.__slots__}
    fields["backing"] = {name: getattr(draft.backing, name) for name in Backing.__slots__}
    seconds, *rest = draft.moment
    fields["moment"] = [None if seconds == float("-inf") else seconds, *rest]
    return canonical(fields).decode()


def draft_of(row: str) -> Draft:
    """The inverse of `draft_row`."""
    fields = json.loads(row)
    seconds, source, ordinal, id_ = fields["moment"]
    moment = Moment(
        float("-inf") if seconds is None else seconds, tuple((n, part) for n, part in source), tuple(ordinal), id_
    )
    evidence = tuple({**one, "span": tuple(one["span"])} for one in fields["evidence"])
    return Draft(
        **{
            **fields,
            "names": tuple(fields["names"]),
            "audience": Audience(*fields["audience"]),
            "backing": Backing(**fields["backing"]),
            "moment": moment,
            "evidence": evidence,
            "observations": tuple(fields["observations"]),
        }
    )
