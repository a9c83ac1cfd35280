"""A draft and its standing as a `MetaRecommendation`; what fits no record is quarantined, with its reason.

What a record says is decided by its observations, the policy and the present; `run`, `revision` and `recorded_at` are
stamps that remember when it last changed (`stamped`), and no digest covers them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from pydantic import ValidationError

from ctxsteward.envelope.keys import AddressKey, address_of
from ctxsteward.schemas import InputError
from ctxsteward.schemas.publish import validate
from ctxsteward.schemas.recommendation import MetaRecommendation, Review

from ..admission.contest import Standing
from ..admission.gates import Verdict
from ..reconcile.claims import OWN
from ..reconcile.draft import Draft
from ..reconcile.support import wilson_lower95

_FRESH = Standing(verdict=Verdict("candidate", ()))
MAX_FLAW_CHARS = 300


class LineCounter(Protocol):
    """What counts tokens: `ctxsteward.envelope.counting.Counter` is one."""

    @property
    def name(self) -> str:
        """Under which counts are kept."""

    def text(self, text: str) -> int: ...


class Frame(NamedTuple):
    """What all records of a ledger share."""

    tenant: str
    agent: str


class Stamp(NamedTuple):
    """When a record last changed."""

    content: str
    """HMAC of all but the stamps."""
    revision: int
    run: str
    recorded_at: str | None


def recommendation(
    draft: Draft,
    standing: Standing,
    frame: Frame,
    *,
    half_life_days: float | None = None,
    tokens: int = 0,
    run: str = "none",
    merged: tuple[str, ...] = (),
    review: Review | None = None,
) -> MetaRecommendation:
    """The record; raises pydantic's `ValidationError` where it is none. `merged` are records that it took in."""
    return MetaRecommendation(**_fields(draft, standing, frame, half_life_days, tokens, run, merged, review))


def flaw_of(draft: Draft, frame: Frame) -> str | None:
    """Why a draft fits no record, by the published schema where that has a word for it; None where it fits."""
    try:
        recommendation(draft, _FRESH, frame)
    except ValidationError as error:
        fields = _fields(draft, _FRESH, frame, None, 0, "none", (), None)
        try:
            validate("meta_recommendation", {"schema_version": 1, "revision": 1, "locked": False, **fields})
        except InputError as told:
            return str(told)[:MAX_FLAW_CHARS]
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f"meta_recommendation: at $.{where}: {first['msg']}"[:MAX_FLAW_CHARS]
    return None


def lower95(draft: Draft, standing: Standing) -> float:
    """Lower end of the 95 % interval of the share of voices that confirm it."""
    return round(wilson_lower95(max(1, draft.backing.principals), standing.contradicts), 6)


def line(draft: Draft) -> str:
    """About what it costs to show it: id, text and one source, as a profile renders them."""
    first = draft.evidence[0]
    return f"  {draft.id}: {draft.said['text']} [{first['session']}{first['ref']}]\n"


def content_of(record: MetaRecommendation, key: AddressKey) -> str:
    """HMAC of all that a record says, without its stamps."""
    stampless = record.model_copy(update={"run": "none", "revision": 1, "validity": _undated(record)})
    return address_of(key, "", "record", stampless.model_dump_json().encode())


def stamped(record: MetaRecommendation, before: Stamp | None, now: str | None, content: str) -> MetaRecommendation:
    """The record with the stamps of when it last changed."""
    if before is None:
        changes: dict[str, Any] = {"validity": record.validity.model_copy(update={"recorded_at": now})}
    else:
        same = before.content == content
        changes = {
            "revision": before.revision + (0 if same else 1),
            "run": before.run if same else record.run,
            "validity": record.validity.model_copy(update={"recorded_at": before.recorded_at}),
        }
    return record.model_copy(update=changes)


def _undated(record: MetaRecommendation) -> object:
    return record.validity.model_copy(update={"recorded_at": None})


def _fields(
    draft: Draft,
    standing: Standing,
    frame: Frame,
    half_life_days: float | None,
    tokens: int,
    run: str,
    merged: tuple[str, ...],
    review: Review | None,
) -> dict[str, Any]:
    said = dict(draft.said)
    backing, audience = draft.backing, draft.audience
    counted = "sessions" if audience.width in OWN else "principals"
    voices = max(1, backing.principals)
    return {
        "id": draft.id,
        "kind": draft.kind,
        "scope": {
            "tenant": frame.tenant,
            "agent": frame.agent,
            "user": audience.user,
            "project": audience.project,
            "session": audience.session,
            "tool": said.pop("tool"),
        },
        **said,
        "evidence": draft.evidence,
        "support": {
            "events": backing.events,
            "sessions": backing.sessions,
            "principals": backing.principals,
            "contradicts": standing.contradicts,
            "first": draft.first,
            "last": draft.last,
        },
        "confidence": {
            "score": round(draft.score * voices / (voices + standing.contradicts), 6),
            "lower95": lower95(draft, standing),
            "method": f"wilson95/{counted}",
        },
        "validity": {
            "valid_from": draft.first,
            "valid_to": standing.replaced_at,
            "recorded_at": None,
            "half_life_days": half_life_days,
        },
        "status": standing.verdict.status,
        "reasons": tuple(sorted({*standing.verdict.reasons, *(("merged",) if merged else ())})),
        "supersedes": tuple(sorted({*standing.supersedes, *merged})),
        "superseded_by": standing.superseded_by,
        "conflicts": standing.conflicts,
        "run": run,
        "tokens": tokens,
        "review": review,
    }
