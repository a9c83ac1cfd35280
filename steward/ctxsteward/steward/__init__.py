"""The nightly batch: it reads transcripts, makes records of what they say, and brings a new profile version into force.

The command line, cron or a Prefect flow runs one night:

    settings = settings_of("steward.yaml")
    with open_night(settings, of_this_process()) as night:
        report = run_night(night)

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

A chat service needs one function, `profile_for`: it gives a new session its version while a canary runs. The
public names below are each loaded at their first use, so importing this costs next to nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .admission import AdmittedRecords as AdmittedRecords
    from .ledger.facade import Ledger as Ledger
    from .night.chain import NightChain as NightChain
    from .night.environment import (
        ProcessEnvironment as ProcessEnvironment,
        environment_keys as environment_keys,
        of_this_process as of_this_process,
    )
    from .night.report import NightReport as NightReport
    from .night.run import OpenNight as OpenNight, run_night as run_night
    from .release.approvals import Approvals as Approvals
    from .release.assignment import profile_for as profile_for, version_for as version_for
    from .release.hints import hint_after as hint_after
    from .release.promotion import promote as promote, rollback as rollback
    from .release.record_reviews import RecordReviews as RecordReviews
    from .settings import NightSettings as NightSettings, settings_of as settings_of
    from .setup import open_night as open_night
else:  # A name is loaded at its first use, so that importing the package costs next to nothing.
    import lazy_loader

    __getattr__, __dir__, __all__ = lazy_loader.attach(
        __name__,
        submod_attrs={
            "admission": ["AdmittedRecords"],
            "ledger.facade": ["Ledger"],
            "night.chain": ["NightChain"],
            "night.environment": ["ProcessEnvironment", "environment_keys", "of_this_process"],
            "night.report": ["NightReport"],
            "night.run": ["OpenNight", "run_night"],
            "release.approvals": ["Approvals"],
            "release.assignment": ["profile_for", "version_for"],
            "release.hints": ["hint_after"],
            "release.promotion": ["promote", "rollback"],
            "release.record_reviews": ["RecordReviews"],
            "settings": ["NightSettings", "settings_of"],
            "setup": ["open_night"],
        },
    )
