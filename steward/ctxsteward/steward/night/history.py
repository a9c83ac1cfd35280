"""What a night leaves: its report, and its link in the chain of finished nights; alerts, the status of a steward.

A `NightReport` says how many were left after each stage, what was refused, what changed and why. `run` makes it; the
command line, Prefect and the metrics show it, to people and as JSON. Unlike the night's link in the chain it may name
transcripts, and it holds what the night has cost; nothing stores it by itself.

    steward/<tenant>/<profile>/nights/000000000001.json
    body: {"schema_version": 1, "night": "2026-11-22", "run": …, "marks": {URI of a source: its watermark},
           "batches": [address], "ledger": digest, "observations": n, "records": digest, "statuses": {status: n},
           "version": 7 | null, "outcome": "promoted", "final": …, "counts": {…},
           "quarantined": {reason: n}, "drift": "INFO" | "WARN" | "BLOCK" | null, "gate": …,
           "supports": [{"blob", "key"}]}

A link is written once the promotion has landed or found nothing to change. A night that was killed has none, is
repeated from the link before and writes the same bytes: no clock, duration or random id is in it, and never what
anybody said. `final` is equal where the same observations were taken in and the same text is in force, whatever the
order and number of nights it took.

`alerts` names stages whose count is unusual: nothing read though something was due, nothing known though the night
before had something, three times the median of the last `ALERT_NIGHTS` nights that read anything (at least three), and
transcripts without any time. `status` is what `ctxsteward steward status` shows, read in a few requests; its times are
Unix seconds.

Raises `Damaged`, `UnsupportedVersion`, `VersionTaken`, `OutcomeUnknown`, `StoreUnavailable`.
Source: the layered-envelope design (batch loop; yields; counts after every stage); the state design (committing
governed state).
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, model_validator

from ctxsteward.envelope import Store
from ctxsteward.schemas.errors import UnsupportedVersion
from ctxsteward.schemas.recommendation import Count
from ctxsteward.store.crypto.hash_chain import Link
from ctxsteward.store.crypto.keyring import address_of
from ctxsteward.store.names import numbered, steward_folder
from ctxsteward.store.profiles.versions import WriterLease

EXIT_FINE, EXIT_FOUND, EXIT_BLOCKED, EXIT_ROLLED_BACK = 0, 1, 3, 4

SCHEMA_REASONS = ("invalid", "bad_metadata")
NightOutcome = Literal["unchanged", "promoted", "canary", "held", "rejected", "rolled_back", "busy"]
"""As `history.Outcome`; rolled_back: a canary failed and the version before is in force again. busy: another night is
under way, and this one did nothing."""


def rates_of(hits: Mapping[str, int]) -> dict[str, float]:
    """The rates in counts of use; a share of nothing is left out.

    >>> rates_of({"fired": 1, "judged": 4, "complied": 0, "contradicted": 0})
    {'used': 0.25}
    """
    shares = {
        "anticipated": (hits.get("anticipated", 0), hits.get("events", 0)),
        "used": (hits.get("fired", 0), hits.get("judged", 0)),
        "obeyed": (hits.get("complied", 0), hits.get("complied", 0) + hits.get("contradicted", 0)),
    }
    return {rate: part / whole for rate, (part, whole) in shares.items() if whole}


class ReportValue(BaseModel):
    """Base of what is reported of nights: frozen, and an unknown field is refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class StageYield(ReportValue):
    """What one stage left."""

    stage: str
    count: Count
    share: float | None = None
    """Its count over that of the stage before; None: that left nothing, or counts something else."""


class QuarantinedTranscript(ReportValue):
    """A transcript that was refused."""

    source: str
    name: str
    reason: str


class CheckVerdict(ReportValue):
    """What a check of the challenger said."""

    level: str
    ok: StrictBool
    """Whether it may go on without a person."""
    why: tuple[str, ...] = ()


class WordingReport(ReportValue):
    """What came of a model's wordings in one night."""

    model: str
    prompt: str
    """Name, version and digest of the prompt."""
    asked: Count
    """Records that it was asked for."""
    worded: Count
    """Wordings that held."""
    kept: Count
    """Earlier wordings that still hold."""
    refused: dict[str, Count] = {}
    """Wordings that did not, by fault."""
    fell_back: tuple[str, ...] = ()
    """Why it gave none, without a word of a transcript."""
    calls: Count = 0
    tokens: Count = 0
    dollars: Annotated[float, Field(ge=0)] = 0.0


class NightReport(ReportValue):
    """One night."""

    @model_validator(mode="before")
    @classmethod
    def _read_earlier(cls, values: Any) -> Any:
        # Earlier versions counted observation logs here. The count means nothing without the logs.
        return {k: v for k, v in values.items() if k != "observing"} if isinstance(values, dict) else values

    schema_version: Literal[1] = 1
    tenant: str
    profile: str
    night: str
    run: str | None = None
    """None: it did not begin."""
    number: StrictInt | None = None
    """Number of its link in the chain; None: nothing was written."""
    dry_run: StrictBool = False
    outcome: NightOutcome
    version: StrictInt | None = None
    """In force when it ended."""
    stages: tuple[StageYield, ...] = ()
    skipped: dict[str, Count] = {}
    """Transcripts that were not the steward's to read, by reason."""
    quarantined: tuple[QuarantinedTranscript, ...] = ()
    statuses: dict[str, Count] = {}
    """Records by status."""
    refused_records: Count = 0
    """Records that their schema refused."""
    failed_batches: Count = 0
    """Their transcripts stay due."""
    found_batches: Count = 0
    """Done by an earlier run, and not again."""
    drift: CheckVerdict | None = None
    gate: CheckVerdict | None = None
    canary: CheckVerdict | None = None
    changes: tuple[str, ...] = ()
    waiting: Count = 0
    """Things that wait for a person."""
    hits: dict[str, Count] = {}
    dated: dict[str, Count] = {}
    """Transcripts that were read, by where their times are from (`transcript.Dated`)."""
    alerts: tuple[str, ...] = ()
    final: str | None = None
    cpu_seconds: Annotated[float, Field(ge=0)] = 0.0
    tokens: Count = 0
    """Tokens of models."""
    wording: WordingReport | None = None
    """None: no model was named."""

    def count(self, stage: str) -> int:
        """What this stage left; 0 where it did not run."""
        return next((left.count for left in self.stages if left.stage == stage), 0)

    @property
    def rates(self) -> dict[str, float]:
        """anticipated: of all events. used: of records shown. obeyed: of those that fired. Only what can be judged."""
        return rates_of(self.hits)

    @property
    def violations(self) -> dict[str, int]:
        """Transcripts and records that were refused by schema."""
        refused = {
            "transcript": sum(one.reason in SCHEMA_REASONS for one in self.quarantined),
            "record": self.refused_records,
        }
        return {what: number for what, number in refused.items() if number}

    @property
    def failure(self) -> str | None:
        """Why it is no success, in a line without a word of a transcript; None: it is one."""
        if self.outcome == "rejected":
            checks = (("drift", self.drift), ("evals", self.gate))
            stopped = [name for name, check in checks if check is not None and not check.ok]
            return f"rejected by {' and '.join(stopped) or 'a person'}: version {self.version or 'none'} stays in force"
        if self.outcome == "rolled_back":
            return f"the canary failed: version {self.version} says what was in force before"
        if self.outcome == "busy":
            return "; ".join(("another night is under way", *self.alerts))
        if self.failed_batches:
            return f"{self.failed_batches:,} batches failed; their transcripts stay due"
        if self.quarantined and not self.count("harvested"):
            return f"all {len(self.quarantined):,} transcripts that were due were refused"
        return None

    def numbers(self) -> NightReport:
        """The report without whatever quotes somebody or names a transcript: others than the store may keep it."""
        checks = {name: getattr(self, name) for name in ("drift", "gate", "canary")}
        bare = {name: check and check.model_copy(update={"why": ()}) for name, check in checks.items()}
        nameless = tuple(one.model_copy(update={"source": "", "name": ""}) for one in self.quarantined)
        return self.model_copy(update={"changes": (), "quarantined": nameless, **bare})

    def markdown(self) -> str:
        """Numbers and codes as a page that others may keep: no text of a transcript, no name of one."""
        version = "none" if self.version is None else str(self.version)
        lines = [f"# Night {self.night} of {self.profile}: {self.outcome.replace('_', ' ')}", ""]
        lines += [f"**{self.failure}**", ""] if self.failure else []
        lines += [f"Tenant {self.tenant}; version {version} is in force; {self.waiting:,} waits for a person.", ""]
        if self.stages:
            lines += [
                "| stage | left |",
                "|---|---:|",
                *(f"| {one.stage} | {one.count:,} |" for one in self.stages),
                "",
            ]
        for name, check in (("drift", self.drift), ("evals", self.gate), ("canary", self.canary)):
            lines += [f"- {name}: {check.level}{'' if check.ok else ', which stopped it'}"] if check else []
        refused = Counter(one.reason for one in self.quarantined)
        counted = (
            ("refused", refused),
            ("left out", self.skipped),
            ("records", self.statuses),
            ("times from", self.dated),
        )
        for name, numbers in counted:
            some = ", ".join(f"{key} {count:,}" for key, count in sorted(numbers.items()))
            lines += [f"- {name}: {some}"] if some else []
        lines += [f"- alert: {line}" for line in self.alerts]
        return "\n".join([*lines, "", "`ctxsteward steward status`, `review` and `log` say more.", ""])

    @property
    def exit_code(self) -> int:
        """0 fine; 1 a batch failed; 3 a person must look; 4 rolled back."""
        if self.outcome == "rolled_back":
            return EXIT_ROLLED_BACK
        if self.outcome in ("held", "rejected", "busy"):
            return EXIT_BLOCKED
        return EXIT_FOUND if self.failed_batches else EXIT_FINE


VERSION = 1

Outcome = Literal["unchanged", "promoted", "canary", "held", "rejected"]
"""unchanged: nothing to commit. promoted: in force. canary: in force for some sessions. held: a person must look.
rejected: the evals or the drift check stopped it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One finished night."""

    night: str
    """Its date, ISO 8601: the day by which records age."""
    run: str
    """Its id: what it read decides it."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Watermarks by source, as JSON values."""
    batches: tuple[str, ...] = ()
    """Addresses of the batches it took in (`harvest.batches`)."""
    ledger: str
    """Digest of all observations taken in so far."""
    observations: int = 0
    """How many those are."""
    records: str = ""
    """Digest of all records, as they stood."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Records by status."""
    version: int | None = None
    """Version of the profile that was in force when it ended."""
    outcome: Outcome
    final: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many after each stage, and what use was made of records."""
    quarantined: Mapping[str, int] = field(default_factory=dict)
    """Transcripts by reason."""
    drift: str | None = None
    """Level; None: nothing was staged."""
    gate: str | None = None
    """What the eval gate said, ``passed`` or ``failed``; None: nothing was staged."""
    supports: tuple[Mapping[str, str], ...] = ()
    """References to who stands behind each record (`steward.erasure`)."""

    def repeats(self, other: Night) -> bool:
        """Whether this is the other night again: the same date, nothing more read, nothing else decided."""
        same = ("night", "marks", "ledger", "records", "version", "final")
        again = self.outcome in ("unchanged", other.outcome)
        return again and all(getattr(self, name) == getattr(other, name) for name in same)


def moment_of(date: str) -> str:
    """When a night is, for what ages: its date's midnight, ISO 8601."""
    return f"{date}T00:00:00+00:00"


class NightChain:
    """The nights of one profile of one tenant."""

    def __init__(self, store: Store, tenant: str, profile: str) -> None:
        self.folder: str = steward_folder(tenant, profile, "nights")
        self._chain = store.chain(self.folder, tenant=tenant)
        self._key = store.keys.address_key(tenant)

    def head(self) -> tuple[Link, Night] | None:
        """The newest link and what it says; None where there was no night yet."""
        link = self._chain.head()
        return None if link is None else (link, self._night(link))

    def history(self, limit: int | None = None) -> Iterator[tuple[int, Night]]:
        """All nights by number, oldest first; with a limit, the newest of them."""
        last = self._chain.last_number() if limit is not None else 0
        start = 1 if limit is None else max(1, last - limit + 1)
        return ((link.number, self._night(link)) for link in self._chain.links(start))

    def newest(self, limit: int) -> list[Night]:
        """The last nights, oldest first."""
        return [night for _, night in self.history(limit)]

    def append(self, parent: Link | None, night: Night, *, epoch: int) -> Link:
        """Write a finished night after `parent`; the same night again after the same parent is found, not repeated."""
        body = {"schema_version": VERSION} | json.loads(json.dumps(asdict(night)))
        data = json.dumps([parent.mac if parent else "", body], sort_keys=True).encode()
        return self._chain.append(
            parent, body, epoch=epoch, commit_id=address_of(self._key, self.folder, "night", data)
        )

    def _night(self, link: Link) -> Night:
        body = link.body
        if body.get("schema_version") != VERSION:
            raise UnsupportedVersion(numbered(self.folder, link.number), body.get("schema_version"), VERSION)
        fields = {name: body[name] for name in Night.__dataclass_fields__ if name in body}
        return Night(**fields | {name: tuple(fields.get(name, ())) for name in ("batches", "supports")})


READING = ("harvested", "absorbed")
KNOWING = ("reconciled", "admitted", "fitted")
JUDGED = ("due", *READING, *KNOWING)
"""Stages whose yields are watched; the others are yes or no."""
MOST_RATIO = 3.0
READABLE = "readable"
"""Counted beside the stages: how many of those due were the steward's to read."""
FEWEST_NIGHTS = 3
UNDATED, DATED_BY_FILE = "undated", "dated_by_file"
"""Counted beside the stages: transcripts without any time, and those of which only the file has one."""
ALERT_NIGHTS = 7
"""Nights that a yield is judged against."""


def alerts(counts: Mapping[str, int], earlier: Sequence[Night]) -> tuple[str, ...]:
    """A line for each stage that is out of the ordinary; `earlier` nights, oldest first.

    >>> alerts({"due": 5, "harvested": 0}, [])
    ('harvested: nothing, though 5 were due',)
    """
    return tuple(_alerts(counts, [night.counts for night in earlier[-ALERT_NIGHTS:]]))


def dated_counts(dated: Mapping[str, int]) -> dict[str, int]:
    """What a night counts of where times are from (`transcript.Dated`); nothing where all have their own."""
    counts = {UNDATED: dated.get("undated", 0), DATED_BY_FILE: dated.get("file", 0)}
    return {name: count for name, count in counts.items() if count}


def alerts_of(nights: Sequence[Night]) -> list[tuple[str, ...]]:
    """The alerts of each of these nights, oldest first, by those before it."""
    return [alerts(night.counts, nights[:at]) for at, night in enumerate(nights)]


def _alerts(counts: Mapping[str, int], earlier: Sequence[Mapping[str, int]]) -> Iterator[str]:
    reading = [night for night in earlier if _readable(night)]
    for stage in JUDGED:
        count = counts.get(stage)
        if count is None:
            continue
        if count == 0:
            yield from _nothing(stage, counts, earlier)
        elif len(reading) >= FEWEST_NIGHTS:
            usual = statistics.median(night.get(stage, 0) for night in reading)
            if count >= MOST_RATIO * max(usual, 1):
                yield f"{stage}: {count:,}, {count / max(usual, 1):.1f} × the median of {len(reading)} nights"
    yield from _times(counts)


def _times(counts: Mapping[str, int]) -> Iterator[str]:
    if undated := counts.get(UNDATED, 0):
        yield f"times: {undated:,} transcripts tell none, so what they say never fades; give messages a `ts`"


def _nothing(stage: str, counts: Mapping[str, int], earlier: Sequence[Mapping[str, int]]) -> Iterator[str]:
    due = _readable(counts)
    before = earlier[-1].get(stage, 0) if earlier else 0
    if stage in READING and due:
        yield f"{stage}: nothing, though {due:,} were due"
    elif stage in KNOWING and before:
        yield f"{stage}: nothing, though the night before had {before:,}"
    elif stage == "due" and len(earlier) >= FEWEST_NIGHTS:
        usual = statistics.median(night.get(stage, 0) for night in earlier)
        if usual:
            yield f"due: nothing, though nights have {usual:,.0f}"


def _readable(counts: Mapping[str, int]) -> int:
    return counts.get(READABLE, counts.get("due", 0))


class NightLine(ReportValue):
    """A night in one line."""

    number: StrictInt
    night: str
    run: str
    outcome: str
    version: StrictInt | None
    final: str
    counts: dict[str, int]
    quarantined: dict[str, int]
    drift: str | None
    gate: str | None
    rates: dict[str, float] = Field(default_factory=dict)
    """anticipated, used, obeyed: as `NightReport.rates`."""
    alerts: tuple[str, ...] = ()
    """Stages whose yield was out of the ordinary."""


class SourceLine(ReportValue):
    """How far a source has been read."""

    source: str
    high_seconds: float | None
    """Time of the newest item seen."""
    floor_seconds: float | None
    """Everything older counts as read."""
    marks: StrictInt
    """Items remembered one by one."""


class StewardStatus(ReportValue):
    """How the steward of one profile stands."""

    tenant: str
    profile: str
    version: StrictInt | None
    """In force; None: nothing was ever committed."""
    records: StrictInt
    """Meta records in force."""
    nights: StrictInt
    """Finished so far."""
    last: tuple[NightLine, ...]
    """The newest nights, newest first."""
    sources: tuple[SourceLine, ...]
    running: str | None
    """Who holds the lease; None: nobody."""
    lapsed: StrictBool
    """Whether that lease has run out: its holder is late, or was killed."""


def status(store: Store, tenant: str, profile: str, *, now_seconds: float, limit: int = 7) -> StewardStatus:
    """Read the status of a profile's steward, with its newest `limit` nights."""
    head = store.profiles(profile, tenant=tenant).head()
    history = list(NightChain(store, tenant, profile).history(max(1, limit) + ALERT_NIGHTS))
    odd = alerts_of([night for _, night in history])
    lines = [line(*numbered_night, alerts) for numbered_night, alerts in zip(history, odd, strict=True)]
    lease = WriterLease(store, profile, tenant, owner="status", clock=lambda: now_seconds).holder()
    return StewardStatus(
        tenant=tenant,
        profile=profile,
        version=head.number if head else None,
        records=len(head.profile.meta) if head else 0,
        nights=history[-1][0] if history else 0,
        last=tuple(reversed(lines[-limit:] if limit else [])),
        sources=tuple(_source(mark) for _, mark in sorted(history[-1][1].marks.items())) if history else (),
        running=lease.owner if lease else None,
        lapsed=lease is not None and lease.expires_seconds <= now_seconds,
    )


def line(number: int, night: Night, alerts: tuple[str, ...] = ()) -> NightLine:
    """A night in one line."""
    return NightLine(
        number=number,
        night=night.night,
        run=night.run,
        outcome=night.outcome,
        version=night.version,
        final=night.final,
        counts=dict(night.counts),
        quarantined=dict(night.quarantined),
        drift=night.drift,
        gate=night.gate,
        rates=rates_of(night.counts),
        alerts=alerts,
    )


def _source(mark: dict[str, Any]) -> SourceLine:
    return SourceLine(
        source=mark["source"],
        high_seconds=mark["high_seconds"],
        floor_seconds=mark["floor_seconds"],
        marks=len(mark["marks"]),
    )
