from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.envelope_section_document import EnvelopeSectionDocument





T = TypeVar("T", bound="EnvelopeSectionsDocument")



@_attrs_define
class EnvelopeSectionsDocument:
    """ The four sections in the order of the prompt.

        Attributes:
            system (EnvelopeSectionDocument): One section with its budget.
            static (EnvelopeSectionDocument): One section with its budget.
            meta (EnvelopeSectionDocument): One section with its budget.
            dynamic (EnvelopeSectionDocument): One section with its budget.
     """

    system: EnvelopeSectionDocument
    static: EnvelopeSectionDocument
    meta: EnvelopeSectionDocument
    dynamic: EnvelopeSectionDocument





    def to_dict(self) -> dict[str, Any]:
        from ..models.envelope_section_document import EnvelopeSectionDocument # noqa: PLC0415
        system = self.system.to_dict()

        static = self.static.to_dict()

        meta = self.meta.to_dict()

        dynamic = self.dynamic.to_dict()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "system": system,
            "static": static,
            "meta": meta,
            "dynamic": dynamic,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.envelope_section_document import EnvelopeSectionDocument # noqa: PLC0415
        d = dict(src_dict)
        system = EnvelopeSectionDocument.from_dict(d.pop("system"))




        static = EnvelopeSectionDocument.from_dict(d.pop("static"))




        meta = EnvelopeSectionDocument.from_dict(d.pop("meta"))




        dynamic = EnvelopeSectionDocument.from_dict(d.pop("dynamic"))




        envelope_sections_document = cls(
            system=system,
            static=static,
            meta=meta,
            dynamic=dynamic,
        )

        return envelope_sections_document

