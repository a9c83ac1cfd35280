from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.envelope_compression_report_section import check_envelope_compression_report_section
from ..models.envelope_compression_report_section import EnvelopeCompressionReportSection
from typing import cast

if TYPE_CHECKING:
  from ..models.envelope_loss import EnvelopeLoss





T = TypeVar("T", bound="EnvelopeCompressionReport")



@_attrs_define
class EnvelopeCompressionReport:
    """ The published view of one compaction.

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





    def to_dict(self) -> dict[str, Any]:
        from ..models.envelope_loss import EnvelopeLoss # noqa: PLC0415
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

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.envelope_loss import EnvelopeLoss # noqa: PLC0415
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
        )

        return envelope_compression_report

