"""Lay a past envelope out again, byte for byte, from the log and its manifest alone.

Parts that the journal lost are regenerated if possible, else flagged (`LOSSES` of `ctxsteward.schemas`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxsteward.schemas import CompressionReport, Erased, Finding, InputError, ReferenceNotFound
from ctxsteward.schemas.errors import Damaged
from ctxsteward.store.addresses import report_in

from ..envelope import Envelope
from ..instruments import cache_miss
from ..store import Store
from .builder import EnvelopeBuilder


def rebuild(store: Store, address: str, *, tenant: str = "default") -> Envelope:
    """Return a past envelope, byte for byte, from the log and its manifest alone.

    If the log no longer has everything it was laid out from (damaged or forgotten records), the result has another
    address and the finding ``rebuilt_differs``. Raises `ReferenceNotFound` for an address that was never built here,
    `Damaged` if its manifest is damaged, `Erased` for a forgotten session.
    """
    try:
        manifest = store.manifest(address, tenant=tenant)
    except Damaged:
        cache_miss("manifest")
        raise
    if report_in(manifest) is not None:
        what = f"{address[:16]}… is the address of a report, not of an envelope"
        raise InputError(f"{what}; `ctxsteward report {address[:16]}` shows it")
    builder = EnvelopeBuilder.from_manifest(manifest)
    session = store.at(tenant, manifest["session"], manifest["position"])
    reports, lost = _reports(store, manifest.get("reports", ()), tenant)
    findings = tuple(Finding.model_validate(finding) for finding in manifest.get("findings", ()))
    envelope = builder.rebuild(session, reports=reports, findings=findings)
    if envelope.address == address and not lost:
        return envelope
    cache_miss("envelope")
    what = f"; its compactions {', '.join(id[:16] + '…' for id in lost)} cannot be read" if lost else ""
    text = f"the log no longer holds all that envelope {address[:16]}… was laid out from: this is another one{what}"
    differs = Finding(kind="rebuilt_differs", text=text)
    return replace(envelope, findings=(*envelope.findings, differs), metrics={**envelope.metrics, "degraded": 1})


def _reports(store: Store, ids: Sequence[str], tenant: str) -> tuple[tuple[CompressionReport, ...], list[str]]:
    """Return the reports of these compactions, and the ids of unreadable ones."""
    reports: list[CompressionReport] = []
    lost: list[str] = []
    for id in ids:
        try:
            reports.append(store.report(id, tenant=tenant))
        except (Damaged, Erased, ReferenceNotFound):
            lost.append(id)
    return tuple(reports), lost
