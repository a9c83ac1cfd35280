"""Questions to people about records that wait: line, evidence, contrast, reason to wait, and expected use.

`ctxsteward steward review`, its page and the digest show these parts in this order; `why` shows them for any record.
The ledger counts every figure: transcripts with the claim, runs by action and end, sessions that were shown the
record, tokens of its line. Nothing is estimated.

If a change of the profile is drafted from a record (`ctxsteward.steward.release.drafts`), the question has the patch,
the line in force and the results of replayed cases.

A rejected record, and a record that means the same in other words, is asked about again only if it has evidence of a
new kind. The reason of the rejection is shown with it, and with each record of the same slot.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click
from rich.console import Console

from ctxsteward.schemas import MetaRecommendation
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.schemas.recommendation import Relation
from ctxsteward.steward.admission import WAITING, is_asked
from ctxsteward.steward.artifacts.artifact import EvidenceQuote
from ctxsteward.steward.ledger.judgement import EvidenceKind, RecordBasis, TriedFix
from ctxsteward.steward.ledger.meanings import means_the_same
from ctxsteward.steward.release.approvals import ApprovalRequest
from ctxsteward.steward.release.drafts import DraftedChange, drafted
from ctxsteward.steward.release.record_reviews import RecordRejection
from ctxsteward.steward.release.slice import HIGH_TOKENS, WEIGHTS, line_counter, line_of

from ..terminal.failures import FOUND
from ..terminal.output import print_json, table_console
from ..terminal.tables import pairs, say
from .context import StewardContext
from .records import (
    LedgerView,
    ProfileOptions,
    about_a_profile,
    against_rule,
    complete_records,
    reason_text,
    record_fields,
    records_at,
    rule_text,
    span_document,
    taken_back_from,
)
from .taking_effect import effect_of

RULED = frozenset(("gainsays_locked", "gainsays_rule"))
SHOWN_SPANS, SPAN_CHARS, SHOWN_TRIED = 3, 200, 4
MAX_QUOTED = 200
"""Questions whose evidence is read; of more `why` reads it."""

WAITS: Mapping[str, str] = {
    "needs_confirmation": "{People} say this of the service, and neither a tool of your own nor a rule in force says "
    "the same: is it right?",
    "alike": "{People} mean this alike, in words of their own: is it right, and is it for everybody?",
    "needs_principals": "{People} said so, and it takes {k} to reach everybody without you.",
    "needs_helped": "It has worked for {helped}, and it takes {recoveries} to reach everybody without you.",
    "needs_person": "It changes what is done, so only a person may admit it.",
    "fails_more": "More runs that did so failed than succeeded.",
    "needs_outcome": "In no run that is known to have succeeded was this done.",
    "needs_recovery": "It has worked in fewer than {recoveries} runs that succeeded.",
    "denied": "A tool of your own said otherwise in the same talk: who is right?",
    "needs_tasks": "It was seen in the runs of fewer than {recoveries} tasks.",
    "conflict": "Somebody says the opposite, and both are held until you decide.",
    "beside_locked": "This profile has locked lines: does it go against one of them?",
}
"""Why a record waits, as one would say it to a colleague."""
DRAFT_WAITS: Mapping[str, str] = {
    "contradicts": "{People} say the opposite of a rule in force: is the rule still right?",
    "proven": "It proved itself where it applied: is it a rule for good, which no longer fades?",
    "unused": "It did not apply in sessions that were shown it: reject it, and it leaves the slice; approve it, and it "
    "stays.",
    "disobeyed": "Where it applied it was mostly disobeyed: reject it, and it leaves the slice; approve it, and it "
    "stays.",
}
"""Why a record with a drafted change waits, where the record itself does not say so."""
_FROM_RECORD = re.compile(r"from record ([0-9a-f]{16})")
"""How the reason of a change begins that was made of a record."""
MAX_REPLAYED = 10
"""Drafts that are replayed for a list; each costs a third of a second."""
NEW_EVIDENCE: Mapping[EvidenceKind, str] = {
    "said": "people have said it",
    "confirmed": "a tool of your own has said the same",
    "worked": "it was done in runs that succeeded",
}
"""Kinds of evidence for a record that are worth a second question."""
RELATIONS: Mapping[Relation, str] = {
    "supports": "",
    "contradicts": "against it",
    "corrects": "corrected",
    "answers": "answered",
    "recovers": "worked",
    "confirms": "confirms it",
}
"""Words for the relation of a span to its record."""
FAILED = "in a run that failed"
TAKEN_BACK = "a rollback took it back; it returns when a person approves it anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRejection:
    """A rejection of this record, or of one of the same slot."""

    text: str
    who: str
    when: str
    note: str

    def sentence(self, own: str) -> str:
        what = "it" if self.text == own else f"“{self.text}”"
        return f"{self.who} rejected {what} on {self.when[:10]}" + (f": “{self.note}”" if self.note else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewQuestion:
    """One record that waits."""

    record: MetaRecommendation
    line: str
    """The record's line in a prompt."""
    spans: tuple[EvidenceQuote, ...]
    contrast: tuple[str, ...]
    tried: tuple[TriedFix, ...]
    waits: str
    why: str
    """The same in the words of its reason codes."""
    effect: str
    rejected: tuple[EarlierRejection, ...]
    against: Mapping[str, Any] | None
    """The rule that the record contradicts or touches."""
    change: DraftedChange | None = None
    """The change of persona, policies, rails, surface or slice that it would make."""
    replayed: str | None = None
    """Results of the eval cases before and after the change; None if they were not replayed."""

    @property
    def is_acceptable(self) -> bool:
        """Whether an entry is drafted, which a person may accept."""
        return self.change is not None and self.change.text is not None

    @property
    def draft_lines(self) -> Iterator[str]:
        """The drafted change as a patch, beside the line in force, with what replayed cases say."""
        change = self.change
        if change is None:
            return
        if change.text is None:
            yield "Draft: take this line out"
            return
        was = "" if change.before is None else f"{change.before} → "
        yield f"Draft: {'+' if change.before is None else '~'} {change.at}: {was}{change.text}"
        if change.beside is not None:
            yield f"In force beside it: {change.beside}"
        if self.replayed is not None:
            yield f"Effect: {self.replayed}"

    def document(self) -> dict[str, Any]:
        fields = record_fields(self.record) | {
            "why": self.why,
            "support": self.record.support.model_dump(mode="json"),
            "line": self.line,
            "evidence": [span_document(span) for span in self.spans],
            "contrast": list(self.contrast),
            "tried": [each._asdict() for each in self.tried],
            "waits": self.waits,
            "effect": self.effect,
            "rejected": [asdict(each) for each in self.rejected],
        }
        fields |= {} if self.against is None else {"against": self.against}
        return fields | ({} if self.change is None else {"draft": asdict(self.change) | {"replayed": self.replayed}})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionList:
    """All that waits for people."""

    requests: tuple[ApprovalRequest, ...]
    approved: tuple[ApprovalRequest, ...]
    """Requests that need no person any more, and are not in force yet."""
    questions: tuple[ReviewQuestion, ...]
    """Of records."""
    held: int
    """Records that are not used."""


def questions(
    place: StewardContext, records: LedgerView, *, every: bool = False, replays: int = MAX_REPLAYED
) -> QuestionList:
    """Records that a person may lift; with `every`, all that are held back or were rejected.

    What came up in most sessions is asked first, and the drafts of the first `replays` are replayed.
    """
    asking = _QuestionWriter(place, records, replays)
    held = [record for record in records.by_id.values() if record.status in WAITING or asking.is_out(record)]
    chosen = [record for record in records.by_id.values() if asking.is_asked(record, every=every)]
    chosen.sort(key=lambda record: (-record.support.sessions, record.kind, record.text, record.id))
    asked = tuple(asking.question(record, quotes=at < MAX_QUOTED) for at, record in enumerate(chosen))
    approved = tuple(request for request in place.requests() if request.state == "approved")
    return QuestionList(requests=tuple(place.pending()), approved=approved, questions=asked, held=len(held))


def draft_of(place: StewardContext, records: LedgerView, record: MetaRecommendation) -> DraftedChange | None:
    """Return the change drafted from a record, or None."""
    return _QuestionWriter(place, records).change(record)


def count_drafts(place: StewardContext, records: LedgerView) -> int:
    """How many changes of the profile are drafted for a person."""
    asking = _QuestionWriter(place, records)
    every = records.by_id.values()
    return sum(asking.is_asked(record, every=False) and asking.change(record) is not None for record in every)


class _QuestionWriter:
    """Values that all questions share."""

    def __init__(self, place: StewardContext, records: LedgerView, replays: int = 0) -> None:
        self._place, self._records, self._replays = place, records, replays
        self._policy = place.settings().admission
        self._rejections = place.record_reviews.rejections()
        self._counter = line_counter()
        self._uses = records.ledger.uses.of_records()
        self._refused = [record for record in records.by_id.values() if record.status == "rejected"]
        self.is_out = taken_back_from(place)
        head = place.versions.head()
        self._profile = head.profile if head else ProfileDocument(name=place.profile)
        staged = [request.note for request in place.requests() if request.state in ("waiting", "approved")]
        whys = [entry.why for entry in place.versions.told()] if head else []
        self._made = {id for text in (*staged, *whys) for id in _FROM_RECORD.findall(text)}

    def is_asked(self, record: MetaRecommendation, *, every: bool) -> bool:
        if self.is_out(record) or (every and record.status in (*WAITING, "rejected")):
            return True
        if record.kind not in WEIGHTS or record.id in self._made:
            return False
        if record.status == "rejected":
            return bool(self._news(record, self._records.ledger.basis(record.id)))
        return (is_asked(record) or self.change(record) is not None) and not self._was_rejected(record)

    def change(self, record: MetaRecommendation) -> DraftedChange | None:
        """Return the drafted change of a record that has not been staged yet."""
        if record.id in self._made or self.is_out(record):
            return None
        basis = self._records.ledger.basis(record.id) if "fails_more" in record.reasons else None
        return drafted(
            record,
            self._profile,
            people=self._policy.independent_principals,
            use=self._uses.get(record.id),
            tried=basis.tried if basis is not None else (),
        )

    def _was_rejected(self, record: MetaRecommendation) -> bool:
        """Whether a person rejected what means the same, by words of people."""
        said = [each.text for each in self._refused if each.kind == record.kind and each.scope.tool is None]
        return bool(said) and means_the_same(record.text, said)

    def _replay(self, change: DraftedChange) -> str | None:
        """Return drift and replayed cases of a change."""
        if change.block == "meta" or not self._replays:
            return None
        self._replays -= 1
        return effect_of(self._place, self._profile, change)

    def question(self, record: MetaRecommendation, *, quotes: bool) -> ReviewQuestion:
        basis = self._records.ledger.basis(record.id)
        against = against_rule(self._place, record) if RULED & set(record.reasons) else None
        why = TAKEN_BACK if self.is_out(record) else reason_text(record) if against is None else rule_text(against)
        tried = basis.tried if basis is not None else ()
        change = self.change(record)
        return ReviewQuestion(
            record=record,
            line=line_of(record),
            spans=tuple(self._records.ledger.why(record.id) if quotes else ()),
            tried=tried,
            contrast=tuple(self._contrast(record, tried)),
            waits=self._waits(record, basis, why, change),
            why=why,
            effect=" ".join(self._effect(record, basis)),
            rejected=tuple(self._rejected(record)),
            against=against,
            change=change,
            replayed=self._replay(change) if change is not None else None,
        )

    def _waits(
        self, record: MetaRecommendation, basis: RecordBasis | None, why: str, change: DraftedChange | None
    ) -> str:
        if record.status == "rejected":
            news = [NEW_EVIDENCE[kind] for kind in self._news(record, basis)]
            since = f"; since then {' and '.join(news)}" if news else ""
            rejection = self._rejections.get(record.id)
            return _sentence(why) if rejection is None else f"{rejection.who} rejected it{since}."
        if "edited" in record.reasons and record.review is not None:
            who, when = record.review.who[0], (record.review.when or "")[:10]
            return f"{who} gave it these words on {when}; somebody else must approve them."
        people = count(record.support.principals, "person", "people")
        counted = {"people": people, "People": people[0].upper() + people[1:], "recoveries": self._policy.recoveries}
        counted["k"] = self._policy.independent_principals
        if change is not None and change.cause in DRAFT_WAITS:
            return DRAFT_WAITS[change.cause].format(**counted)
        codes = list(record.reasons) if not self.is_out(record) else []
        if basis is not None and basis.tried:
            counted["helped"] = count(basis.helped, "person or task", "people or tasks")
            codes = ["needs_helped" if code == "needs_principals" else code for code in codes]
        reasons = [WAITS[code].format(**counted) for code in codes if code in WAITS]
        return " ".join(reasons) or _sentence(why)

    def _news(self, record: MetaRecommendation, basis: RecordBasis | None) -> list[EvidenceKind]:
        """Kinds of evidence for a record that it has gained since it was rejected."""
        rejection = self._rejections.get(record.id)
        if rejection is None or rejection.stood_on is None or basis is None:
            return []
        return [kind for kind in basis.kinds if kind in NEW_EVIDENCE and kind not in rejection.stood_on]

    def _contrast(self, record: MetaRecommendation, tried: Sequence[TriedFix]) -> Iterator[str]:
        """Return other actions and their ends, or the opposite claims."""
        own_first = sorted(tried, key=lambda each: each.action != record.action)
        for each in own_first[:SHOWN_TRIED] if len(tried) > 1 else ():
            what = "this" if each.action == record.action else f"“{each.action}”"
            ends = ((each.succeeded, "succeeded"), (each.failed, "failed"), (each.untold, "ended nobody says how"))
            counted = ", ".join(f"{count:,} {end}" for count, end in ends if count)
            yield f"Of runs that did {what}: {counted}."
        for id in record.conflicts:
            other = self._records.by_id.get(id)
            if other is not None:
                yield f"Against it {count(other.support.principals, 'person says', 'people say')}: “{other.text}”"

    def _effect(self, record: MetaRecommendation, basis: RecordBasis | None) -> Iterator[str]:
        """Return the expected use of a record in prompts, by the counts so far."""
        if basis is not None:
            first, last = ((moment or "")[:10] for moment in (record.support.first, record.support.last))
            dates = "" if not first else f", on {first}" if first == last else f", from {first} to {last}"
            came = count(
                basis.voices, *(("person or task", "people or tasks") if basis.tried else ("person", "people"))
            )
            yield f"It came up in {basis.transcripts:,} of {basis.read:,} transcripts, with {came}{dates}."
            done = next((each for each in basis.tried if each.action == record.action), None)
            if done is not None:
                yield _ends(done)
        use = self._uses.get(record.id)
        if use is not None and use.shown:
            judged = use.complied + use.contradicted
            obeyed = f", and it was obeyed in {use.complied:,} of {judged:,}" if judged else ""
            yield f"Shown in {use.shown:,} sessions, it applied in {use.fired:,} of {use.judged:,}{obeyed}."
        if record.tokens:
            tokens = self._counter.text(line_of(record) + "\n")
            yield f"It costs {tokens} of the {HIGH_TOKENS} tokens that all such lines may have in each prompt."

    def _rejected(self, record: MetaRecommendation) -> Iterator[EarlierRejection]:
        """Of this record, and of others of its slot."""
        slot = (record.kind, record.scope, record.slot)
        alike = (each.id for each in self._refused if (each.kind, each.scope, each.slot) == slot)
        for other in dict.fromkeys((record.id, *alike)):
            rejection: RecordRejection | None = self._rejections.get(other)
            if rejection is not None:
                text = self._records.by_id[other].text if other in self._records.by_id else record.text
                yield EarlierRejection(text=text, who=rejection.who, when=rejection.when, note=rejection.note)


def _ends(done: TriedFix) -> str:
    """Return the ends of the runs that did what a record says."""
    ended_runs = done.succeeded + done.failed
    untold = f"; of {done.untold:,} more nobody says how they ended" if ended_runs and done.untold else ""
    if ended_runs == 1:
        return f"The one run that did so {'succeeded' if done.succeeded else 'failed'}{untold}."
    ended = f"{done.succeeded:,} succeeded and {done.failed:,} failed" if ended_runs else "none has a known end"
    return f"Of {count(ended_runs or done.untold, 'run', 'runs')} that did so {ended}{untold}."


def count(number: int, single: str, several: str) -> str:
    """A number with its noun."""
    return f"{number:,} {single if number == 1 else several}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "?", "”")) else ".")


# -- for people ---------------------------------------------------------------------------------------------------


def question_lines(question: ReviewQuestion, *, every_span: bool = False) -> Iterator[str]:
    """A question, line by line; the first is the line in question."""
    yield question.line
    yield f"  {question.record.id}: {question.record.status}"
    spans = question.spans if every_span else _first_of_each(question.spans)
    for span in spans:
        yield f"  {quoted(span, question.record, None if every_span else SPAN_CHARS)}"
    if not spans:
        yield f"  evidence: `ctxsteward steward why {question.record.id}`"
    if len(question.spans) > len(spans):
        yield f"  and {len(question.spans) - len(spans)} more"
    yield from (f"  {line}" for line in question.contrast)
    yield from (f"  {line}" for line in question.draft_lines)
    yield f"  Why you: {question.waits}"
    yield f"  To expect: {question.effect}"
    yield from (f"  Before: {each.sentence(question.record.text)}" for each in question.rejected)


def _first_of_each(spans: Sequence[EvidenceQuote]) -> list[EvidenceQuote]:
    """Choose a few spans, in order, of as many relations as possible, such as a failure and its fix."""
    first = {span.evidence.relation: at for at, span in reversed(list(enumerate(spans)))}
    chosen = sorted(first.values())
    chosen += [at for at in range(len(spans)) if at not in chosen]
    return [spans[at] for at in sorted(chosen[:SHOWN_SPANS])]


UNKNOWN_SPEAKER = "unknown speaker"


def quoted(span: EvidenceQuote, of: MetaRecommendation, most: int | None = SPAN_CHARS) -> str:
    """Where a span of a record stands, who said it, when, and its words."""
    at = span.evidence
    who = (at.principal or UNKNOWN_SPEAKER) if at.role == "user" else at.role
    failed = (at.relation, at.role) == ("contradicts", "tool") and of.scope.tool is not None
    how = FAILED if failed else RELATIONS[at.relation]
    parts = [who, *([at.ts[:10]] if at.ts else ()), *([how] if how else ())]
    head = f"{at.session}{at.ref} {', '.join(parts)}"
    if span.text is None:
        return f"{head}: (forgotten)"
    line = " ".join(span.text.split())
    cut = line if most is None or len(line) <= most else line[: most - 1] + "…"
    return f"{head}: “{cut}”" + ("" if span.verified else "  (not what its address says)")


def show_questions(console: Console, asked: Collection[ReviewQuestion]) -> None:
    for each in asked:
        for at, line in enumerate(question_lines(each)):
            say(console, line, "" if at else "bold")


# -- one record laid open ------------------------------------------------------------------------------------------


def version_showing(place: StewardContext, record: MetaRecommendation) -> int | None:
    """Return the version in force if this record is in it."""
    head = place.versions.head()
    if head is None or record.id not in {line.id for line in head.profile.meta}:
        return None
    return head.number


def record_document(record: MetaRecommendation, spans: Sequence[EvidenceQuote], shown: int | None) -> dict[str, Any]:
    return {
        "record": record.model_dump(mode="json"),
        "why": reason_text(record),
        "in_force_in_version": shown,
        "spans": [span_document(span) for span in spans],
    }


def show_record(
    console: Console, record: MetaRecommendation, spans: Sequence[EvidenceQuote], shown: int | None
) -> None:
    say(console, record.text, "bold")
    console.print(pairs(_record_rows(record, shown), style="dim"))
    console.print()
    for span in spans:
        at = span.evidence
        mark = "" if span.verified else "  (not what its address says)" if span.text is not None else "  (forgotten)"
        head = f"{at.session}{at.ref}  {at.role}, trust {at.trust}, {at.relation}"
        say(console, f"{head}, {at.principal or UNKNOWN_SPEAKER}{mark}")
        words = f"“{' '.join(span.text.split())}”" if span.text else "-"
        say(console, f"  {words}")


def _record_rows(record: MetaRecommendation, shown: int | None) -> Iterator[tuple[str, str]]:
    support, validity, sure = record.support, record.validity, record.confidence
    yield "id", record.id
    yield "kind", record.kind
    yield "status", f"{record.status}: {reason_text(record)}"
    yield "in force", f"version {shown}" if shown else "not in the slice that everybody is shown"
    yield "about", f"{record.slot.subject} / {record.slot.attribute} ({record.slot.cardinality})"
    if record.value is not None:
        yield "value", f"{record.value}{' ' + record.unit if record.unit else ''}"
    counted = f"{support.principals} independent, {support.sessions} sessions, {support.events} events"
    yield "support", counted + (f", {support.contradicts} against" if support.contradicts else "")
    yield "confidence", f"{sure.score:.2f}, at least {sure.lower95:.2f} ({sure.method})"
    yield "trust", record.trust
    half_life = f"halves in {validity.half_life_days:g} days" if validity.half_life_days else "does not fade"
    yield "said", f"{support.first or 'undated'} to {support.last or 'undated'}; {half_life}"
    if record.superseded_by:
        yield "superseded by", record.superseded_by
    if record.conflicts:
        yield "conflicts with", ", ".join(record.conflicts)
    if record.review is not None:
        note = f": “{record.review.note}”" if record.review.note else ""
        words = ", who gave it these words" if record.review.state == "awaiting" else ""
        yield "review", f"{record.review.state} by {', '.join(record.review.who)}{words}{note}"
    yield "found by", f"{record.extractor.name}/{record.extractor.version}"


@click.command()
@click.argument("id", shell_complete=complete_records)
@about_a_profile()
@click.pass_context
def why(ctx: click.Context, id: str, where: ProfileOptions, as_json: bool) -> None:
    """Explain the record ID: its gate, its support, and each span it rests on, word by word.

    ID may be the first digits of an id, or an earlier id of the record. Exit code 1: a span is missing, or differs
    from its address.
    """
    with where.open() as place, records_at(place) as records:
        record = records.find(id)
        spans = records.ledger.why(record.id)
        shown = version_showing(place, record)
    if as_json:
        print_json(record_document(record, spans, shown))
    else:
        show_record(table_console(), record, spans, shown)
    if not all(span.verified for span in spans):
        ctx.exit(FOUND)
