from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.head_input import HeadInput
  from ..models.message_input import MessageInput





T = TypeVar("T", bound="AppendInput")



@_attrs_define
class AppendInput:
    """ Messages of one session, which is made where there is none.

        Attributes:
            messages (list[MessageInput]):
            head (HeadInput | None | Unset):
            follow (bool | Unset):  Default: False.
     """

    messages: list[MessageInput]
    head: HeadInput | None | Unset = UNSET
    follow: bool | Unset = False





    def to_dict(self) -> dict[str, Any]:
        from ..models.head_input import HeadInput # noqa: PLC0415
        from ..models.message_input import MessageInput # noqa: PLC0415
        messages = []
        for messages_item_data in self.messages:
            messages_item = messages_item_data.to_dict()
            messages.append(messages_item)



        head: dict[str, Any] | None | Unset
        if isinstance(self.head, Unset):
            head = UNSET
        elif isinstance(self.head, HeadInput):
            head = self.head.to_dict()
        else:
            head = self.head

        follow = self.follow


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "messages": messages,
        })
        if head is not UNSET:
            field_dict["head"] = head
        if follow is not UNSET:
            field_dict["follow"] = follow

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.head_input import HeadInput # noqa: PLC0415
        from ..models.message_input import MessageInput # noqa: PLC0415
        d = dict(src_dict)
        messages = []
        _messages = d.pop("messages")
        for messages_item_data in (_messages):
            messages_item = MessageInput.from_dict(messages_item_data)



            messages.append(messages_item)


        def _parse_head(data: object) -> HeadInput | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                head_type_0 = HeadInput.from_dict(data)



                return head_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(HeadInput | None | Unset, data)

        head = _parse_head(d.pop("head", UNSET))


        follow = d.pop("follow", UNSET)

        append_input = cls(
            messages=messages,
            head=head,
            follow=follow,
        )

        return append_input

