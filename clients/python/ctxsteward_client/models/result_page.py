from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.eval_result import EvalResult





T = TypeVar("T", bound="ResultPage")



@_attrs_define
class ResultPage:
    """ Results of eval suites, newest first.

        Attributes:
            items (list[EvalResult]):
            next_ (None | str):
     """

    items: list[EvalResult]
    next_: None | str





    def to_dict(self) -> dict[str, Any]:
        from ..models.eval_result import EvalResult # noqa: PLC0415
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
        from ..models.eval_result import EvalResult # noqa: PLC0415
        d = dict(src_dict)
        items = []
        _items = d.pop("items")
        for items_item_data in (_items):
            items_item = EvalResult.from_dict(items_item_data)



            items.append(items_item)


        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))


        result_page = cls(
            items=items,
            next_=next_,
        )

        return result_page

