"""What runs that succeed do and runs that fail do not: contrasted by task, cited on both sides, beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward import Ledger
from ctxsteward.steward.admission import AdmissionPolicy
from ctxsteward.steward.artifacts.artifact import build_artifact
from ctxsteward.steward.harvest.tools.practices import (
    EXACT_TASKS,
    MAX_CHANCE,
    PracticeRun,
    RunTask,
    contrast,
    fix_of,
    parse_run_key,
    practices,
    run_key,
    same_tasks,
)
from ctxsteward.steward.harvest.tools.templates import ArgumentFix, action, parse_action
from ctxsteward.steward.ledger.records import JudgementContext

from ....examples import examples
from ...scenes import AGENT, TENANT, memory_store
from .scenes import call, scene, tells

LOOK = call("get_order", '{"order_id": "W-71", "payment_id": "pay_88121"}', order_id="W-71")
ACT = call("cancel", "{}", order_id="W-71", payment_id="pay_88121")
FAILS = call("cancel", "Error: order not found", order_id="W-9")


def asked(position: int) -> list[Any]:
    return [tells(position, "Shall I?", role="assistant"), tells(position + 1, "Yes.")]


@pytest.mark.parametrize(
    ("lines", "did"),
    [
        (
            [LOOK, ACT],
            {
                "first get_order",
                "supply order_id",
                "supply payment_id",
                "take order_id get_order",
                "take payment_id get_order",
            },
        ),
        ([ACT], {"supply order_id", "supply payment_id"}),
        (
            [FAILS, LOOK, ACT],
            {
                "first get_order",
                "supply order_id",
                "supply payment_id",
                "take order_id get_order",
                "take payment_id get_order",
            },
        ),
        (["Cancel it.", ACT], {"supply order_id", "supply payment_id"}),  # the user spoke, but was not asked
        ([*asked(1), ACT], {"confirm", "supply order_id", "supply payment_id"}),
        (
            [*asked(1), LOOK, ACT],
            {
                "first get_order",
                "supply order_id",
                "supply payment_id",
                "take order_id get_order",
                "take payment_id get_order",
            },
        ),
        ([ACT, LOOK], {"supply order_id", "supply payment_id"}),
    ],
)
def test_what_a_run_had_done_by_its_first_call_that_worked(lines: list[Any], did: set[str]) -> None:
    found = {one.tool: one for one in practices(scene(*lines, task="7"))}
    task, told = parse_run_key(found["cancel"].run or "")
    assert (task, told) == (RunTask("task 7"), did)
    assert parse_run_key(found[None].run or "")[1] == {f"call {tool}" for tool in found if tool}


def test_a_run_that_calls_nothing_is_told_too_because_doing_without_is_a_practice() -> None:
    (one,) = practices(scene("Hello?", tells(2, "Good day.", role="assistant"), task="7"))
    assert (one.tool, one.slot.subject, parse_run_key(one.run or "")[1]) == (None, "run", frozenset())
    assert practices(scene("Hello?", task="7")) == (), "nothing that could be cited"


def test_a_run_of_which_nobody_says_how_it_ended_has_no_practices() -> None:
    assert practices(scene(LOOK, ACT, succeeded=None)) == ()
    relations = {
        done: {place.relation for one in practices(scene(ACT, succeeded=done)) for place in one.places}
        for done in (True, False)
    }
    assert relations == {True: {"supports"}, False: {"contradicts"}}


PRACTICES = ("first a", "first b", "confirm", "take x a", "supply y", "call c", "call d")
RUNS = st.lists(
    st.tuples(st.sampled_from("pqrst"), st.frozensets(st.sampled_from(PRACTICES)), st.booleans()), max_size=40
).map(lambda rows: [PracticeRun(f"{n:03d}", RunTask(task), did, passed) for n, (task, did, passed) in enumerate(rows)])


@settings(max_examples=examples(200))
@given(RUNS, st.randoms(use_true_random=False))
def test_the_contrast_depends_on_the_set_of_runs_and_cites_both_sides(runs: list[PracticeRun], rng: Any) -> None:
    shuffled = list(runs)
    rng.shuffle(shuffled)
    found = contrast(runs)
    assert contrast(shuffled) == found
    if found is not None:
        by_id = {run.id: run for run in runs}
        assert all(by_id[id_].succeeded for id_ in found.for_it)
        assert not any(by_id[id_].succeeded for id_ in found.against)
        assert found.for_it
        assert found.against
        assert found.succeeded[0] / found.succeeded[1] > found.failed[0] / found.failed[1] or found.tasks >= 2


def runs_of(did: Sequence[tuple[str, bool, int]], task: str = "p") -> list[PracticeRun]:
    """So many runs each: a practice or none, and how the run ended."""
    return [
        PracticeRun(f"{task}-{at}-{n}", RunTask(task), frozenset((practice,) if practice else ()), passed)
        for at, (practice, passed, times) in enumerate(did)
        for n in range(times)
    ]


def test_the_exact_test_says_how_likely_so_much_is_by_chance() -> None:
    one = runs_of([("first a", True, 2), ("", False, 2)])  # 1 of 6 ways to deal two successes to four runs
    two = [*one, *runs_of([("first a", True, 2), ("", False, 2)], task="q")]
    found = contrast(two)
    assert found is not None
    assert (found.fixes, found.tasks, round(found.chance, 6)) == ((fix_of("first a"),), 2, round(1 / 36, 6))
    assert contrast(one) is None, "of one task alone nothing is said"


def test_many_tasks_are_tested_by_the_normal_distribution_and_come_to_nearly_the_same() -> None:
    def chance(tasks: int) -> float:
        rows = [
            run
            for task in range(tasks)
            for run in runs_of(
                [("confirm", True, 2), ("confirm", False, 1), ("", True, 1), ("", False, 2)], task=f"{task:03d}"
            )
        ]
        found = contrast(rows)
        assert found is not None
        return found.chance

    exact, normal = chance(EXACT_TASKS), chance(EXACT_TASKS + 1)
    assert 0.5 * exact < normal < exact < 1e-3


def test_what_hard_tasks_see_more_of_is_not_blamed_for_their_failures() -> None:
    easy = runs_of([("call search", True, 2), ("call search", False, 1), ("", True, 16), ("", False, 8)], task="easy")
    hard = runs_of([("call search", True, 6), ("call search", False, 18), ("", True, 1), ("", False, 3)], task="hard")
    assert contrast([*easy, *hard]) is None


def test_a_practice_that_goes_with_another_is_not_told_beside_it() -> None:
    rows = [
        PracticeRun(f"{task}{n}", RunTask(task), frozenset(("first a", "take x a") if n < 4 else ()), n < 4)
        for task in "pqr"
        for n in range(8)
    ]
    found = contrast(rows)
    assert found is not None
    assert found.fixes == (ArgumentFix(verb="first", source="a"),)


@given(st.sampled_from(PRACTICES), st.booleans())
def test_a_practice_is_advice_that_can_be_read_back(practice: str, does: bool) -> None:
    fix = fix_of(practice, does=does)
    assert parse_action(action((fix,))) == (fix,)


@given(
    st.text(max_size=20),
    st.lists(st.from_regex(r"[0-9a-f]{6}", fullmatch=True), max_size=4),
    st.frozensets(st.sampled_from(PRACTICES)),
)
def test_a_run_s_key_can_be_read_back(name: str, opening: list[str], did: frozenset[str]) -> None:
    task = RunTask(name, tuple(opening), bool(opening))
    assert parse_run_key(run_key(task, did)) == (task, did)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "3",
        '["a"]',
        '["a", 3, 0, []]',
        '["a", "", 0, 4]',
        '["a", "", 0, [4]]',
        "[1, 2, 3, 4]",
        "[" * 9_999,
    ],
)
def test_a_key_that_is_none_tells_nothing_and_stops_nobody(text: str) -> None:
    assert parse_run_key(text) == (RunTask(""), frozenset())


def test_what_is_no_practice_is_left_out() -> None:
    assert parse_run_key('["t", "", 0, ["confirm", "wire money", "first", "take a"]]')[1] == {"confirm"}


def test_tasks_that_nobody_names_are_told_by_opening_and_tools() -> None:
    words = [tuple(f"{task}{n:05x}" for n in range(12)) for task in "abc"]
    near = (*words[0][:10], "fffff1", "fffff2")
    tools = frozenset(("call x", "call y"))
    rows = [
        ("1", RunTask("", words[0]), tools),
        ("2", RunTask("", near), tools),
        ("3", RunTask("", words[1]), tools),
        ("4", RunTask("", words[2]), tools),
        ("5", RunTask("", words[0]), frozenset(("call z",))),
        ("6", RunTask("told"), tools),
        ("7", RunTask(""), tools),
    ]
    found = same_tasks(rows)
    assert found == same_tasks(rows[::-1])
    assert found["1"] == found["2"]
    assert len({found[id_] for id_ in "13456"}) == 5
    assert found["7"] == "", "of whom nothing is known there is no task"


# -- records ------------------------------------------------------------------------------------------------------


def records(tries: Sequence[tuple[str, list[Any], bool]], *reading: str) -> list[MetaRecommendation]:
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        key = store.keys.address_key(TENANT)
        for number, (task, lines, done) in enumerate(tries):
            run = scene(*lines, session=f"s{number}", principal=task, succeeded=done, task=task)
            ledger.absorb(*build_artifact(run, practices(run), extractor="harvest/1", key=key))
        context = JudgementContext(policy=AdmissionPolicy(reading_tools=reading))
        assert {one.id: one.status for one in ledger.records(context)}.keys() == {
            row.id for row in ledger.records(context)
        }
        return list(ledger.records(context))


def tried(tasks: int, times: int = 2) -> list[tuple[str, list[Any], bool]]:
    """Of each task some runs that look and succeed, and as many that do not and fail."""
    runs: list[tuple[list[Any], bool]] = [([LOOK, ACT], True), ([ACT], False)] * times
    return [(f"t{task}", lines, done) for task in range(tasks) for lines, done in runs]


@pytest.mark.parametrize(
    ("tries", "reading", "status", "reason"),
    [
        (tried(6), ["get_order"], "active", "runs_differ"),
        (tried(6), [], "vetted", "needs_person"),  # the tool may change something
        (tried(2, times=4), ["get_order"], "candidate", "needs_tasks"),
        (tried(3, times=1) + tried(3, times=1), ["get_order"], "candidate", "by_chance"),
    ],
)
def test_a_practice_needs_three_tasks_and_more_than_chance(
    tries: list[Any], reading: list[str], status: str, reason: str
) -> None:
    found = {one.scope.tool: one for one in records(tries, *reading)}
    one = found["cancel"]
    assert (one.status, one.reasons, one.action) == (status, (reason,), "call get_order first")
    assert one.text == "Before `cancel`, call `get_order`: runs that succeed do."
    sides = {(each.relation, int(each.session[1:]) % 2) for each in one.evidence}
    assert sides == {("supports", 0), ("contradicts", 1)}, "runs that succeeded are cited, and runs that failed"


@pytest.mark.parametrize(
    "tries",
    [
        [("t1", [LOOK, ACT], True)] * 9,  # nothing failed
        [("t1", [LOOK, ACT], True)] * 5 + [("t2", [ACT], False)] * 5,  # of no task both
        [(f"t{n}", [LOOK, ACT], done) for n in range(5) for done in (True, False)],  # all did the same
    ],
)
def test_runs_that_do_not_differ_within_a_task_make_no_record(tries: list[Any]) -> None:
    assert records(tries) == []


@settings(max_examples=examples(25))
@given(st.lists(st.tuples(st.sampled_from(("t1", "t2", "t3")), st.sampled_from((0, 1, 2)), st.booleans()), max_size=16))
def test_no_practice_is_told_without_runs_of_both_outcomes_cited(tries: list[tuple[str, int, bool]]) -> None:
    lines = ([ACT], [LOOK, ACT], [*asked(1), LOOK, ACT])
    for one in records([(task, list(lines[which]), done) for task, which, done in tries]):
        ends = {each.session: tries[int(each.session[1:])][2] for each in one.evidence}
        assert set(ends.values()) == {True, False}
        assert {each.relation for each in one.evidence} == {"supports", "contradicts"}


@pytest.mark.parametrize(
    ("known", "own", "status", "reason"),
    [
        ("u{n}", False, "active", "runs_differ"),  # a user for each task
        ("ann", False, "candidate", "needs_principals"),  # one user who gives all the thumbs
        (None, False, "candidate", "needs_principals"),  # nobody knows of whom the sessions are
        (None, True, "active", "runs_differ"),  # runs of the operator's own
    ],
)
def test_tasks_that_nobody_names_count_for_as_many_as_stand_behind_them(
    known: str | None, own: bool, status: str, reason: str
) -> None:
    openings = [
        "cancel the tent that came torn",
        "I want the red lamp no more",
        "the shoes pinch, take them back",
        "stop the parcel to Bonn today",
        "void what my son bought last night",
        "no chair, please",
    ]
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        key = store.keys.address_key(TENANT)
        for n, opening in enumerate(openings):
            for done, lines in ((True, [LOOK, ACT]), (False, [ACT])) * 2:
                session = f"s{n}-{done}-{ledger.size().artifacts}"
                principal = None if known is None else known.format(n=n)
                run = scene(opening, *lines, session=session, principal=principal, succeeded=done, is_task_run=own)
                ledger.absorb(*build_artifact(run, practices(run), extractor="harvest/1", key=key))
        context = JudgementContext(policy=AdmissionPolicy(reading_tools=("get_order",)))
        (one,) = [one for one in ledger.records(context) if one.scope.tool == "cancel"]
    assert (one.status, one.reasons) == (status, (reason,))


def test_chance_is_told_for_all_practices_compared() -> None:
    noise = [
        PracticeRun(
            f"{n}",
            RunTask("p" if n % 2 else "q"),
            frozenset(f"first t{m}" for m in range(30) if (n * 7 + m * 3) % 5 < 2),
            n % 3 == 0,
        )
        for n in range(24)
    ]
    found = contrast(noise)
    assert found is None or found.chance > MAX_CHANCE
