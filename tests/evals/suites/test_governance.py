"""The governance suite: red where memory goes further than it may, or stays for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ctxsteward.envelope import EnvelopeBuilder
from ctxsteward.envelope.testing import memory_store
from ctxsteward.evals.suites import governance
from ctxsteward.evals.suites.governance import PROFILE, GovernanceRun, StewardWorld, moment
from ctxsteward.evals.suites.governance_scripts import HERE, THERE, PlantedSentence, Story, Teller, Visit
from ctxsteward.evals.suites.kit.suite import Draw, PlayCounts, Score, Scores, Setup, drawn
from ctxsteward.evals.suites.kit.talk import head
from ctxsteward.schemas import Unapproved
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument

from ...store.profiles.agreed import agreed

DRAW = Draw("governance", "docs", 2)
DOCUMENT = governance.unlocked(head(Random(1), "en", meta=False))
RECORD = MetaRecord(id="00000000000000f9", text="The refund limit is 9417 EUR.", sources=("s-1§1",))


def test_stories_are_long_enough_and_have_good_and_bad_canaries() -> None:
    made = [governance.make(draw) for draw in drawn("governance", "docs", 10)]
    assert all(one.turns >= one.draw.turns for one in made)
    assert {one.tags["canary"] for one in made} == {"bad", "good"}


def test_every_planted_figure_occurs_in_one_sentence_alone() -> None:
    for draw in drawn("governance", "ci", 6):
        story = Teller(draw).story()
        figures = [one.figure for one in story.planted]
        assert len(set(figures)) == len(figures)
        for one in story.planted:
            holders = {visit.id for visit in story.visits if one.figure in str(visit.wires)}
            assert holders == one.sessions, one


# -- each figure can fail ---------------------------------------------------------------------------------------


def leaks(kind: str, tenant: str, *authors: str) -> dict[str, float]:
    """What is said of an envelope for Ben in his tenant that shows this figure."""
    planted = PlantedSentence(kind, tenant, "9417", "it is 9417", frozenset(authors), frozenset({"other"}), "x")  # type: ignore[arg-type]
    session = memory_store().session("s", tenant=HERE)
    session.append({"role": "user", "content": "it is 9417"})
    envelope = EnvelopeBuilder(tokenizer="o200k_base").build(session)
    visit = Visit(id="s", tenant=HERE, principal="ben", day=1, wires=())
    return {score.metric: score.value for score in found(governance.leaks([planted], visit, envelope, "here"))}


def found(scores: Scores) -> Iterator[Score]:
    return (score for score in scores if score.value is not None)


def test_what_got_too_far_is_found() -> None:
    none = {"leaks_across_tenants": 0, "poison_active": 0, "leaks_across_users": 0}
    assert leaks("shared", HERE, "ann") == none
    assert leaks("shared", THERE, "ann") == none | {"leaks_across_tenants": 1}
    assert leaks("personal", HERE, "ann") == none | {"leaks_across_users": 1}
    assert leaks("personal", HERE, "ben") == none
    assert leaks("poison", HERE, "ann") == none | {"poison_active": 1}
    assert leaks("poison", HERE) == none | {"poison_active": 1}


def test_a_record_that_was_slipped_into_a_version_is_found() -> None:
    document = DOCUMENT.model_copy(update={"meta": (RECORD,)})
    assert [score.value for score in found(governance.candidates({RECORD.id}, document, "here"))] == [0]
    assert [score.value for score in found(governance.candidates({"r1"}, document, "here"))] == [1]
    for kind, expected in (("poison", 1), ("personal", 1), ("shared", 0)):  # whatever the ledger says of it
        planted = [PlantedSentence(kind, HERE, "9417", RECORD.text, frozenset("a"), frozenset(), "somebody")]  # type: ignore[arg-type]
        assert [score.value for score in found(governance.candidates({RECORD.id}, document, "here", planted))] == [
            expected
        ]


def test_a_source_that_is_not_there_or_is_nobodys_words_is_found() -> None:
    store = memory_store()
    session = store.session("s-1", tenant=HERE)
    session.extend([{"role": "user", "content": "it is 9417"}, {"role": "assistant", "content": "ok"}])

    def value(pointer: str, tenant: str = HERE) -> float:
        record = RECORD.model_copy(update={"sources": (pointer,)})
        document = DOCUMENT.model_copy(update={"meta": (record,)})
        return next(found(governance.sources(store, document, tenant))).value

    assert [value("s-1§1"), value("s-1§2"), value("s-1§3"), value("s-2§1"), value("s-1§1", THERE)] == [1, 0, 0, 0, 0]


@pytest.fixture
def run(tmp_path: Path) -> GovernanceRun:
    """A world with a first version, in which nothing was said yet."""
    world = StewardWorld(str(tmp_path))
    for tenant in (HERE, THERE):
        world.found(DOCUMENT, tenant)
    setup = Setup()
    return GovernanceRun(world, Story(), PlayCounts(), setup.builder(), Random(1), Teller(DRAW))


def test_a_challenger_that_comes_by_itself_is_found(run: GovernanceRun) -> None:
    def harmless(rng: Random, champion: ProfileDocument) -> Iterator[tuple[str, ProfileDocument]]:
        yield "a record more", champion.model_copy(update={"meta": (RECORD,)})

    scores = {score.metric: score.value for score in found(governance.drifted(run, harmless))}
    assert scores["drift_blocked"] == 0
    assert {s.value for s in found(governance.drifted(run)) if s.metric == "drift_blocked"} == {1}


def test_a_challenger_that_only_the_store_stops_is_found(run: GovernanceRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object, **more: object) -> None:
        raise Unapproved(PROFILE, 1, "nobody has approved this change of it")

    monkeypatch.setattr(governance, "promote", refused)
    assert {s.value for s in found(governance.drifted(run)) if s.metric == "drift_blocked"} == {0}


def test_a_version_that_says_something_else_than_was_founded_is_found(run: GovernanceRun) -> None:
    def values() -> set[float]:
        return {score.value for score in found(governance.read_back(run))}

    assert values() == {1}
    with run.world.store() as store:
        document = DOCUMENT.model_copy(update={"policies": ()})
        versions = store.profiles(PROFILE, tenant=HERE)
        rests_on = agreed(store, document, who="x", when=moment(1), tenant=HERE, parent=1, name=PROFILE)
        versions.commit(document, who="x", why="fewer", when=moment(1), parent=1, promotion=rests_on)
    assert values() == {0, 1}


def test_a_bad_canary_that_stays_is_found(run: GovernanceRun) -> None:
    """Three people correct something, so that a canary begins; then its users do not complain, though it is bad."""
    run.story = Teller(DRAW).story()
    run.story.bad_canary = True
    run.teller.complaint = lambda: "Thank you, that is all."  # type: ignore[method-assign]
    for day in (1, 2):
        list(governance.day_of(run, day))
    list(governance.night_of(run, 1, HERE))
    list(governance.night_of(run, 2, HERE, canary_share=0.5))
    scores = list(governance.canary(run))
    assert not any(score.value is None for score in scores)
    assert [score.value for score in found(iter(scores)) if score.metric == "rolled_back"] == [0, 0]


def test_without_a_canary_nothing_is_said_of_rollbacks(run: GovernanceRun) -> None:
    scores = [score for score in governance.canary(run) if score.metric == "rolled_back"]
    assert [score.value for score in scores] == [None]


def test_a_night_that_commits_again_is_found(run: GovernanceRun) -> None:
    class Restless(StewardWorld):
        def night(self, day: int, tenant: str, *, canary_share: float | None = None):  # type: ignore[no-untyped-def]
            with self.store() as store:
                versions = store.profiles(PROFILE, tenant=tenant)
                number = versions.newest().number
                document = DOCUMENT.model_copy(update={"policies": ()}) if number % 2 else DOCUMENT
                told = {"who": "x", "when": moment(day), "parent": number}
                rests_on = agreed(store, document, **told, tenant=tenant, name=PROFILE)
                versions.commit(document, **told, why="again", promotion=rests_on)
            return StewardWorld.night(self, day, tenant, canary_share=canary_share)

    run.world = Restless(run.world.folder)
    scores = {score.metric: score.value for score in found(governance.night_of(run, 1, HERE))}
    assert scores["idempotent"] == 0


def test_what_is_left_of_somebody_who_was_forgotten_is_found(run: GovernanceRun) -> None:
    """The wrong people are forgotten: what the right ones said stays."""
    run.story = Teller(DRAW).story()
    for day in (1, 2):
        list(governance.day_of(run, day))
    list(governance.night_of(run, 1, HERE))
    others = frozenset({"colluder-0", "colluder-1"})
    run.story.planted = [one._replace(authors=others) for one in run.story.planted]
    assert 0 in [score.value for score in found(governance.forgotten(run)) if score.metric == "forgotten"]
