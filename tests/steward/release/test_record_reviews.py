"""Verdicts on single records: signed, of one wording, the newest of somebody who may still give them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.envelope.store import Store, open_store
from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import UnsupportedVersion
from ctxsteward.schemas.profile import ProfileDocument, ProfileEntry
from ctxsteward.schemas.recommendation import MetaRecommendation, Review, Scope
from ctxsteward.steward.erasure import RecordSupport, StewardRecords
from ctxsteward.steward.release.actors import ActionRefused, Actor, Actors
from ctxsteward.steward.release.record_reviews import RecordRejection, RecordReviews, people_for
from ctxsteward.store.journal.erasures import ErasureRequest

from ..scenes import recommendation
from .people import LATER, SALT, TOKENS, actors, signer

WHEN = "2026-11-22T04:00:00+00:00"
PROFILE = "support"


def record(text: str = "Prices are in euro.", **more: object) -> MetaRecommendation:
    scope = {"tenant": "default", "agent": PROFILE}
    return recommendation("r1", text, kind="correction", scope=scope, status="candidate").model_copy(update=more)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"file:{tmp_path}") as opened:
        yield opened


def reviews(store: Store, people: Actors | None = None, **more: str) -> RecordReviews:
    return RecordReviews(store, more.get("profile", PROFILE), actors=people or actors())


def standing(store: Store, now: MetaRecommendation, people: Actors | None = None) -> dict[str, Review]:
    return reviews(store, people).standing({"r1": now}.get)


def test_an_approval_is_of_one_wording(store: Store) -> None:
    said = reviews(store).answer(record(), "approve", TOKENS["ada"], when=WHEN, who="ada", note="seen")
    assert (said.state, said.who, said.note) == ("approved", ("ada",), "seen")
    assert standing(store, record()) == {"r1": said}
    assert standing(store, record(status="active", revision=4)) == {"r1": said}, (
        "how far it has come is not what it says"
    )
    wider = Scope(tenant="default", agent=PROFILE, project="p")
    for other in (record("Prices are in dollars."), record(scope=wider), record(value="euro")):
        assert standing(store, other) == {}


def test_a_rejection_is_of_whatever_the_record_says(store: Store) -> None:
    reviews(store).answer(record(), "reject", TOKENS["ada"], when=WHEN)
    assert standing(store, record("Prices are in dollars."))["r1"].state == "rejected"


def test_the_newest_verdict_counts(store: Store) -> None:
    for who, verdict in (("ada", "approve"), ("ben", "reject"), ("cleo", "approve")):
        reviews(store).answer(record(), verdict, TOKENS[who], when=WHEN)  # type: ignore[arg-type]
    assert standing(store, record())["r1"].who == ("cleo",)


LOCKED = ProfileDocument(
    policies=(ProfileEntry(id="privacy", text="Never reveal personal data of one customer to another.", locked=True),)
)
GAINSAYS = "Reveal personal data of one customer to another."


class Tier(NamedTuple):
    id: str
    record: MetaRecommendation
    people: int
    profile: ProfileDocument | None = LOCKED


TIERS = (
    Tier("a correction", record(kind="correction"), 1),
    Tier("a rule", record("Answer in two sentences.", kind="policy"), 1),
    Tier("a trait of the persona", record("Be more cheerful.", kind="persona"), 1),
    Tier("gainsays a lock", record(GAINSAYS), 2),
    Tier("gainsays a lock, for one person", record(GAINSAYS, scope=Scope(tenant="t", agent=PROFILE, user="u")), 2),
    Tier("gainsays a lock, a rule", record(GAINSAYS, kind="policy"), 2),
    Tier("nothing is locked", record(GAINSAYS), 1, ProfileDocument()),
    Tier("nothing is in force", record(GAINSAYS), 1, None),
)


@pytest.mark.parametrize("tier", TIERS, ids=lambda tier: tier.id)
def test_as_many_people_approve_a_record_as_it_needs(tier: Tier, store: Store) -> None:
    needed = people_for(tier.profile)

    def approved() -> bool:
        return "r1" in reviews(store).standing({"r1": tier.record}.get, needed)

    assert needed(tier.record) == tier.people
    for name in ("ada", "ada", "ben")[: tier.people + 1 if tier.people > 1 else 1]:
        assert not approved()
        reviews(store).answer(tier.record, "approve", TOKENS[name], when=WHEN)
    assert approved()
    assert reviews(store).approvers(tier.record) == ("ada", "ben")[: tier.people]


def test_a_rejection_ends_the_approvals_before_it(store: Store) -> None:
    needed = people_for(LOCKED)
    for who, verdict in (("ada", "approve"), ("ben", "reject"), ("cleo", "approve")):
        reviews(store).answer(record(GAINSAYS), verdict, TOKENS[who], when=WHEN)  # type: ignore[arg-type]

    assert reviews(store).standing({"r1": record(GAINSAYS)}.get, needed) == {}
    reviews(store).answer(record(GAINSAYS), "approve", TOKENS["ada"], when=LATER)
    assert reviews(store).standing({"r1": record(GAINSAYS)}.get, needed)["r1"].who == ("cleo", "ada")


def test_whoever_said_it_does_not_approve_it(store: Store) -> None:
    mine = record().model_copy(update={"evidence": (record().evidence[0].model_copy(update={"principal": "ada"}),)})
    with pytest.raises(ActionRefused) as refused:
        reviews(store).answer(mine, "approve", TOKENS["ada"], when=WHEN)

    assert refused.value.reason == "author"
    assert reviews(store).answer(mine, "reject", TOKENS["ada"], when=WHEN).state == "rejected"
    assert reviews(store).answer(mine, "approve", TOKENS["ben"], when=WHEN).who == ("ben",)
    fix = mine.model_copy(update={"kind": "tool_fix"})
    assert reviews(store).answer(fix, "approve", TOKENS["ada"], when=WHEN).who == ("ada",), "a template, nobody said it"


def test_the_same_verdict_again_is_there_once(store: Store) -> None:
    for _ in range(3):
        reviews(store).answer(record(), "approve", TOKENS["ada"], when=WHEN)
    assert len(list(store.chain(reviews(store).folder, tenant="default").links())) == 1


def test_whoever_is_no_reviewer_any_more_does_not_count(store: Store) -> None:
    reviews(store).answer(record(), "approve", TOKENS["ada"], when=WHEN)
    demoted = Actors(salt=SALT, actors={"ada": Actor(roles=("operator",), key=signer("ada").key)})
    assert standing(store, record(), demoted) == {}
    rekeyed = Actors(salt=SALT, actors={"ada": Actor(roles=("reviewer",), key=signer("ben").key)})
    assert standing(store, record(), rekeyed) == {}


@pytest.mark.parametrize(
    ("who", "token", "reason"),
    [
        ("otto", "otto", "wrong_role"),
        ("ada", "ben", "wrong_token"),
        ("eve", "eve", "unknown_actor"),
        (None, "eve", "wrong_token"),
    ],
)
def test_who_may_not_is_refused(store: Store, who: str | None, token: str, reason: str) -> None:
    with pytest.raises(ActionRefused) as refused:
        reviews(store).answer(record(), "approve", TOKENS[token], when=WHEN, who=who)
    assert refused.value.reason == reason
    assert list(store.chain(reviews(store).folder, tenant="default").links()) == []


def test_a_verdict_serves_no_other_profile(store: Store) -> None:
    reviews(store).answer(record(), "approve", TOKENS["ada"], when=WHEN)
    assert reviews(store, profile="other").standing({"r1": record()}.get) == {}


def test_no_word_of_the_record_is_in_the_store(store: Store, tmp_path: Path) -> None:
    reviews(store).answer(record("Prices are in euro."), "approve", TOKENS["ada"], when=WHEN)
    assert not any(b"euro" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


# -- other words --------------------------------------------------------------------------------------------------

WORDS = "Prices are in euro, tax included."


def edited(store: Store, who: str = "ada", text: str = WORDS, now: MetaRecommendation | None = None) -> Review:
    return reviews(store).edit(now or record(), text, TOKENS[who], when=WHEN, note="clearer")


def test_other_words_wait_for_somebody_else_and_are_approved_as_they_stand(store: Store) -> None:
    made = edited(store, text="  Prices are in euro,\n tax included. ")
    assert made == Review(state="awaiting", who=("ada",), when=WHEN, note="clearer", text=WORDS)
    assert standing(store, record()) == {"r1": made}

    with pytest.raises(ActionRefused) as refused:
        reviews(store).answer(record(WORDS), "approve", TOKENS["ada"], when=LATER)
    assert (refused.value.reason, "these words" in str(refused.value)) == ("author", True)
    reviews(store).answer(record(WORDS), "approve", TOKENS["ben"], when=LATER)
    assert standing(store, record()) == {"r1": Review(state="approved", who=("ben",), when=LATER, text=WORDS)}
    assert reviews(store).approvers(record(WORDS)) == ("ben",)


def test_an_approval_of_the_words_before_is_none_of_the_words_after(store: Store) -> None:
    reviews(store).answer(record(), "approve", TOKENS["ben"], when=WHEN)
    made = edited(store)
    assert standing(store, record()) == {"r1": made}
    reviews(store).answer(record(WORDS), "approve", TOKENS["ben"], when=LATER)
    again = edited(store, "cleo", "Prices are in euro with tax.", record(WORDS))
    assert standing(store, record()) == {"r1": again}
    reviews(store).answer(record("Prices are in euro with tax."), "approve", TOKENS["ada"], when=LATER)
    assert standing(store, record())["r1"].who == ("ada",), "whose words were replaced is no author of the new ones"


def test_a_rejection_ends_the_words_and_the_claim_has_its_own_again(store: Store) -> None:
    edited(store)
    reviews(store).answer(record(WORDS), "reject", TOKENS["ben"], when=LATER, note="we do not know")
    assert standing(store, record())["r1"] == Review(state="rejected", who=("ben",), when=LATER, note="we do not know")
    reviews(store).answer(record(), "approve", TOKENS["ada"], when=LATER)
    assert standing(store, record())["r1"] == Review(state="approved", who=("ada",), when=LATER)


def test_no_word_of_an_edit_is_in_the_chain_and_forgetting_takes_it(store: Store) -> None:
    now = record()
    vault = store.vault("default")
    support = RecordSupport(voices=(((vault.subject_address("s-1"),),),), least=1)
    reviews(store).edit(now, WORDS, TOKENS["ada"], when=WHEN, support=support)
    (body,) = (body for _, body in reviews(store).links())
    assert WORDS not in json.dumps(body)
    assert body["text"]["key"] == body["supports"][0]["key"]

    assert StewardRecords(store, "default").withdraw(ErasureRequest("a", WHEN, "b")) == 0
    vault.destroy_key("s-1", who="ada", when=WHEN, why="request 17")
    assert StewardRecords(store, "default").withdraw(ErasureRequest("a", WHEN, "b")) == 1
    assert standing(store, now) == {}, "it has its own words again"
    with pytest.raises(InputError, match="was forgotten; write other words"):
        reviews(store).edit(now, WORDS, TOKENS["ada"], when=LATER)


BAD_EDITS = {
    "too short": (record(), "No.", "'No.': String should have at least 8 characters"),
    "too long": (record(), "x" * 281, "String should have at most 280 characters"),
    "nothing": (record(), " \n ", "'': String should have at least 8"),
    "its own": (record(), record().text, "has these words already"),
    "a secret": (record(), "Write to ada@lovelace.org about prices.", "'Write to [redacted:email] about prices.'"),
    "in force": (record(status="active"), WORDS, "record r1 is active; only a record that waits"),
}


@pytest.mark.parametrize("case", BAD_EDITS)
def test_words_that_no_record_can_have_are_refused_and_nothing_is_kept(case: str, store: Store) -> None:
    now, text, says = BAD_EDITS[case]
    with pytest.raises(InputError) as refused:
        edited(store, text=text, now=now)
    assert says in str(refused.value)
    assert list(reviews(store).links()) == []


# -- what is remembered -------------------------------------------------------------------------------------------


def test_a_rejection_holds_under_every_name_of_the_claim_until_a_newer_verdict(store: Store) -> None:
    reviews(store).answer(
        record(), "reject", TOKENS["ada"], when=WHEN, note="not ours to say", names=("r1", "r2"), stood_on=("said",)
    )
    refused = RecordRejection("ada", WHEN, "not ours to say", ("said",))
    assert reviews(store).rejections() == {"r1": refused, "r2": refused}
    now = {"r2": record(id="r2")}
    assert {id: one.state for id, one in reviews(store).standing(now.get).items()} == {
        "r1": "rejected",
        "r2": "rejected",
    }

    reviews(store).answer(now["r2"], "approve", TOKENS["ben"], when=LATER)
    assert reviews(store).standing(now.get) == {"r2": Review(state="approved", who=("ben",), when=LATER)}
    assert reviews(store).rejections()["r2"] == refused, "what was said is remembered"


def test_decisions_of_several_people_at_once_are_all_there(store: Store, tmp_path: Path) -> None:
    def decide(at: int) -> None:
        with open_store(f"file:{tmp_path}") as own:
            name, one = ("ada", "ben", "cleo")[at % 3], record(id=f"r{at}")
            if at % 4 == 0:
                reviews(own).edit(one, f"{WORDS} {at}", TOKENS[name], when=WHEN)
            elif at % 4 == 1:  # as earlier versions put a question off
                log, later = reviews(own), {"kind": "later", "record": one.id, "night": "2026-11-21"}
                log.append(log.signed({"schema_version": 2, **later, "who": name, "when": WHEN}, signer(name)))
            else:
                reviews(own).answer(one, "approve" if at % 4 == 2 else "reject", TOKENS[name], when=WHEN)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(decide, range(12)))
    states = {id: one.state for id, one in reviews(store).standing(lambda id: record(id=id)).items()}
    assert states == {f"r{at}": ("awaiting", None, "approved", "rejected")[at % 4] for at in range(12) if at % 4 != 1}


def test_a_body_of_a_later_version_is_refused(store: Store) -> None:
    log = reviews(store)
    log.append({"schema_version": 3, "kind": "record", "record": "r1"})
    with pytest.raises(UnsupportedVersion):
        log.rejections()


def test_a_body_that_somebody_altered_counts_for_nothing(store: Store) -> None:
    log = reviews(store)
    said = {"kind": "record", "record": "r1", "says": log.says(record()), "verdict": "reject", "note": ""}
    told = {"schema_version": 2, **said, "who": "ada", "when": WHEN, "names": ["r1"], "stood_on": []}
    log.append(log.signed(told, signer("ada")) | {"names": ["r1", "r2"]})
    assert log.rejections() == {}


def test_a_note_that_fits_no_record_is_refused_and_one_that_was_kept_is_cut(store: Store) -> None:
    log = reviews(store)
    for note in ("x" * 501, f"{'x' * 250} {'y' * 250}"):
        with pytest.raises(InputError, match="a note of 501 characters; write at most 500"):
            log.answer(record(), "reject", TOKENS["ada"], when=WHEN, note=note)
    assert list(log.links()) == []
    said = {"kind": "record", "record": "r1", "says": log.says(record()), "verdict": "reject", "who": "ada"}
    log.append(log.signed({**said, "when": WHEN, "note": "two\nlines " + "x" * 600}, signer("ada")))
    assert standing(store, record())["r1"].note == ("two lines " + "x" * 600)[:500]
