"""The nightly batch: read transcripts, make records from them, and bring a new profile version into force.

The command line, cron or a Prefect flow runs one night:

    settings = settings_of("steward.yaml")
    with open_night(settings, of_this_process()) as night:
        report = run_night(night)

Its folders, in the order in which a night passes them:

    night/         the order of the stages, the report of a night, the chain of finished nights
    ingest/        transcripts of folders, objects and the store; replayed, redacted, isolated
    observations/  a replayed transcript, an observation, and the table of kinds
    harvest/       observations from what people say (`harvest.people`) and from tool calls (`harvest.tools`)
    artifacts/     the observations of one transcript and the text they cite, encrypted
    ledger/        all observations of one agent, indexed, and the records they make
    reconcile/     merges equal claims and counts their support; `admission` judges the result
    drift/, gate/  compares a challenger with the version in force, and replays frozen cases with both
    release/       the slice, approvals, promotion, canary and rollback

A chat service needs one function, `profile_for`: while a canary runs, it chooses the version of a new session.
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
