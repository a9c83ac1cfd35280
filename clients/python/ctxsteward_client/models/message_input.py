from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.message_input_pin_type_0 import check_message_input_pin_type_0
from ..models.message_input_pin_type_0 import MessageInputPinType0
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.message import Message





T = TypeVar("T", bound="MessageInput")



@_attrs_define
class MessageInput:
    """ A message to append, and what stands beside it.

        Attributes:
            message (Message): An OpenAI, Anthropic or Gemini message, verbatim; unknown provider fields are allowed.
            id (None | str | Unset):
            phase (None | str | Unset):
            pin (MessageInputPinType0 | None | Unset):
            ts (None | str | Unset):
            principal (None | str | Unset):
            origin (None | str | Unset):
     """

    message: Message
    id: None | str | Unset = UNSET
    phase: None | str | Unset = UNSET
    pin: MessageInputPinType0 | None | Unset = UNSET
    ts: None | str | Unset = UNSET
    principal: None | str | Unset = UNSET
    origin: None | str | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.message import Message # noqa: PLC0415
        message = self.message.to_dict()

        id: None | str | Unset
        if isinstance(self.id, Unset):
            id = UNSET
        else:
            id = self.id

        phase: None | str | Unset
        if isinstance(self.phase, Unset):
            phase = UNSET
        else:
            phase = self.phase

        pin: None | str | Unset
        if isinstance(self.pin, Unset):
            pin = UNSET
        elif isinstance(self.pin, str):
            pin = self.pin
        else:
            pin = self.pin

        ts: None | str | Unset
        if isinstance(self.ts, Unset):
            ts = UNSET
        else:
            ts = self.ts

        principal: None | str | Unset
        if isinstance(self.principal, Unset):
            principal = UNSET
        else:
            principal = self.principal

        origin: None | str | Unset
        if isinstance(self.origin, Unset):
            origin = UNSET
        else:
            origin = self.origin


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "message": message,
        })
        if id is not UNSET:
            field_dict["id"] = id
        if phase is not UNSET:
            field_dict["phase"] = phase
        if pin is not UNSET:
            field_dict["pin"] = pin
        if ts is not UNSET:
            field_dict["ts"] = ts
        if principal is not UNSET:
            field_dict["principal"] = principal
        if origin is not UNSET:
            field_dict["origin"] = origin

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.message import Message # noqa: PLC0415
        d = dict(src_dict)
        message = Message.from_dict(d.pop("message"))




        def _parse_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        id = _parse_id(d.pop("id", UNSET))


        def _parse_phase(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        phase = _parse_phase(d.pop("phase", UNSET))


        def _parse_pin(data: object) -> MessageInputPinType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                pin_type_0 = check_message_input_pin_type_0(data)



                return pin_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(MessageInputPinType0 | None | Unset, data)

        pin = _parse_pin(d.pop("pin", UNSET))


        def _parse_ts(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        ts = _parse_ts(d.pop("ts", UNSET))


        def _parse_principal(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        principal = _parse_principal(d.pop("principal", UNSET))


        def _parse_origin(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        origin = _parse_origin(d.pop("origin", UNSET))


        message_input = cls(
            message=message,
            id=id,
            phase=phase,
            pin=pin,
            ts=ts,
            principal=principal,
            origin=origin,
        )

        return message_input

