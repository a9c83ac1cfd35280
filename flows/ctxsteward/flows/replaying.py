"""Nights made up for: one night for each day of a range, in order, each with what had changed until that day's end.

A day that was done is found done; days that came late end with the same observations as days on time.

Annotations here are values, not texts: Prefect reads them where a deployment has loaded the flow by its name.
"""

from collections.abc import Iterator
from datetime import date, timedelta

from prefect import flow

from ctxsteward.steward.report import NightReport
from ctxsteward.steward.settings import NightSettings

from .nightly import meta_steward_nightly


@flow(name="replay_nights", persist_result=False)
def replay_nights(settings: NightSettings, first: date, last: date) -> list[NightReport]:
    """Run the nights from `first` to `last`, both included."""
    return [meta_steward_nightly(one) for one in nights_of(settings, first, last)]


def nights_of(settings: NightSettings, first: date, last: date) -> Iterator[NightSettings]:
    """Settings of each night.

    >>> days = nights_of(NightSettings(), date(2026, 11, 1), date(2026, 11, 2))
    >>> [(one.night, one.until) for one in days]
    [('2026-11-01', '2026-11-02T00:00:00+00:00'), ('2026-11-02', '2026-11-03T00:00:00+00:00')]
    """
    day = first
    while day <= last:
        until = f"{day + timedelta(days=1)}T00:00:00+00:00"
        yield settings.model_copy(update={"night": str(day), "until": until, "keep_places": False})
        day += timedelta(days=1)
