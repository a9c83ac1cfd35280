from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.appended_message import AppendedMessage
  from ..models.finding import Finding





T = TypeVar("T", bound="AppendResult")



@_attrs_define
class AppendResult:
    """ What became of the messages.

        Attributes:
            session (str):
            length (int):
            messages (list[AppendedMessage]):
            findings (list[Finding]):
     """

    session: str
    length: int
    messages: list[AppendedMessage]
    findings: list[Finding]





    def to_dict(self) -> dict[str, Any]:
        from ..models.appended_message import AppendedMessage # noqa: PLC0415
        from ..models.finding import Finding # noqa: PLC0415
        session = self.session

        length = self.length

        messages = []
        for messages_item_data in self.messages:
            messages_item = messages_item_data.to_dict()
            messages.append(messages_item)



        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)




        field_dict: dict[str, Any] = {}

        field_dict.update({
            "session": session,
            "length": length,
            "messages": messages,
            "findings": findings,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.appended_message import AppendedMessage # noqa: PLC0415
        from ..models.finding import Finding # noqa: PLC0415
        d = dict(src_dict)
        session = d.pop("session")

        length = d.pop("length")

        messages = []
        _messages = d.pop("messages")
        for messages_item_data in (_messages):
            messages_item = AppendedMessage.from_dict(messages_item_data)



            messages.append(messages_item)


        findings = []
        _findings = d.pop("findings")
        for findings_item_data in (_findings):
            findings_item = Finding.from_dict(findings_item_data)



            findings.append(findings_item)


        append_result = cls(
            session=session,
            length=length,
            messages=messages,
            findings=findings,
        )

        return append_result

