from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.eval_result_split import check_eval_result_split
from ..models.eval_result_split import EvalResultSplit
from ..types import UNSET, Unset
from typing import cast
from typing import Literal, cast

if TYPE_CHECKING:
  from ..models.eval_result_by_scenario import EvalResultByScenario
  from ..models.eval_result_errors import EvalResultErrors
  from ..models.eval_result_eval_miss import EvalResultEvalMiss
  from ..models.eval_result_gate_result import EvalResultGateResult
  from ..models.eval_result_metric_result import EvalResultMetricResult
  from ..models.eval_result_model_judging import EvalResultModelJudging
  from ..models.eval_result_setup import EvalResultSetup





T = TypeVar("T", bound="EvalResult")



@_attrs_define
class EvalResult:
    """ One run of one suite.

        Attributes:
            schema_version (Literal[1]):
            suite (str):
            about (str):
            product (str): Name and version of what ran: ``ctxsteward 0.1.0``.
            when (str): ISO 8601.
            revision (None | str): Of the user's own repository, where it was told.
            split (EvalResultSplit):
            setup (EvalResultSetup): Settings of the builder under test, by name.
            scenarios (int):
            long_scenarios (int): Of 200 turns and more.
            turns (int):
            messages (int):
            builds (int):
            cpu_seconds (float):
            metrics (list[EvalResultMetricResult]):
            gates (list[EvalResultGateResult]):
            passed (bool): No gate fails the run and no scenario broke off.
            errors (EvalResultErrors): Scenarios that broke off, by id.
            misses (list[EvalResultEvalMiss]): The first few of each figure.
            reproduce (str): Command that makes this result again; with ``--only ID`` a single scenario.
            scenario_ids (list[str] | Unset): Which scenarios were played, in order; empty in results of earlier versions.
            by_scenario (EvalResultByScenario | Unset): By figure and id of the scenario: the sum of its checks, and how
                many they were.
            judging (EvalResultModelJudging | None | Unset): None: no case was rated by anybody.
     """

    schema_version: Literal[1]
    suite: str
    about: str
    product: str
    when: str
    revision: None | str
    split: EvalResultSplit
    setup: EvalResultSetup
    scenarios: int
    long_scenarios: int
    turns: int
    messages: int
    builds: int
    cpu_seconds: float
    metrics: list[EvalResultMetricResult]
    gates: list[EvalResultGateResult]
    passed: bool
    errors: EvalResultErrors
    misses: list[EvalResultEvalMiss]
    reproduce: str
    scenario_ids: list[str] | Unset = UNSET
    by_scenario: EvalResultByScenario | Unset = UNSET
    judging: EvalResultModelJudging | None | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.eval_result_by_scenario import EvalResultByScenario # noqa: PLC0415
        from ..models.eval_result_errors import EvalResultErrors # noqa: PLC0415
        from ..models.eval_result_eval_miss import EvalResultEvalMiss # noqa: PLC0415
        from ..models.eval_result_gate_result import EvalResultGateResult # noqa: PLC0415
        from ..models.eval_result_metric_result import EvalResultMetricResult # noqa: PLC0415
        from ..models.eval_result_model_judging import EvalResultModelJudging # noqa: PLC0415
        from ..models.eval_result_setup import EvalResultSetup # noqa: PLC0415
        schema_version = self.schema_version

        suite = self.suite

        about = self.about

        product = self.product

        when = self.when

        revision: None | str
        revision = self.revision

        split: str = self.split

        setup = self.setup.to_dict()

        scenarios = self.scenarios

        long_scenarios = self.long_scenarios

        turns = self.turns

        messages = self.messages

        builds = self.builds

        cpu_seconds = self.cpu_seconds

        metrics = []
        for metrics_item_data in self.metrics:
            metrics_item = metrics_item_data.to_dict()
            metrics.append(metrics_item)



        gates = []
        for gates_item_data in self.gates:
            gates_item = gates_item_data.to_dict()
            gates.append(gates_item)



        passed = self.passed

        errors = self.errors.to_dict()

        misses = []
        for misses_item_data in self.misses:
            misses_item = misses_item_data.to_dict()
            misses.append(misses_item)



        reproduce = self.reproduce

        scenario_ids: list[str] | Unset = UNSET
        if not isinstance(self.scenario_ids, Unset):
            scenario_ids = self.scenario_ids



        by_scenario: dict[str, Any] | Unset = UNSET
        if not isinstance(self.by_scenario, Unset):
            by_scenario = self.by_scenario.to_dict()

        judging: dict[str, Any] | None | Unset
        if isinstance(self.judging, Unset):
            judging = UNSET
        elif isinstance(self.judging, EvalResultModelJudging):
            judging = self.judging.to_dict()
        else:
            judging = self.judging


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "schema_version": schema_version,
            "suite": suite,
            "about": about,
            "product": product,
            "when": when,
            "revision": revision,
            "split": split,
            "setup": setup,
            "scenarios": scenarios,
            "long_scenarios": long_scenarios,
            "turns": turns,
            "messages": messages,
            "builds": builds,
            "cpu_seconds": cpu_seconds,
            "metrics": metrics,
            "gates": gates,
            "passed": passed,
            "errors": errors,
            "misses": misses,
            "reproduce": reproduce,
        })
        if scenario_ids is not UNSET:
            field_dict["scenario_ids"] = scenario_ids
        if by_scenario is not UNSET:
            field_dict["by_scenario"] = by_scenario
        if judging is not UNSET:
            field_dict["judging"] = judging

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.eval_result_by_scenario import EvalResultByScenario # noqa: PLC0415
        from ..models.eval_result_errors import EvalResultErrors # noqa: PLC0415
        from ..models.eval_result_eval_miss import EvalResultEvalMiss # noqa: PLC0415
        from ..models.eval_result_gate_result import EvalResultGateResult # noqa: PLC0415
        from ..models.eval_result_metric_result import EvalResultMetricResult # noqa: PLC0415
        from ..models.eval_result_model_judging import EvalResultModelJudging # noqa: PLC0415
        from ..models.eval_result_setup import EvalResultSetup # noqa: PLC0415
        d = dict(src_dict)
        schema_version = cast(Literal[1] , d.pop("schema_version"))
        if schema_version != 1:
            raise ValueError(f"schema_version must match const 1, got '{schema_version}'")

        suite = d.pop("suite")

        about = d.pop("about")

        product = d.pop("product")

        when = d.pop("when")

        def _parse_revision(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        revision = _parse_revision(d.pop("revision"))


        split = check_eval_result_split(d.pop("split"))




        setup = EvalResultSetup.from_dict(d.pop("setup"))




        scenarios = d.pop("scenarios")

        long_scenarios = d.pop("long_scenarios")

        turns = d.pop("turns")

        messages = d.pop("messages")

        builds = d.pop("builds")

        cpu_seconds = d.pop("cpu_seconds")

        metrics = []
        _metrics = d.pop("metrics")
        for metrics_item_data in (_metrics):
            metrics_item = EvalResultMetricResult.from_dict(metrics_item_data)



            metrics.append(metrics_item)


        gates = []
        _gates = d.pop("gates")
        for gates_item_data in (_gates):
            gates_item = EvalResultGateResult.from_dict(gates_item_data)



            gates.append(gates_item)


        passed = d.pop("passed")

        errors = EvalResultErrors.from_dict(d.pop("errors"))




        misses = []
        _misses = d.pop("misses")
        for misses_item_data in (_misses):
            misses_item = EvalResultEvalMiss.from_dict(misses_item_data)



            misses.append(misses_item)


        reproduce = d.pop("reproduce")

        scenario_ids = cast(list[str], d.pop("scenario_ids", UNSET))


        _by_scenario = d.pop("by_scenario", UNSET)
        by_scenario: EvalResultByScenario | Unset
        if isinstance(_by_scenario,  Unset):
            by_scenario = UNSET
        else:
            by_scenario = EvalResultByScenario.from_dict(_by_scenario)




        def _parse_judging(data: object) -> EvalResultModelJudging | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                judging_type_0 = EvalResultModelJudging.from_dict(data)



                return judging_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EvalResultModelJudging | None | Unset, data)

        judging = _parse_judging(d.pop("judging", UNSET))


        eval_result = cls(
            schema_version=schema_version,
            suite=suite,
            about=about,
            product=product,
            when=when,
            revision=revision,
            split=split,
            setup=setup,
            scenarios=scenarios,
            long_scenarios=long_scenarios,
            turns=turns,
            messages=messages,
            builds=builds,
            cpu_seconds=cpu_seconds,
            metrics=metrics,
            gates=gates,
            passed=passed,
            errors=errors,
            misses=misses,
            reproduce=reproduce,
            scenario_ids=scenario_ids,
            by_scenario=by_scenario,
            judging=judging,
        )

        return eval_result

