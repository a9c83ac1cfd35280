"""The nightly batch: transcripts are read, what they say becomes records, a new profile version passes its gates.

    settings = settings_of("steward.yaml")
    with open_night(settings, of_this_process()) as night:
        report = run_night(night.stages, night.shell)

Its rooms, in the order in which a night passes them:

    night/       the order of the stages, what a night is told and reports, the chain of finished nights
    ingest/      transcripts of folders, objects and the store; replayed, redacted, isolated
    harvest/     observations: of what people say (`people`), of what tool calls show (`tools`)
    artifacts/   what one transcript gave, encrypted, with the words it cites
    ledger/      all observations of one agent, indexed, and the records they make (`reconcile`, `admission`)
    release/     the slice, drift and gate, approvals, promotion, canary and rollback (`drift/`, `gate/`)

A chat service needs one door: `profile_for` gives a new session its version while a canary runs. The names below are
loaded when they are asked for first, so importing this costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ledger import Ledger
    from .night.environment import ProcessEnvironment, of_this_process
    from .night.history import NightChain, status
    from .night.report import NightReport
    from .night.run import run_night
    from .release.actors import Actors
    from .release.approvals import Approvals
    from .release.assignment import profile_for, version_for
    from .release.promotion import promote, rollback
    from .release.record_reviews import RecordReviews
    from .settings import NightSettings, settings_of
    from .setup import OpenedNight, harvest_in_process, open_night

_DOORS = {
    "ledger": ("Ledger",),
    "night.environment": ("ProcessEnvironment", "of_this_process"),
    "night.history": ("NightChain", "status"),
    "night.report": ("NightReport",),
    "night.run": ("run_night",),
    "release.actors": ("Actors",),
    "release.approvals": ("Approvals",),
    "release.assignment": ("profile_for", "version_for"),
    "release.promotion": ("promote", "rollback"),
    "release.record_reviews": ("RecordReviews",),
    "settings": ("NightSettings", "settings_of"),
    "setup": ("OpenedNight", "harvest_in_process", "open_night"),
}
_MODULES = {name: module for module, names in _DOORS.items() for name in names}

__all__ = [
    "Actors",
    "Approvals",
    "Ledger",
    "NightChain",
    "NightReport",
    "NightSettings",
    "OpenedNight",
    "ProcessEnvironment",
    "RecordReviews",
    "harvest_in_process",
    "of_this_process",
    "open_night",
    "profile_for",
    "promote",
    "rollback",
    "run_night",
    "settings_of",
    "status",
    "version_for",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
