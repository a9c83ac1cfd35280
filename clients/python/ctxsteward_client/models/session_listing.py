from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="SessionListing")



@_attrs_define
class SessionListing:
    """ A session in a list.

        Attributes:
            id (str):
            records (int | None):
     """

    id: str
    records: int | None





    def to_dict(self) -> dict[str, Any]:
        id = self.id

        records: int | None
        records = self.records


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "id": id,
            "records": records,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        def _parse_records(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        records = _parse_records(d.pop("records"))


        session_listing = cls(
            id=id,
            records=records,
        )

        return session_listing

