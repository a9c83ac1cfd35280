"""The settings of one profile's nights: store, profile, sources of transcripts, batch sizes, thresholds of the gates.

    store: file:.ctxsteward
    profile: support
    sources: [logs/chats, "s3://bucket/transcripts"]
    admission: {independent_principals: 4, half_life_days: {fact: 180}}
    drift: {warn_delta: 0.1}
    gate: {model: gpt-4o, cases: gate.yaml}
    canary_share: 0.1
    canary: {min_sessions: 50}

The command line, cron and Prefect start a night from the same `NightSettings`. It is plain JSON, so that a schedule can
keep it as the parameters of a flow, and it names places only: no text of a transcript is ever in it. What a threshold
means, and its default, stands with its gate.

`settings_of` reads a YAML file. Raises `InputError` naming file, line and key; `InputTooLarge`.
Source: the layered-envelope design (batch loop); the state design (input at every boundary).
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from ctxsteward.schemas.profile import EntryId, Timestamp
from ctxsteward.schemas.profile_changes import DriftLimits
from ctxsteward.store.strict_yaml import DocumentKind, read_document

from .admission import AdmissionPolicy, ToolName
from .gate.settings import GateSettings

MAX_BATCH_TRANSCRIPTS = 800
"""Cap of the mean size of a batch. Sizes vary by chance; with this mean none is over 1,000."""

Runner = Literal["threads", "dask"]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class CanaryLimits(BaseModel):
    """When a canary ends. These numbers stand nowhere else."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    min_sessions: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = 30
    """Principals whom the challenger must have served before it is kept; a session of nobody known counts as one."""
    max_nights: Annotated[StrictInt, Field(ge=1, le=366)] = 7
    level: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Chance of rolling back a challenger that is no worse."""
    tolerance: Share = 0.05
    """A rate that is worse by more than this, and not by proof, is looked at longer."""


class NightSettings(BaseModel):
    """One profile's nights."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    store: StrictStr = "file:.ctxsteward"
    """URI, as `ctxsteward.envelope.open_store` takes it."""
    journal: StrictStr | None = None
    """Folder of the journal, where it lies outside the store."""
    tenant: StrictStr = "default"
    profile: EntryId = "default"
    sources: tuple[StrictStr, ...] = ("store",)
    """Folders, ``s3://`` prefixes, or ``store``: this store's own closed sessions."""
    night: Annotated[StrictStr, Field(pattern=r"^\d{4}-\d\d-\d\d$")] | None = None
    """Its date, by which records age; None: today, by the clock of the process that starts it."""
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
    canary: CanaryLimits = CanaryLimits()
    """When a canary is kept, extended or rolled back."""
    admission: AdmissionPolicy = AdmissionPolicy()
    """What it takes to become active, and how long that lasts."""
    drift: DriftLimits = DriftLimits()
    """Where WARN and BLOCK begin."""
    gate: GateSettings = GateSettings()
    """How champion and challenger are replayed."""
    internal_tools: Annotated[tuple[StrictStr, ...], Field(max_length=1_000)] = ()
    """Tools whose results are the operator's own; of all others they come from outside."""
    confirming_tools: Annotated[
        dict[ToolName, Annotated[tuple[ToolName, ...], Field(min_length=1, max_length=100)]], Field(max_length=1_000)
    ] = Field(default_factory=dict)
    """Internal tools that only read, by name: the fields of their answers that may confirm what people claim. Name no
    field that repeats what somebody wrote, such as the text of a note, a ticket or a search."""
    who: Annotated[StrictStr, Field(min_length=1, max_length=200)] = "steward"
    """In whose name it commits."""


HINTS = MappingProxyType(
    {
        "night": "write a date such as 2026-11-22",
        "since": "write an ISO 8601 time such as 2026-11-22T03:00:00+00:00",
        "until": "write an ISO 8601 time such as 2026-11-22T03:00:00+00:00",
        "runner": "write threads or dask",
        "workers": "write a whole number from 1 to 256",
        "canary_share": "write a share over 0 and up to 1, such as 0.1",
    }
)
"""What to do about a wrong value."""
FORM = DocumentKind(
    what="settings",
    max_bytes=64 * 1024,
    max_depth=5,
    expected="write a mapping of settings, such as profile: support",
    hints=HINTS,
)


def settings_of(path: str | Path, named: str | None = None) -> NightSettings:
    """The settings in a YAML file; `named` is what errors call one that cannot be read."""
    return read_document(path, NightSettings, FORM, named)
