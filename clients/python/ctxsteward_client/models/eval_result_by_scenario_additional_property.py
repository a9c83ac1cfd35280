from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="EvalResultByScenarioAdditionalProperty")



@_attrs_define
class EvalResultByScenarioAdditionalProperty:
    

    additional_properties: dict[str, list[float | int]] = _attrs_field(init=False, factory=dict)





    def to_dict(self) -> dict[str, Any]:
        
        field_dict: dict[str, Any] = {}
        for prop_name, prop in self.additional_properties.items():
            field_dict[prop_name] = []
            for componentsschemaseval_result_scenario_part_item_data in prop:
                componentsschemaseval_result_scenario_part_item: float | int
                componentsschemaseval_result_scenario_part_item = componentsschemaseval_result_scenario_part_item_data
                field_dict[prop_name].append(componentsschemaseval_result_scenario_part_item)




        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        eval_result_by_scenario_additional_property = cls(
        )


        additional_properties = {}
        for prop_name, prop_dict in d.items():
            additional_property = []
            _additional_property = prop_dict
            for componentsschemaseval_result_scenario_part_item_data in (_additional_property):
                def _parse_componentsschemaseval_result_scenario_part_item(data: object) -> float | int:
                    return cast(float | int, data)

                componentsschemaseval_result_scenario_part_item = _parse_componentsschemaseval_result_scenario_part_item(componentsschemaseval_result_scenario_part_item_data)

                additional_property.append(componentsschemaseval_result_scenario_part_item)

            additional_properties[prop_name] = additional_property

        eval_result_by_scenario_additional_property.additional_properties = additional_properties
        return eval_result_by_scenario_additional_property

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> list[float | int]:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: list[float | int]) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
