from .ledger import Ledger as Ledger
from .night.batch_harvest import HarvestResult as HarvestResult, HarvestWorker as HarvestWorker
from .night.environment import ProcessEnvironment as ProcessEnvironment, of_this_process as of_this_process
from .night.history import NightChain as NightChain, NightReport as NightReport, status as status
from .night.run import AdmittedRecords as AdmittedRecords, run_night as run_night
from .release.actors import Actors as Actors
from .release.approvals import Approvals as Approvals
from .release.assignment import profile_for as profile_for, version_for as version_for
from .release.promotion import promote as promote, rollback as rollback
from .release.record_reviews import RecordReviews as RecordReviews
from .settings import NightSettings as NightSettings, settings_of as settings_of
from .setup import (
    OpenedNight as OpenedNight,
    harvest_in_process as harvest_in_process,
    open_night as open_night,
    require as require,
)
