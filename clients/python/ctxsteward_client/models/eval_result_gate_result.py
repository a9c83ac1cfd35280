from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.eval_result_gate_result_verdict import check_eval_result_gate_result_verdict
from ..models.eval_result_gate_result_verdict import EvalResultGateResultVerdict
from ..types import UNSET, Unset
from typing import cast






T = TypeVar("T", bound="EvalResultGateResult")



@_attrs_define
class EvalResultGateResult:
    """ One gate over one figure.

        Attributes:
            metric (str):
            rule (str): As the gate file has it: ``below 0.05``.
            value (float | None):
            passed (bool): Whether the verdict is `passed`.
            why (str): Empty where it passed.
            verdict (EvalResultGateResultVerdict | Unset):
            fails_run (bool | Unset): Whether the run fails by it: it failed, or is undecided and the gate file does not
                allow that.
            promise (bool | Unset): Whether a single counterexample breaks it.
            detects (float | None | Unset): The smallest true shortfall from the bound that fails the gate with a
                probability of 80 % in so many scenarios; of a promise, the share of scenarios that must hold a counterexample.
                None: no shortfall does, or none can be given.
     """

    metric: str
    rule: str
    value: float | None
    passed: bool
    why: str
    verdict: EvalResultGateResultVerdict | Unset = UNSET
    fails_run: bool | Unset = UNSET
    promise: bool | Unset = UNSET
    detects: float | None | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        metric = self.metric

        rule = self.rule

        value: float | None
        value = self.value

        passed = self.passed

        why = self.why

        verdict: str | Unset = UNSET
        if not isinstance(self.verdict, Unset):
            verdict = self.verdict


        fails_run = self.fails_run

        promise = self.promise

        detects: float | None | Unset
        if isinstance(self.detects, Unset):
            detects = UNSET
        else:
            detects = self.detects


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "metric": metric,
            "rule": rule,
            "value": value,
            "passed": passed,
            "why": why,
        })
        if verdict is not UNSET:
            field_dict["verdict"] = verdict
        if fails_run is not UNSET:
            field_dict["fails_run"] = fails_run
        if promise is not UNSET:
            field_dict["promise"] = promise
        if detects is not UNSET:
            field_dict["detects"] = detects

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        metric = d.pop("metric")

        rule = d.pop("rule")

        def _parse_value(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        value = _parse_value(d.pop("value"))


        passed = d.pop("passed")

        why = d.pop("why")

        _verdict = d.pop("verdict", UNSET)
        verdict: EvalResultGateResultVerdict | Unset
        if isinstance(_verdict,  Unset):
            verdict = UNSET
        else:
            verdict = check_eval_result_gate_result_verdict(_verdict)




        fails_run = d.pop("fails_run", UNSET)

        promise = d.pop("promise", UNSET)

        def _parse_detects(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        detects = _parse_detects(d.pop("detects", UNSET))


        eval_result_gate_result = cls(
            metric=metric,
            rule=rule,
            value=value,
            passed=passed,
            why=why,
            verdict=verdict,
            fails_run=fails_run,
            promise=promise,
            detects=detects,
        )

        return eval_result_gate_result

