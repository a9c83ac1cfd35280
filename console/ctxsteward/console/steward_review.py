"""What waits for people, and their answers: requests (whole challengers) and records.

Raises `Refused` (an `InputError`) where somebody may not answer, or there is nothing to answer any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ctxsteward.schemas import InputError

from . import steward_compared, steward_why, tables
from .output import print_json
from .steward_records import against_rule, records_at, told_rule, whose, why_so

if TYPE_CHECKING:
    from rich.console import Console

    from ctxsteward.schemas.recommendation import MetaRecommendation
    from ctxsteward.steward.approvals import Request, Verdict

    from .steward_place import Place

FOR_PEOPLE = frozenset(("needs_person", "needs_principals", "needs_recovery", "conflict", "touches_locked"))
"""Reasons that a person can lift at once."""
RULED = frozenset(("gainsays_locked", "gainsays_rule", "touches_locked"))
HELD = ("candidate", "vetted", "quarantined")
TAKEN_BACK = "a rollback took it back; it returns when a person approves it anew"


def waiting(place: Place, *, every: bool) -> dict[str, Any]:
    """Requests that wait, and records that a person may lift; with `every`, all records that are held back."""
    requests = place.approvals.pending(when=place.here.when, head=place.head)
    from ctxsteward.steward.fitting import WEIGHTS

    out = _taken_back(place)
    with records_at(place) as records:
        held = [record for record in records if record.status in HELD or out(record)]
    chosen = [
        one for one in held
        if every or out(one) or (one.scope.is_shared and one.kind in WEIGHTS and FOR_PEOPLE & set(one.reasons))
    ]  # fmt: skip
    chosen.sort(key=lambda one: (not one.scope.is_shared, one.kind, one.text, one.id))
    return {
        "requests": [_request(one) for one in requests],
        "records": [_record(one) | ({"why": TAKEN_BACK} if out(one) else _ruled(place, one)) for one in chosen],
        "held": len(held),
        "reviewers": sorted(name for name, actor in place.actors.actors.items() if "reviewer" in actor.roles),
    }


def answer(place: Place, id: str, verdict: str, secret: str, *, who: str | None, note: str) -> dict[str, Any]:
    """Approve or reject a request, or a record."""
    told = " ".join(note.split())
    decided = cast("Verdict", verdict)
    request = found_request(place, id)
    when = place.here.when
    if request is not None:
        given = place.approvals.answer(
            request.id, decided, secret, when=when, head=place.head, who=who, challenger=request.challenger, note=told
        )
        after = place.approvals.find(request.id, when=when, head=place.head)
        agreed = sum(each.verdict == "approve" for each in after.verdicts)
        return {
            "kind": "request", "id": request.id, "verdict": given.verdict, "who": given.who, "when": given.when,
            "state": after.state, "approved": agreed, "people": after.people,
        }  # fmt: skip
    with records_at(place) as records:
        record = records.find(id)
    reviews, people = place.record_reviews, place.people_for(record)
    review = reviews.answer(record, decided, secret, when=when, who=who, note=told)
    agreed = len(reviews.approvers(record))
    state = "waiting" if review.state == "approved" and agreed < people else review.state
    return {
        "kind": "record", "id": record.id, "verdict": verdict, "who": review.who[0], "when": when, "state": state,
        "approved": agreed, "people": people,
    }  # fmt: skip


def said(told: Mapping[str, Any]) -> str:
    """An answer in a line, with what comes next."""
    verb = "approved" if told["verdict"] == "approve" else "rejected"
    line = f"{told['who']} {verb} {told['kind']} {told['id']}: "
    if verb == "rejected":
        return line + ("it will not come into force" if told["kind"] == "request" else "it is used no more")
    if told["state"] == "waiting":
        return line + f"{told['approved']} of {told['people']} have, somebody else must, too"
    does = "brings it into force" if told["kind"] == "request" else "stages it"
    return line + f"`ctxsteward steward promote {told['id']}` or the next night {does}"


def _taken_back(place: Place) -> Callable[[MetaRecommendation], bool]:
    """Whether a record would stand in the slice, had no rollback taken it back."""
    from ctxsteward.steward.taken_back import taken_back

    taken = taken_back(place.store, place.versions, place.head)

    def out(record: MetaRecommendation) -> bool:
        if record.status != "active" or not record.scope.is_shared:
            return False
        approved = record.review is not None and record.review.state == "approved"
        return taken.keeps_out(record, record.review.when if record.review and approved else None)

    return out


def show(console: Console, found: Mapping[str, Any]) -> None:
    for one in found["requests"]:
        line = f"request {one['id']}: drift {one['level']}, {one['approved']} of {one['people']} have approved"
        console.print(tables.shown(line, style="bold"), soft_wrap=True)
        touched = f"; touches {', '.join(one['touched'])}" if one["touched"] else ""
        about = f"  by {one['author']}, after version {one['parent']}{touched}; until {one['expires']}"
        console.print(tables.shown(about), soft_wrap=True)
    if not found["requests"]:
        console.print("no request waits")
    if found["records"]:
        console.print(tables.shown("records that a person may lift:", style="bold"))
    for one in found["records"]:
        console.print(tables.shown(f"  {one['id']}  {one['status']}, for {one['for']}: {one['text']}"), soft_wrap=True)
        console.print(tables.shown(f"    {one['why']}; {one['support']['principals']} independent"), soft_wrap=True)
    if found["held"] > len(found["records"]):
        console.print(f"{found['held']:,} records are held back; --all lists them")


def show_one(console: Console, place: Place, id: str, *, as_json: bool) -> None:
    """A request with what it changes, or a record with its spans."""
    request = found_request(place, id)
    if request is not None:
        _show_request(console, place, request, as_json=as_json)
        return
    with records_at(place) as records:
        record = records.find(id)
        spans = records.spans(record)
        shown = steward_why.shown_in(place, record)
    if as_json:
        print_json({"kind": "record", **steward_why.document(record, spans, shown)})
    else:
        steward_why.show(console, record, spans, shown)


def found_request(place: Place, id: str) -> Request | None:
    """The request with this id, or whose id begins so; None where there is none."""
    every = place.approvals.requests(when=place.here.when, head=place.head)
    near = [one for one in every if id and one.id.startswith(id)]
    if len(near) > 1:
        raise InputError(f"{id!r}: {len(near)} requests begin so; give more digits")
    return near[0] if near else None


def _show_request(console: Console, place: Place, request: Request, *, as_json: bool) -> None:
    challenger = place.approvals.challenger(request)
    before = place.versions.at(request.parent).profile if request.parent else None
    lines = list(steward_compared.changes(before, challenger))
    if as_json:
        print_json({"kind": "request", **_request(request), "changes": lines})
        return
    console.print(
        tables.shown(f"request {request.id}: {request.state}, drift {request.level}", style="bold"), soft_wrap=True
    )
    for line in lines:
        console.print(tables.shown(f"  {line}"), soft_wrap=True)
    for each in request.verdicts:
        note = f": {each.note}" if each.note else ""
        console.print(tables.shown(f"  {each.who}, {each.when}: {each.verdict}{note}"), soft_wrap=True)


def _request(one: Request) -> dict[str, Any]:
    verdicts = [{"who": v.who, "verdict": v.verdict, "when": v.when, "note": v.note} for v in one.verdicts]
    return {
        "id": one.id, "state": one.state, "level": one.level, "parent": one.parent, "author": one.author,
        "people": one.people, "approved": sum(v["verdict"] == "approve" for v in verdicts), "verdicts": verdicts,
        "touched": list(one.touched), "when": one.when, "expires": one.expires, "challenger": one.challenger,
    }  # fmt: skip


def _ruled(place: Place, one: MetaRecommendation) -> dict[str, Any]:
    """Of a record that a rule holds back, the rule."""
    found = against_rule(place, one) if RULED & set(one.reasons) else None
    return {} if found is None else {"why": told_rule(found), "against": found}


def _record(one: MetaRecommendation) -> dict[str, Any]:
    return {
        "id": one.id, "kind": one.kind, "status": one.status, "for": whose(one), "text": one.text,
        "reasons": list(one.reasons), "why": why_so(one), "support": one.support.model_dump(mode="json"),
    }  # fmt: skip


def check_people(place: Place) -> None:
    """Refuse an answer where nobody is configured to give one."""
    if place.actors_path is None:
        raise InputError(
            "nobody is configured to review; make a file with `ctxsteward steward actors --add NAME --role reviewer`"
        )
