from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.eval_result_metric_result_better import check_eval_result_metric_result_better
from ..models.eval_result_metric_result_better import EvalResultMetricResultBetter
from ..models.eval_result_metric_result_kind import check_eval_result_metric_result_kind
from ..models.eval_result_metric_result_kind import EvalResultMetricResultKind
from ..models.eval_result_metric_result_method_type_0 import check_eval_result_metric_result_method_type_0
from ..models.eval_result_metric_result_method_type_0 import EvalResultMetricResultMethodType0
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.eval_result_metric_result_unscored import EvalResultMetricResultUnscored





T = TypeVar("T", bound="EvalResultMetricResult")



@_attrs_define
class EvalResultMetricResult:
    """ One figure of a suite.

        Attributes:
            name (str):
            about (str):
            kind (EvalResultMetricResultKind):
            better (EvalResultMetricResultBetter):
            unit (str):
            value (float | None): None: nothing could be scored.
            low (float | None): Of the interval at 95 %; None where it has none.
            high (float | None):
            method (EvalResultMetricResultMethodType0 | None): How the interval was made; `bootstrap` in results of earlier
                versions.
            checks (int):
            scenarios (int): Those that gave at least one check.
            unscored (EvalResultMetricResultUnscored): Checks that could not be made, by reason.
            distinct (int | None | Unset): Distinct things that were checked (an aim, a planted value, a tool result); None
                where checks name none.
            distinct_value (float | None | Unset): The rate with each thing counted once: as the share of its own checks
                that held.
            within_sd (float | None | Unset): Standard deviation between repeats of one scenario; None without repeats.
            between_sd (float | None | Unset): Between scenarios, without what chance within them adds; None of a single
                scenario.
     """

    name: str
    about: str
    kind: EvalResultMetricResultKind
    better: EvalResultMetricResultBetter
    unit: str
    value: float | None
    low: float | None
    high: float | None
    method: EvalResultMetricResultMethodType0 | None
    checks: int
    scenarios: int
    unscored: EvalResultMetricResultUnscored
    distinct: int | None | Unset = UNSET
    distinct_value: float | None | Unset = UNSET
    within_sd: float | None | Unset = UNSET
    between_sd: float | None | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.eval_result_metric_result_unscored import EvalResultMetricResultUnscored # noqa: PLC0415
        name = self.name

        about = self.about

        kind: str = self.kind

        better: str = self.better

        unit = self.unit

        value: float | None
        value = self.value

        low: float | None
        low = self.low

        high: float | None
        high = self.high

        method: None | str
        if isinstance(self.method, str):
            method = self.method
        else:
            method = self.method

        checks = self.checks

        scenarios = self.scenarios

        unscored = self.unscored.to_dict()

        distinct: int | None | Unset
        if isinstance(self.distinct, Unset):
            distinct = UNSET
        else:
            distinct = self.distinct

        distinct_value: float | None | Unset
        if isinstance(self.distinct_value, Unset):
            distinct_value = UNSET
        else:
            distinct_value = self.distinct_value

        within_sd: float | None | Unset
        if isinstance(self.within_sd, Unset):
            within_sd = UNSET
        else:
            within_sd = self.within_sd

        between_sd: float | None | Unset
        if isinstance(self.between_sd, Unset):
            between_sd = UNSET
        else:
            between_sd = self.between_sd


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "name": name,
            "about": about,
            "kind": kind,
            "better": better,
            "unit": unit,
            "value": value,
            "low": low,
            "high": high,
            "method": method,
            "checks": checks,
            "scenarios": scenarios,
            "unscored": unscored,
        })
        if distinct is not UNSET:
            field_dict["distinct"] = distinct
        if distinct_value is not UNSET:
            field_dict["distinct_value"] = distinct_value
        if within_sd is not UNSET:
            field_dict["within_sd"] = within_sd
        if between_sd is not UNSET:
            field_dict["between_sd"] = between_sd

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.eval_result_metric_result_unscored import EvalResultMetricResultUnscored # noqa: PLC0415
        d = dict(src_dict)
        name = d.pop("name")

        about = d.pop("about")

        kind = check_eval_result_metric_result_kind(d.pop("kind"))




        better = check_eval_result_metric_result_better(d.pop("better"))




        unit = d.pop("unit")

        def _parse_value(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        value = _parse_value(d.pop("value"))


        def _parse_low(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        low = _parse_low(d.pop("low"))


        def _parse_high(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        high = _parse_high(d.pop("high"))


        def _parse_method(data: object) -> EvalResultMetricResultMethodType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                method_type_0 = check_eval_result_metric_result_method_type_0(data)



                return method_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EvalResultMetricResultMethodType0 | None, data)

        method = _parse_method(d.pop("method"))


        checks = d.pop("checks")

        scenarios = d.pop("scenarios")

        unscored = EvalResultMetricResultUnscored.from_dict(d.pop("unscored"))




        def _parse_distinct(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        distinct = _parse_distinct(d.pop("distinct", UNSET))


        def _parse_distinct_value(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        distinct_value = _parse_distinct_value(d.pop("distinct_value", UNSET))


        def _parse_within_sd(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        within_sd = _parse_within_sd(d.pop("within_sd", UNSET))


        def _parse_between_sd(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        between_sd = _parse_between_sd(d.pop("between_sd", UNSET))


        eval_result_metric_result = cls(
            name=name,
            about=about,
            kind=kind,
            better=better,
            unit=unit,
            value=value,
            low=low,
            high=high,
            method=method,
            checks=checks,
            scenarios=scenarios,
            unscored=unscored,
            distinct=distinct,
            distinct_value=distinct_value,
            within_sd=within_sd,
            between_sd=between_sd,
        )

        return eval_result_metric_result

