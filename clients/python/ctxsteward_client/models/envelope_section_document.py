from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.envelope_fragment_document import EnvelopeFragmentDocument





T = TypeVar("T", bound="EnvelopeSectionDocument")



@_attrs_define
class EnvelopeSectionDocument:
    """ One section with its budget.

        Attributes:
            tokens (int):
            budget_tokens (int):
            overflow_tokens (int): What must stay verbatim beyond the budget; 0 where it fits.
            epoch (int): How often the section's bytes have changed in this session.
            content (list[EnvelopeFragmentDocument]):
     """

    tokens: int
    budget_tokens: int
    overflow_tokens: int
    epoch: int
    content: list[EnvelopeFragmentDocument]





    def to_dict(self) -> dict[str, Any]:
        from ..models.envelope_fragment_document import EnvelopeFragmentDocument # noqa: PLC0415
        tokens = self.tokens

        budget_tokens = self.budget_tokens

        overflow_tokens = self.overflow_tokens

        epoch = self.epoch

        content = []
        for content_item_data in self.content:
            content_item = content_item_data.to_dict()
            content.append(content_item)




        field_dict: dict[str, Any] = {}

        field_dict.update({
            "tokens": tokens,
            "budget_tokens": budget_tokens,
            "overflow_tokens": overflow_tokens,
            "epoch": epoch,
            "content": content,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.envelope_fragment_document import EnvelopeFragmentDocument # noqa: PLC0415
        d = dict(src_dict)
        tokens = d.pop("tokens")

        budget_tokens = d.pop("budget_tokens")

        overflow_tokens = d.pop("overflow_tokens")

        epoch = d.pop("epoch")

        content = []
        _content = d.pop("content")
        for content_item_data in (_content):
            content_item = EnvelopeFragmentDocument.from_dict(content_item_data)



            content.append(content_item)


        envelope_section_document = cls(
            tokens=tokens,
            budget_tokens=budget_tokens,
            overflow_tokens=overflow_tokens,
            epoch=epoch,
            content=content,
        )

        return envelope_section_document

