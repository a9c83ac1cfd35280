from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.meta_recommendation import MetaRecommendation





T = TypeVar("T", bound="RecordPage")



@_attrs_define
class RecordPage:
    """ Records of the steward, by id.

        Attributes:
            items (list[MetaRecommendation]):
            next_ (None | str):
     """

    items: list[MetaRecommendation]
    next_: None | str





    def to_dict(self) -> dict[str, Any]:
        from ..models.meta_recommendation import MetaRecommendation # noqa: PLC0415
        items = []
        for items_item_data in self.items:
            items_item = items_item_data.to_dict()
            items.append(items_item)



        next_: None | str
        next_ = self.next_


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "items": items,
            "next": next_,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.meta_recommendation import MetaRecommendation # noqa: PLC0415
        d = dict(src_dict)
        items = []
        _items = d.pop("items")
        for items_item_data in (_items):
            items_item = MetaRecommendation.from_dict(items_item_data)



            items.append(items_item)


        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))


        record_page = cls(
            items=items,
            next_=next_,
        )

        return record_page

