from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.field_fault import FieldFault





T = TypeVar("T", bound="Problem")



@_attrs_define
class Problem:
    """ Problem details (RFC 9457).

        Attributes:
            type_ (str):
            title (str):
            status (int):
            detail (str):
            request_id (str):
            errors (list[FieldFault]):
     """

    type_: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldFault]





    def to_dict(self) -> dict[str, Any]:
        from ..models.field_fault import FieldFault # noqa: PLC0415
        type_ = self.type_

        title = self.title

        status = self.status

        detail = self.detail

        request_id = self.request_id

        errors = []
        for errors_item_data in self.errors:
            errors_item = errors_item_data.to_dict()
            errors.append(errors_item)




        field_dict: dict[str, Any] = {}

        field_dict.update({
            "type": type_,
            "title": title,
            "status": status,
            "detail": detail,
            "request_id": request_id,
            "errors": errors,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.field_fault import FieldFault # noqa: PLC0415
        d = dict(src_dict)
        type_ = d.pop("type")

        title = d.pop("title")

        status = d.pop("status")

        detail = d.pop("detail")

        request_id = d.pop("request_id")

        errors = []
        _errors = d.pop("errors")
        for errors_item_data in (_errors):
            errors_item = FieldFault.from_dict(errors_item_data)



            errors.append(errors_item)


        problem = cls(
            type_=type_,
            title=title,
            status=status,
            detail=detail,
            request_id=request_id,
            errors=errors,
        )

        return problem

