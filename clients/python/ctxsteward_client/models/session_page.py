from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.finding import Finding
  from ..models.session_listing import SessionListing





T = TypeVar("T", bound="SessionPage")



@_attrs_define
class SessionPage:
    """ Sessions by name.

        Attributes:
            items (list[SessionListing]):
            next_ (None | str):
            findings (list[Finding]):
     """

    items: list[SessionListing]
    next_: None | str
    findings: list[Finding]





    def to_dict(self) -> dict[str, Any]:
        from ..models.finding import Finding # noqa: PLC0415
        from ..models.session_listing import SessionListing # noqa: PLC0415
        items = []
        for items_item_data in self.items:
            items_item = items_item_data.to_dict()
            items.append(items_item)



        next_: None | str
        next_ = self.next_

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)




        field_dict: dict[str, Any] = {}

        field_dict.update({
            "items": items,
            "next": next_,
            "findings": findings,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.finding import Finding # noqa: PLC0415
        from ..models.session_listing import SessionListing # noqa: PLC0415
        d = dict(src_dict)
        items = []
        _items = d.pop("items")
        for items_item_data in (_items):
            items_item = SessionListing.from_dict(items_item_data)



            items.append(items_item)


        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))


        findings = []
        _findings = d.pop("findings")
        for findings_item_data in (_findings):
            findings_item = Finding.from_dict(findings_item_data)



            findings.append(findings_item)


        session_page = cls(
            items=items,
            next_=next_,
            findings=findings,
        )

        return session_page

