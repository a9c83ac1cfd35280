from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.compaction_price import CompactionPrice
  from ..models.compression_report import CompressionReport





T = TypeVar("T", bound="Compaction")



@_attrs_define
class Compaction:
    """ What a compaction did, or would do.

        Attributes:
            session (str):
            dry_run (bool):
            is_compacted (bool):
            reason (None | str):
            report (CompressionReport | None):
            price (CompactionPrice): What a compaction costs and saves, in tokens at the price of one that no cache serves.
            address (None | str):
     """

    session: str
    dry_run: bool
    is_compacted: bool
    reason: None | str
    report: CompressionReport | None
    price: CompactionPrice
    address: None | str





    def to_dict(self) -> dict[str, Any]:
        from ..models.compaction_price import CompactionPrice # noqa: PLC0415
        from ..models.compression_report import CompressionReport # noqa: PLC0415
        session = self.session

        dry_run = self.dry_run

        is_compacted = self.is_compacted

        reason: None | str
        reason = self.reason

        report: dict[str, Any] | None
        if isinstance(self.report, CompressionReport):
            report = self.report.to_dict()
        else:
            report = self.report

        price = self.price.to_dict()

        address: None | str
        address = self.address


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "session": session,
            "dry_run": dry_run,
            "is_compacted": is_compacted,
            "reason": reason,
            "report": report,
            "price": price,
            "address": address,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.compaction_price import CompactionPrice # noqa: PLC0415
        from ..models.compression_report import CompressionReport # noqa: PLC0415
        d = dict(src_dict)
        session = d.pop("session")

        dry_run = d.pop("dry_run")

        is_compacted = d.pop("is_compacted")

        def _parse_reason(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        reason = _parse_reason(d.pop("reason"))


        def _parse_report(data: object) -> CompressionReport | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                report_type_0 = CompressionReport.from_dict(data)



                return report_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CompressionReport | None, data)

        report = _parse_report(d.pop("report"))


        price = CompactionPrice.from_dict(d.pop("price"))




        def _parse_address(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        address = _parse_address(d.pop("address"))


        compaction = cls(
            session=session,
            dry_run=dry_run,
            is_compacted=is_compacted,
            reason=reason,
            report=report,
            price=price,
            address=address,
        )

        return compaction

