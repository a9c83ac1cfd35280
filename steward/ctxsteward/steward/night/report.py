"""The report of a night: counts after each stage, refused transcripts and records, changes and their reasons.

`release.decision` begins a report, `run` completes it, and `chain.NightChain.reports` reads it back without names. The
command line adds new and held records, and the changelog entry. Terminal output, JSON, status, page, Markdown and
metrics are all made from this value.

Source: the layered-envelope design (yields; counts after every stage).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, computed_field, model_validator

from ctxsteward.schemas.findings import Finding
from ctxsteward.schemas.profile_changes import ChangelogEntry
from ctxsteward.schemas.recommendation import Count, MetaRecommendation

EXIT_FINE, EXIT_FOUND, EXIT_BLOCKED, EXIT_ROLLED_BACK = 0, 1, 3, 4

SCHEMA_REASONS = ("invalid", "bad_metadata")
NightOutcome = Literal["unchanged", "promoted", "canary", "held", "rejected", "rolled_back", "busy"]
"""As `chain.Outcome`, and: rolled_back: a canary failed, and the version before it is in force again. busy: another
night is running, and this one did nothing."""

STAGES = ("due", "harvested", "absorbed", "reconciled", "admitted", "fitted", "staged", "promoted")
"""Stages of a night that are counted."""
HITS = ("events", "anticipated", "shown", "judged", "fired", "complied", "contradicted")
"""Counts of the use of records."""
CHECKS = {"gate": "evals"}
"""Names of checks in reports for people, if they differ from the field's name."""


def rates_of(hits: Mapping[str, int]) -> dict[str, float]:
    """Return rates from counts of use; a rate without a denominator is left out.

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
    """Base of the values in a report: frozen, and unknown fields are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class QuarantinedTranscript(ReportValue):
    """A quarantined transcript."""

    source: str
    name: str
    reason: str


class CheckVerdict(ReportValue):
    """Result of a check of the challenger."""

    level: str
    ok: StrictBool
    """Whether the challenger may go on without a person."""
    why: tuple[str, ...] = ()


class NightReport(ReportValue):
    """The report of one night."""

    @model_validator(mode="before")
    @classmethod
    def _read_earlier(cls, values: Any) -> Any:
        # Earlier versions wrote the first three fields; `rates` is computed from `hits`.
        gone = ("observing", "wording", "tokens", "rates")
        return {k: v for k, v in values.items() if k not in gone} if isinstance(values, dict) else values

    schema_version: Literal[1] = 1
    tenant: str
    profile: str
    night: str
    run: str | None = None
    """None if the night did not begin."""
    number: StrictInt | None = None
    """Number of the night's link in the chain; None if nothing was written."""
    dry_run: StrictBool = False
    outcome: NightOutcome
    version: StrictInt | None = None
    """Version in force at the end of the night."""
    stages: dict[str, Count] = {}
    """Counts after each stage, in order."""
    skipped: dict[str, Count] = {}
    """Number of transcripts that are not for the steward, by reason."""
    refused: dict[str, Count] = {}
    """Number of quarantined transcripts, by reason."""
    quarantined: tuple[QuarantinedTranscript, ...] = ()
    statuses: dict[str, Count] = {}
    """Number of records by status."""
    refused_records: Count = 0
    """Number of drafts that the schema of records refused."""
    failed_batches: Count = 0
    """Number of failed batches; their transcripts stay due."""
    found_batches: Count = 0
    """Number of batches that an earlier run had finished."""
    drift: CheckVerdict | None = None
    gate: CheckVerdict | None = None
    canary: CheckVerdict | None = None
    changes: tuple[str, ...] = ()
    waiting: Count = 0
    """Number of requests that wait for a person."""
    drafted: Count = 0
    """Number of profile changes drafted for a person (`release.drafts`), if they were counted."""
    hits: dict[str, Count] = {}
    """Counts of the use of records, by the names in `HITS`."""
    dated: dict[str, Count] = {}
    """Number of transcripts read, by the source of their times (`transcript.Dated`)."""
    alerts: tuple[str, ...] = ()
    final: str | None = None
    cpu_seconds: Annotated[float, Field(ge=0)] = 0.0

    # These fields quote people, and filling them reads all records. Only the command line does, and no dump has them.
    is_compared: Annotated[StrictBool, Field(exclude=True)] = True
    """False if there are too many records to find the new ones."""
    new: Annotated[tuple[MetaRecommendation, ...], Field(exclude=True)] = ()
    """Records that were not active before the night."""
    held: Annotated[tuple[MetaRecommendation, ...], Field(exclude=True)] = ()
    """Records that are not used; their `reasons` say why."""
    quotes: Annotated[dict[str, tuple[str | None, ...]], Field(exclude=True)] = {}
    """Words of the evidence of new and held records, by id, in the order of `evidence`; None for forgotten words."""
    landed: Annotated[ChangelogEntry | None, Field(exclude=True)] = None
    """Changelog entry of the version that came into force."""
    findings: Annotated[tuple[Finding, ...], Field(exclude=True)] = ()
    """Findings about the profile file that began the night."""
    supports: Annotated[tuple[Mapping[str, str], ...], Field(exclude=True)] = ()
    """References to the supports of records in force and in the challenger (`steward.erasure`)."""

    @property
    def has_landed(self) -> bool:
        """Whether the night brought a new version into force."""
        return self.outcome in ("promoted", "canary")

    @property
    def checks(self) -> dict[str, CheckVerdict]:
        """Results of the checks that ran, by name, in order."""
        made = (("drift", self.drift), ("gate", self.gate), ("canary", self.canary))
        return {name: check for name, check in made if check is not None}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def rates(self) -> dict[str, float]:
        """Rates that can be computed. anticipated: of all events. used: of judged records. obeyed: of fired records."""
        return rates_of(self.hits)

    @property
    def violations(self) -> dict[str, int]:
        """Number of transcripts and of records that a schema refused."""
        refused = {
            "transcript": sum(self.refused.get(reason, 0) for reason in SCHEMA_REASONS),
            "record": self.refused_records,
        }
        return {what: number for what, number in refused.items() if number}

    @property
    def failure(self) -> str | None:
        """Failure reason safe to log, or None if the night succeeded."""
        if self.outcome == "rejected":
            stopped = [CHECKS.get(name, name) for name, check in self.checks.items() if not check.ok]
            return f"rejected by {' and '.join(stopped) or 'a person'}: version {self.version or 'none'} stays in force"
        if self.outcome == "rolled_back":
            return f"the canary failed: version {self.version} restores the version before it"
        if self.outcome == "busy":
            return "; ".join(("another night is under way", *self.alerts))
        if self.failed_batches:
            return f"{self.failed_batches:,} batches failed; their transcripts stay due"
        if self.refused and not self.stages.get("harvested"):
            return f"all {sum(self.refused.values()):,} due transcripts were refused"
        return None

    def numbers(self) -> NightReport:
        """Return the report without quotes and names of transcripts, safe to keep outside the store."""
        bare = {name: check.model_copy(update={"why": ()}) for name, check in self.checks.items()}
        names = ("changes", "quarantined", "new", "held", "quotes", "landed", "findings")
        return self.model_copy(update={**{name: type(self).model_fields[name].default for name in names}, **bare})

    def markdown(self) -> str:
        """Return the numbers and codes as Markdown, without text or names of transcripts."""
        version = "none" if self.version is None else str(self.version)
        lines = [f"# Night {self.night} of {self.profile}: {self.outcome.replace('_', ' ')}", ""]
        lines += [f"**{self.failure}**", ""] if self.failure else []
        lines += [f"Tenant {self.tenant}; version {version} is in force; {self.waiting:,} waits for a person.", ""]
        if self.stages:
            lines += [
                "| stage | left |",
                "|---|---:|",
                *(f"| {stage} | {count:,} |" for stage, count in self.stages.items()),
                "",
            ]
        for name, check in self.checks.items():
            lines += [f"- {CHECKS.get(name, name)}: {check.level}{'' if check.ok else ', which stopped it'}"]
        counted = (
            ("refused", self.refused),
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
        """0 success; 1 a batch failed or all due transcripts were refused; 3 a person must look; 4 rolled back."""
        if self.outcome == "rolled_back":
            return EXIT_ROLLED_BACK
        if self.outcome in ("held", "rejected", "busy"):
            return EXIT_BLOCKED
        all_refused = bool(self.refused) and not self.stages.get("harvested") and not self.dry_run
        return EXIT_FOUND if self.failed_batches or all_refused else EXIT_FINE
