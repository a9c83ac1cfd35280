"""Run an eval suite as a Prefect flow, with the profile version in force.

A suite is a callable that takes the settings and returns a JSON document with ``passed``. It plays generated
conversations, never real transcripts. `SUITES` maps names to suites: ``guards``, and the long-horizon suites.

Annotations here must be values, not texts, because Prefect evaluates them when a deployment loads the flow by its name.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from prefect import flow, tags, task

from ctxsteward.envelope import open_store
from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.evals.suites.gates import shipped_gates
from ctxsteward.evals.suites.kit.suite import Setup, drawn
from ctxsteward.evals.suites.results import played
from ctxsteward.schemas import InputError
from ctxsteward.steward import NightSettings, of_this_process
from ctxsteward.steward.gate.settings import configured, with_suites
from ctxsteward.steward.setup import require

from .night import claim, export, refuse_relative_paths, run_name, show_suite, stored, tags_of

Suite = Callable[[NightSettings], dict[str, Any]]


def guards(settings: NightSettings) -> dict[str, Any]:
    """Run the frozen suite of the eval gate: the version in force against the one before it."""
    with open_store(settings.store, journal=settings.journal, keys=of_this_process().keys()) as store:
        versions = store.profiles(settings.profile, tenant=settings.tenant)
        newest = versions.newest()
        before = versions.at(newest.number - 1).profile if newest.number > 1 else None
    return {"version": newest.number} | with_suites(settings.gate, configured(settings.gate))(
        before, newest.profile
    ).document()


def long_horizon(name: str, settings: NightSettings) -> dict[str, Any]:
    """Play an eval suite in CI's size with the profile in force, at the shipped gates."""
    with open_store(settings.store, journal=settings.journal, keys=of_this_process().keys()) as store:
        profile = store.profiles(settings.profile, tenant=settings.tenant).newest().profile
    result = played(
        name,
        list(drawn(name, "ci", suite_named(name).scenarios)),
        Setup(profile=profile),
        workers=settings.workers,
        gates=shipped_gates().get(name, {}),
        when=of_this_process().when,
    )
    document: dict[str, Any] = result.model_dump(mode="json")
    return document


SUITES: Mapping[str, Suite] = MappingProxyType(
    {"guards": guards} | {name: partial(long_horizon, name) for name in NAMES}
)


class SuiteFailed(Exception):
    """Raised when a suite fails. `document` is dropped when pickled."""

    def __init__(self, suite: str, document: dict[str, Any]) -> None:
        self.suite, self.document = suite, document
        super().__init__(f"eval suite {suite} failed")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.suite, {}))


@task(persist_result=False)
def run_suite(suite: str, settings: NightSettings) -> dict[str, Any]:
    """Run one of `SUITES`."""
    return SUITES[suite](settings)


@flow(name="eval_suite", flow_run_name=run_name, persist_result=False)
def eval_suite(suite: str, settings: NightSettings) -> dict[str, Any]:
    """Run a named suite and return its document; raise `InputError` for an unknown name, `SuiteFailed` if it fails."""
    export()
    if suite not in SUITES:
        raise InputError(f"unknown eval suite {suite!r:.60}; one of: {', '.join(sorted(SUITES))}")
    here = of_this_process()
    claim(settings, here)
    refuse_relative_paths(settings)
    with stored(settings, here) as store:
        require(settings.model_copy(update={"sources": ()}), store)
    with tags(*tags_of(settings)):
        document = run_suite(suite, settings)
    show_suite(suite, document)
    if not document["passed"]:
        raise SuiteFailed(suite, document)
    return document
