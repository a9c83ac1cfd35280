"""Nights of the steward in this process, over a store in a folder: simulated days, no worker processes, no clock.

world = World(folder, profile=…)
with world.store() as store: …          # a day: sessions at their day's date
report = world.night(1)                 # the night after day 1
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ctxsteward.envelope import Store, open_store
from ctxsteward.envelope.keyring import MasterKeys
from ctxsteward.schemas.profile import ProfileDocument
from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward.harvesting import Reaped, Reaper
from ctxsteward.steward.ingest import InProcess, Isolation
from ctxsteward.steward.night import run_night
from ctxsteward.steward.report import NightReport
from ctxsteward.steward.settings import CanaryLimits, NightSettings
from ctxsteward.steward.surroundings import Surroundings
from ctxsteward.steward.wiring import in_force, opened

PROFILE = "support"
FIRST_DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEYS = MasterKeys(b"evals of governance".ljust(32, b"."))
"""The same in every run, so that the same sessions are assigned to a canary."""
MIN_SESSIONS = 8
"""Of a canary, before it is kept: stories are short."""


@dataclass(slots=True)
class World:
    """A store in a folder, and its nights."""

    folder: str
    reports: list[NightReport] = field(default_factory=list)
    active: tuple[MetaRecommendation, ...] = ()
    """Shared records that were active after the newest night."""

    @property
    def uri(self) -> str:
        return f"file:{self.folder}"

    def store(self) -> Store:
        return open_store(self.uri, keys=KEYS)

    def found(self, document: ProfileDocument, tenant: str) -> None:
        """The first version, by a person."""
        with self.store() as store:
            store.profiles(PROFILE, tenant=tenant).commit(
                document, who="ada", why="the beginning", when=moment(0), parent=0
            )

    def night(self, day: int, tenant: str, *, canary_share: float | None = None) -> NightReport:
        """The night after this day."""
        settings = NightSettings(
            store=self.uri, tenant=tenant, profile=PROFILE, night=moment(day + 1)[:10], workers=1,
            canary_share=canary_share, canary=CanaryLimits(min_sessions=MIN_SESSIONS),
        )  # fmt: skip
        seconds = (FIRST_DAY + timedelta(days=day, hours=15)).timestamp()
        here = Surroundings(
            owner=f"night@evals:{day}", clock=lambda: seconds, cpu_seconds=lambda: 0.0, keys=lambda: KEYS
        )
        with opened(settings, here, isolate=_in_process) as opening:
            report = run_night(opening.stages, opening.shell)
            self.active = in_force(settings, opening.store, opening.ledger)
        self.reports.append(report)
        return report


def moment(day: int, minute: int = 0) -> str:
    """Noon of a day and so many minutes, ISO 8601."""
    return (FIRST_DAY + timedelta(days=day, minutes=minute)).isoformat(timespec="seconds")


def _in_process(reaper: Reaper, settings: NightSettings) -> Isolation[Reaped]:
    return InProcess(reaper)
