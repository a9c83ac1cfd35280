from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="Finding")



@_attrs_define
class Finding:
    """ One observation about an input or an output.

        Attributes:
            kind (str):
            ref (None | str):
            field (None | str):
            text (str):
     """

    kind: str
    ref: None | str
    field: None | str
    text: str





    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        ref: None | str
        ref = self.ref

        field: None | str
        field = self.field

        text = self.text


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "kind": kind,
            "ref": ref,
            "field": field,
            "text": text,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        def _parse_ref(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        ref = _parse_ref(d.pop("ref"))


        def _parse_field(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        field = _parse_field(d.pop("field"))


        text = d.pop("text")

        finding = cls(
            kind=kind,
            ref=ref,
            field=field,
            text=text,
        )

        return finding

