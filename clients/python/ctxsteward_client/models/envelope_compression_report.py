from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.envelope_compression_report_section import check_envelope_compression_report_section
from ..models.envelope_compression_report_section import EnvelopeCompressionReportSection
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.envelope_loss import EnvelopeLoss
  from ..models.envelope_observation_counts import EnvelopeObservationCounts
  from ..models.envelope_summary_origin import EnvelopeSummaryOrigin





T = TypeVar("T", bound="EnvelopeCompressionReport")



@_attrs_define
class EnvelopeCompressionReport:
    """ The published view of one compaction; tokens are those of its section.

        Attributes:
            id (str):
            section (EnvelopeCompressionReportSection):
            pre_tokens (int):
            post_tokens (int):
            losses (list[EnvelopeLoss]):
            kept_refs (list[str]): Originals that a bullet cites or that stay verbatim.
            policy (str):
            source_addresses (list[str]): Addresses of the originals that left the window, in ordinal order.
            artifact (str): Address of the stored compaction.
            created_at (None | str): ISO 8601 as told by the caller's clock; None without one.
            origin (EnvelopeSummaryOrigin | None | Unset): What a model had to do with the bullets; left out where none was
                asked.
            observations (EnvelopeObservationCounts | None | Unset): Changes of the observation log, in reports of earlier
                versions.
     """

    id: str
    section: EnvelopeCompressionReportSection
    pre_tokens: int
    post_tokens: int
    losses: list[EnvelopeLoss]
    kept_refs: list[str]
    policy: str
    source_addresses: list[str]
    artifact: str
    created_at: None | str
    origin: EnvelopeSummaryOrigin | None | Unset = UNSET
    observations: EnvelopeObservationCounts | None | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.envelope_loss import EnvelopeLoss # noqa: PLC0415
        from ..models.envelope_observation_counts import EnvelopeObservationCounts # noqa: PLC0415
        from ..models.envelope_summary_origin import EnvelopeSummaryOrigin # noqa: PLC0415
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
        elif isinstance(self.origin, EnvelopeSummaryOrigin):
            origin = self.origin.to_dict()
        else:
            origin = self.origin

        observations: dict[str, Any] | None | Unset
        if isinstance(self.observations, Unset):
            observations = UNSET
        elif isinstance(self.observations, EnvelopeObservationCounts):
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
        from ..models.envelope_loss import EnvelopeLoss # noqa: PLC0415
        from ..models.envelope_observation_counts import EnvelopeObservationCounts # noqa: PLC0415
        from ..models.envelope_summary_origin import EnvelopeSummaryOrigin # noqa: PLC0415
        d = dict(src_dict)
        id = d.pop("id")

        section = check_envelope_compression_report_section(d.pop("section"))




        pre_tokens = d.pop("pre_tokens")

        post_tokens = d.pop("post_tokens")

        losses = []
        _losses = d.pop("losses")
        for losses_item_data in (_losses):
            losses_item = EnvelopeLoss.from_dict(losses_item_data)



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


        def _parse_origin(data: object) -> EnvelopeSummaryOrigin | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                origin_type_0 = EnvelopeSummaryOrigin.from_dict(data)



                return origin_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EnvelopeSummaryOrigin | None | Unset, data)

        origin = _parse_origin(d.pop("origin", UNSET))


        def _parse_observations(data: object) -> EnvelopeObservationCounts | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                observations_type_0 = EnvelopeObservationCounts.from_dict(data)



                return observations_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EnvelopeObservationCounts | None | Unset, data)

        observations = _parse_observations(d.pop("observations", UNSET))


        envelope_compression_report = cls(
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

        return envelope_compression_report

