"""The cache suite: red where damage is served, a request goes unaudited, or nothing is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Profile, Session, Store
from ctxsteward.envelope.audit import audit
from ctxsteward.envelope.testing import FirstLine, memory_store
from ctxsteward.evals.phrasings import table, texts
from ctxsteward.evals.suites import cache
from ctxsteward.evals.suites.kit.suite import PlayCounts, Score, Setup, drawn
from ctxsteward.evals.suites.kit.talk import head, revised
from ctxsteward.evals.suites.log_faults import (
    FAULTS,
    PLANTED,
    DisturbedLog,
    Gone,
    LogFault,
    disturbed_copy,
    misses,
    opened_cold,
)
from ctxsteward.evals.suites.request_tampering import PROVIDERS, TAMPERINGS, TamperingScene
from ctxsteward.evals.suites.results import play_one
from ctxsteward.schemas.message import Wire

from .doubles import Short


def test_profiles_differ_and_the_splits_share_no_remark() -> None:
    made = [cache.make(draw) for draw in drawn("cache", "docs", 8)]
    assert len({str(one.profile) for one in made}) == 8
    remarks = table("cache")["remarks"]
    docs, ci = ({text for texts in remarks[split].values() for text in texts} for split in ("docs", "ci"))
    assert docs.isdisjoint(ci)


def test_a_product_that_breaks_off_over_damage_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise ValueError("no JSON")

    monkeypatch.setattr(cache, "opened_cold", broken)
    result = play_one(Short("cache", "docs", 1), Setup())
    assert result.error is None
    assert result.tallies["unhandled_cache_misses"].mean == 1
    assert result.tallies["recovered"].mean < 1


# -- a world to disturb -----------------------------------------------------------------------------------------


class Talked:
    """A session with everything: compactions, notes, two heads, selections."""

    def __init__(self) -> None:
        document = head(Random(3), "en")
        self.store: Store = memory_store()
        self.said: list[Wire] = []
        self.setup = Setup(budgets=Budgets(dynamic_tokens=700, recall_fraction=0.4, compact_at_fraction=0.9))
        self.session: Session = self.store.session("s", tenant="evals", profile=Profile.from_document(document))
        builder = self.setup.builder()
        for turn in range(30):
            self.say("user", f"question {turn} about valve {turn % 5}, " + "word " * 12)
            builder.build(self.session)
            self.say("assistant", f"answer {turn} " + "word " * 10)
            if turn in (3, 28):
                self.session.note("snapshot", f"step {turn}")
            if turn == 27:
                self.session.repin(Profile.from_document(revised(Random(4), document)))
        self.say("user", "and now, what about valve 2?")
        self.before: Envelope = builder.build(self.session)

    def say(self, role: str, text: str) -> None:
        self.said.append({"role": role, "content": text})
        self.session.append(self.said[-1])

    def disturbed(self, fault: LogFault, seed: int = 0) -> tuple[Gone | None, str, bool]:
        world = disturbed_copy(self.store, self.session.key)
        touched = fault.do(Random(seed), world)
        if touched is None:
            return None, "", False
        return touched, *opened_cold(world, self.before, self.said, self.setup, fault, touched)


@pytest.fixture(scope="module")
def talked() -> Talked:
    return Talked()


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_disturbs_something_and_is_dealt_with(name: str, talked: Talked) -> None:
    for seed in range(3):
        told = misses()
        touched, wrong, unhandled = talked.disturbed(FAULTS[name], seed)
        assert touched is not None
        assert (wrong, unhandled) == ("", False)
        if FAULTS[name].reasons and not touched:
            assert misses() != told


def test_an_envelope_that_differs_where_it_must_not_is_found(talked: Talked) -> None:
    for name, fault in FAULTS.items():
        if fault.outcome == "flagged" and name.startswith("an original in the window"):
            assert talked.disturbed(replace(fault, outcome="remade"))[1] != "", "something is gone"
    summaries = FAULTS["every summary is corrupted"]
    assert talked.disturbed(replace(summaries, outcome="same"))[1].startswith("the bytes differ")


def test_a_stale_copy_that_is_served_is_found(talked: Talked) -> None:
    """A journal whose records pass for right: written with the tenant's own key, another message's words."""

    def served(rng: Random, world: DisturbedLog) -> Gone:
        place = world.positions("message")[-3]
        record = world.rows[place]
        other = memory_store().session("s", tenant="evals")
        other.extend({"role": "user", "content": "x"} for _ in range(record.ordinal - 1))
        other.append({"role": "assistant", "content": PLANTED})
        world.journal.records[place] = other.journal.message(other.key, record.ordinal)
        return frozenset((record.ordinal,))

    _, wrong, unhandled = talked.disturbed(LogFault(do=served, outcome="flagged"))
    assert unhandled
    assert wrong == "text of an intruder is shown"


# -- requests that are not what was built -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def scene(talked: Talked) -> TamperingScene:
    def other(id: str, tenant: str) -> Envelope:
        session = talked.store.session(id, tenant=tenant)
        session.append({"role": "user", "content": "Something else entirely, in another place."})
        return talked.setup.builder().build(session)

    draft = talked.session.draft()
    draft.repin(Profile.from_document(head(Random(9), "en")))
    earlier = talked.session.fork(at=len(talked.said) - 2)
    return TamperingScene(
        expected=talked.before,
        earlier=talked.setup.builder().build(earlier),
        neighbour=other("t", "evals"),
        foreigner=other("s", "others"),
        other_head=talked.setup.builder().rebuild(draft),
        messages=talked.said,
        remarks=texts("cache", "remarks", "en", "docs"),
    )


@pytest.mark.parametrize("name", TAMPERINGS)
def test_every_tampering_changes_the_request_and_is_audited(name: str, scene: TamperingScene, talked: Talked) -> None:
    done = 0
    for seed in range(6):
        for provider in PROVIDERS:
            sent = TAMPERINGS[name](Random(f"{name} {seed}"), scene, provider)
            if sent is not None:
                done += 1
                assert audit(scene.expected, sent, keys=talked.store.keys), (provider, seed)
    assert done >= 6


# -- each figure can fail ---------------------------------------------------------------------------------------


def test_with_an_auditor_that_misses_what_is_wrong_and_cries_where_nothing_is_the_suite_is_red(
    scene: TamperingScene,
) -> None:
    alarm = audit(scene.expected, {"messages": []}, provider="openai-chat")
    assert alarm
    scores = list(played(auditor=lambda *sent, **how: () if audit(*sent, **how) else alarm))
    for metric in ("audit_misses", "false_alarms"):
        assert {score.value for score in scores if score.metric == metric} == {1.0}


def test_without_a_seal_the_suite_is_red() -> None:
    class Unsealed(EnvelopeBuilder):
        def build(self, session: Session) -> Envelope:
            return replace(super().build(session), seal=None)

    class Setting(Setup):
        def builder(self, *, dynamic_tokens: int = 0) -> EnvelopeBuilder:
            return Unsealed(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=900), summarizer=FirstLine())

    assert next(score for score in played(Setting()) if score.metric == "sealed").value == 0


def played(setup: Setup | None = None, *, auditor: cache.Auditor = audit) -> Iterator[Score]:
    scenario = cache.make(Short("cache", "docs", 2))
    found = cache.play_cache(scenario, setup or Setup(), PlayCounts(), auditor=auditor)
    return (score for score in found if score.value is not None)
