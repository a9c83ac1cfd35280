"""The nightly batch: it reads transcripts, makes records of what they say, and brings a new profile version into force.

The command line, cron or a Prefect flow runs one night:

    settings = settings_of("steward.yaml")
    with open_night(settings, of_this_process()) as night:
        report = run_night(night.stages, night.shell)

Its folders, in the order in which a night passes them:

    night/         the order of the stages, the report of a night, the chain of finished nights
    ingest/        transcripts of folders, objects and the store; replayed, redacted, isolated
    observations/  what a harvest reads and gives, and the table of kinds
    harvest/       observations: of what people say (`harvest.people`), of what tool calls show (`harvest.tools`)
    artifacts/     what one transcript gave, encrypted, with the words it cites
    ledger/        all observations of one agent, indexed, and the records they make
    reconcile/     which claims are one, and what stands behind them; `admission` judges the result
    drift/, gate/  how far a challenger has moved, and how it replays frozen cases
    release/       the slice, approvals, promotion, canary and rollback

A chat service needs one function, `profile_for`: it gives a new session its version while a canary runs. The stub
beside this file lists the public names; each is loaded when it is first asked for, so importing this costs nothing.
"""

from .ledger.facade import Ledger
from .night.environment import ProcessEnvironment, environment_keys, of_this_process
from .night.history import NightChain, NightReport, status
from .night.run import AdmittedRecords, run_night
from .release.approvals import Approvals
from .release.assignment import profile_for, version_for
from .release.promotion import promote, rollback
from .release.record_reviews import RecordReviews
from .settings import NightSettings, settings_of
from .setup import OpenedNight, open_night

__all__ = [
    "AdmittedRecords",
    "Approvals",
    "Ledger",
    "NightChain",
    "NightReport",
    "NightSettings",
    "OpenedNight",
    "ProcessEnvironment",
    "RecordReviews",
    "environment_keys",
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
