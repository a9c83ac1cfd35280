"""Manifests: what is needed to lay a built envelope out again, where in the log and with which configuration.

A manifest is a JSON object, sealed by its code (`records`): session, position, ids of the compactions and findings that
the build made, and the builder's configuration, which is written once and reused. Reports of meta stand beside the
manifests, in the same form, each at its own address.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ctxsteward.schemas import CompressionReport, Finding, Wire
from ctxsteward.store.journal.log import coded_manifest

from ..history.session import Session
from ..layout.meta_section import MetaCut, report_of
from ..layout.rows import RENDERER_VERSION
from ..tokens.budgets import Budgets
from .model_target import BuildTarget


@dataclass(frozen=True, slots=True)
class Configuration:
    """What of a builder an envelope's bytes depend on, as JSON fields."""

    calibration: float
    fields: str


def configuration(
    model: str | None, target: BuildTarget, budgets: Budgets, calibration: float, renderer: int = RENDERER_VERSION
) -> Configuration:
    """Write a builder's configuration."""
    fields: Wire = {
        "renderer": renderer,
        "model": model,
        "tokenizer": target.counter.tokenizer.name,
        "images": target.counter.images,
        "window_tokens": target.window_tokens,
        "output_reserve_tokens": target.output_reserve_tokens,
        "budgets": budgets.document(),
        "calibration": calibration,
    }
    return Configuration(calibration, json.dumps(fields)[1:-1])


def keep_manifest(
    session: Session,
    address: str,
    configured: Configuration,
    reports: Sequence[CompressionReport],
    findings: Sequence[Finding],
    meta_kept: Sequence[str] | None = None,
) -> None:
    """Write down how the envelope at this address was made; `findings` are those of the build, not of the session.

    `meta_kept` are ids of records that something else than their value has chosen.
    """
    made = "" if meta_kept is None else f'"meta_kept":{json.dumps(list(meta_kept))},'
    if reports or findings or session.findings:
        ids = [report.id for report in reports]
        told = [finding.model_dump() for finding in (*session.findings, *findings)]
        made += f'"reports":{json.dumps(ids)},"findings":{json.dumps(told)},'
    fields = f'"session":{_quoted(session.id)},"position":{session.state.position},{made}{configured.fields}'
    session.journal.put_manifest(session.key, address, coded_manifest(session.address_key, address, fields))


def keep_meta_report(session: Session, cut: MetaCut, now: Callable[[], str] | None) -> CompressionReport | None:
    """Keep the report of what meta was left without, once for ever; None: it is there already."""
    asked = (session.state.head_at, cut)
    if session.cache.get("meta_report") == asked:
        return None
    key = session.address_key
    report = report_of(cut, key, session.id, session.state.head_at)
    report = report.model_copy(update={"created_at": now() if now else None})  # a caller's clock: checked below
    is_new = session.journal.get_manifest(session.tenant, report.id) is None
    if is_new:
        from ctxsteward.schemas.publish import validate  # with all models; not for who only imports us

        where = f"session {session.id!r}: report of meta"
        validate("compression_report", report.model_dump(mode="json", warnings=False), where)
        fields = f'"session":{_quoted(session.id)},"position":{session.state.position}'
        body = f'{fields},"meta_report":{report.model_dump_json()}'
        session.journal.put_manifest(session.key, report.id, coded_manifest(key, report.id, body))
    session.cache["meta_report"] = asked
    return report if is_new else None


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return json.dumps(text)
