"""What a night is told: which store and profile, which transcripts, how much at a time. One value for every shell.

It is JSON, so that a schedule can keep it as the parameters of a flow, and it names places only: no text of a
transcript is ever in it. Thresholds of the gates stand with the gates.

Source: the layered-envelope design (batch loop); the state design (input at every boundary).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from ctxsteward.schemas.profile import EntryId, Timestamp

MAX_BATCH_TRANSCRIPTS = 800
"""Of the mean; chance leaves no batch over 1,000."""

Runner = Literal["threads", "dask"]


class NightSettings(BaseModel):
    """One profile's nights."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    store: StrictStr = "file:.ctxsteward"
    """URI, as `ctxsteward.envelope.open_store` takes it."""
    journal: StrictStr | None = None
    """Folder of the journal, where it lies outside the store."""
    tenant: StrictStr = "default"
    profile: EntryId = "default"
    sources: tuple[StrictStr, ...] = ("store",)
    """Folders, ``s3://`` prefixes, or ``store``: this store's own closed sessions."""
    night: Annotated[StrictStr, Field(pattern=r"^\d{4}-\d\d-\d\d$")] | None = None
    """Its date, by which records age; None: today, by the clock of whoever starts it."""
    since: Timestamp | None = None
    """Transcripts that changed before are left out; None: from the watermarks on."""
    until: Timestamp | None = None
    """Transcripts that changed then or later wait for a later night; None: all there are."""
    full: StrictBool = False
    """Read everything anew, whatever was read before."""
    keep_places: StrictBool = True
    """Whether a line in force gives way only to one that is clearly worth more. Off where nights are made up for: then
    their order makes no difference."""
    dry_run: StrictBool = False
    """Decide, and write nothing."""
    runner: Runner = "threads"
    workers: Annotated[StrictInt, Field(ge=1, le=256)] = 2
    """Threads, or processes of a local Dask cluster."""
    dask_address: StrictStr | None = None
    """Scheduler of a Dask cluster, whose workers reach the same store; None: a local one."""
    batch_transcripts: Annotated[StrictInt, Field(ge=1, le=MAX_BATCH_TRANSCRIPTS)] = 500
    """Transcripts a task takes, at most on average."""
    limit_seconds: Annotated[float, Field(gt=0, le=3_600)] = 30.0
    """Wall time that one transcript may take."""
    limit_bytes: Annotated[StrictInt, Field(ge=64 << 20)] = 1 << 30
    """Memory that one transcript's worker may take."""
    lease_seconds: Annotated[float, Field(ge=1, le=86_400)] = 120.0
    """After so long without a sign of life another night may begin."""
    actors: StrictStr | None = None
    """YAML file of who may approve (`actors`); None: requests wait until somebody is configured."""
    canary_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the sessions that a new version gets until it has shown that it is no worse; None: all, at once."""
    who: Annotated[StrictStr, Field(min_length=1, max_length=200)] = "steward"
    """In whose name it commits."""
