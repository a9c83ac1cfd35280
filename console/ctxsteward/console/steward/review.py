"""``ctxsteward steward review``: requests and records that wait for people, and their answers.

Requests are about whole challengers, records about single lines (`questions`). On a terminal, each is asked in turn,
and a key answers it; options make the same decisions. Raises `ActionRefused` (an `InputError`) if a person may not
answer, or the question is closed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import click
from rich.console import Console

from ctxsteward.schemas import InputError
from ctxsteward.schemas.recommendation import Review
from ctxsteward.steward.release.approvals import ApprovalRequest

from ..terminal import tables
from ..terminal.failures import BLOCKED, one_line
from ..terminal.output import print_json, table_console
from ..terminal.tables import say
from .context import StewardContext, read_token
from .questions import (
    QuestionList,
    ReviewQuestion,
    draft_of,
    question_lines,
    questions,
    record_document,
    show_questions,
    show_record,
    version_showing,
)
from .records import ProfileOptions, about_a_profile, as_actor, complete_waiting, records_at, token
from .taking_effect import LATER, accept_draft, take_effect
from .versions import changes


def waiting(place: StewardContext, *, every: bool = False) -> QuestionList:
    """Requests that wait, and records that a person may lift; with `every`, all records that are held back."""
    with records_at(place) as records:
        return questions(place, records, every=every)


def waiting_document(place: StewardContext, waits: QuestionList) -> dict[str, Any]:
    """Open questions and reviewers as JSON."""
    return {
        "requests": [_request(each) for each in waits.requests],
        "approved": [_request(each) for each in waits.approved],
        "records": [each.document() for each in waits.questions],
        "held": waits.held,
        "reviewers": sorted(name for name, actor in place.actors.actors.items() if "reviewer" in actor.roles),
    }


Decision = Literal["approve", "accept", "reject", "edit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerAnswer:
    """A reviewer's decision about a request or a record, with their token."""

    id: str
    decision: Decision
    secret: str
    who: str | None = None
    """Who they say they are."""
    note: str = ""
    text: str | None = None
    """Other words."""
    seen: str | None = None
    """The words that the reviewer saw; None if unknown."""


def answer(place: StewardContext, given: ReviewerAnswer) -> dict[str, Any]:
    """Approve or reject a request; approve, reject or edit a record, or accept its drafted change."""
    words = " ".join(given.note.split())
    request = find_request(place, given.id)
    when = place.here.when
    if request is None:
        return _answer_record(place, given, words, when)
    if given.decision not in ("approve", "reject"):
        raise InputError(f"request {request.id}: a request is approved or rejected whole; stage another one")
    approval = place.approvals.answer(
        request.id,
        given.decision,
        given.secret,
        when=when,
        head=place.head,
        who=given.who,
        challenger=request.challenger,
        note=words,
    )
    after = place.approvals.find(request.id, when=when, head=place.head)
    agreed = sum(each.verdict == "approve" for each in after.verdicts)
    return {
        "kind": "request",
        "id": request.id,
        "verdict": approval.verdict,
        "who": approval.who,
        "when": approval.when,
        "state": after.state,
        "approved": agreed,
        "people": after.people,
    }


def _answer_record(place: StewardContext, given: ReviewerAnswer, note: str, when: str) -> dict[str, Any]:
    with records_at(place) as records:
        record = records.find(given.id)
        basis = records.ledger.basis(record.id)
        as_approved = record.model_copy(update={"review": Review(state="approved")})
        support = records.ledger.support(as_approved, place.settings().admission)
        change = draft_of(place, records, record) if given.decision == "accept" else None
    if given.seen is not None and record.text != given.seen:
        raise InputError(f"record {record.id} says something else now: “{record.text}”; look at it again")
    reviews, about = place.record_reviews, {"kind": "record", "id": record.id}
    if given.decision == "accept":
        if change is None:
            raise InputError(f"record {record.id}: no change is drafted of it; approve it, or propose one")
        who = place.owner(given.who, given.secret, "reviewer")
        reviews.refuse_author(record, who)
        made = {"kind": "draft", "verdict": "accept", "who": who, "when": when}
        return about | made | accept_draft(place, record.id, change, who, given.secret, note)
    if given.decision == "edit":
        edited = reviews.edit(
            record, given.text or "", given.secret, when=when, who=given.who, note=note, support=support
        )
        more = {"text": edited.text, "approved": 0, "people": place.people_for(record)}
        return about | {"verdict": "edit", "who": edited.who[0], "when": when, "state": "waiting"} | more
    names, stood_on = (basis.names, basis.kinds) if basis else ((), ())
    review = reviews.answer(
        record, given.decision, given.secret, when=when, who=given.who, note=note, names=names, stood_on=stood_on
    )
    agreed, people = len(reviews.approvers(record)), place.people_for(record)
    state = "waiting" if review.state == "approved" and agreed < people else review.state
    in_effect = take_effect(place, record.id, review.who[0]) if given.decision == "reject" else None
    more = {"state": state, "approved": agreed, "people": people, "in_effect": in_effect}
    return about | {"verdict": given.decision, "who": review.who[0], "when": when} | more


DONE = {"approve": "approved", "accept": "accepted the draft of", "reject": "rejected", "edit": "gave other words to"}


def answer_text(answered: Mapping[str, Any]) -> str:
    """Return a line about an answer and the next step."""
    kind = "record" if answered["kind"] == "draft" else answered["kind"]
    line = f"{answered['who']} {DONE[answered['verdict']]} {kind} {answered['id']}: "
    if answered["verdict"] == "reject":
        if answered["kind"] == "request":
            return line + "it will not come into force"
        return line + ("it is used no more" if answered["in_effect"] else f"{LATER} takes it out of use")
    if answered["verdict"] == "edit":
        return line + f"“{answered['text']}”; somebody else must approve them"
    if answered["state"] == "waiting":
        return line + f"{answered['approved']} of {answered['people']} have, somebody else must, too"
    if answered["kind"] == "draft":
        commits = f"`ctxsteward steward promote {answered['request']}` brings it into force"
        return line + ("it is in force" if answered["in_effect"] else commits)
    return line + _commits(answered["id"], "brings it into force" if answered["kind"] == "request" else "stages it")


def _commits(id: str, does: str = "brings it into force") -> str:
    return f"`ctxsteward steward promote {id}` or the next night {does}"


def show_waiting(console: Console, waits: QuestionList) -> None:
    for request in waits.requests:
        for at, line in enumerate(_request_lines(request)):
            say(console, line, "" if at else "bold")
    for request in waits.approved:
        say(console, f"request {request.id} is approved: {_commits(request.id)}")
    if not (waits.requests or waits.approved):
        console.print("no request waits")
    if waits.questions:
        console.print(tables.shown("records that a person may lift:", style="bold"))
    show_questions(console, waits.questions)
    show_rest(console, waits)


def show_rest(console: Console, asked: QuestionList) -> None:
    """Describe the questions that are not shown."""
    if asked.held > len(asked.questions):
        console.print(f"{asked.held:,} records are held back; --all lists them")


def _request_lines(request: ApprovalRequest) -> Iterator[str]:
    agreed = sum(each.verdict == "approve" for each in request.verdicts)
    yield f"request {request.id}: drift {request.level}, {agreed} of {request.people} have approved"
    touched = f"; touches {', '.join(request.touched)}" if request.touched else ""
    yield f"  by {request.author}, after version {request.parent}{touched}; until {request.expires}"
    if request.note:
        yield f"  {request.note}"


def show_one(console: Console, place: StewardContext, id: str, *, as_json: bool) -> None:
    """Show a request with its changes, or a record with its evidence."""
    request = find_request(place, id)
    if request is not None:
        _show_request(console, place, request, as_json=as_json)
        return
    with records_at(place) as records:
        record = records.find(id)
        spans = records.ledger.why(record.id)
        shown = version_showing(place, record)
    if as_json:
        print_json({"kind": "record", **record_document(record, spans, shown)})
    else:
        show_record(console, record, spans, shown)


def find_request(place: StewardContext, id: str) -> ApprovalRequest | None:
    """Return the request with this id or beginning of an id, or None."""
    near = [request for request in place.requests() if id and request.id.startswith(id)]
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
    say(console, f"request {request.id}: {request.state}, drift {request.level}", "bold")
    if request.note:
        say(console, f"  {request.author}: {request.note}")
    for line in lines:
        say(console, f"  {line}")
    for each in request.verdicts:
        note = f": {each.note}" if each.note else ""
        say(console, f"  {each.who}, {each.when}: {each.verdict}{note}")


def _request(request: ApprovalRequest) -> dict[str, Any]:
    verdicts = [{"who": v.who, "verdict": v.verdict, "when": v.when, "note": v.note} for v in request.verdicts]
    return {
        "id": request.id,
        "state": request.state,
        "level": request.level,
        "parent": request.parent,
        "author": request.author,
        "people": request.people,
        "approved": sum(v["verdict"] == "approve" for v in verdicts),
        "verdicts": verdicts,
        "touched": list(request.touched),
        "when": request.when,
        "expires": request.expires,
        "challenger": request.challenger,
        "note": request.note,
    }


def check_people(place: StewardContext) -> None:
    """Refuse an answer if no reviewers are configured."""
    if place.actors_path is None:
        raise InputError(
            "nobody is configured to review; make a file with `ctxsteward steward actors --add NAME --role reviewer`"
        )


# -- one key each -------------------------------------------------------------------------------------------------

KEYS: Mapping[str, Decision] = {"a": "approve", "d": "accept", "r": "reject", "e": "edit"}
LEGEND = "a approve, {draft}r reject, e edit, l later, s show more, q quit"


class ReviewWalk:
    """One question after the other on a terminal, each answered by a key."""

    def __init__(self, place: StewardContext, console: Console, actor: str | None, token: str | None) -> None:
        self._place, self._console, self._who, self._token = place, console, actor, token
        self._secret: str | None = None
        self._answers = 0

    def run(self, waits: QuestionList) -> None:
        """Ask all of them."""
        asked: list[ApprovalRequest | ReviewQuestion] = [*waits.requests, *waits.questions]
        for at, each in enumerate(asked, 1):
            self._say(f"{at} of {len(asked)}", "dim")
            self._show(each, more=False)
            try:
                if not self._dealt_with(each):
                    break
            except (KeyboardInterrupt, EOFError, click.Abort):
                self._say("")
                break
        self._say(f"{self._answers:,} of {len(asked):,} answered")
        show_rest(self._console, waits)

    def _dealt_with(self, item: ApprovalRequest | ReviewQuestion) -> bool:
        """Wait for a key that answers; False: quit."""
        while True:
            draft = "d accept the draft, " if isinstance(item, ReviewQuestion) and item.is_acceptable else ""
            click.echo(f"{LEGEND.format(draft=draft)}: ", nl=False)
            key = click.getchar().lower()
            click.echo(key if key.isprintable() else "")
            if key == "q":
                return False
            if key == "s":
                self._show(item, more=True)
            elif key == "l":
                return True  # it waits as it is, and is asked again
            elif key in KEYS:
                try:
                    given = self._given(item, KEYS[key])
                    if given is not None:
                        self._say(answer_text(answer(self._place, given)))
                        self._answers += 1
                        return True
                except InputError as error:
                    self._secret = self._secret if self._answers else None  # it may have been mistyped
                    self._say(str(error), "yellow")

    def _given(self, item: ApprovalRequest | ReviewQuestion, decision: Decision) -> ReviewerAnswer | None:
        """Return the answer that a key begins, or None if it was not finished."""
        note, text, seen, id = (
            "",
            None,
            None,
            item.id if isinstance(item, ApprovalRequest) else item.record.id,
        )
        if decision == "reject":
            note = click.prompt("why", default="", show_default=False)
            if not note.strip():
                self._say("nothing was decided: a rejection needs a reason", "yellow")
                return None
        if isinstance(item, ReviewQuestion):
            seen = item.record.text
            text = _other_words(seen) if decision == "edit" else None
            if decision == "edit" and text is None:
                self._say("nothing was decided: these are its words", "yellow")
                return None
        if self._secret is None:
            self._secret = read_token(self._token)
        return ReviewerAnswer(
            id=id, decision=decision, secret=self._secret, who=self._who, note=note, text=text, seen=seen
        )

    def _show(self, item: ApprovalRequest | ReviewQuestion, *, more: bool) -> None:
        if isinstance(item, ReviewQuestion):
            for at, line in enumerate(question_lines(item, every_span=more)):
                self._say(line, "" if at else "bold")
        elif more:
            _show_request(self._console, self._place, item, as_json=False)
        else:
            for at, line in enumerate(_request_lines(item)):
                self._say(line, "" if at else "bold")

    def _say(self, text: str, style: str = "") -> None:
        say(self._console, text, style)


def _other_words(text: str) -> str | None:
    """Return words from an editor, or from a line if no editor is set; None if they are unchanged."""
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        written = click.edit(f"{text}\n") or ""
    else:
        written = click.prompt("its words", default="", show_default=False)
    words = " ".join(written.split())
    return words if words and words != text else None


def _decision(ctx: click.Context, id: str | None, given: Mapping[Decision, str | None]) -> tuple[Decision, str] | None:
    """Return the decision that the options name and its subject, or None."""
    decided = {decision: named for decision, named in given.items() if named is not None}
    if len(decided) > 1:
        raise click.UsageError(f"--{' and --'.join(decided)}: one decision at a time", ctx)
    for decision, named in decided.items():
        if named and id is not None and named != id:
            raise click.UsageError(f"--{decision} {named}: {id} is named, too; name one", ctx)
        if not named and id is None:
            raise click.UsageError("say what: the id of a request or of a record", ctx)
        return decision, named or id or ""
    return None


def _decides(name: Decision, text: str) -> Callable[[Any], Any]:
    """An option that decides; its value is an id, which may stand before it as well."""
    return click.option(
        f"--{name}",
        is_flag=False,
        flag_value="",
        default=None,
        metavar="[ID]",
        shell_complete=complete_waiting,
        help=text,
    )


@click.command()
@click.argument("id", required=False, shell_complete=complete_waiting)
@_decides("approve", "Agree.")
@_decides("accept", "Make the change that is drafted of a record.")
@_decides("reject", "Refuse; --reason is remembered.")
@_decides("edit", "Give a record the words of --text; somebody else approves them.")
@click.option("--note", "--reason", "note", default="", metavar="TEXT", help="Reason; stored unencrypted.")
@click.option("--text", metavar="TEXT", help="The words of an edit: one line of 8 to 280 characters.")
@click.option("--all", "every", is_flag=True, help="Also list every held-back record.")
@as_actor
@token
@about_a_profile()
@click.pass_context
def review(
    ctx: click.Context,
    /,
    id: str | None,
    note: str,
    text: str | None,
    every: bool,
    actor: str | None,
    token: str | None,
    where: ProfileOptions,
    as_json: bool,
    **options: str | None,
) -> None:
    """List what waits for people, show the request or record ID, or answer it; on a terminal, one by one with a key.

    Each record is shown with its line, evidence, alternatives, the reason it waits and what to expect; where it can
    become an entry of the profile, also with the patch and the replayed cases. A request is a challenger that needs
    people; an approval signs all of it. An approved record is used in the operator's name, which needs a version of
    its own. Exit code 3: a request waits.
    """
    given = {name: options[name] for name in DONE}
    decided = _decision(ctx, id, cast("Mapping[Decision, str | None]", given))
    asks = decided is None and id is None and not every and not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    if decided is None and (note or (actor and not asks)):
        raise click.UsageError("--as and --note go with --approve, --accept, --reject or --edit", ctx)
    if (text is not None) != (decided is not None and decided[0] == "edit"):
        raise click.UsageError("--edit and --text go together", ctx)
    with where.open() as place:
        if decided is not None:
            check_people(place)
            answered = answer(
                place,
                ReviewerAnswer(
                    id=decided[1], decision=decided[0], secret=read_token(token), who=actor, note=note, text=text
                ),
            )
            print_json(answered) if as_json else click.echo(one_line(answer_text(answered)))
            return
        if id is not None:
            show_one(table_console(), place, id, as_json=as_json)
            return
        waits = waiting(place, every=every)
        if asks and place.actors_path is not None and (waits.requests or waits.questions):
            ReviewWalk(place, table_console(), actor, token).run(waits)
            waits = waiting(place)
        else:
            print_json(waiting_document(place, waits)) if as_json else show_waiting(table_console(), waits)
    if waits.requests:
        ctx.exit(BLOCKED)
