from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.compression_report_loss_kind import check_compression_report_loss_kind
from ..models.compression_report_loss_kind import CompressionReportLossKind
from typing import cast






T = TypeVar("T", bound="CompressionReportLoss")



@_attrs_define
class CompressionReportLoss:
    """ Something the originals said that the section no longer shows; it still resolves by `ref`.

        Attributes:
            kind (CompressionReportLossKind):
            text (str):
            ref (str):
            span (list[int] | None): Character offsets into the original's text; None: the message as a whole.
     """

    kind: CompressionReportLossKind
    text: str
    ref: str
    span: list[int] | None





    def to_dict(self) -> dict[str, Any]:
        kind: str = self.kind

        text = self.text

        ref = self.ref

        span: list[int] | None
        if isinstance(self.span, list):
            span = []
            for span_type_0_item_data in self.span:
                span_type_0_item: int
                span_type_0_item = span_type_0_item_data
                span.append(span_type_0_item)


        else:
            span = self.span


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "kind": kind,
            "text": text,
            "ref": ref,
            "span": span,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = check_compression_report_loss_kind(d.pop("kind"))




        text = d.pop("text")

        ref = d.pop("ref")

        def _parse_span(data: object) -> list[int] | None:
            if data is None:
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                span_type_0 = []
                _span_type_0 = data
                for span_type_0_item_data in (_span_type_0):
                    def _parse_span_type_0_item(data: object) -> int:
                        return cast(int, data)

                    span_type_0_item = _parse_span_type_0_item(span_type_0_item_data)

                    span_type_0.append(span_type_0_item)

                return span_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | None, data)

        span = _parse_span(d.pop("span"))


        compression_report_loss = cls(
            kind=kind,
            text=text,
            ref=ref,
            span=span,
        )

        return compression_report_loss

