from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.message import Message





T = TypeVar("T", bound="ResolvedOriginal")



@_attrs_define
class ResolvedOriginal:
    """ What a reference names, word for word.

        Attributes:
            ref (str):
            role (str):
            message (Message): An OpenAI, Anthropic or Gemini message, verbatim; unknown provider fields are allowed.
     """

    ref: str
    role: str
    message: Message





    def to_dict(self) -> dict[str, Any]:
        from ..models.message import Message # noqa: PLC0415
        ref = self.ref

        role = self.role

        message = self.message.to_dict()


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "ref": ref,
            "role": role,
            "message": message,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.message import Message # noqa: PLC0415
        d = dict(src_dict)
        ref = d.pop("ref")

        role = d.pop("role")

        message = Message.from_dict(d.pop("message"))




        resolved_original = cls(
            ref=ref,
            role=role,
            message=message,
        )

        return resolved_original

