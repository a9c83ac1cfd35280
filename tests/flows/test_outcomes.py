"""How a run of the flows ends where there is nothing to read, where the night is no success, where others run."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from prefect.client.schemas.objects import State

from ctxsteward.envelope.store import open_store
from ctxsteward.flows import night
from ctxsteward.flows.night import NightFailed, meta_steward_nightly
from ctxsteward.flows.replay import replay_nights
from ctxsteward.flows.suites import SUITES, SuiteFailed, eval_suite
from ctxsteward.schemas import InputError
from ctxsteward.steward.settings import NightSettings
from ctxsteward.store.profiles.versions import WriterLease

from .conftest import HOME
from .transcripts import founded, write

pytestmark = pytest.mark.usefixtures("prefect")

DAY = date(2026, 11, 22)
CASES = """
name: fees/1
cases:
  - id: fee
    messages:
      - {role: user, content: What does it cost to cancel?}
      - {role: assistant, content: The cancellation fee is 30 EUR.}
    canaries: [{text: 30 EUR, says: The cancellation fee is 30 EUR.}]
    question: What is the cancellation fee?
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NightSettings:
    monkeypatch.setattr(night, "POLL_SECONDS", 0.1)
    write(tmp_path / "in", 12)
    return founded(
        NightSettings(
            store=f"file:{tmp_path / 'store'}",
            sources=(str(tmp_path / "in"),),
            profile="support",
            night="2026-11-22",
            workers=1,
            lease_seconds=1,
        )
    )


class Ended(NamedTuple):
    """A run as its server shows it."""

    name: str
    state: str | None
    message: str | None
    tags: set[str]
    artifacts: list[str]


def ended(state: Any) -> Ended:
    """The run that ended in this state."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId

    run_id = state.state_details.flow_run_id
    assert isinstance(run_id, UUID)
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(run_id)
        told = client.read_artifacts(artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run_id])))
    assert run.state is not None
    return Ended(
        run.name,
        run.state.name,
        run.state.message,
        set(run.tags),
        [str(one.data) for one in told if one.type == "markdown"],
    )


class Nothing(NamedTuple):
    id: str
    update: dict[str, Any]
    says: str


NOTHING = (
    Nothing("no such profile", {"profile": "default"}, "has no profile 'default'; it has support"),
    Nothing("no such tenant", {"tenant": "acme"}, "tenant 'acme' has no profile 'support'; it has none"),
    Nothing("no such store", {"store": "file:/no/such/store"}, "does not exist"),
    Nothing("no such folder", {"sources": ("/no/such/folder",)}, "no such folder"),
    Nothing("an empty folder", {"sources": ("EMPTY",)}, "no transcript is there"),
)


@pytest.mark.parametrize("case", NOTHING, ids=[case.id for case in NOTHING])
def test_a_night_over_nothing_fails(settings: NightSettings, tmp_path: Path, case: Nothing) -> None:
    (tmp_path / "empty").mkdir()
    update = {key: (str(tmp_path / "empty"),) if value == ("EMPTY",) else value for key, value in case.update.items()}
    state: State[Any] = meta_steward_nightly(settings.model_copy(update=update), return_state=True)
    assert state.is_failed()
    assert case.says in (state.message or "")
    assert not Path("/no/such/store").exists()


def test_suites_and_nights_made_up_for_fail_over_nothing(settings: NightSettings) -> None:
    nobody = settings.model_copy(update={"profile": "default"})
    for run in (partial(eval_suite, "guards"), partial(replay_nights, first=DAY, last=DAY)):
        with pytest.raises(InputError, match="has no profile 'default'"):
            run(settings=nobody)


def test_a_rejected_night_is_a_failed_run_with_its_report(settings: NightSettings, tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text(CASES)
    strict = settings.model_copy(
        update={"gate": settings.gate.model_copy(update={"cases": str(tmp_path / "cases.yaml")})}
    )
    state = meta_steward_nightly(strict, return_state=True)
    run = ended(state)
    assert (run.name, run.state) == ("support 2026-11-22", "Failed")
    assert run.tags >= {"ctxsteward", "tenant:default", "profile:support"}
    assert run.message is not None
    assert "rejected by evals: version 1 stays in force" in run.message
    (page,) = run.artifacts
    assert page.startswith("# Night 2026-11-22 of support: rejected\n")
    assert "| harvested | 12 |" in page
    assert not any(word in page + run.message for word in ("fee", "baggage", "aisle", "user-1", "00001"))
    with pytest.raises(NightFailed) as failed:
        meta_steward_nightly(strict)
    report = failed.value.report
    assert (report.outcome, report.exit_code) == ("rejected", 3)
    assert report.changes
    kept = pickle.loads(pickle.dumps(failed.value)).report
    assert kept == report.model_copy(update={"changes": (), "gate": kept.gate, "drift": kept.drift})
    for path in (Path(HOME) / "storage").iterdir():
        assert not any(word in path.read_bytes() for word in (b"fee", b"baggage", b"aisle", b"00001"))


def test_a_night_that_goes_well_is_completed_with_its_report(settings: NightSettings) -> None:
    run = ended(meta_steward_nightly(settings, return_state=True))
    assert run.state == "Completed"
    (page,) = run.artifacts
    assert page.startswith("# Night 2026-11-22 of support: promoted\n")


def test_nights_made_up_for_end_failed_where_one_of_them_was(settings: NightSettings, tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text(CASES)
    strict = settings.model_copy(
        update={"gate": settings.gate.model_copy(update={"cases": str(tmp_path / "cases.yaml")})}
    )
    run = ended(replay_nights(strict, DAY, DAY, return_state=True))
    assert (run.name, run.state, len(run.artifacts)) == ("support 2026-11-22 to 2026-11-22", "Failed", 1)
    with pytest.raises(InputError, match="name the earlier day first"):
        replay_nights(settings, DAY, DAY - timedelta(days=1))


def test_a_suite_that_does_not_pass_is_a_failed_run(settings: NightSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxsteward.flows import suites

    failing = {**SUITES, "failing": lambda settings: {"passed": False, "version": 1}}
    monkeypatch.setattr(suites, "SUITES", failing)
    with pytest.raises(SuiteFailed) as failed:
        eval_suite("failing", settings)
    assert failed.value.document == {"passed": False, "version": 1}


def leased(settings: NightSettings, owner: str, during: Callable[[WriterLease], None]) -> None:
    with open_store(settings.store) as store:
        lease = WriterLease(store, settings.profile, settings.tenant, owner=owner, clock=time.time)
        assert lease.take(settings.lease_seconds) is not None
        during(lease)


def test_a_lease_of_another_machine_is_taken_over_when_it_has_run_out(settings: NightSettings) -> None:
    leased(settings, "night@elsewhere:7", lambda lease: None)
    assert meta_steward_nightly(settings).outcome == "promoted"


def test_a_night_beside_one_that_is_alive_says_so(settings: NightSettings) -> None:
    done = threading.Event()

    def alive(lease: WriterLease) -> None:
        def renew() -> None:
            while not done.wait(0.3):
                lease.renew(settings.lease_seconds)

        renewing = threading.Thread(target=renew)
        renewing.start()
        try:
            state = meta_steward_nightly(settings, return_state=True)
        finally:
            done.set()
            renewing.join()
        assert state.is_failed()
        assert "another night is under way; night@elsewhere:7 holds the lease" in state.message

    leased(settings, "night@elsewhere:7", alive)
