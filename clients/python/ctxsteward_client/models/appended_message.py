from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="AppendedMessage")



@_attrs_define
class AppendedMessage:
    """ Where a message stands.

        Attributes:
            ref (str):
            ordinal (int):
            is_new (bool):
     """

    ref: str
    ordinal: int
    is_new: bool





    def to_dict(self) -> dict[str, Any]:
        ref = self.ref

        ordinal = self.ordinal

        is_new = self.is_new


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "ref": ref,
            "ordinal": ordinal,
            "is_new": is_new,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        ref = d.pop("ref")

        ordinal = d.pop("ordinal")

        is_new = d.pop("is_new")

        appended_message = cls(
            ref=ref,
            ordinal=ordinal,
            is_new=is_new,
        )

        return appended_message

