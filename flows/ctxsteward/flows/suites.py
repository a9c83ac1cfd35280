"""Eval suites as a Prefect flow: a named suite over what is in force.

A suite is a callable: settings in, a JSON document with ``passed`` out, numbers and names of cases alone. `SUITES` has
those that there are, by name.

Annotations here are values, not texts: Prefect reads them where a deployment has loaded the flow by its name.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from prefect import flow, task

from ctxsteward.envelope.store import open_store
from ctxsteward.schemas import InputError
from ctxsteward.steward.gate import FrozenGate
from ctxsteward.steward.settings import NightSettings

Suite = Callable[[NightSettings], dict[str, Any]]


def guards(settings: NightSettings) -> dict[str, Any]:
    """The frozen suite of the eval gate: the version in force against the one before it."""
    with open_store(settings.store, journal=settings.journal) as store:
        versions = store.profiles(settings.profile, tenant=settings.tenant)
        newest = versions.newest()
        before = versions.at(newest.number - 1).profile if newest.number > 1 else None
    return {"version": newest.number} | FrozenGate()(before, newest.profile).document()


SUITES: Mapping[str, Suite] = MappingProxyType({"guards": guards})


@task(persist_result=False)
def run_suite(suite: str, settings: NightSettings) -> dict[str, Any]:
    """Run one of `SUITES`."""
    return SUITES[suite](settings)


@flow(name="eval_suite", persist_result=False)
def eval_suite(suite: str, settings: NightSettings) -> dict[str, Any]:
    """Run a named suite; its document. Raises `InputError` for a name that is none."""
    if suite not in SUITES:
        raise InputError(f"eval suite {suite!r:.60} is none; one of: {', '.join(sorted(SUITES))}")
    return run_suite(suite, settings)
