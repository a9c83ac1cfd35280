from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.compression_report_section import check_compression_report_section
from ..models.compression_report_section import CompressionReportSection
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.compression_report_loss import CompressionReportLoss
  from ..models.compression_report_observation_counts import CompressionReportObservationCounts
  from ..models.compression_report_summary_origin import CompressionReportSummaryOrigin





T = TypeVar("T", bound="CompressionReport")



@_attrs_define
class CompressionReport:
    """ The published view of one compaction; tokens are those of its section.

        Attributes:
            id (str):
            section (CompressionReportSection):
            pre_tokens (int):
            post_tokens (int):
            losses (list[CompressionReportLoss]):
            kept_refs (list[str]): Originals that a bullet cites or that stay verbatim.
            policy (str):
            source_addresses (list[str]): Addresses of the originals that left the window, in ordinal order.
            artifact (str): Address of the stored compaction.
            created_at (None | str): ISO 8601 as told by the caller's clock; None without one.
            origin (CompressionReportSummaryOrigin | None | Unset): What a model had to do with the bullets; left out where
                none was asked.
            observations (CompressionReportObservationCounts | None | Unset): Changes of the observation log, in reports of
                earlier versions.
     """

    id: str
    section: CompressionReportSection
    pre_tokens: int
    post_tokens: int
    losses: list[CompressionReportLoss]
    kept_refs: list[str]
    policy: str
    source_addresses: list[str]
    artifact: str
    created_at: None | str
    origin: CompressionReportSummaryOrigin | None | Unset = UNSET
    observations: CompressionReportObservationCounts | None | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.compression_report_loss import CompressionReportLoss # noqa: PLC0415
        from ..models.compression_report_observation_counts import CompressionReportObservationCounts # noqa: PLC0415
        from ..models.compression_report_summary_origin import CompressionReportSummaryOrigin # noqa: PLC0415
        id = self.id

        section: str = self.section

        pre_tokens = self.pre_tokens

        post_tokens = self.post_tokens

        losses = []
        for losses_item_data in self.losses:
            losses_item = losses_item_data.to_dict()
            losses.append(losses_item)



        kept_refs = self.kept_refs



        policy = self.policy

        source_addresses = self.source_addresses



        artifact = self.artifact

        created_at: None | str
        created_at = self.created_at

        origin: dict[str, Any] | None | Unset
        if isinstance(self.origin, Unset):
            origin = UNSET
        elif isinstance(self.origin, CompressionReportSummaryOrigin):
            origin = self.origin.to_dict()
        else:
            origin = self.origin

        observations: dict[str, Any] | None | Unset
        if isinstance(self.observations, Unset):
            observations = UNSET
        elif isinstance(self.observations, CompressionReportObservationCounts):
            observations = self.observations.to_dict()
        else:
            observations = self.observations


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "id": id,
            "section": section,
            "pre_tokens": pre_tokens,
            "post_tokens": post_tokens,
            "losses": losses,
            "kept_refs": kept_refs,
            "policy": policy,
            "source_addresses": source_addresses,
            "artifact": artifact,
            "created_at": created_at,
        })
        if origin is not UNSET:
            field_dict["origin"] = origin
        if observations is not UNSET:
            field_dict["observations"] = observations

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.compression_report_loss import CompressionReportLoss # noqa: PLC0415
        from ..models.compression_report_observation_counts import CompressionReportObservationCounts # noqa: PLC0415
        from ..models.compression_report_summary_origin import CompressionReportSummaryOrigin # noqa: PLC0415
        d = dict(src_dict)
        id = d.pop("id")

        section = check_compression_report_section(d.pop("section"))




        pre_tokens = d.pop("pre_tokens")

        post_tokens = d.pop("post_tokens")

        losses = []
        _losses = d.pop("losses")
        for losses_item_data in (_losses):
            losses_item = CompressionReportLoss.from_dict(losses_item_data)



            losses.append(losses_item)


        kept_refs = cast(list[str], d.pop("kept_refs"))


        policy = d.pop("policy")

        source_addresses = cast(list[str], d.pop("source_addresses"))


        artifact = d.pop("artifact")

        def _parse_created_at(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        created_at = _parse_created_at(d.pop("created_at"))


        def _parse_origin(data: object) -> CompressionReportSummaryOrigin | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                origin_type_0 = CompressionReportSummaryOrigin.from_dict(data)



                return origin_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CompressionReportSummaryOrigin | None | Unset, data)

        origin = _parse_origin(d.pop("origin", UNSET))


        def _parse_observations(data: object) -> CompressionReportObservationCounts | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                observations_type_0 = CompressionReportObservationCounts.from_dict(data)



                return observations_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CompressionReportObservationCounts | None | Unset, data)

        observations = _parse_observations(d.pop("observations", UNSET))


        compression_report = cls(
            id=id,
            section=section,
            pre_tokens=pre_tokens,
            post_tokens=post_tokens,
            losses=losses,
            kept_refs=kept_refs,
            policy=policy,
            source_addresses=source_addresses,
            artifact=artifact,
            created_at=created_at,
            origin=origin,
            observations=observations,
        )

        return compression_report

