from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.eval_result_model_usage import EvalResultModelUsage
  from ..models.eval_result_rater_agreement import EvalResultRaterAgreement





T = TypeVar("T", bound="EvalResultModelJudging")



@_attrs_define
class EvalResultModelJudging:
    """ What raters came to: usage of each model judge, agreement of each two raters.

        Attributes:
            prompt_version (int):
            models (list[EvalResultModelUsage]):
            agreement (list[EvalResultRaterAgreement]):
     """

    prompt_version: int
    models: list[EvalResultModelUsage]
    agreement: list[EvalResultRaterAgreement]





    def to_dict(self) -> dict[str, Any]:
        from ..models.eval_result_model_usage import EvalResultModelUsage # noqa: PLC0415
        from ..models.eval_result_rater_agreement import EvalResultRaterAgreement # noqa: PLC0415
        prompt_version = self.prompt_version

        models = []
        for models_item_data in self.models:
            models_item = models_item_data.to_dict()
            models.append(models_item)



        agreement = []
        for agreement_item_data in self.agreement:
            agreement_item = agreement_item_data.to_dict()
            agreement.append(agreement_item)




        field_dict: dict[str, Any] = {}

        field_dict.update({
            "prompt_version": prompt_version,
            "models": models,
            "agreement": agreement,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.eval_result_model_usage import EvalResultModelUsage # noqa: PLC0415
        from ..models.eval_result_rater_agreement import EvalResultRaterAgreement # noqa: PLC0415
        d = dict(src_dict)
        prompt_version = d.pop("prompt_version")

        models = []
        _models = d.pop("models")
        for models_item_data in (_models):
            models_item = EvalResultModelUsage.from_dict(models_item_data)



            models.append(models_item)


        agreement = []
        _agreement = d.pop("agreement")
        for agreement_item_data in (_agreement):
            agreement_item = EvalResultRaterAgreement.from_dict(agreement_item_data)



            agreement.append(agreement_item)


        eval_result_model_judging = cls(
            prompt_version=prompt_version,
            models=models,
            agreement=agreement,
        )

        return eval_result_model_judging

