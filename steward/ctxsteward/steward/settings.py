"""The settings of one profile's nights: store, profile, sources of transcripts, batch sizes, thresholds of the gates.

    store: file:.ctxsteward
    profile: support
    sources: [logs/chats, "s3://bucket/transcripts"]
    admission: {independent_principals: 4, half_life_days: {fact: 180}}
    drift: {warn_delta: 0.1}
    gate: {model: gpt-4o, cases: gate.yaml}
    canary_share: 0.1
    canary: {min_sessions: 50}

The command line, cron and Prefect start a night from the same `NightSettings`. The settings are plain JSON, so that a
schedule can keep them as the parameters of a flow. They name places only and hold no text of a transcript. Each
threshold is documented where its gate is.

`settings_of` reads a YAML file. Raises `InputError` with file, line and key; `InputTooLarge`.
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
"""Cap of the mean size of a batch. Sizes vary by chance; at this mean no batch is over 1,000."""

Runner = Literal["threads", "dask"]


class CanaryLimits(BaseModel):
    """Limits that end a canary."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    min_sessions: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = 30
    """Principals whom the challenger must have served before it is kept; a session of an unknown user counts as one."""
    max_nights: Annotated[StrictInt, Field(ge=1, le=366)] = 7


class NightSettings(BaseModel):
    """Settings of the nights of one profile."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    store: StrictStr = "file:.ctxsteward"
    """URI, as `ctxsteward.envelope.open_store` takes it."""
    journal: StrictStr | None = None
    """Folder of the journal, if it is outside the store."""
    tenant: StrictStr = "default"
    profile: EntryId = "default"
    sources: tuple[StrictStr, ...] = ("store",)
    """Folders, ``s3://`` prefixes, or ``store``: this store's own closed sessions."""
    night: Annotated[StrictStr, Field(pattern=r"^\d{4}-\d\d-\d\d$")] | None = None
    """Date of the night, by which records age; None: today, by the clock of the process that starts it."""
    since: Timestamp | None = None
    """Leave out transcripts that changed before this time; None: start at the watermarks."""
    until: Timestamp | None = None
    """Leave transcripts that changed at this time or later to a later night; None: read all."""
    full: StrictBool = False
    """Read all transcripts again."""
    keep_places: StrictBool = True
    """Whether only a record that is clearly worth more replaces a line in force. Switch it off to repeat missed nights,
    so that their order makes no difference."""
    dry_run: StrictBool = False
    """Decide, but write nothing."""
    runner: Runner = "threads"
    workers: Annotated[StrictInt, Field(ge=1, le=256)] = 2
    """Threads, or processes of a local Dask cluster."""
    dask_address: StrictStr | None = None
    """Scheduler of a Dask cluster whose workers reach the same store; None: a local cluster."""
    batch_transcripts: Annotated[StrictInt, Field(ge=1, le=MAX_BATCH_TRANSCRIPTS)] = 500
    """Highest mean number of transcripts in a batch."""
    limit_seconds: Annotated[float, Field(gt=0, le=3_600)] = 30.0
    """Wall time limit of one transcript."""
    limit_bytes: Annotated[StrictInt, Field(ge=64 << 20)] = 1 << 30
    """Memory limit of one transcript's worker."""
    lease_seconds: Annotated[float, Field(ge=1, le=86_400)] = 120.0
    """Time to live of the lease: if it is not renewed for so long, another night may begin."""
    actors: StrictStr | None = None
    """YAML file of people who may approve (`actors`); None: requests wait until somebody is configured."""
    canary_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of sessions that get a new version while it is a canary; None: all sessions get it at once."""
    canary: CanaryLimits = CanaryLimits()
    """When a canary is kept, extended or rolled back."""
    admission: AdmissionPolicy = AdmissionPolicy()
    """Thresholds of admission, and half-lives."""
    drift: DriftLimits = DriftLimits()
    """Thresholds of WARN and BLOCK."""
    gate: GateSettings = GateSettings()
    """How champion and challenger are replayed."""
    internal_tools: Annotated[tuple[StrictStr, ...], Field(max_length=1_000)] = ()
    """Tools whose results are the operator's own text; results of all other tools count as text from outside."""
    confirming_tools: Annotated[
        dict[ToolName, Annotated[tuple[ToolName, ...], Field(min_length=1, max_length=100)]], Field(max_length=1_000)
    ] = Field(default_factory=dict)
    """Internal tools that only read, by name, with the fields of their answers that may confirm what people claim. Do
    not name a field that repeats what somebody wrote, such as the text of a note, a ticket or a search."""
    who: Annotated[StrictStr, Field(min_length=1, max_length=200)] = "steward"
    """Author of the night's commits."""


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
"""Advice for a wrong value, by key."""
FORM = DocumentKind(
    what="settings",
    max_bytes=64 * 1024,
    max_depth=5,
    expected="write a mapping of settings, such as profile: support",
    hints=HINTS,
)


def settings_of(path: str | Path, named: str | None = None) -> NightSettings:
    """Read settings from a YAML file; errors call an unreadable file `named`."""
    return read_document(path, NightSettings, FORM, named)
