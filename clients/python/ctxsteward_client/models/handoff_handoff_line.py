from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.handoff_handoff_line_section import check_handoff_handoff_line_section
from ..models.handoff_handoff_line_section import HandoffHandoffLineSection
from typing import cast






T = TypeVar("T", bound="HandoffHandoffLine")



@_attrs_define
class HandoffHandoffLine:
    """ One line that a model wrote, and that holds against the messages it rests on.

        Attributes:
            section (HandoffHandoffLineSection):
            text (str):
            refs (list[str]):
     """

    section: HandoffHandoffLineSection
    text: str
    refs: list[str]





    def to_dict(self) -> dict[str, Any]:
        section: str = self.section

        text = self.text

        refs = self.refs




        field_dict: dict[str, Any] = {}

        field_dict.update({
            "section": section,
            "text": text,
            "refs": refs,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        section = check_handoff_handoff_line_section(d.pop("section"))




        text = d.pop("text")

        refs = cast(list[str], d.pop("refs"))


        handoff_handoff_line = cls(
            section=section,
            text=text,
            refs=refs,
        )

        return handoff_handoff_line

