from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
from typing import Literal, cast

if TYPE_CHECKING:
  from ..models.envelope_compression_report import EnvelopeCompressionReport
  from ..models.envelope_finding import EnvelopeFinding
  from ..models.envelope_metrics import EnvelopeMetrics
  from ..models.envelope_seal_document import EnvelopeSealDocument
  from ..models.envelope_sections_document import EnvelopeSectionsDocument





T = TypeVar("T", bound="Envelope")



@_attrs_define
class Envelope:
    """ What one model call was shown, section by section, and what happened on the way.

        Attributes:
            schema_version (Literal[1]):
            address (str): Covers version, tenant, session, profile version and sections; not reports, findings, metrics,
                seal.
            tenant (str):
            session (str):
            profile_version (None | str): Address of the profile in force; null without a profile.
            sections (EnvelopeSectionsDocument): The four sections in the order of the prompt.
            reports (list[EnvelopeCompressionReport]): Compactions that this build made.
            findings (list[EnvelopeFinding]):
            metrics (EnvelopeMetrics): Figures by name: tokens, counts, and milliseconds where a name ends in `_ms`.
            seal (EnvelopeSealDocument | None): Signature over the address; null where the store does not seal.
     """

    schema_version: Literal[1]
    address: str
    tenant: str
    session: str
    profile_version: None | str
    sections: EnvelopeSectionsDocument
    reports: list[EnvelopeCompressionReport]
    findings: list[EnvelopeFinding]
    metrics: EnvelopeMetrics
    seal: EnvelopeSealDocument | None





    def to_dict(self) -> dict[str, Any]:
        from ..models.envelope_compression_report import EnvelopeCompressionReport # noqa: PLC0415
        from ..models.envelope_finding import EnvelopeFinding # noqa: PLC0415
        from ..models.envelope_metrics import EnvelopeMetrics # noqa: PLC0415
        from ..models.envelope_seal_document import EnvelopeSealDocument # noqa: PLC0415
        from ..models.envelope_sections_document import EnvelopeSectionsDocument # noqa: PLC0415
        schema_version = self.schema_version

        address = self.address

        tenant = self.tenant

        session = self.session

        profile_version: None | str
        profile_version = self.profile_version

        sections = self.sections.to_dict()

        reports = []
        for reports_item_data in self.reports:
            reports_item = reports_item_data.to_dict()
            reports.append(reports_item)



        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)



        metrics = self.metrics.to_dict()

        seal: dict[str, Any] | None
        if isinstance(self.seal, EnvelopeSealDocument):
            seal = self.seal.to_dict()
        else:
            seal = self.seal


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "schema_version": schema_version,
            "address": address,
            "tenant": tenant,
            "session": session,
            "profile_version": profile_version,
            "sections": sections,
            "reports": reports,
            "findings": findings,
            "metrics": metrics,
            "seal": seal,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.envelope_compression_report import EnvelopeCompressionReport # noqa: PLC0415
        from ..models.envelope_finding import EnvelopeFinding # noqa: PLC0415
        from ..models.envelope_metrics import EnvelopeMetrics # noqa: PLC0415
        from ..models.envelope_seal_document import EnvelopeSealDocument # noqa: PLC0415
        from ..models.envelope_sections_document import EnvelopeSectionsDocument # noqa: PLC0415
        d = dict(src_dict)
        schema_version = cast(Literal[1] , d.pop("schema_version"))
        if schema_version != 1:
            raise ValueError(f"schema_version must match const 1, got '{schema_version}'")

        address = d.pop("address")

        tenant = d.pop("tenant")

        session = d.pop("session")

        def _parse_profile_version(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        profile_version = _parse_profile_version(d.pop("profile_version"))


        sections = EnvelopeSectionsDocument.from_dict(d.pop("sections"))




        reports = []
        _reports = d.pop("reports")
        for reports_item_data in (_reports):
            reports_item = EnvelopeCompressionReport.from_dict(reports_item_data)



            reports.append(reports_item)


        findings = []
        _findings = d.pop("findings")
        for findings_item_data in (_findings):
            findings_item = EnvelopeFinding.from_dict(findings_item_data)



            findings.append(findings_item)


        metrics = EnvelopeMetrics.from_dict(d.pop("metrics"))




        def _parse_seal(data: object) -> EnvelopeSealDocument | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                seal_type_0 = EnvelopeSealDocument.from_dict(data)



                return seal_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EnvelopeSealDocument | None, data)

        seal = _parse_seal(d.pop("seal"))


        envelope = cls(
            schema_version=schema_version,
            address=address,
            tenant=tenant,
            session=session,
            profile_version=profile_version,
            sections=sections,
            reports=reports,
            findings=findings,
            metrics=metrics,
            seal=seal,
        )

        return envelope

