"""The records of a ledger: what supersedes what, what is held, what counts, what stays the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ctxsteward.envelope import Store
from ctxsteward.envelope.testing import CharTokenizer
from ctxsteward.envelope.tokens.tokenizer import Counter
from ctxsteward.schemas import InputError, StoreError
from ctxsteward.schemas.publish import validate
from ctxsteward.schemas.recommendation import MetaRecommendation, Review
from ctxsteward.steward import Ledger
from ctxsteward.steward.admission import AdmissionPolicy
from ctxsteward.steward.ledger.records import JudgementContext

from ..scenes import AGENT, TENANT, artifact, memory_store

NOW = "2026-11-22T00:00:00Z"
HOME = ("user", "home", "one")
LENGTH = {"slot": ("user", "answer_length", "many"), "value": "short", "polarity": "positive"}
EMOJI = ("user", "emoji", "many")


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as opened:
        yield opened


@pytest.fixture
def ledger(store: Store) -> Iterator[Ledger]:
    with Ledger.open(":memory:", store, TENANT, AGENT) as opened:
        yield opened


def by_text(ledger: Ledger, **judged_by: object) -> dict[str, MetaRecommendation]:
    return {record.text: record for record in ledger.records(JudgementContext(now=NOW, **judged_by))}  # type: ignore[arg-type]


def said(store: Store, ledger: Ledger, session: str, text: str, **fields: object) -> None:
    """Three people say it, each in a session of their own; or the one who is named."""
    people = (fields.pop("principal"),) if "principal" in fields else ("ann", "bob", "cem")
    for who in people:
        ledger.absorb(artifact(store, f"{session}-{who}", [text], principal=who, **fields))  # type: ignore[arg-type]


def test_every_record_fits_the_published_schema(store: Store, ledger: Ledger) -> None:
    said(store, ledger, "s1", "I live in Ghent now.", slot=HOME, value="Ghent", ts="2026-01-01T09:00:00Z")
    said(store, ledger, "s2", "Use metric units.")
    records = ledger.records(JudgementContext(now=NOW))
    assert {record.text for record in records} == {"I live in Ghent now.", "Use metric units."}
    for record in records:
        validate("meta_recommendation", record.model_dump(mode="json"))


PARAPHRASES = {
    "Quote prices with tax.": (
        "Please quote all prices including tax.",
        "Tax belongs in every price you quote.",
        "Any price should have the tax in it.",
        "I want the tax in the price.",
        "Prices have to show tax.",
        "Put tax into whatever price you name.",
    ),
    "Keep your answers short.": (
        "Please be brief when you answer.",
        "Short replies only.",
        "An answer should be a short one.",
        "I like answers that are short.",
        "Answer in a few words.",
        "Don't answer at such length.",
    ),
    "Use metric units in every answer.": (
        "Metric units, please.",
        "Give me units that are metric.",
        "Units should be metric.",
        "Everything in metric, always.",
        "Never anything but metric units.",
        "Whatever you measure, take metric units.",
    ),
}
"""What a prompt had shown, and how people say it again."""


class TestRivals:
    def test_the_newer_value_supersedes_the_older_and_the_chain_is_kept_both_ways(
        self, store: Store, ledger: Ledger
    ) -> None:
        for month, home in ((3, "Bonn"), (1, "Ghent"), (7, "Lille")):
            ts = f"2026-{month:02d}-01T09:00:00Z"
            said(store, ledger, f"s{month}", f"I live in {home} now.", slot=HOME, value=home, ts=ts)
        found = by_text(ledger)
        ghent, bonn, lille = (found[f"I live in {home} now."] for home in ("Ghent", "Bonn", "Lille"))
        assert [one.status for one in (ghent, bonn, lille)] == ["superseded", "superseded", "active"]
        assert (ghent.superseded_by, bonn.superseded_by, lille.superseded_by) == (bonn.id, lille.id, None)
        assert (ghent.supersedes, bonn.supersedes, lille.supersedes) == ((), (ghent.id,), (bonn.id,))
        assert ghent.validity.valid_to == bonn.validity.valid_from == "2026-03-01T09:00:00Z"

    def test_saying_the_old_value_again_makes_it_the_newest(self, store: Store, ledger: Ledger) -> None:
        for month, home in ((1, "Ghent"), (3, "Bonn"), (5, "Ghent")):
            ts = f"2026-{month:02d}-01T09:00:00Z"
            said(store, ledger, f"s{month}", f"I live in {home} now.", slot=HOME, value=home, ts=ts)
        found = by_text(ledger)
        assert found["I live in Bonn now."].superseded_by == found["I live in Ghent now."].id

    def test_within_a_session_the_later_message_is_newer(self, store: Store, ledger: Ledger) -> None:
        for who in ("ann", "bob", "cem"):
            texts = ("I live in Ghent now.", "I live in Bonn now.")
            ledger.absorb(artifact(store, who, texts, principal=who, slot=HOME))
        assert by_text(ledger)["I live in Ghent now."].status == "superseded"

    def test_a_candidate_supersedes_nothing(self, store: Store, ledger: Ledger) -> None:
        for who in ("ann", "bob", "cem"):
            said(
                store,
                ledger,
                f"s-{who}",
                "The refund limit is 5,000 euros.",
                principal=who,
                slot=("agent", "refund_limit", "one"),
                value=5000,
                unit="euros",
                ts="2026-01-01",
            )
        for number in range(50):
            said(
                store,
                ledger,
                f"p{number}",
                "The refund limit is 9,000 euros.",
                principal="mallory",
                slot=("agent", "refund_limit", "one"),
                value=9000,
                unit="euros",
                ts="2026-02-01",
            )
        shared = list(ledger.records(JudgementContext(now=NOW)))
        assert [(record.value, record.status) for record in shared] == [(5000, "active")]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Please use emojis in answers.", "Never use emojis in answers."),
            ("回答里请用表情符号。", "回答里不要用表情符号。"),
        ],
    )
    def test_opposites_are_both_held(self, store: Store, ledger: Ledger, one: str, other: str) -> None:
        said(store, ledger, "s1", one, ts="2026-01-01", slot=EMOJI)
        said(store, ledger, "s2", other, ts="2026-02-01", slot=EMOJI)
        found = by_text(ledger)
        assert {record.status for record in found.values()} == {"candidate"}
        assert all("conflict" in record.reasons for record in found.values())
        assert found[one].conflicts == (found[other].id,)
        assert found[other].conflicts == (found[one].id,)
        assert found[one].support.contradicts == 3

    def test_one_voice_does_not_hold_up_what_others_agree_on(self, store: Store, ledger: Ledger) -> None:
        said(store, ledger, "s", "Please use emojis in answers.", slot=EMOJI)
        said(store, ledger, "p", "Never use emojis in answers.", principal="mallory", slot=EMOJI)
        found = by_text(ledger)
        assert found["Please use emojis in answers."].status == "active"
        assert "Never use emojis in answers." not in found


class TestSupport:
    def test_repeating_oneself_counts_once(self, store: Store, ledger: Ledger) -> None:
        for number in range(30):
            said(store, ledger, f"s{number}", "Quote prices with tax.", principal="ann")
        said(store, ledger, "other", "Quote prices with tax.", principal="bob")
        (found,) = ledger.records(JudgementContext(now=NOW))
        assert (found.support.events, found.support.principals, found.status) == (31, 2, "candidate")

    def test_speakers_that_nobody_knows_count_as_one(self, store: Store, ledger: Ledger) -> None:
        for number in range(40):
            name = f"anonymous-{number}"
            said(store, ledger, name, "Quote prices with tax.", principal=None)
        assert all(one.status != "active" for one in ledger.records(JudgementContext(now=NOW)))

    def test_a_wide_record_in_force_takes_the_place_of_its_authors_own(self, store: Store, ledger: Ledger) -> None:
        said(store, ledger, "s", "Quote prices with tax.")
        (record,) = ledger.records(JudgementContext(now=NOW))
        assert (record.scope.is_shared, record.status, record.reasons) == (True, "active", ("independent_principals",))
        assert {one.principal for one in record.evidence} == {"ann", "bob", "cem"}

    def test_a_session_that_was_shown_a_record_lends_it_nothing(self, store: Store, ledger: Ledger) -> None:
        said(store, ledger, "s", "Quote prices with tax.")
        (record,) = ledger.records(JudgementContext(now=NOW))
        for number in range(5):
            said(
                store,
                ledger,
                f"echo{number}",
                "Quote all prices with tax.",
                principal=f"e{number}",
                shown=frozenset((record.id,)),
            )
        (again,) = ledger.records(JudgementContext(now=NOW))
        assert again == record

    @pytest.mark.parametrize("shown_line", PARAPHRASES)
    def test_nor_does_it_make_a_record_of_the_same_in_other_words(
        self, store: Store, ledger: Ledger, shown_line: str
    ) -> None:
        """People who repeat in their own words what their prompt had told them."""
        said(store, ledger, "s", shown_line)
        (record,) = ledger.records(JudgementContext(now=NOW))
        for night in range(3):
            for number, text in enumerate(PARAPHRASES[shown_line]):
                name = f"echo-{night}-{number}"
                said(store, ledger, name, text, principal=None, shown=frozenset((record.id,)))
        wide = list(ledger.records(JudgementContext(now=NOW)))
        assert [one.text for one in wide if one.status == "active"] == [shown_line]

    def test_what_is_said_of_something_else_is_an_independent_voice(self, store: Store, ledger: Ledger) -> None:
        said(store, ledger, "s", "Quote prices with tax.")
        (record,) = ledger.records(JudgementContext(now=NOW))
        for number in range(3):
            said(
                store,
                ledger,
                f"t{number}",
                "Never use emojis.",
                principal=("dee", "eve", "fay")[number],
                shown=frozenset((record.id,)),
            )
        wide = list(ledger.records(JudgementContext(now=NOW)))
        assert {one.text: one.status for one in wide} == {
            "Quote prices with tax.": "active",
            "Never use emojis.": "active",
        }

    def test_evidence_is_of_many_people_and_at_most_eight(self, store: Store, ledger: Ledger) -> None:
        for number in range(40):
            who = "ann" if number < 30 else f"u{number}"
            said(store, ledger, f"s{number}", "Quote prices with tax.", principal=who)
        shared = next(iter(ledger.records(JudgementContext(now=NOW))))
        assert len(shared.evidence) == len({one.principal for one in shared.evidence}) == 8
        assert shared.support.events == 40
        assert shared.confidence.lower95 == pytest.approx(0.741, abs=0.001)

    def test_trust_is_the_least_of_the_evidence(self, store: Store, ledger: Ledger) -> None:
        said(store, ledger, "s1", "The eval tone failed.", kind="eval_failure", trust="assistant", role="assistant")
        (record,) = ledger.records(JudgementContext(now=NOW))
        assert (record.trust, record.status, record.reasons) == ("assistant", "candidate", ("not_said_by_a_person",))


class TestIds:
    def test_more_evidence_keeps_the_id(self, store: Store, ledger: Ledger) -> None:
        said(store, ledger, "s1", "Keep your answers short.", ts="2026-01-01", **LENGTH)
        (first,) = ledger.records(JudgementContext(now=NOW))
        for number, text in enumerate(("Short answers, please.", "Please answer briefly.", "Keep answers brief.")):
            said(store, ledger, f"t{number}", text, ts=f"2026-02-0{number + 1}", **LENGTH)
        (again,) = ledger.records(JudgementContext(now=NOW))
        assert (again.id, again.support.events) == (first.id, 12)

    def test_two_tenants_have_two_ids(self, store: Store, ledger: Ledger) -> None:
        said(store, ledger, "s1", "Keep your answers short.")
        with Ledger.open(":memory:", store, "globex", AGENT) as other:
            other.absorb(artifact(store, "s1", ["Keep your answers short."]))
            assert {one.id for one in other.records()}.isdisjoint(one.id for one in ledger.records())


class TestQuarantine:
    @pytest.mark.parametrize(
        ("text", "fields", "where"),
        [
            ("short", {}, "$.text"),
            ("x" * 281, {}, "$.text"),
            ("Two\nlines of it.", {}, "$.text"),
            ("Keep it short.", {"ts": "yesterday"}, "ISO 8601"),
            ("Keep it short.", {"trigger": ""}, "$.trigger"),
            ("Keep it short.", {"value": "v" * 200}, "$.value"),
            ("Keep it short.", {"score": 1.5}, "$.confidence.score"),
        ],
    )
    def test_what_fits_no_record_is_quarantined_with_its_reason(
        self, store: Store, ledger: Ledger, text: str, fields: dict[str, object], where: str
    ) -> None:
        said(store, ledger, "s1", text, **fields)
        said(store, ledger, "s2", "I prefer aisle seats on planes.")
        assert [record.text for record in ledger.records(JudgementContext(now=NOW))] == [
            "I prefer aisle seats on planes."
        ]
        (flaw,) = ledger.flawed().values()
        assert where in flaw


class TestReviews:
    def test_only_a_person_lifts_a_persona_change(self, store: Store, ledger: Ledger) -> None:
        for who in ("ann", "bob", "cem", "dee"):
            said(store, ledger, f"s-{who}", "Speak like a pirate.", principal=who, kind="persona")
        (record,) = ledger.records(JudgementContext(now=NOW))
        assert (record.status, record.reasons) == ("vetted", ("needs_person",))
        review = Review(state="approved", who=("ada",), when=NOW)
        (lifted,) = ledger.records(JudgementContext(now=NOW, reviews={record.id: review}))
        assert (lifted.status, lifted.reasons, lifted.review) == ("active", ("approved",), review)
        assert lifted.trust == "user"

    def test_an_approval_without_a_name_lifts_nothing(self, store: Store, ledger: Ledger) -> None:
        said(store, ledger, "s1", "Speak like a pirate.", kind="persona")
        (record,) = ledger.records(JudgementContext(now=NOW))
        (again,) = ledger.records(JudgementContext(now=NOW, reviews={record.id: Review(state="approved")}))
        assert again.status == "vetted"

    def test_a_rejected_record_stays_rejected_under_another_wording(self, store: Store, ledger: Ledger) -> None:
        said(store, ledger, "s1", "Keep your answers short.", ts="2026-01-02", **LENGTH)
        (record,) = ledger.records(JudgementContext(now=NOW))
        said(store, ledger, "s0", "Short answers, please.", ts="2026-01-01", **LENGTH)
        review = Review(state="rejected", who=("ada",))
        (again,) = ledger.records(JudgementContext(now=NOW, reviews={record.id: review}))
        assert (again.id != record.id, again.status) == (True, "rejected")

    def test_approved_gives_way_only_to_approved(self, store: Store, ledger: Ledger) -> None:
        said(store, ledger, "s1", "I live in Ghent now.", slot=HOME, value="Ghent", ts="2026-01-01")
        said(store, ledger, "s2", "I live in Bonn now.", slot=HOME, value="Bonn", ts="2026-02-01")
        old = by_text(ledger)["I live in Ghent now."]
        found = by_text(ledger, reviews={old.id: Review(state="approved", who=("ada",))})
        assert [one.status for one in (found[old.text], found["I live in Bonn now."])] == ["active", "superseded"]


def test_tokens_are_those_of_the_line(store: Store, ledger: Ledger) -> None:
    said(store, ledger, "s1", "Keep your answers short.")
    (record,) = ledger.records(JudgementContext(now=NOW, counter=Counter(CharTokenizer())))
    assert record.tokens == len(f"  {record.id}: Keep your answers short. [s1-ann§1]\n")


def test_records_fade_and_expire(store: Store, ledger: Ledger) -> None:
    said(store, ledger, "s1", "Keep your answers short.", ts="2026-01-01T00:00:00Z")
    policy = AdmissionPolicy(half_life_days={"preference": 30})
    statuses = [
        next(iter(ledger.records(JudgementContext(now=now, policy=policy)))).status
        for now in ("2026-01-15T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-03T00:00:00Z")
    ]
    assert statuses == ["active", "active", "expired"]


def test_one_record_is_found_by_any_of_its_ids(store: Store, ledger: Ledger) -> None:
    said(store, ledger, "s1", "Keep your answers short.", ts="2026-01-02", **LENGTH)
    (first,) = ledger.records(JudgementContext(now=NOW))
    said(store, ledger, "s0", "Short answers, please.", ts="2026-01-01", **LENGTH)
    (again,) = ledger.records(JudgementContext(now=NOW))
    assert ledger.record(first.id, JudgementContext(now=NOW)) == again
    assert ledger.record("0000000000000000") is None


def test_a_file_of_something_else_is_refused(store: Store, tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path, store, TENANT, AGENT) as ledger:
        said(store, ledger, "s1", "Keep your answers short.")
    with pytest.raises(StoreError, match="not of tenant 'acme', agent 'sales'"):
        Ledger.open(path, store, TENANT, "sales")
    (tmp_path / "notes.txt").write_text(json.dumps({"not": "a database"}) * 100)
    with pytest.raises(StoreError):
        Ledger.open(tmp_path / "notes.txt", store, TENANT, AGENT)
    assert store.erasers == []


def test_nothing_named_is_nothing_withdrawn(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="name a session"):
        ledger.withdraw()


def test_counting_comes_to_what_writing_out_comes_to(store: Store, ledger: Ledger) -> None:
    said(store, ledger, "s1", "I live in Ghent now.", slot=HOME, value="Ghent", ts="2026-01-01")
    said(store, ledger, "s2", "I live in Bonn now.", slot=HOME, value="Bonn", ts="2026-02-01")
    said(store, ledger, "s3", "Please use emojis in answers.", ts="2026-03-01")
    said(store, ledger, "s4", "Never use emojis in answers.", ts="2026-03-02")
    said(store, ledger, "s5", "Send me the bill by post.", ts="2026-03-03", strength="broad")
    said(store, ledger, "s6", "Speak like a pirate.", kind="persona", ts="2026-03-03")
    said(store, ledger, "w", "Quote prices with tax.", ts="2026-10-01")
    persona = by_text(ledger)["Speak like a pirate."]
    digests = set()
    for approvals in ({}, {persona.id: Review(state="approved", who=("ada",))}):
        for now in ("2026-03-04T00:00:00Z", "2027-06-01T00:00:00Z", "2040-01-01T00:00:00Z"):
            records = list(ledger.records(JudgementContext(now=now, reviews=approvals)))
            judged = ledger.judged(JudgementContext(now=now, reviews=approvals))
            assert dict(judged.statuses) == {
                status: sum(one.status == status for one in records) for status in {one.status for one in records}
            }
            assert list(judged.active) == [one for one in records if one.status == "active"]
            digests.add(judged.digest)
    assert len(digests) == 6
