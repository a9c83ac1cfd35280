from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="EvalResultEvalMiss")



@_attrs_define
class EvalResultEvalMiss:
    """ One check that did not hold.

        Attributes:
            scenario (str):
            metric (str):
            at (str):
            why (str):
     """

    scenario: str
    metric: str
    at: str
    why: str





    def to_dict(self) -> dict[str, Any]:
        scenario = self.scenario

        metric = self.metric

        at = self.at

        why = self.why


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "scenario": scenario,
            "metric": metric,
            "at": at,
            "why": why,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        scenario = d.pop("scenario")

        metric = d.pop("metric")

        at = d.pop("at")

        why = d.pop("why")

        eval_result_eval_miss = cls(
            scenario=scenario,
            metric=metric,
            at=at,
            why=why,
        )

        return eval_result_eval_miss

