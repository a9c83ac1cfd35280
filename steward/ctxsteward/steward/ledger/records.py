"""Drafts and their standing written out as records, for everybody, and as facts, for one audience.

What a record says is decided by its observations, the policy and the present. `run`, `revision` and `recorded_at` are
stamps that remember when it last changed (`stamp_record`); no digest covers them. What fits no record is quarantined
with its reason (`flaw_of`). `JudgementContext` says at what time, under which policy, with which reviews, in which run.

A record that reaches more than one person stands in the slice or nowhere; all others are facts (`facts_of`), shown to
one user, project or session where a request asks about them: at most `MAX_FACTS` of one audience, the surest and then
the newest first.

The index must be refreshed; call `judged` and `publish` inside one of its transactions.
Source: the state design (scopes: a record scoped to a user is shown to that user alone).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from pydantic import ValidationError

from ctxsteward.schemas import InputError, MetaRecommendation
from ctxsteward.schemas.profile import instant
from ctxsteward.schemas.publish import validate
from ctxsteward.schemas.recommendation import Review
from ctxsteward.store import Audience, Fact, FactSource
from ctxsteward.store.crypto.keyring import AddressKey, address_of
from ctxsteward.store.facts.fact import MAX_FACTS, MAX_SOURCES

from ..admission import AdmissionPolicy, AdmittedRecords, RecordStanding
from ..observations.observation import KINDS
from ..reconcile.draft import Draft, wilson_lower95
from .database import LedgerDatabase, drafts_of, standing_of
from .judgement import DraftJudge, by_component
from .status import RecordStatuses

_FRESH = RecordStanding("candidate", ())
MAX_FLAW_CHARS = 300


class LineCounter(Protocol):
    """What counts tokens: `ctxsteward.envelope.tokens.tokenizer.Counter` is one."""

    @property
    def name(self) -> str:
        """Under which counts are kept."""

    def text(self, text: str) -> int: ...


class LedgerIdentity(NamedTuple):
    """What all records of a ledger share."""

    tenant: str
    agent: str


class RecordStamp(NamedTuple):
    """When a record last changed."""

    content: str
    """HMAC of all but the stamps."""
    revision: int
    run: str
    recorded_at: str | None


def recommendation(
    draft: Draft,
    standing: RecordStanding,
    frame: LedgerIdentity,
    *,
    half_life_days: float | None = None,
    tokens: int = 0,
    run: str = "none",
    merged: tuple[str, ...] = (),
    review: Review | None = None,
) -> MetaRecommendation:
    """The record; raises pydantic's `ValidationError` where it is none. `merged` are records that it took in."""
    return MetaRecommendation(**_fields(draft, standing, frame, half_life_days, tokens, run, merged, review))


def flaw_of(draft: Draft, frame: LedgerIdentity) -> str | None:
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


def lower95(draft: Draft, standing: RecordStanding) -> float:
    """Lower end of the 95 % interval of the share of voices that confirm it."""
    return round(wilson_lower95(max(1, draft.backing.principals), standing.contradicts), 6)


def line(draft: Draft, text: str | None = None) -> str:
    """About what it costs to show it: id, text (its own, or other words) and one source, as a profile renders them."""
    first = draft.evidence[0]
    return f"  {draft.id}: {text or draft.said['text']} [{first['session']}{first['ref']}]\n"


def content_of(record: MetaRecommendation, key: AddressKey) -> str:
    """HMAC of all that a record says, without its stamps."""
    undated = record.validity.model_copy(update={"recorded_at": None})
    stampless = record.model_copy(update={"run": "none", "revision": 1, "validity": undated})
    return address_of(key, "", "record", stampless.model_dump_json().encode())


def stamp_record(
    record: MetaRecommendation, before: RecordStamp | None, now: str | None, content: str
) -> MetaRecommendation:
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


def _fields(
    draft: Draft,
    standing: RecordStanding,
    frame: LedgerIdentity,
    half_life_days: float | None,
    tokens: int,
    run: str,
    merged: tuple[str, ...],
    review: Review | None,
) -> dict[str, Any]:
    said = dict(draft.said) | ({"text": review.text} if review is not None and review.text is not None else {})
    backing, audience = draft.backing, draft.audience
    counted = "sessions" if audience.width == "user" else "principals"
    voices = max(1, backing.principals)
    return {
        "id": draft.id,
        "kind": draft.kind,
        "scope": {
            "tenant": frame.tenant,
            "agent": frame.agent,
            "user": audience.user,
            "project": audience.project,
            "session": None,
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
        "status": standing.status,
        "reasons": tuple(sorted({*standing.reasons, *(("merged",) if merged else ())})),
        "supersedes": tuple(sorted({*standing.supersedes, *merged})),
        "superseded_by": standing.superseded_by,
        "conflicts": standing.conflicts,
        "run": run,
        "tokens": tokens,
        "review": review,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgementContext:
    """At what time, under which policy, with which reviews records are judged."""

    now: str | None = None
    """ISO 8601; None: nothing fades."""
    policy: AdmissionPolicy = field(default_factory=AdmissionPolicy)
    reviews: Mapping[str, Review] = field(default_factory=dict)
    """By the id of a record, or one it once had."""
    counter: LineCounter | None = None
    """Counts the line of each record; None: as it was counted last."""
    run: str = "none"
    """That writes them."""

    @property
    def now_seconds(self) -> float | None:
        return None if self.now is None else instant(self.now)


class RecordWriter:
    """Writes the records of a `LedgerDatabase`."""

    def __init__(self, database: LedgerDatabase, frame: LedgerIdentity, key: AddressKey) -> None:
        self._db, self._frame, self._key = database, frame, key
        self._standings = RecordStatuses(database)
        self._read: dict[str, tuple[str, MetaRecommendation]] = {}
        """Those for many as they were read last, by id, with their addresses: a night asks more than once."""

    def each(self, as_of: JudgementContext, component: str | None = None) -> Iterator[MetaRecommendation]:
        """Every record, by id; or that of one component."""
        judging = DraftJudge(self._db, as_of.policy, as_of.now_seconds, as_of.reviews, component)
        stamps = self._stamps()
        for part, draft, standing, tokens in judging.each():
            merged = tuple(sorted(stamps.keys() & set(draft.names) - {draft.id})) if stamps else ()
            review = judging.review(part)
            record = self._recommendation(draft, standing, tokens, as_of, review, merged, as_of.run)
            stamp = stamps.get(draft.id)
            yield stamp_record(record, stamp, as_of.now, content_of(record, self._key) if stamp else "")

    def one(self, as_of: JudgementContext, id: str) -> MetaRecommendation | None:
        """By its id, or one it once had."""
        rows = self._db.rows("SELECT component FROM claims WHERE id = ?", id)
        return next(self.each(as_of, rows[0][0]), None) if rows else None

    def judged(self, as_of: JudgementContext, total: int) -> AdmittedRecords:
        """What `each` comes to, without writing out what concerns one person alone; `total` is that of all drafts."""
        looked_at = self._standings.judge(
            as_of.policy,
            as_of.now_seconds,
            as_of.reviews,
            lambda component, standing, review: self._unstamped(component, standing, as_of, review),
        )
        statuses, digest = self._standings.outcome(total)
        ((refused,),) = self._db.rows("SELECT count(*) FROM drafts WHERE malformed IS NOT NULL")
        return AdmittedRecords(
            active=tuple(self._for_many(as_of)),
            digest=digest,
            now=as_of.now or "",
            reviews=as_of.reviews,
            statuses=statuses,
            refused=refused,
            looked_at=looked_at,
        )

    def publish(self, records: Iterable[MetaRecommendation]) -> None:
        """Remember the stamps of these; of what is left out, nothing is remembered any more."""
        before = self._stamps()
        for one in records:
            stamp = before.pop(one.id, None)
            said = (one.revision, one.run, one.validity.recorded_at)
            if stamp is None or stamp[1:] != said:  # a record that says something else has another revision
                content = content_of(one, self._key)
                self._db.run("INSERT OR REPLACE INTO published VALUES (?, ?, ?, ?, ?)", one.id, content, *said)
        self._db.many("DELETE FROM published WHERE id = ?", [(id_,) for id_ in before])

    def _unstamped(
        self,
        component: str,
        standing: RecordStanding,
        as_of: JudgementContext,
        review: Review | None,
        merged: tuple[str, ...] = (),
    ) -> tuple[str, str, str]:
        """A record without its stamps: its address, its names and itself, as they are kept."""
        (tokens,) = self._db.rows("SELECT tokens FROM drafts WHERE component = ?", component)[0]
        draft = drafts_of(self._db, (component,))[component]
        record = self._recommendation(draft, standing, tokens, as_of, review, merged)
        return content_of(record, self._key), json.dumps(draft.names), record.model_dump_json()

    def _for_many(self, as_of: JudgementContext) -> Iterator[MetaRecommendation]:
        """What is active and for many, with its stamps."""
        stamps = self._stamps()
        reviews = by_component(self._db, as_of.reviews) if stamps else {}
        before, self._read = self._read, {}
        for id_, component, content, names, body, standing in self._standings.for_many():
            known = before.get(id_)
            read = known[1] if known and known[0] == content else MetaRecommendation.model_validate_json(body)
            self._read[id_] = content, read
            merged = tuple(sorted(stamps.keys() & set(json.loads(names)) - {read.id})) if stamps else ()
            if merged:
                content, _, body = self._unstamped(
                    component, standing_of(standing), as_of, reviews.get(component), merged
                )
                read = MetaRecommendation.model_validate_json(body)
            stamp = stamps.get(read.id)
            record = stamp_record(read.model_copy(update={"run": as_of.run}), stamp, as_of.now, content)
            if stamp is None or stamp.content != content:  # one that stands unchanged has been checked
                validate("meta_recommendation", record.model_dump(mode="json", warnings=False), f"record {record.id}")
            yield record

    def _recommendation(
        self,
        draft: Draft,
        standing: RecordStanding,
        tokens: int,
        as_of: JudgementContext,
        review: Review | None,
        merged: tuple[str, ...],
        run: str = "none",
    ) -> MetaRecommendation:
        half_life_days = as_of.policy.half_life(draft.kind)
        if review is not None and review.text is not None and as_of.counter is not None:
            tokens = as_of.counter.text(line(draft, review.text))
        return recommendation(
            draft,
            standing,
            self._frame,
            half_life_days=half_life_days,
            tokens=tokens,
            run=run,
            merged=merged,
            review=review,
        )

    def _stamps(self) -> dict[str, RecordStamp]:
        """Of all that was published, by id."""
        rows = self._db.rows("SELECT id, content, revision, run, recorded_at FROM published")
        return {id_: RecordStamp(*rest) for id_, *rest in rows}


def audience_of(draft: Draft) -> Audience | None:
    """Whom a record is for alone; None where it is for everybody."""
    scope = draft.audience
    if scope.project is not None:
        return Audience("project", scope.project)
    return None if scope.user is None else Audience("user", scope.user)


def facts_of(active: Iterable[tuple[Draft, RecordStanding]]) -> tuple[Fact, ...]:
    """The facts of one audience, by value; the same for any order of records."""
    by_id = sorted(active, key=lambda found: found[0].id)
    by_age = sorted(by_id, key=lambda found: instant(found[0].last), reverse=True)
    best = sorted(by_age, key=lambda found: -lower95(*found))[:MAX_FACTS]
    return tuple(_fact(draft) for draft, _ in best)


def _fact(draft: Draft) -> Fact:
    """A record as a fact, with the originals it rests on."""
    sources = dict.fromkeys(
        FactSource(session=one["session"], ref=one["ref"], principal=one["principal"]) for one in draft.evidence
    )
    return Fact(
        id=draft.id,
        text=draft.said["text"],
        sources=tuple(sources)[:MAX_SOURCES],
        ts=draft.last,
        answers=draft.answers,
        standing=KINDS[draft.kind].holds_always and draft.said["trigger"] is None,
    )
