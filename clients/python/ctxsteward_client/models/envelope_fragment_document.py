from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.envelope_fragment_document_kind import check_envelope_fragment_document_kind
from ..models.envelope_fragment_document_kind import EnvelopeFragmentDocumentKind
from typing import cast






T = TypeVar("T", bound="EnvelopeFragmentDocument")



@_attrs_define
class EnvelopeFragmentDocument:
    """ One piece of a section, in the order in which the model sees it.

        Attributes:
            kind (EnvelopeFragmentDocumentKind):
            name (None | str): Block or note it holds; null where it has no name.
            refs (list[str]): Originals it shows or cites, in ordinal order.
            tokens (int):
            text (str): For people: labels and texts; the provider's bytes come from rendering.
     """

    kind: EnvelopeFragmentDocumentKind
    name: None | str
    refs: list[str]
    tokens: int
    text: str





    def to_dict(self) -> dict[str, Any]:
        kind: str = self.kind

        name: None | str
        name = self.name

        refs = self.refs



        tokens = self.tokens

        text = self.text


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "kind": kind,
            "name": name,
            "refs": refs,
            "tokens": tokens,
            "text": text,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = check_envelope_fragment_document_kind(d.pop("kind"))




        def _parse_name(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        name = _parse_name(d.pop("name"))


        refs = cast(list[str], d.pop("refs"))


        tokens = d.pop("tokens")

        text = d.pop("text")

        envelope_fragment_document = cls(
            kind=kind,
            name=name,
            refs=refs,
            tokens=tokens,
            text=text,
        )

        return envelope_fragment_document

