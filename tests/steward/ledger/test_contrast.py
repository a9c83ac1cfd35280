"""Runs that succeeded and runs that failed, contrasted in one record about a tool error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward import Ledger
from ctxsteward.steward.artifacts.artifact import build_artifact
from ctxsteward.steward.harvest.tools.errors import tool_errors
from ctxsteward.steward.ledger.judgement import RecordBasis, TriedFix

from ..harvest.tools.scenes import call, scene
from ..scenes import AGENT, TENANT, memory_store

FAILS = call("book", "Error: invalid day, wrong format", order="A17", day="1/2/2026", note="x")
RIGHT = call("book", "{}", order="A17", day="2026-02-01", note="x")
WRONG = call("book", "{}", order="A17", note="x")
WRITE, OMIT, STOP = "write day as YYYY-MM-DD", "leave out day", "do not try it again, and say why"
DID: dict[str, list[Any]] = {WRITE: [RIGHT], OMIT: [WRONG], STOP: []}
Run = tuple[str, bool | None]
"""What a run did after the error, and whether it succeeded."""


def record(runs: Sequence[Run]) -> MetaRecommendation:
    """The one record that these runs of as many tasks make."""
    return told(runs)[0]


def told(runs: Sequence[Run]) -> tuple[MetaRecommendation, RecordBasis]:
    """The same, and what stands behind it."""
    with memory_store() as store, Ledger.open(":memory:", store, TENANT, AGENT) as ledger:
        key = store.keys.address_key(TENANT)
        for number, (did, succeeded) in enumerate(runs):
            run = scene(FAILS, *DID[did], session=f"s{number}", principal=f"task-{number}", succeeded=succeeded)
            ledger.absorb(*build_artifact(run, tool_errors(run), extractor="harvest/1", key=key))
        (found,) = ledger.records()
        basis = ledger.basis(found.id)
        assert basis is not None
    return found, basis


@pytest.mark.parametrize(
    ("runs", "action", "status", "reason"),
    [
        ([(WRITE, True)] * 3, WRITE, "active", "fix_worked"),
        ([(WRITE, True)] * 3 + [(OMIT, False)] * 9, WRITE, "active", "fix_worked"),  # most runs do what is wrong
        ([(WRITE, True)] * 3 + [(WRITE, False)] * 3, WRITE, "active", "fix_worked"),
        ([(WRITE, True)] * 3 + [(WRITE, False)] * 4, WRITE, "candidate", "fails_more"),
        ([(OMIT, True)] * 4 + [(WRITE, True)] * 3 + [(OMIT, False)] * 3, WRITE, "active", "fix_worked"),
        ([(OMIT, True)] * 3 + [(WRITE, False)] * 9, OMIT, "vetted", "needs_person"),
        ([(STOP, True)] * 3 + [(WRITE, False)] * 3, STOP, "vetted", "needs_person"),
        ([(OMIT, False)] * 9, OMIT, "candidate", "fails_more"),
        ([(WRITE, None)] * 9, WRITE, "candidate", "hint needs_outcome"),
        ([(WRITE, True)] * 2 + [(WRITE, None)] * 9, WRITE, "candidate", "hint needs_recovery"),
    ],
)
def test_the_advice_is_what_succeeded_more_often(runs: list[Run], action: str, status: str, reason: str) -> None:
    found = record(runs)
    assert (found.action, found.status, found.reasons) == (action, status, tuple(reason.split()))


def test_both_sides_are_cited() -> None:
    found = record([(WRITE, True)] * 3 + [(OMIT, False)])
    cited = {(one.session, one.relation) for one in found.evidence}
    assert {("s0", "recovers"), ("s3", "contradicts")} <= cited


@given(st.lists(st.tuples(st.sampled_from(sorted(DID)), st.sampled_from([True, False, None])), min_size=1, max_size=12))
def test_advice_that_failed_more_often_than_it_succeeded_is_never_fit_for_use(runs: list[Run]) -> None:
    assume(any(run != (STOP, None) for run in runs))  # of which nothing is known
    found = record(runs)
    succeeded, failed = (sum(run == (found.action, how) for run in runs) for how in (True, False))
    if found.status in ("active", "vetted"):
        assert succeeded >= failed
        assert sum(how is True for _, how in runs) >= 3


def test_what_people_are_told_counts_runs_by_what_was_done_and_how_they_ended() -> None:
    found, basis = told([(WRITE, True)] * 3 + [(WRITE, False)] + [(OMIT, False)] * 2 + [(OMIT, None), (STOP, None)])
    of_write, of_omit = sorted(basis.tried, key=lambda one: -one.succeeded - one.failed / 2)
    assert (of_write, of_omit) == (TriedFix(WRITE, 3, 1, 0), TriedFix(OMIT, 0, 2, 1))
    assert basis == RecordBasis(
        names=basis.names,
        kinds=("worked", "failed", "from_tool"),
        transcripts=7,  # nobody knows whether to stop was right in the eighth
        read=8,
        voices=7,
        helped=3,
        tried=(of_write, of_omit),
    )
    assert found.id in basis.names


@pytest.mark.parametrize(
    ("runs", "kinds"),
    [
        ([(WRITE, None)], ("from_tool",)),
        ([(WRITE, True)], ("worked", "from_tool")),
        ([(WRITE, False)], ("failed", "from_tool")),
    ],
)
def test_the_kinds_of_evidence_are_those_that_were_seen(runs: list[Run], kinds: tuple[str, ...]) -> None:
    assert told(runs)[1].kinds == kinds
