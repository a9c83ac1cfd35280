from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="MetaRecommendationConfidence")



@_attrs_define
class MetaRecommendationConfidence:
    """ How sure we are.

        Attributes:
            score (float):
            lower95 (float): Lower end of the 95 % interval of Wilson's score over confirming and contradicting events.
            method (str):
     """

    score: float
    lower95: float
    method: str





    def to_dict(self) -> dict[str, Any]:
        score = self.score

        lower95 = self.lower95

        method = self.method


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "score": score,
            "lower95": lower95,
            "method": method,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        score = d.pop("score")

        lower95 = d.pop("lower95")

        method = d.pop("method")

        meta_recommendation_confidence = cls(
            score=score,
            lower95=lower95,
            method=method,
        )

        return meta_recommendation_confidence

