"""A small steward of our own: every line of every file in a folder is an insight, and all are admitted.

The order, the batches, the chain of nights, the store, the lease and the profile's versions are the real ones. A line
``poison: REASON`` puts its file into quarantine; ``break`` breaks its whole batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ctxsteward.envelope.store import Store
from ctxsteward.schemas.profile import MetaRecord, ProfileEntry
from ctxsteward.schemas.profile_changes import DriftLevel
from ctxsteward.steward.admission import AdmittedRecords
from ctxsteward.steward.harvest.batches import (
    Batch,
    BatchRecords,
    BatchResult,
    RefusedTranscript,
    Run,
    in_threads,
)
from ctxsteward.steward.ingest.items import SourceItem
from ctxsteward.steward.ledger.facade import Ledger
from ctxsteward.steward.night.chain import NightChain, Outcome
from ctxsteward.steward.night.report import CheckVerdict, NightReport
from ctxsteward.steward.night.run import (
    CommitContext,
    FittedSlice,
    Marks,
    MarksWithout,
    OpenNight,
    Tell,
)
from ctxsteward.steward.settings import NightSettings
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.profiles.text import Profile
from ctxsteward.store.profiles.versions import WriterLease
from ctxsteward.store.sqlite_file import IN_MEMORY

KEYS = MasterKeys(b"k" * 32)
"""The same addresses in every store."""
TENANT, PROFILE = "acme", "support"
SETTINGS = NightSettings(tenant=TENANT, profile=PROFILE, sources=("folder",), batch_transcripts=4, workers=1)


class Lines:
    """The stages, and what they were asked to do."""

    def __init__(self, store: Store, folder: Path, note: Callable[[str], object] = lambda name: None) -> None:
        self.store, self.folder = store, folder
        self.records = BatchRecords(store, TENANT, PROFILE, extractor="lines/1")
        self.read: list[str] = []
        self._note = note
        self.drift: DriftLevel = "INFO"
        self.falls = False
        """Whether the challenger falls below the champion."""

    def due(self, marks: Marks) -> tuple[tuple[SourceItem, ...], MarksWithout]:
        listed = {path.name: _digest(path) for path in self.folder.iterdir()}
        done = marks.get("folder", {})
        items = tuple(SourceItem("folder", name, digest) for name, digest in listed.items() if done.get(name) != digest)

        def after(left: Collection[SourceItem]) -> Marks:
            undone = {item.name for item in left}
            now = {name: digest for name, digest in listed.items() if name not in undone}
            return {"folder": dict(sorted((dict(done) | now).items()))}

        return items, after

    def harvest(self, batch: Batch) -> BatchResult:
        found, refused = [], []
        for item in batch.items:
            text = (self.folder / item.name).read_text()
            self.read.append(item.name)
            self._note(item.name)
            if text.startswith("break"):
                raise ValueError(text)
            if text.startswith("poison"):
                refused.append(RefusedTranscript(text.partition(": ")[2].strip(), self.records.address(item)))
                continue
            data = json.dumps(text.splitlines()).encode()
            found.append(self.store.vault(TENANT).put(f"session {item.name}", "harvest", data))
        result = BatchResult(
            address=batch.address, artifacts=tuple(sorted(found)), transcripts=len(found), quarantined=tuple(refused)
        )
        return self.records.write(result)

    def absorb(
        self, artifacts: Iterable[str], withdrawn: Sequence[tuple[SourceItem, str | None]] = ()
    ) -> tuple[str, int]:
        before, new = set(), set(artifacts)
        for night in NightChain(self.store, TENANT, PROFILE).history():
            before |= {one for address in night.batches for one in self.records.read(address).artifacts}
        self.artifacts = sorted(before | new)
        digest = hashlib.sha256("".join(self.artifacts).encode()).hexdigest()
        return digest, len(self.artifacts)

    def admit(self, night: str, run: str) -> AdmittedRecords:
        vault = self.store.vault(TENANT)
        said = {line for address in self.artifacts for line in json.loads(vault.get(address))}
        found: list[Any] = [SimpleNamespace(text=text, status="active") for text in sorted(said)]
        return AdmittedRecords(active=tuple(found), digest=hashlib.sha256(repr(found).encode()).hexdigest())

    def fit(self, admitted: AdmittedRecords, writing: CommitContext) -> FittedSlice:
        made = (
            MetaRecord(id=f"r{hashlib.sha256(one.text.encode()).hexdigest()[:8]}", text=one.text, sources=("s§1",))
            for one in admitted.active
        )
        return tuple(made)[:5]

    def decide(self, admitted: AdmittedRecords, fitted: FittedSlice, writing: CommitContext, tell: Tell) -> NightReport:
        versions = self.store.profiles(PROFILE, tenant=TENANT)
        head, base = versions.head(), writing.base(versions.head())
        is_new = not base or versions.at(base).profile.meta != fitted
        outcome: Outcome = "unchanged"
        if is_new:
            outcome = "held" if self.drift == "BLOCK" else "rejected" if self.falls else "promoted"
        for boundary in ("staged", "drift", "gate"):
            tell(boundary)
        if outcome == "promoted":
            persona = (ProfileEntry(id="voice", text="Calm and brief."),)
            head = versions.commit(
                Profile(name=PROFILE, persona=persona, meta=fitted),
                who=writing.who,
                why=f"night {writing.run}",
                when=writing.when,
                parent=base,
                epoch=writing.epoch,
                commit_id=writing.commit_id,
                promotion={"level": self.drift, "approvals": []},
            )
        tell("promoted")
        texts = [record.text for record in head.profile.meta] if head else []
        return NightReport(
            tenant=TENANT,
            profile=PROFILE,
            night="",
            outcome=outcome,
            version=head.number if head else None,
            final=hashlib.sha256("\n".join(texts).encode()).hexdigest(),
            drift=CheckVerdict(level=self.drift, ok=self.drift != "BLOCK") if is_new else None,
            gate=CheckVerdict(level="failed" if self.falls else "passed", ok=not self.falls) if is_new else None,
        )

    def canary(self, admitted: AdmittedRecords, writing: CommitContext) -> CheckVerdict | None:
        return CheckVerdict(level="none", ok=True)


def shell(
    store: Store,
    lines: Lines,
    settings: NightSettings = SETTINGS,
    *,
    night: str = "2026-11-22",
    run: Run | None = None,
    clock: Callable[[], float] = lambda: 1_000.0,
    owner: str = "night@host:1",
    **more: Any,
) -> OpenNight:
    return OpenNight(
        settings=settings,
        store=store,
        ledger=Ledger.open(IN_MEMORY, store, TENANT, PROFILE),
        date=night,
        when=f"{night}T03:00:00Z",
        chain=NightChain(store, TENANT, PROFILE),
        records=lines.records,
        lease=WriterLease(store, PROFILE, TENANT, owner=owner, clock=clock),
        cpu_seconds=lambda: 0.0,
        due=lines.due,
        harvest=run or in_threads(lines.harvest, 1),
        absorb=lines.absorb,
        reconcile=lambda: len(lines.artifacts),
        decisions=lines,
        **more,
    )


def write(folder: Path, texts: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)


def some(count: int, start: int = 0) -> dict[str, str]:
    """This many files, each with an insight that another one shares."""
    return {f"{n:04}.txt": f"insight number {n // 2} holds\n" for n in range(start, start + count)}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
