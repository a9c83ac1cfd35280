from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="FieldFault")



@_attrs_define
class FieldFault:
    """ What is wrong with one field of a request.

        Attributes:
            where (str):
            what (str):
     """

    where: str
    what: str





    def to_dict(self) -> dict[str, Any]:
        where = self.where

        what = self.what


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "where": where,
            "what": what,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        where = d.pop("where")

        what = d.pop("what")

        field_fault = cls(
            where=where,
            what=what,
        )

        return field_fault

