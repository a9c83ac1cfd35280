"""How a promotion stands beside its version (its field `promotion`), and how it is read again.

    {"schema_version": 1, "level", "touched": [key], "drift": {"blob", "key"}, "gate": {…}, "patch": {…},
     "approvals": [{"who", "when", "link"}], "canary"?: {"share", "champion"}, "taken_back": {change: when}}

Blobs lie in the vault: the drift report, the gate report, and the RFC 6902 patch with its inverse. Patch and report
hold meta records as addresses, so forgetting somebody leaves nothing of them there. The gate report tells what the
replay of this version gave, and under which key (`Form.known`).

Raises what `Vault` raises. Source: the state design (committing governed state); RFC 6902.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ctxsteward.envelope.keys import address_of
from ctxsteward.envelope.profile import Profile
from ctxsteward.envelope.slices import canonical, record_subject
from ctxsteward.envelope.store import Store
from ctxsteward.envelope.versions import ProfileVersions
from ctxsteward.schemas import Erased, ObjectMissing
from ctxsteward.schemas.drift import DriftReport
from ctxsteward.schemas.profile import MetaRecord, ProfileDocument
from ctxsteward.schemas.publish import validate

from .approvals import Approval
from .drift import difference, keyed, without_text
from .gate.port import GateReport
from .gate.suite import Known


class Form:
    """Promotions of one profile."""

    def __init__(self, store: Store, versions: ProfileVersions) -> None:
        self._vault = store.vault(versions.tenant)
        self._versions = versions
        self._key = store.keys.address_key(versions.tenant)
        self._profile = versions.name

    def promotion(
        self,
        champion: ProfileDocument | None,
        challenger: ProfileDocument,
        drift: DriftReport,
        gate: GateReport,
        agreed: tuple[Approval, ...],
        canary: Mapping[str, Any] | None,
        commit_id: str,
    ) -> dict[str, Any]:
        """Put reports and patch into the vault; what stands beside the version."""
        subject = f"\x00promotion\x00{self._profile}\x00{commit_id}"
        patch = difference(self._referred(champion or ProfileDocument(name=self._profile)), self._referred(challenger))
        ids = {record.id: self._address(record) for record in (*(champion.meta if champion else ()), *challenger.meta)}
        kept = {
            "drift": without_text(drift, lambda id: ids.get(id, "")).model_dump(mode="json"),
            "gate": gate.document() | {"replay": self._replay(gate.replay)},
            "patch": {"patch": list(patch.patch), "inverse": list(patch.inverse)},
        }
        validate("drift_report", kept["drift"], f"{self._profile}: commit {commit_id}")
        made: dict[str, Any] = {"schema_version": 1, "level": drift.level, "touched": list(drift.touched)}
        made |= {name: self._kept(subject, name, canonical(value)) for name, value in kept.items()}
        made["approvals"] = [{"who": each.who, "when": each.when, "link": each.link} for each in agreed]
        return made | ({"canary": dict(canary)} if canary else {})

    def known(self, version: int) -> Known:
        """The replay of what a version says, as the gate measured it before the commit."""

        def find(key: str) -> Mapping[str, dict[str, float]] | None:
            told = next(iter(self._versions.told(version)))
            while told.promotion is None and told.entry.restores is not None:
                told = next(iter(self._versions.told(told.entry.restores)))
            kept = self._content((told.promotion or {}).get("gate"))
            if not key or kept is None or kept.get("replay") != self._replay(key):
                return None
            measured: dict[str, dict[str, float]] = {}
            for case, guard, _, challenger in kept["pairs"]:
                measured.setdefault(case, {})[guard] = challenger
            return measured

        return find

    def _content(self, kept: Mapping[str, str] | None) -> dict[str, Any] | None:
        if kept is None:
            return None
        with suppress(Erased, ObjectMissing):
            found: dict[str, Any] = json.loads(self._vault.get(kept["blob"]))
            return found
        return None

    def _replay(self, key: str) -> str | None:
        """What a replay is called where it is kept: a plain digest of short texts would tell them."""
        return address_of(self._key, self._profile, "replay", key.encode()) if key else None

    def _kept(self, subject: str, kind: str, data: bytes) -> dict[str, str]:
        blob = self._vault.put(subject, kind, data)
        return {"blob": blob, "key": self._vault.subject_address(subject)}

    def _address(self, record: MetaRecord) -> str:
        """The address under which a version refers to a record (`slices.Shelf`)."""
        data = canonical(record.model_dump(mode="json"))
        return address_of(self._key, record_subject(self._profile, record), "record", data)

    def _referred(self, document: ProfileDocument) -> dict[str, Any]:
        def shown(record: MetaRecord) -> dict[str, Any]:
            return {"key": self._vault.subject_address(record_subject(self._profile, record))}

        named = document.model_copy(update={"name": self._profile})
        return keyed(Profile.from_document(named), shown, self._address)
