"""Run missed nights later: one night for each day of a range, in order, with the changes up to the end of that day.

A day that is already done is skipped. A late night makes the same observations as a night on time. A rejected night
does not stop the next one; at the end the run fails with the reports of all nights (`NightsFailed`).

Annotations here must be values, not texts, because Prefect evaluates them when a deployment loads the flow by its name.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from prefect import flow

from ctxsteward.schemas import InputError
from ctxsteward.steward import NightReport, NightSettings

from .night import export, one_night, run_name


class NightsFailed(Exception):
    """Raised when at least one night failed; `reports` has the reports of all nights, a pickle only their numbers."""

    def __init__(self, reports: list[NightReport]) -> None:
        self.reports = reports
        super().__init__("; ".join(f"{report.night}: {report.failure}" for report in reports if report.failure))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), ([report.numbers() for report in self.reports],))


@flow(name="replay_nights", flow_run_name=run_name, persist_result=False)
def replay_nights(settings: NightSettings, first: date, last: date) -> list[NightReport]:
    """Run the nights from `first` to `last`, both included; raise `InputError` for an empty range."""
    export()
    if last < first:
        raise InputError(f"no night from {first} to {last}; name the earlier day first")
    reports = [one_night(night) for night in nights_of(settings, first, last)]
    if any(night.failure for night in reports):
        raise NightsFailed(reports)
    return reports


def nights_of(settings: NightSettings, first: date, last: date) -> Iterator[NightSettings]:
    """Yield the settings of each night.

    >>> days = nights_of(NightSettings(), date(2026, 11, 1), date(2026, 11, 2))
    >>> [(one.night, one.until) for one in days]
    [('2026-11-01', '2026-11-02T00:00:00+00:00'), ('2026-11-02', '2026-11-03T00:00:00+00:00')]
    """
    day = first
    while day <= last:
        until = f"{day + timedelta(days=1)}T00:00:00+00:00"
        yield settings.model_copy(update={"night": str(day), "until": until, "keep_places": False})
        day += timedelta(days=1)
