"""Forgetting: what a session or a principal gave is gone from artifacts, index and records, and does not come back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from ctxsteward.envelope import Store, open_store
from ctxsteward.schemas import Erased, StoreError
from ctxsteward.steward import Ledger
from ctxsteward.steward.admission import AdmissionPolicy
from ctxsteward.steward.artifacts.artifact import Artifact, build_artifact, evidence_spans
from ctxsteward.steward.artifacts.storage import ArtifactStore
from ctxsteward.steward.ledger.database import LedgerDatabase
from ctxsteward.steward.ledger.records import JudgementContext
from ctxsteward.steward.observations.observation import MessageSpan
from ctxsteward.store.erasure.forget import forget
from ctxsteward.store.journal.erasures import ErasureRequest

from ...simulation.disk import SqliteDisk
from ..scenes import AGENT, EXTRACTOR, TENANT, artifact, claim, memory_store, replayed, said

TOLD = ErasureRequest("dpo", "2026-11-22", "request 7")
TOLD_ALONE = "eval_failure"
"""Of this kind one voice makes a record."""
SECRETS = ("The code word is marzipan-otter.", "My locker opens with quince-falcon.")


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as opened:
        yield opened


@pytest.mark.parametrize("seed", range(8))
def test_what_was_scrubbed_is_not_there_again_after_a_power_cut(tmp_path: Path, seed: int) -> None:
    is_dead = False
    disk = SqliteDisk(tmp_path, lambda what: "dead" if is_dead else "")
    try:
        database = LedgerDatabase(tmp_path / "ledger.sqlite", "a test")
        for statement in ("INSERT INTO about VALUES ('said', ?)", "DELETE FROM about WHERE value = ?"):
            with database.writing():
                database.run(statement, SECRETS[0])
        database.scrub()
        is_dead = True
        with suppress(StoreError):
            database.close()
        disk.cut_power(Random(seed))
    finally:
        disk.remove()
    assert [path.name for path in tmp_path.iterdir() if SECRETS[0].encode() in path.read_bytes()] == []


def two_people(store: Store, session: str = "s1") -> tuple[Artifact, ...]:
    """Ann and Bob talk; one claim rests on the words of both. All are eval failures, of which one makes a record."""
    ann = said("I prefer aisle seats on planes.", ordinal=1, principal="ann")
    bob = said("I never eat meat on planes.", ordinal=2, principal="bob")
    both = claim(
        ann,
        kind=TOLD_ALONE,
        text="Ann sits on the aisle, Bob agreed.",
        places=(MessageSpan("§1", 0, 8), MessageSpan("§2", 0, 7, "supports")),
    )
    talk = replayed(session, ann, bob, principal="ann")
    key = store.keys.address_key(TENANT)
    return build_artifact(
        talk, [claim(ann, kind=TOLD_ALONE), claim(bob, kind=TOLD_ALONE), both], extractor=EXTRACTOR, key=key
    )


def secrets(store: Store) -> list[Artifact]:
    return [artifact(store, f"s{at}", [text], kind=TOLD_ALONE) for at, text in enumerate(SECRETS, 1)]


def texts(ledger: Ledger) -> list[str]:
    return sorted(record.text for record in ledger.records())


def test_an_artifact_comes_back_as_it_was_put(store: Store) -> None:
    artifacts = ArtifactStore(store, TENANT)
    for one in (*two_people(store), artifact(store, "s2", ["我喜欢靠窗的座位。"], value=3, unit="件")):
        address = artifacts.put(one)
        assert artifacts.put(one) == address == artifacts.address(one)
        assert artifacts.get(address) == one


def test_words_of_several_people_lie_apart(store: Store) -> None:
    found = two_people(store)
    assert [one.principals for one in found] == [("ann",), ("ann", "bob"), ("bob",)]
    assert [len(one.observations) for one in found] == [1, 1, 1]


def test_a_transcript_without_claims_still_has_an_artifact(store: Store) -> None:
    key = store.keys.address_key(TENANT)
    (one,) = build_artifact(replayed("s1", said("hello there, friend")), [], extractor=EXTRACTOR, key=key)
    assert (one.observations, one.cited) == ((), ())


@pytest.mark.parametrize(
    "place",
    [
        MessageSpan("§9", 0, 3),
        MessageSpan("§1", 0, 99),
        MessageSpan("§1", 5, 5),
        MessageSpan("§1", 0, 1),
        MessageSpan("§1", -3, 2),
    ],
)
def test_a_citation_that_does_not_hold_is_refused_and_counted(store: Store, place: MessageSpan) -> None:
    utterance = said("我喜欢靠窗的座位。")
    key = store.keys.address_key(TENANT)
    (one,) = build_artifact(
        replayed("s1", utterance), [claim(utterance, places=(place,))], extractor=EXTRACTOR, key=key
    )
    assert (one.observations, one.refused) == ((), 1)


@pytest.mark.parametrize(("who", "left"), [("ann", 1), ("bob", 1)])
def test_forgetting_one_person_takes_all_that_rests_on_their_words(store: Store, who: str, left: int) -> None:
    artifacts = ArtifactStore(store, TENANT)
    addresses = [artifacts.put(one) for one in two_people(store)]
    with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        assert ledger.absorb_kept(addresses) == (3, 0)
        assert ledger.withdraw(session="s1", principal=who, told=TOLD) == 2
        assert len(texts(ledger)) == left
        readable = [one for one in map(artifacts.find, addresses) if one is not None]
        assert [who in one.principals for one in readable] == [False]
        ledger.absorb(*two_people(store))
        assert len(texts(ledger)) == left
    with Ledger.open(":memory:", store, TENANT, AGENT) as anew:
        assert anew.absorb_kept(addresses) == (1, 2)


def test_a_forgotten_session_leaves_no_byte(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}/store") as store:
        session = store.session("s1", tenant=TENANT)
        session.append({"role": "user", "content": SECRETS[0]}, principal="ann")
        artifacts = ArtifactStore(store, TENANT)
        kept = [
            artifact(store, "s1", [SECRETS[0]], kind=TOLD_ALONE),
            artifact(store, "s2", [SECRETS[1]], kind=TOLD_ALONE),
        ]
        with Ledger.open(tmp_path / "ledger.sqlite", store, TENANT, AGENT) as ledger:
            ledger.absorb_kept(artifacts.put(one) for one in kept)
            assert len(texts(ledger)) == 2
            done = forget(store, tenant=TENANT, session="s1", who="dpo", why="asked", when="2026-11-22")
            assert done.elsewhere == 1
            assert texts(ledger) == [SECRETS[1]]
            with pytest.raises(Erased):
                artifacts.put(kept[0])
        assert_no_byte(tmp_path, "marzipan")
    assert_no_byte(tmp_path, "marzipan")


def test_what_was_judged_of_forgotten_words_leaves_no_byte(tmp_path: Path) -> None:
    """A record for many is kept as it was written, until one it rests on is forgotten."""
    with (
        open_store(f"file:{tmp_path}/store") as store,
        Ledger.open(tmp_path / "ledger.sqlite", store, TENANT, AGENT) as ledger,
    ):
        for who in ("ann", "bob"):
            ledger.absorb(artifact(store, f"s-{who}", [SECRETS[0]], principal=who, reach="shared"))
        found = ledger.judged(JudgementContext(policy=AdmissionPolicy(independent_principals=2)))
        assert [record.text for record in found.active] == [SECRETS[0]]
        for who in ("ann", "bob"):
            ledger.withdraw(session=f"s-{who}", told=TOLD)
        assert ledger.judged(JudgementContext(policy=AdmissionPolicy(independent_principals=2))).active == ()
        assert_no_byte(tmp_path, "marzipan")
    assert_no_byte(tmp_path, "marzipan")


def assert_no_byte(folder: Path, word: str) -> None:
    found = [path for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]
    assert found == []


def test_nothing_in_the_store_is_plain(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}/store") as store:
        ArtifactStore(store, TENANT).put(artifact(store, "s1", [SECRETS[0]], kind=TOLD_ALONE))
    assert_no_byte(tmp_path / "store", "marzipan")


def test_what_was_forgotten_while_the_ledger_was_closed_leaves_it_when_it_opens(tmp_path: Path) -> None:
    with open_store(f"file:{tmp_path}/store") as store:
        session = store.session("s1", tenant=TENANT)
        session.append({"role": "user", "content": SECRETS[0]}, principal="ann")
        with Ledger.open(tmp_path / "ledger.sqlite", store, TENANT, AGENT) as ledger:
            ledger.absorb(
                artifact(store, "s1", [SECRETS[0]], kind=TOLD_ALONE),
                artifact(store, "s2", [SECRETS[1]], kind=TOLD_ALONE),
            )
        forget(store, tenant=TENANT, session="s1", principal="ann", who="dpo", why="asked", when="2026-11-22")
        with Ledger.open(tmp_path / "ledger.sqlite", store, TENANT, AGENT) as ledger:
            assert texts(ledger) == [SECRETS[1]]
            assert_no_byte(tmp_path, "marzipan")


def test_a_transcript_from_outside_is_forgotten_by_its_sessions_name(store: Store) -> None:
    artifacts = ArtifactStore(store, TENANT)
    address = artifacts.put(artifact(store, "runs/17.json", [SECRETS[0]], principal="task-17"))
    with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        ledger.absorb_kept([address])
        assert ledger.withdraw(session="runs/17.json", told=TOLD) == 1
        assert artifacts.find(address) is None
        assert ledger.absorb_kept([address]) == (0, 1)


def test_an_erasure_of_another_tenant_touches_nothing(store: Store) -> None:
    with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        ledger.absorb(artifact(store, "s1", [SECRETS[0]], kind=TOLD_ALONE))
        session = store.session("s1", tenant="globex")
        session.append({"role": "user", "content": "hello"})
        assert forget(store, tenant="globex", session="s1", who="d", why="w", when="2026-11-22").elsewhere == 0
        assert texts(ledger) == [SECRETS[0]]


class TestSpans:
    def test_every_span_is_verified_and_quoted(self, store: Store) -> None:
        artifacts = ArtifactStore(store, TENANT)
        with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
            ledger.absorb_kept(artifacts.put(one) for one in two_people(store))
            for record in ledger.records():
                assert ledger.broken(record.evidence) == ()
                assert all(quote.text for quote in ledger.why(record.id))
            both = next(record for record in ledger.records() if "agreed" in record.text)
            assert [quote.text for quote in ledger.why(both.id)] == ["I prefer", "I never"]

    @pytest.mark.parametrize(
        "forged",
        [{"span": (0, 7)}, {"span_address": "0" * 64}, {"trust": "operator"}, {"principal": "eve"}, {"ref": "§2"}],
        ids=lambda forged: next(iter(forged)),
    )
    def test_evidence_that_was_changed_is_broken(self, store: Store, forged: dict[str, object]) -> None:
        artifacts = ArtifactStore(store, TENANT)
        with Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
            ledger.absorb_kept(
                [artifacts.put(artifact(store, "s1", ["I prefer aisle seats on planes."], kind=TOLD_ALONE))]
            )
            (record,) = ledger.records()
            evidence = record.evidence[0].model_copy(update=forged)
            assert ledger.broken([evidence]) == (evidence,)

    def test_the_same_words_of_two_people_have_two_addresses(self, store: Store) -> None:
        key = store.keys.address_key(TENANT)
        told = [artifact(store, "s1", ["Quote prices with tax."], principal=who) for who in ("ann", "bob")]
        assert len({span.address for one in told for (span,) in evidence_spans(one, key)}) == 2


def test_a_rebuilt_index_is_the_same(store: Store, tmp_path: Path) -> None:
    artifacts = ArtifactStore(store, TENANT)
    addresses = [artifacts.put(artifact(store, f"s{n}", [f"Ship parcel {n} on day {n % 7}."])) for n in range(20)]
    with Ledger.open(tmp_path / "ledger.sqlite", store, TENANT, AGENT) as ledger:
        ledger.absorb_kept(addresses)
        before = ledger.digest()
    with Ledger.open(tmp_path / "anew.sqlite", store, TENANT, AGENT) as ledger:
        assert ledger.absorb_kept(reversed(addresses)) == (20, 0)
        assert ledger.digest() == before
