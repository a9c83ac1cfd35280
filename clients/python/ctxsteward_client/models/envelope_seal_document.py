from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
from typing import Literal, cast






T = TypeVar("T", bound="EnvelopeSealDocument")



@_attrs_define
class EnvelopeSealDocument:
    """ Who sealed which envelope with which key.

        Attributes:
            alg (Literal['HMAC-SHA-256']):
            key_id (str): Which of the tenant's seal keys.
            mac (str): Over all other fields but `alg`, each length-prefixed.
            schema_version (int):
            renderer_version (int):
            tenant (str):
            session (str):
            profile_version (None | str): Address of the profile in force; null without a profile.
            position (int): Log position the envelope was built at.
            address (str): The envelope's address: covers its sections, their order, tokens, budgets and tools.
     """

    alg: Literal['HMAC-SHA-256']
    key_id: str
    mac: str
    schema_version: int
    renderer_version: int
    tenant: str
    session: str
    profile_version: None | str
    position: int
    address: str





    def to_dict(self) -> dict[str, Any]:
        alg = self.alg

        key_id = self.key_id

        mac = self.mac

        schema_version = self.schema_version

        renderer_version = self.renderer_version

        tenant = self.tenant

        session = self.session

        profile_version: None | str
        profile_version = self.profile_version

        position = self.position

        address = self.address


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "alg": alg,
            "key_id": key_id,
            "mac": mac,
            "schema_version": schema_version,
            "renderer_version": renderer_version,
            "tenant": tenant,
            "session": session,
            "profile_version": profile_version,
            "position": position,
            "address": address,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        alg = cast(Literal['HMAC-SHA-256'] , d.pop("alg"))
        if alg != 'HMAC-SHA-256':
            raise ValueError(f"alg must match const 'HMAC-SHA-256', got '{alg}'")

        key_id = d.pop("key_id")

        mac = d.pop("mac")

        schema_version = d.pop("schema_version")

        renderer_version = d.pop("renderer_version")

        tenant = d.pop("tenant")

        session = d.pop("session")

        def _parse_profile_version(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        profile_version = _parse_profile_version(d.pop("profile_version"))


        position = d.pop("position")

        address = d.pop("address")

        envelope_seal_document = cls(
            alg=alg,
            key_id=key_id,
            mac=mac,
            schema_version=schema_version,
            renderer_version=renderer_version,
            tenant=tenant,
            session=session,
            profile_version=profile_version,
            position=position,
            address=address,
        )

        return envelope_seal_document

