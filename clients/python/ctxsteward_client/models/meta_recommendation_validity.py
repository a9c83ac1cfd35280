from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="MetaRecommendationValidity")



@_attrs_define
class MetaRecommendationValidity:
    """ Two time lines: when it is true, and when we knew.

        Attributes:
            valid_from (None | str):
            valid_to (None | str): None: still.
            recorded_at (None | str):
            half_life_days (float | None): Its worth halves in this time without new evidence; None: it does not fade.
     """

    valid_from: None | str
    valid_to: None | str
    recorded_at: None | str
    half_life_days: float | None





    def to_dict(self) -> dict[str, Any]:
        valid_from: None | str
        valid_from = self.valid_from

        valid_to: None | str
        valid_to = self.valid_to

        recorded_at: None | str
        recorded_at = self.recorded_at

        half_life_days: float | None
        half_life_days = self.half_life_days


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "valid_from": valid_from,
            "valid_to": valid_to,
            "recorded_at": recorded_at,
            "half_life_days": half_life_days,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        def _parse_valid_from(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        valid_from = _parse_valid_from(d.pop("valid_from"))


        def _parse_valid_to(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        valid_to = _parse_valid_to(d.pop("valid_to"))


        def _parse_recorded_at(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        recorded_at = _parse_recorded_at(d.pop("recorded_at"))


        def _parse_half_life_days(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        half_life_days = _parse_half_life_days(d.pop("half_life_days"))


        meta_recommendation_validity = cls(
            valid_from=valid_from,
            valid_to=valid_to,
            recorded_at=recorded_at,
            half_life_days=half_life_days,
        )

        return meta_recommendation_validity

