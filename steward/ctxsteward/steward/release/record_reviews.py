"""What people said of single records: signed verdicts in a chain of their own, the newest of each record counts.

    steward/<tenant>/<profile>/verdicts/   chain of
      {"kind": "record", "record", "says", "verdict": "approve" | "reject", "who", "when", "note", "signature"}
      {"kind": "record", "verdict": "reject", …, "names": [id], "stood_on": [kind of evidence]}
      {"kind": "edit", "record", "says", "text": {"blob", "key"}, "supports": [{"blob", "key"}], "who", "when", "note",
       "signature"}

An approval is of a wording: `says` is an HMAC of kind, scope, slot, text and value, so that it does not hold for
whatever the record comes to say later. A rejection holds for the record's id and all `names` of its claim; the kinds of
evidence that it `stood_on` tell whether there is anything new to ask about. Neither expires; both end with a newer
verdict, or when the person who gave it is no reviewer any more.

An edit gives a record other words, which keep its sources. Whoever wrote them is their author: somebody else approves
them, and until then the record waits. They end with a rejection or the next edit. They lie in the vault with what
stands behind the record, and go with it. No word of the record is in the chain.

Earlier versions also wrote ``{"kind": "later", …}``, which put a question off for a day; it decides nothing.

How many must approve (`Needed`): one; two different people where the record contradicts a locked entry of the profile
in force, because no slice would ask about that entry. A person who said what the record claims is its author and never
counts; a template has no author. An approved record is active and may enter the slice (`admission`, `slice`); the
version in which it first speaks in the operator's name needs people of its own (`approvals`).

Raises `ActionRefused`, `InputError` (words that no record can have), and what `Chain` and `Vault` raise.
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
"""How many must approve a record."""
Find = Callable[[str], MetaRecommendation | None]
"""A record as it is now, by an id that it has or once had."""

WHOLE_BODY = 2
"""Version of bodies that are signed whole."""
MAX_NOTE_CHARS = 500


class RecordRejection(NamedTuple):
    """Somebody refused a record."""

    who: str
    when: str
    note: str
    stood_on: tuple[EvidenceKind, ...] | None
    """The kinds of evidence that it had then; None: nobody noted them."""


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
        """Approve or reject a record, by a token or another signer; `who` is who they claim to be.

        A rejection remembers `names` and `stood_on`, where they are told.
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
        """Raise `ActionRefused` where what a record says is this person's own."""
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
        """Give a record that waits other words, which are its editor's; it keeps its sources.

        `support`: who stands behind it, for whoever forgets.
        """
        name, signer = self.reviewer(by, who)
        edited, note = with_words(record, text), checked_note(note)
        line = MetaRecord(id=record.id, text=edited.text, sources=pointers_of(record))
        try:
            words = self._shelf.keep_record(line, frozenset())
            supports = () if support is None else (keep_support(self._vault, self.profile, line, support),)
        except Erased as error:
            raise InputError(f"record {record.id}: what it rests on was forgotten; write other words") from error
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
        """The address of what a record says, and to whom."""
        said = record.model_dump(mode="json", include={"kind", "scope", "slot", "text", "value", "unit", "polarity"})
        return address_of(self._key, self.folder, "says", canonical(said))

    def standing(self, find: Find, needed: Needed = lambda record: 1) -> dict[str, Review]:
        """The reviews that count now, by the id that was reviewed; rejections by each name of the claim."""
        found: dict[str, Review | None] = {}
        for names, bodies in self._decisions():
            if bodies[-1].get("verdict") == "reject":
                found |= dict.fromkeys(names, _review(bodies[-1:]))
                continue
            latest = bodies[_after_rejections(bodies) :]
            for id in dict.fromkeys(body["record"] for body in latest):
                found[id] = self._review([body for body in latest if body["record"] == id], find, needed)
        return {id: review for id, review in found.items() if review is not None}

    def approvers(self, record: MetaRecommendation) -> tuple[str, ...]:
        """Who approves what a record says now."""
        review = self.standing(lambda id: record if id == record.id else None).get(record.id)
        return review.who if review is not None and review.state == "approved" else ()

    def rejections(self) -> dict[str, RecordRejection]:
        """The newest rejection of each record, by every name of its claim, whatever was said since."""
        found: dict[str, RecordRejection] = {}
        for names, bodies in self._decisions():
            for body in bodies:
                if body.get("verdict") == "reject":
                    stood_on = tuple(body["stood_on"]) if "stood_on" in body else None
                    refused = RecordRejection(body["who"], body["when"], body["note"], stood_on)
                    found |= dict.fromkeys(names, refused)
        return found

    def _decisions(self) -> Iterator[tuple[list[str], list[Body]]]:
        """Claim by claim its names, and what reviewers decided of it, the oldest first."""
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
        """What approvals and edits of one record come to; None: nothing, or too few agree yet."""
        record = find(bodies[0]["record"])
        if record is None:
            return None
        edit, text = self._words(bodies)
        record = record if text is None else record.model_copy(update={"text": text})
        says, said_it = self.says(record), authors(record)
        said_it |= frozenset() if edit is None else {skeleton(edit["who"])}
        agreed = {
            skeleton(body["who"]): body
            for body in bodies
            if body["kind"] == "record" and body["says"] == says and skeleton(body["who"]) not in said_it
        }
        if len(agreed) >= max(1, needed(record)):
            return _review(list(agreed.values())).model_copy(update={"text": text})
        return _edit(edit, text) if edit is not None and text is not None else None

    def _words(self, bodies: Sequence[Body]) -> tuple[Body | None, str | None]:
        """The newest edit and its words; nothing where there is none, or where they were forgotten."""
        for body in reversed(bodies):
            if body["kind"] == "edit":
                kept = self._shelf.record(RecordRef(**body["text"]))
                return (None, None) if kept is None else (body, kept.text)
        return None, None

    def _editor(self, record: MetaRecommendation) -> str | None:
        """Whose words a record has, as a skeleton of their name; None: they are its own."""
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
    """A record that waits, in other words; raises `InputError` where it can have none, or not these."""
    words = " ".join(text.split())
    if record.status not in WAITING:
        raise InputError(f"record {record.id} is {record.status}; only what waits can be given other words")
    if words == record.text:
        raise InputError(f"record {record.id} has these words already; approve it, or write others")
    try:
        edited = MetaRecommendation.model_validate(record.model_dump() | {"text": words})
    except ValidationError as error:
        what = error.errors(include_url=False)[0]["msg"]
        raise InputError(f"--text {words[:80]!r}: {what}; write one line of 8 to 280 characters") from error
    plain = Redactor()(words)
    if plain.found and plain.text != record.text:
        raise InputError(f"--text {plain.text[:80]!r}: it holds what nobody should be shown; leave that out")
    return edited


def checked_note(note: str) -> str:
    """A note in one line; raises `InputError` where it is too long to stand with a record."""
    words = " ".join(note.split())
    if len(words) > MAX_NOTE_CHARS:
        raise InputError(f"a note of {len(words):,} characters; write at most {MAX_NOTE_CHARS}")
    return words


def _note_of(body: Body) -> str | None:
    """The note of a body, whoever wrote it: an earlier program took any."""
    return " ".join(body["note"].split())[:MAX_NOTE_CHARS] or None


def authors(record: MetaRecommendation) -> frozenset[str]:
    """Skeletons of the names of those who said what a record claims; none, where its words are a template."""
    if KINDS[record.kind].is_template:  # who was there did not say its words
        return frozenset()
    said = (span for span in record.evidence if span.relation == "supports" and span.role == "user")
    return frozenset(skeleton(span.principal) for span in said if span.principal is not None)


def people_for(profile: ProfileDocument | None) -> Needed:
    """How many must approve a record under this profile: two where it plainly contradicts a locked line, else one."""
    locked = [rule for rule in rules_of(profile) if rule.locked]

    def needed(record: MetaRecommendation) -> int:
        return 2 if against(locked, record.text) is not None else 1

    return needed


def judgement_of(
    store: Store, settings: NightSettings, ledger: Ledger, now: str, run: str = "none"
) -> JudgementContext:
    """How records are judged at this time: by what people said of them, under the policy and the profile in force."""
    head = store.profiles(settings.profile, tenant=settings.tenant).head()
    profile = head.profile if head else None
    reviews = RecordReviews.of(store, settings).standing(
        lambda id: ledger.record(id, JudgementContext(now=now)), people_for(profile)
    )
    policy = settings.admission.under(profile)
    return JudgementContext(now=now, policy=policy, reviews=reviews, counter=line_counter(), run=run)


def _after_rejections(bodies: Sequence[Body]) -> int:
    """Where what was decided after the newest rejection begins."""
    return max((at + 1 for at, body in enumerate(bodies) if body.get("verdict") == "reject"), default=0)


def _review(bodies: list[Body]) -> Review:
    newest = bodies[-1]
    state = "approved" if newest["verdict"] == "approve" else "rejected"
    who = tuple(body["who"] for body in bodies)
    return Review.model_validate({"state": state, "who": who, "when": newest["when"], "note": _note_of(newest)})


def _edit(body: Body, text: str) -> Review:
    return Review(state="awaiting", who=(body["who"],), when=body["when"], note=_note_of(body), text=text)
