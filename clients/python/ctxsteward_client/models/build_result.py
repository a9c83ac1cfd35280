from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.build_result_provider_type_0 import BuildResultProviderType0
from ..models.build_result_provider_type_0 import check_build_result_provider_type_0
from typing import cast

if TYPE_CHECKING:
  from ..models.build_result_request_type_0 import BuildResultRequestType0
  from ..models.envelope import Envelope





T = TypeVar("T", bound="BuildResult")



@_attrs_define
class BuildResult:
    """ An envelope, and the provider's request that it becomes.

        Attributes:
            session (str):
            address (str):
            tokens (int):
            provider (BuildResultProviderType0 | None):
            request (BuildResultRequestType0 | None):
            envelope (Envelope | None):
     """

    session: str
    address: str
    tokens: int
    provider: BuildResultProviderType0 | None
    request: BuildResultRequestType0 | None
    envelope: Envelope | None





    def to_dict(self) -> dict[str, Any]:
        from ..models.build_result_request_type_0 import BuildResultRequestType0 # noqa: PLC0415
        from ..models.envelope import Envelope # noqa: PLC0415
        session = self.session

        address = self.address

        tokens = self.tokens

        provider: None | str
        if isinstance(self.provider, str):
            provider = self.provider
        else:
            provider = self.provider

        request: dict[str, Any] | None
        if isinstance(self.request, BuildResultRequestType0):
            request = self.request.to_dict()
        else:
            request = self.request

        envelope: dict[str, Any] | None
        if isinstance(self.envelope, Envelope):
            envelope = self.envelope.to_dict()
        else:
            envelope = self.envelope


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "session": session,
            "address": address,
            "tokens": tokens,
            "provider": provider,
            "request": request,
            "envelope": envelope,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.build_result_request_type_0 import BuildResultRequestType0 # noqa: PLC0415
        from ..models.envelope import Envelope # noqa: PLC0415
        d = dict(src_dict)
        session = d.pop("session")

        address = d.pop("address")

        tokens = d.pop("tokens")

        def _parse_provider(data: object) -> BuildResultProviderType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                provider_type_0 = check_build_result_provider_type_0(data)



                return provider_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BuildResultProviderType0 | None, data)

        provider = _parse_provider(d.pop("provider"))


        def _parse_request(data: object) -> BuildResultRequestType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                request_type_0 = BuildResultRequestType0.from_dict(data)



                return request_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BuildResultRequestType0 | None, data)

        request = _parse_request(d.pop("request"))


        def _parse_envelope(data: object) -> Envelope | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                envelope_type_0 = Envelope.from_dict(data)



                return envelope_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Envelope | None, data)

        envelope = _parse_envelope(d.pop("envelope"))


        build_result = cls(
            session=session,
            address=address,
            tokens=tokens,
            provider=provider,
            request=request,
            envelope=envelope,
        )

        return build_result

