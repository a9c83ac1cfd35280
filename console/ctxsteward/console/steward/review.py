"""``ctxsteward steward review`` and ``why``: what waits for people, their answers, and one record laid open.

What waits are requests (whole challengers) and records. A record is shown with whom it is for, why it has its status,
and the words it rests on. Raises `Refused` (an `InputError`) where somebody may not answer, or there is nothing to
answer any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import click
from rich.console import Console
from rich.table import Table

from ctxsteward.schemas import InputError, MetaRecommendation
from ctxsteward.steward.release import WEIGHTS, ApprovalRequest, Verdict, taken_back

from ..terminal import BLOCKED, FOUND, print_json, print_result, table_console, tables
from .context import StewardContext, read_token
from .options import ProfileOptions, about_a_profile, as_actor, complete_records, complete_waiting, token
from .records import QuotedSpan, against_rule, reason_text, records_at, rule_text, whose
from .versions import changes


def version_showing(place: StewardContext, record: MetaRecommendation) -> int | None:
    """The version in force, where this record stands in it."""
    head = place.versions.head()
    if head is None or record.id not in {one.id for one in head.profile.meta}:
        return None
    return head.number


def record_document(record: MetaRecommendation, spans: Sequence[QuotedSpan], shown: int | None) -> dict[str, Any]:
    return {
        "record": record.model_dump(mode="json"), "for": whose(record), "why": reason_text(record),
        "in_force_in_version": shown, "spans": [span.document() for span in spans],
    }  # fmt: skip


def show_record(console: Console, record: MetaRecommendation, spans: Sequence[QuotedSpan], shown: int | None) -> None:
    console.print(tables.shown(record.text, style="bold"), soft_wrap=True)
    table = _record_table()
    for name, value in _record_rows(record, shown):
        table.add_row(name, tables.shown(value))
    console.print(table)
    console.print()
    for span in spans:
        evidence = span.evidence
        mark = "" if span.verified else "  (not what its address says)" if span.text is not None else "  (forgotten)"
        head = f"{evidence.session}{evidence.ref}  {evidence.role}, trust {evidence.trust}, {evidence.relation}"
        head += f", {evidence.principal}{mark}"
        console.print(tables.shown(head), soft_wrap=True)
        words = f"“{' '.join(span.text.split())}”" if span.text else "-"
        console.print(tables.shown(f"  {words}"), soft_wrap=True)


def _record_table() -> Any:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    return table


def _record_rows(record: MetaRecommendation, shown: int | None) -> Iterator[tuple[str, str]]:
    support, validity = record.support, record.validity
    yield "id", record.id
    yield "kind", record.kind
    yield "for", whose(record)
    yield "status", f"{record.status}: {reason_text(record)}"
    yield "in force", f"version {shown}" if shown else "not in the slice that everybody is shown"
    yield "about", f"{record.slot.subject} / {record.slot.attribute} ({record.slot.cardinality})"
    if record.value is not None:
        yield "value", f"{record.value}{' ' + record.unit if record.unit else ''}"
    counted = f"{support.principals} independent, {support.sessions} sessions, {support.events} events"
    yield "support", counted + (f", {support.contradicts} against" if support.contradicts else "")
    sure = record.confidence
    yield "confidence", f"{sure.score:.2f}, at least {sure.lower95:.2f} ({sure.method})"
    yield "trust", record.trust
    half_life = f"halves in {validity.half_life_days:g} days" if validity.half_life_days else "does not fade"
    yield "said", f"{support.first or 'undated'} to {support.last or 'undated'}; {half_life}"
    if record.superseded_by:
        yield "superseded by", record.superseded_by
    if record.conflicts:
        yield "conflicts with", ", ".join(record.conflicts)
    if record.review is not None:
        yield "review", f"{record.review.state} by {', '.join(record.review.who)}"
    yield "found by", f"{record.extractor.name}/{record.extractor.version}"


FOR_PEOPLE = frozenset((
    "needs_person", "needs_principals", "needs_confirmation", "fails_more", "needs_outcome", "needs_recovery",
    "conflict", "touches_locked",
))  # fmt: skip
"""Reasons that a person can lift at once."""
RULED = frozenset(("gainsays_locked", "gainsays_rule", "touches_locked"))
HELD = ("candidate", "vetted", "quarantined")
TAKEN_BACK = "a rollback took it back; it returns when a person approves it anew"


def waiting(place: StewardContext, *, every: bool) -> dict[str, Any]:
    """Requests that wait, and records that a person may lift; with `every`, all records that are held back."""
    requests = place.approvals.pending(when=place.here.when, head=place.head)

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


def answer(place: StewardContext, id: str, verdict: str, secret: str, *, who: str | None, note: str) -> dict[str, Any]:
    """Approve or reject a request, or a record."""
    words = " ".join(note.split())
    decided = cast("Verdict", verdict)
    request = find_request(place, id)
    when = place.here.when
    if request is not None:
        approval = place.approvals.answer(
            request.id,
            decided,
            secret,
            when=when,
            head=place.head,
            who=who,
            challenger=request.challenger,
            note=words,
        )
        after = place.approvals.find(request.id, when=when, head=place.head)
        agreed = sum(each.verdict == "approve" for each in after.verdicts)
        return {
            "kind": "request", "id": request.id, "verdict": approval.verdict, "who": approval.who,
            "when": approval.when, "state": after.state, "approved": agreed, "people": after.people,
        }  # fmt: skip
    with records_at(place) as records:
        record = records.find(id)
    reviews, people = place.record_reviews, place.people_for(record)
    review = reviews.answer(record, decided, secret, when=when, who=who, note=words)
    agreed = len(reviews.approvers(record))
    state = "waiting" if review.state == "approved" and agreed < people else review.state
    return {
        "kind": "record", "id": record.id, "verdict": verdict, "who": review.who[0], "when": when, "state": state,
        "approved": agreed, "people": people,
    }  # fmt: skip


def answer_text(told: Mapping[str, Any]) -> str:
    """An answer in a line, with what comes next."""
    verb = "approved" if told["verdict"] == "approve" else "rejected"
    line = f"{told['who']} {verb} {told['kind']} {told['id']}: "
    if verb == "rejected":
        return line + ("it will not come into force" if told["kind"] == "request" else "it is used no more")
    if told["state"] == "waiting":
        return line + f"{told['approved']} of {told['people']} have, somebody else must, too"
    does = "brings it into force" if told["kind"] == "request" else "stages it"
    return line + f"`ctxsteward steward promote {told['id']}` or the next night {does}"


def _taken_back(place: StewardContext) -> Callable[[MetaRecommendation], bool]:
    """Whether a record would stand in the slice, had no rollback taken it back."""
    taken = taken_back(place.store, place.versions, place.head)

    def out(record: MetaRecommendation) -> bool:
        if record.status != "active" or not record.scope.is_shared:
            return False
        approved = record.review is not None and record.review.state == "approved"
        return taken.keeps_out(record, record.review.when if record.review and approved else None)

    return out


def show_waiting(console: Console, found: Mapping[str, Any]) -> None:
    for one in found["requests"]:
        line = f"request {one['id']}: drift {one['level']}, {one['approved']} of {one['people']} have approved"
        console.print(tables.shown(line, style="bold"), soft_wrap=True)
        touched = f"; touches {', '.join(one['touched'])}" if one["touched"] else ""
        about = f"  by {one['author']}, after version {one['parent']}{touched}; until {one['expires']}"
        console.print(tables.shown(about), soft_wrap=True)
        if one["note"]:
            console.print(tables.shown(f"  {one['note']}"), soft_wrap=True)
    if not found["requests"]:
        console.print("no request waits")
    if found["records"]:
        console.print(tables.shown("records that a person may lift:", style="bold"))
    for one in found["records"]:
        console.print(tables.shown(f"  {one['id']}  {one['status']}, for {one['for']}: {one['text']}"), soft_wrap=True)
        console.print(tables.shown(f"    {one['why']}; {one['support']['principals']} independent"), soft_wrap=True)
    if found["held"] > len(found["records"]):
        console.print(f"{found['held']:,} records are held back; --all lists them")


def show_one(console: Console, place: StewardContext, id: str, *, as_json: bool) -> None:
    """A request with what it changes, or a record with its spans."""
    request = find_request(place, id)
    if request is not None:
        _show_request(console, place, request, as_json=as_json)
        return
    with records_at(place) as records:
        record = records.find(id)
        spans = records.spans(record)
        shown = version_showing(place, record)
    if as_json:
        print_json({"kind": "record", **record_document(record, spans, shown)})
    else:
        show_record(console, record, spans, shown)


def find_request(place: StewardContext, id: str) -> ApprovalRequest | None:
    """The request with this id, or whose id begins so; None where there is none."""
    every = place.approvals.requests(when=place.here.when, head=place.head)
    near = [one for one in every if id and one.id.startswith(id)]
    if len(near) > 1:
        raise InputError(f"{id!r}: {len(near)} requests begin so; give more digits")
    return near[0] if near else None


def _show_request(console: Console, place: StewardContext, request: ApprovalRequest, *, as_json: bool) -> None:
    challenger = place.approvals.challenger(request)
    before = place.versions.at(request.parent).profile if request.parent else None
    lines = list(changes(before, challenger))
    if as_json:
        print_json({"kind": "request", **_request(request), "changes": lines})
        return
    console.print(
        tables.shown(f"request {request.id}: {request.state}, drift {request.level}", style="bold"), soft_wrap=True
    )
    if request.note:
        console.print(tables.shown(f"  {request.author}: {request.note}"), soft_wrap=True)
    for line in lines:
        console.print(tables.shown(f"  {line}"), soft_wrap=True)
    for each in request.verdicts:
        note = f": {each.note}" if each.note else ""
        console.print(tables.shown(f"  {each.who}, {each.when}: {each.verdict}{note}"), soft_wrap=True)


def _request(one: ApprovalRequest) -> dict[str, Any]:
    verdicts = [{"who": v.who, "verdict": v.verdict, "when": v.when, "note": v.note} for v in one.verdicts]
    return {
        "id": one.id, "state": one.state, "level": one.level, "parent": one.parent, "author": one.author,
        "people": one.people, "approved": sum(v["verdict"] == "approve" for v in verdicts), "verdicts": verdicts,
        "touched": list(one.touched), "when": one.when, "expires": one.expires, "challenger": one.challenger,
        "note": one.note,
    }  # fmt: skip


def _ruled(place: StewardContext, one: MetaRecommendation) -> dict[str, Any]:
    """Of a record that a rule holds back, the rule."""
    found = against_rule(place, one) if RULED & set(one.reasons) else None
    return {} if found is None else {"why": rule_text(found), "against": found}


def _record(one: MetaRecommendation) -> dict[str, Any]:
    return {
        "id": one.id, "kind": one.kind, "status": one.status, "for": whose(one), "text": one.text,
        "reasons": list(one.reasons), "why": reason_text(one), "support": one.support.model_dump(mode="json"),
    }  # fmt: skip


def check_people(place: StewardContext) -> None:
    """Refuse an answer where nobody is configured to give one."""
    if place.actors_path is None:
        raise InputError(
            "nobody is configured to review; make a file with `ctxsteward steward actors --add NAME --role reviewer`"
        )


@click.command()
@click.argument("id", shell_complete=complete_records)
@about_a_profile()
@click.pass_context
def why(ctx: click.Context, id: str, where: ProfileOptions, as_json: bool) -> None:
    """Say why the record ID is what it is: its gate, its support, and each span it rests on, word by word.

    ID may be the first digits of an id, or an id that the record once had. Exit code 1: a span is gone, or is not what
    its address says.
    """
    with where.open() as place, records_at(place) as records:
        record = records.find(id)
        spans = records.spans(record)
        shown = version_showing(place, record)
    if as_json:
        print_json(record_document(record, spans, shown))
    else:
        show_record(table_console(), record, spans, shown)
    if not all(span.verified for span in spans):
        ctx.exit(FOUND)


@click.command()
@click.argument("id", required=False, shell_complete=complete_waiting)
@click.option("--approve", "verdict", flag_value="approve", help="Agree.")
@click.option("--reject", "verdict", flag_value="reject", help="Refuse.")
@click.option("--note", default="", metavar="TEXT", help="Why; kept in plain.")
@click.option("--all", "every", is_flag=True, help="List every record that is held back, too.")
@as_actor
@token
@about_a_profile()
@click.pass_context
def review(
    ctx: click.Context,
    id: str | None,
    verdict: str | None,
    note: str,
    every: bool,
    actor: str | None,
    token: str | None,
    where: ProfileOptions,
    as_json: bool,
) -> None:
    """List what waits for people, show the request or record ID, or answer it.

    A request is a challenger that needs people; an approval is signed over all of it. A record may be approved, too: it
    is then used in the operator's name, which needs a version of its own. Exit code 3 where something waits.
    """
    if verdict is not None and id is None:
        raise click.UsageError("say what: the id of a request or of a record", ctx)
    if verdict is None and (note or actor):
        raise click.UsageError("--as and --note go with --approve or --reject", ctx)
    with where.open() as place:
        if verdict is not None and id is not None:
            check_people(place)
            answered = answer(place, id, verdict, read_token(token), who=actor, note=note)
            print_json(answered) if as_json else click.echo(answer_text(answered))
            return
        if id is not None:
            show_one(table_console(), place, id, as_json=as_json)
            return
        waits = waiting(place, every=every)
    print_result(waits, show_waiting, as_json=as_json)
    if waits["requests"]:
        ctx.exit(BLOCKED)
