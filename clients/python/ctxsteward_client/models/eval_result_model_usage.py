from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.eval_result_model_usage_unscored import EvalResultModelUsageUnscored





T = TypeVar("T", bound="EvalResultModelUsage")



@_attrs_define
class EvalResultModelUsage:
    """ What one model judge was asked, and what that cost.

        Attributes:
            model (str):
            calls (int):
            verdicts (int):
            unscored (EvalResultModelUsageUnscored): Cases without a verdict, by reason.
            tokens_in (int):
            tokens_out (int):
            cost (float | None): In the currency of the suite's prices; None: it has no price for the model.
     """

    model: str
    calls: int
    verdicts: int
    unscored: EvalResultModelUsageUnscored
    tokens_in: int
    tokens_out: int
    cost: float | None





    def to_dict(self) -> dict[str, Any]:
        from ..models.eval_result_model_usage_unscored import EvalResultModelUsageUnscored # noqa: PLC0415
        model = self.model

        calls = self.calls

        verdicts = self.verdicts

        unscored = self.unscored.to_dict()

        tokens_in = self.tokens_in

        tokens_out = self.tokens_out

        cost: float | None
        cost = self.cost


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "model": model,
            "calls": calls,
            "verdicts": verdicts,
            "unscored": unscored,
            "tokens_in": tokens_in,
            "tokens_out": tokens_out,
            "cost": cost,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.eval_result_model_usage_unscored import EvalResultModelUsageUnscored # noqa: PLC0415
        d = dict(src_dict)
        model = d.pop("model")

        calls = d.pop("calls")

        verdicts = d.pop("verdicts")

        unscored = EvalResultModelUsageUnscored.from_dict(d.pop("unscored"))




        tokens_in = d.pop("tokens_in")

        tokens_out = d.pop("tokens_out")

        def _parse_cost(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        cost = _parse_cost(d.pop("cost"))


        eval_result_model_usage = cls(
            model=model,
            calls=calls,
            verdicts=verdicts,
            unscored=unscored,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost=cost,
        )

        return eval_result_model_usage

