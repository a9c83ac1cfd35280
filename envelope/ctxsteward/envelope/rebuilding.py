"""A past envelope again, byte for byte, out of the log and its manifest alone.

Where the log no longer holds what the envelope was laid out from (something was damaged, or forgotten), the result has
another address and the finding ``rebuilt_differs``. Raises `ReferenceNotFound`, `Damaged`, `Erased`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ctxsteward.schemas import CompressionReport, Damaged, Erased, Finding, InputError, ReferenceNotFound, Wire

from . import telemetry
from .envelope import Envelope
from .meta_slice import report_in
from .store import Store

if TYPE_CHECKING:
    from .builder import EnvelopeBuilder


def rebuilt(store: Store, address: str, tenant: str, builder_of: Callable[[Wire], EnvelopeBuilder]) -> Envelope:
    """Lay out what a manifest describes, with the builder that it names."""
    try:
        manifest = store.manifest(address, tenant=tenant)
    except Damaged:
        telemetry.cache_miss("manifest")
        raise
    if report_in(manifest) is not None:
        what = f"{address[:16]}… is the address of a report, not of an envelope"
        raise InputError(f"{what}; `ctxsteward report {address[:16]}` shows it")
    builder = builder_of(manifest)
    session = store.at(tenant, manifest["session"], manifest["position"])
    reports, lost = _reports(store, manifest.get("reports", ()), tenant)
    findings = tuple(Finding.model_validate(finding) for finding in manifest.get("findings", ()))
    envelope = builder.rebuild(session, reports=reports, findings=findings)
    if envelope.address == address and not lost:
        return envelope
    telemetry.cache_miss("envelope")
    what = f"; its compactions {', '.join(id[:16] + '…' for id in lost)} cannot be read" if lost else ""
    text = f"the log no longer holds all that envelope {address[:16]}… was laid out from: this is another one{what}"
    differs = Finding(kind="rebuilt_differs", text=text)
    return replace(envelope, findings=(*envelope.findings, differs), metrics={**envelope.metrics, "degraded": 1})


def _reports(store: Store, ids: Sequence[str], tenant: str) -> tuple[tuple[CompressionReport, ...], list[str]]:
    """The reports of these compactions, and the ids of those that cannot be read any more."""
    reports: list[CompressionReport] = []
    lost: list[str] = []
    for id in ids:
        try:
            reports.append(store.report(id, tenant=tenant))
        except (Damaged, Erased, ReferenceNotFound):
            lost.append(id)
    return tuple(reports), lost
