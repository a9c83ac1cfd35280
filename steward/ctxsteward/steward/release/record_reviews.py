"""People's verdicts on single records: a signed chain, in which the newest verdict on each record counts.

    steward/<tenant>/<profile>/verdicts/   chain of
      {"kind": "record", "record", "says", "verdict": "approve" | "reject", "who", "when", "note", "signature"}
      {"kind": "record", "verdict": "reject", …, "names": [id], "stood_on": [kind of evidence]}
      {"kind": "edit", "record", "says", "text": {"blob", "key"}, "supports": [{"blob", "key"}], "who", "when", "note",
       "signature"}

An approval holds for one wording: `says` is an HMAC of kind, scope, slot, text and value. A rejection holds for the
record's id and all `names` of its claim; it keeps the kinds of evidence that the record `stood_on`, so that people are
asked again only about new kinds. Verdicts do not expire; they end with a newer verdict, or when the person who gave
them is no longer a reviewer.

An edit gives a record other words and keeps its sources. The editor is the author of the words, so somebody else must
approve them, and until then the record waits. An edit ends with a rejection or the next edit. Its words are in the
vault under the record's key and are erased with it. No word of a record is in the chain.

Earlier versions also wrote ``{"kind": "later", …}`` to put a question off for a day; it has no effect.

One person must approve a record (`Needed`), or two different people if the record contradicts a locked entry of the
profile in force, because the slice would not ask about that entry. A person who made the claim is its author and does
not count; a template has no author. An approved record is active and may enter the slice (`admission`, `slice`). The
first version with an approved record needs approvals of its own (`approvals`).

Raises `ActionRefused`, `InputError` (for words that no record may have), and what `Chain` and `Vault` raise.
Source: the state design (trust is raised by a signed approval of a person).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from ctxsteward.envelope import Store
from ctxsteward.schemas import Erased, InputError, MetaRecommendation
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.schemas.recommendation import Review
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.names import skeleton
from ctxsteward.store.profiles.version_codec import MetaRecordVault, RecordRef, canonical

from ..admission import WAITING
from ..drift.rules import against, rules_of
from ..erasure import RecordSupport, keep_support
from ..ingest.redaction import Redactor
from ..ledger.facade import Ledger
from ..ledger.judgement import EvidenceKind
from ..ledger.records import JudgementContext
from ..observations.observation import KINDS
from ..reconcile.claims import DisjointSets
from ..settings import NightSettings
from .actors import NOBODY, ActionRefused, Actors, Signer
from .approvals import VERSION, Body, SignedLog, Verdict
from .slice import line_counter, pointers_of

Needed = Callable[[MetaRecommendation], int]
"""Return how many people must approve a record."""
Find = Callable[[str], MetaRecommendation | None]
"""Find a record by its id or an earlier id."""

WHOLE_BODY = 2
"""Version of bodies whose fields are all signed."""
MAX_NOTE_CHARS = 500


class RecordRejection(NamedTuple):
    """A reviewer's rejection of a record."""

    who: str
    when: str
    note: str
    stood_on: tuple[EvidenceKind, ...] | None
    """Kinds of evidence that the record had then; None if they were not written."""


class RecordReviews(SignedLog):
    """Verdicts on the records of one profile."""

    purpose: bytes = b"ctxsteward record review 1"
    folder_name: str = "verdicts"
    link_name: str = "verdict"
    fields: tuple[str, ...] = ("record", "says", "verdict", "who", "when", "note")
    versions: tuple[int, ...] = (VERSION, WHOLE_BODY)

    def __init__(self, store: Store, profile: str, tenant: str = "default", *, actors: Actors = NOBODY) -> None:
        super().__init__(store, profile, tenant, actors=actors)
        self._vault = store.vault(tenant)
        self._shelf = MetaRecordVault(self._vault, self._key, profile)

    def answer(
        self,
        record: MetaRecommendation,
        verdict: Verdict,
        by: str | Signer,
        *,
        when: str,
        who: str | None = None,
        note: str = "",
        names: Sequence[str] = (),
        stood_on: Sequence[EvidenceKind] = (),
    ) -> Review:
        """Approve or reject a record, with a token or a signer; `who` is the name that the person claims.

        A rejection keeps `names` and `stood_on`.
        """
        name, signer = self.reviewer(by, who)
        note = checked_note(note)
        if verdict == "approve":
            self.refuse_author(record, name)
        body: Body = {"record": record.id, "says": self.says(record), "verdict": verdict, "who": name, "when": when}
        if verdict == "reject" and (names or stood_on):
            body |= {"schema_version": WHOLE_BODY, "names": sorted(names), "stood_on": sorted(stood_on)}
        body = self.signed({"kind": "record", **body, "note": note}, signer)
        self.append(body)
        return _review([body])

    def refuse_author(self, record: MetaRecommendation, name: str) -> None:
        """Raise `ActionRefused` if this person made the record's claim or wrote its words."""
        if skeleton(name) in authors(record):
            raise ActionRefused("author", f"{name!r} said this; somebody else must approve it")
        if skeleton(name) == self._editor(record):
            raise ActionRefused("author", f"{name!r} gave it these words; somebody else must approve them")

    def edit(
        self,
        record: MetaRecommendation,
        text: str,
        by: str | Signer,
        *,
        when: str,
        who: str | None = None,
        note: str = "",
        support: RecordSupport | None = None,
    ) -> Review:
        """Give a waiting record other words; it keeps its sources.

        `support` is stored with the words, so that an erasure can withdraw them.
        """
        name, signer = self.reviewer(by, who)
        edited, note = with_words(record, text), checked_note(note)
        line = MetaRecord(id=record.id, text=edited.text, sources=pointers_of(record))
        try:
            words = self._shelf.keep_record(line, frozenset())
            supports = () if support is None else (keep_support(self._vault, self.profile, line, support),)
        except Erased as error:
            raise InputError(f"record {record.id}: its evidence was forgotten; write other words") from error
        body = self.signed(
            {
                "schema_version": WHOLE_BODY,
                "kind": "edit",
                "record": record.id,
                "says": self.says(edited),
                "text": words._asdict(),
                "supports": [kept._asdict() for kept in supports],
                "who": name,
                "when": when,
                "note": note,
            },
            signer,
        )
        self.append(body)
        return _edit(body, edited.text)

    def says(self, record: MetaRecommendation) -> str:
        """Return the address of a record's content and scope."""
        fields = {"kind", "scope", "slot", "text", "value", "unit", "polarity"}
        return address_of(self._key, self.folder, "says", canonical(record.model_dump(mode="json", include=fields)))

    def standing(self, find: Find, needed: Needed = lambda record: 1) -> dict[str, Review]:
        """Return the reviews that count now, by reviewed id; rejections by each name of the claim."""
        reviews: dict[str, Review | None] = {}
        for names, bodies in self._decisions():
            if bodies[-1].get("verdict") == "reject":
                reviews |= dict.fromkeys(names, _review(bodies[-1:]))
                continue
            latest = bodies[_after_rejections(bodies) :]
            for id in dict.fromkeys(body["record"] for body in latest):
                reviews[id] = self._review([body for body in latest if body["record"] == id], find, needed)
        return {id: review for id, review in reviews.items() if review is not None}

    def approvers(self, record: MetaRecommendation) -> tuple[str, ...]:
        """Return the people who approve the record's present wording."""
        review = self.standing(lambda id: record if id == record.id else None).get(record.id)
        return review.who if review is not None and review.state == "approved" else ()

    def rejections(self) -> dict[str, RecordRejection]:
        """Return each record's newest rejection, by every name of its claim, even if later verdicts overrule it."""
        rejections: dict[str, RecordRejection] = {}
        for names, bodies in self._decisions():
            for body in bodies:
                if body.get("verdict") == "reject":
                    stood_on = tuple(body["stood_on"]) if "stood_on" in body else None
                    rejection = RecordRejection(body["who"], body["when"], body["note"], stood_on)
                    rejections |= dict.fromkeys(names, rejection)
        return rejections

    def _decisions(self) -> Iterator[tuple[list[str], list[Body]]]:
        """Yield, for each claim, its names and the reviewers' verdicts on it, oldest first."""
        bodies = [body for _, body in self.links() if body["kind"] != "later" and self.is_by_reviewer(body)]
        union = DisjointSets()
        for body in bodies:
            for name in (body["record"], *body.get("names", ())):
                union.join(body["record"], name)
        groups: dict[str, list[Body]] = {}
        for body in bodies:
            groups.setdefault(union.find(body["record"]), []).append(body)
        names: dict[str, list[str]] = {}
        for name in sorted(union.members):
            names.setdefault(union.find(name), []).append(name)
        for label, decisions in groups.items():
            yield names[label], decisions

    def _review(self, bodies: list[Body], find: Find, needed: Needed) -> Review | None:
        """Combine the approvals and edits of one record, or return None without an edit and with too few approvals."""
        record = find(bodies[0]["record"])
        if record is None:
            return None
        edit, text = self._words(bodies)
        record = record if text is None else record.model_copy(update={"text": text})
        says = self.says(record)
        excluded = authors(record) | ({skeleton(edit["who"])} if edit is not None else set())
        agreed = {
            skeleton(body["who"]): body
            for body in bodies
            if body["kind"] == "record" and body["says"] == says and skeleton(body["who"]) not in excluded
        }
        if len(agreed) >= max(1, needed(record)):
            return _review(list(agreed.values())).model_copy(update={"text": text})
        return _edit(edit, text) if edit is not None and text is not None else None

    def _words(self, bodies: Sequence[Body]) -> tuple[Body | None, str | None]:
        """Return the newest edit and its words, or None for both if there is no edit or its words were forgotten."""
        for body in reversed(bodies):
            if body["kind"] == "edit":
                kept = self._shelf.record(RecordRef(**body["text"]))
                return (None, None) if kept is None else (body, kept.text)
        return None, None

    def _editor(self, record: MetaRecommendation) -> str | None:
        """Return the skeleton of the editor's name, or None if the record has its original words."""
        for _, bodies in self._decisions():
            latest = [body for body in bodies[_after_rejections(bodies) :] if body["record"] == record.id]
            edit, text = self._words(latest)
            if edit is not None and text == record.text:
                return skeleton(edit["who"])
        return None

    def _data(self, body: Body) -> bytes:
        if body["schema_version"] == VERSION:
            return super()._data(body)
        plain = {name: value for name, value in body.items() if name != "signature"}
        return self.purpose + b"\x00" + canonical([self.tenant, self.profile, plain])


def with_words(record: MetaRecommendation, text: str) -> MetaRecommendation:
    """Return a waiting record with other words; raises `InputError` if it does not wait or may not have the words."""
    words = " ".join(text.split())
    if record.status not in WAITING:
        raise InputError(f"record {record.id} is {record.status}; only a record that waits can be given other words")
    if words == record.text:
        raise InputError(f"record {record.id} has these words already; approve it, or write others")
    try:
        edited = MetaRecommendation.model_validate(record.model_dump() | {"text": words})
    except ValidationError as error:
        what = error.errors(include_url=False)[0]["msg"]
        raise InputError(f"--text {words[:80]!r}: {what}; write one line of 8 to 280 characters") from error
    plain = Redactor()(words)
    if plain not in (words, record.text):
        raise InputError(f"--text {plain[:80]!r}: it holds a secret or personal data; leave that out")
    return edited


def checked_note(note: str) -> str:
    """Return a note as one line; raises `InputError` if it is too long."""
    words = " ".join(note.split())
    if len(words) > MAX_NOTE_CHARS:
        raise InputError(f"a note of {len(words):,} characters; write at most {MAX_NOTE_CHARS}")
    return words


def _note_of(body: Body) -> str | None:
    """Return the note of a body in one line of limited length, because earlier versions took any note."""
    return " ".join(body["note"].split())[:MAX_NOTE_CHARS] or None


def authors(record: MetaRecommendation) -> frozenset[str]:
    """Return the skeletons of the names of people who made a record's claim; a template has no authors."""
    if KINDS[record.kind].is_template:
        return frozenset()
    spans = (span for span in record.evidence if span.relation == "supports" and span.role == "user")
    return frozenset(skeleton(span.principal) for span in spans if span.principal is not None)


def people_for(profile: ProfileDocument | None) -> Needed:
    """Return a function for how many must approve a record: two if it contradicts a locked line, else one."""
    locked = [rule for rule in rules_of(profile) if rule.locked]

    def needed(record: MetaRecommendation) -> int:
        return 2 if against(locked, record.text) is not None else 1

    return needed


def judgement_of(
    store: Store, settings: NightSettings, ledger: Ledger, now: str, run: str = "none"
) -> JudgementContext:
    """Return the context for judging records now: people's reviews, and the policy with the rules in force."""
    head = store.profiles(settings.profile, tenant=settings.tenant).head()
    profile = head.profile if head else None
    reviews = RecordReviews.of(store, settings).standing(
        lambda id: ledger.record(id, JudgementContext(now=now)), people_for(profile)
    )
    policy = settings.admission.under(profile)
    return JudgementContext(now=now, policy=policy, reviews=reviews, counter=line_counter(), run=run)


def _after_rejections(bodies: Sequence[Body]) -> int:
    """Return the index of the first verdict after the newest rejection."""
    return max((at + 1 for at, body in enumerate(bodies) if body.get("verdict") == "reject"), default=0)


def _review(bodies: list[Body]) -> Review:
    newest = bodies[-1]
    state = "approved" if newest["verdict"] == "approve" else "rejected"
    who = tuple(body["who"] for body in bodies)
    return Review.model_validate({"state": state, "who": who, "when": newest["when"], "note": _note_of(newest)})


def _edit(body: Body, text: str) -> Review:
    return Review(state="awaiting", who=(body["who"],), when=body["when"], note=_note_of(body), text=text)
