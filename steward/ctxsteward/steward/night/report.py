"""The report of a night: how many were left after each stage, what was refused, what changed and why.

The decisions of a night begin it, `run` completes it, and `chain.NightChain.reports` reads it back without names. The
command line adds new and held records, and the changelog entry. From this one value come the terminal's output, JSON,
the status, the page, Markdown and the metrics.

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
"""As `chain.Outcome`; rolled_back: a canary failed and the version before is in force again. busy: another night is
under way, and this one did nothing."""

STAGES = ("due", "harvested", "absorbed", "reconciled", "admitted", "fitted", "staged", "promoted")
"""Stages whose yield is counted."""
HITS = ("events", "anticipated", "shown", "judged", "fired", "complied", "contradicted")
"""Counts of the use that was made of records."""
CHECKS = {"gate": "evals"}
"""What a check is called in reports for people, where that is not its field's name."""


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


class NightReport(ReportValue):
    """One night."""

    @model_validator(mode="before")
    @classmethod
    def _read_earlier(cls, values: Any) -> Any:
        # Earlier versions counted observation logs and a model's wordings here; `rates` follow from `hits`.
        gone = ("observing", "wording", "tokens", "rates")
        return {k: v for k, v in values.items() if k not in gone} if isinstance(values, dict) else values

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
    stages: dict[str, Count] = {}
    """What each stage left, in order."""
    skipped: dict[str, Count] = {}
    """Transcripts that were not the steward's to read, by reason."""
    refused: dict[str, Count] = {}
    """Transcripts in quarantine, by reason."""
    quarantined: tuple[QuarantinedTranscript, ...] = ()
    """Their names."""
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
    drafted: Count = 0
    """Changes of the profile that are drafted for a person (`release.drafts`), where somebody counted them."""
    hits: dict[str, Count] = {}
    dated: dict[str, Count] = {}
    """Transcripts that were read, by where their times are from (`transcript.Dated`)."""
    alerts: tuple[str, ...] = ()
    final: str | None = None
    cpu_seconds: Annotated[float, Field(ge=0)] = 0.0

    # These quote people and cost a reading of all records: only the command line asks for them, and no dump has them.
    is_compared: Annotated[StrictBool, Field(exclude=True)] = True
    """False if there are too many records to say which are new."""
    new: Annotated[tuple[MetaRecommendation, ...], Field(exclude=True)] = ()
    """Records that were not active before the night."""
    held: Annotated[tuple[MetaRecommendation, ...], Field(exclude=True)] = ()
    """Records that are not used; their `reasons` say why."""
    quotes: Annotated[dict[str, tuple[str | None, ...]], Field(exclude=True)] = {}
    """Words of the evidence of new and held records, by id, in the order of `evidence`; None: they were forgotten."""
    landed: Annotated[ChangelogEntry | None, Field(exclude=True)] = None
    """The changelog entry of the version that came into force."""
    findings: Annotated[tuple[Finding, ...], Field(exclude=True)] = ()
    """About the profile file that the night was begun with."""
    supports: Annotated[tuple[Mapping[str, str], ...], Field(exclude=True)] = ()
    """Where it is kept what stands behind records in force and in the challenger (`steward.erasure`)."""

    @property
    def has_landed(self) -> bool:
        """Whether the night brought something into force."""
        return self.outcome in ("promoted", "canary")

    @property
    def checks(self) -> dict[str, CheckVerdict]:
        """The checks that were made, by name, in order."""
        made = (("drift", self.drift), ("gate", self.gate), ("canary", self.canary))
        return {name: check for name, check in made if check is not None}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def rates(self) -> dict[str, float]:
        """anticipated: of all events. used: of records shown. obeyed: of those that fired. Only what can be judged."""
        return rates_of(self.hits)

    @property
    def violations(self) -> dict[str, int]:
        """Transcripts and records that were refused by schema."""
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
            return f"the canary failed: version {self.version} says what was in force before"
        if self.outcome == "busy":
            return "; ".join(("another night is under way", *self.alerts))
        if self.failed_batches:
            return f"{self.failed_batches:,} batches failed; their transcripts stay due"
        if self.refused and not self.stages.get("harvested"):
            return f"all {sum(self.refused.values()):,} transcripts that were due were refused"
        return None

    def numbers(self) -> NightReport:
        """The report without whatever quotes somebody or names a transcript: others than the store may keep it."""
        bare = {name: check.model_copy(update={"why": ()}) for name, check in self.checks.items()}
        names = ("changes", "quarantined", "new", "held", "quotes", "landed", "findings")
        return self.model_copy(update={**{name: type(self).model_fields[name].default for name in names}, **bare})

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
        """0 fine; 1 a batch failed, or all that was due was refused; 3 a person must look; 4 rolled back."""
        if self.outcome == "rolled_back":
            return EXIT_ROLLED_BACK
        if self.outcome in ("held", "rejected", "busy"):
            return EXIT_BLOCKED
        all_refused = bool(self.refused) and not self.stages.get("harvested") and not self.dry_run
        return EXIT_FOUND if self.failed_batches or all_refused else EXIT_FINE
