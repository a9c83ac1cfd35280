from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast






T = TypeVar("T", bound="BudgetsInput")



@_attrs_define
class BudgetsInput:
    """ Budgets of a build, in tokens of the model; what is left out keeps the service's value.

        Attributes:
            system_tokens (int | None | Unset):
            static_tokens (int | None | Unset):
            meta_tokens (int | None | Unset):
            dynamic_tokens (int | None | Unset):
            tools_tokens (int | None | Unset):
            compact_at_fraction (float | None | Unset):
            compact_to_fraction (float | None | Unset):
            recall_fraction (float | None | Unset):
            arrival_cap_tokens (int | None | Unset):
            facts_fraction (float | None | Unset):
     """

    system_tokens: int | None | Unset = UNSET
    static_tokens: int | None | Unset = UNSET
    meta_tokens: int | None | Unset = UNSET
    dynamic_tokens: int | None | Unset = UNSET
    tools_tokens: int | None | Unset = UNSET
    compact_at_fraction: float | None | Unset = UNSET
    compact_to_fraction: float | None | Unset = UNSET
    recall_fraction: float | None | Unset = UNSET
    arrival_cap_tokens: int | None | Unset = UNSET
    facts_fraction: float | None | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        system_tokens: int | None | Unset
        if isinstance(self.system_tokens, Unset):
            system_tokens = UNSET
        else:
            system_tokens = self.system_tokens

        static_tokens: int | None | Unset
        if isinstance(self.static_tokens, Unset):
            static_tokens = UNSET
        else:
            static_tokens = self.static_tokens

        meta_tokens: int | None | Unset
        if isinstance(self.meta_tokens, Unset):
            meta_tokens = UNSET
        else:
            meta_tokens = self.meta_tokens

        dynamic_tokens: int | None | Unset
        if isinstance(self.dynamic_tokens, Unset):
            dynamic_tokens = UNSET
        else:
            dynamic_tokens = self.dynamic_tokens

        tools_tokens: int | None | Unset
        if isinstance(self.tools_tokens, Unset):
            tools_tokens = UNSET
        else:
            tools_tokens = self.tools_tokens

        compact_at_fraction: float | None | Unset
        if isinstance(self.compact_at_fraction, Unset):
            compact_at_fraction = UNSET
        else:
            compact_at_fraction = self.compact_at_fraction

        compact_to_fraction: float | None | Unset
        if isinstance(self.compact_to_fraction, Unset):
            compact_to_fraction = UNSET
        else:
            compact_to_fraction = self.compact_to_fraction

        recall_fraction: float | None | Unset
        if isinstance(self.recall_fraction, Unset):
            recall_fraction = UNSET
        else:
            recall_fraction = self.recall_fraction

        arrival_cap_tokens: int | None | Unset
        if isinstance(self.arrival_cap_tokens, Unset):
            arrival_cap_tokens = UNSET
        else:
            arrival_cap_tokens = self.arrival_cap_tokens

        facts_fraction: float | None | Unset
        if isinstance(self.facts_fraction, Unset):
            facts_fraction = UNSET
        else:
            facts_fraction = self.facts_fraction


        field_dict: dict[str, Any] = {}

        field_dict.update({
        })
        if system_tokens is not UNSET:
            field_dict["system_tokens"] = system_tokens
        if static_tokens is not UNSET:
            field_dict["static_tokens"] = static_tokens
        if meta_tokens is not UNSET:
            field_dict["meta_tokens"] = meta_tokens
        if dynamic_tokens is not UNSET:
            field_dict["dynamic_tokens"] = dynamic_tokens
        if tools_tokens is not UNSET:
            field_dict["tools_tokens"] = tools_tokens
        if compact_at_fraction is not UNSET:
            field_dict["compact_at_fraction"] = compact_at_fraction
        if compact_to_fraction is not UNSET:
            field_dict["compact_to_fraction"] = compact_to_fraction
        if recall_fraction is not UNSET:
            field_dict["recall_fraction"] = recall_fraction
        if arrival_cap_tokens is not UNSET:
            field_dict["arrival_cap_tokens"] = arrival_cap_tokens
        if facts_fraction is not UNSET:
            field_dict["facts_fraction"] = facts_fraction

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        def _parse_system_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        system_tokens = _parse_system_tokens(d.pop("system_tokens", UNSET))


        def _parse_static_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        static_tokens = _parse_static_tokens(d.pop("static_tokens", UNSET))


        def _parse_meta_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        meta_tokens = _parse_meta_tokens(d.pop("meta_tokens", UNSET))


        def _parse_dynamic_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        dynamic_tokens = _parse_dynamic_tokens(d.pop("dynamic_tokens", UNSET))


        def _parse_tools_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        tools_tokens = _parse_tools_tokens(d.pop("tools_tokens", UNSET))


        def _parse_compact_at_fraction(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        compact_at_fraction = _parse_compact_at_fraction(d.pop("compact_at_fraction", UNSET))


        def _parse_compact_to_fraction(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        compact_to_fraction = _parse_compact_to_fraction(d.pop("compact_to_fraction", UNSET))


        def _parse_recall_fraction(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        recall_fraction = _parse_recall_fraction(d.pop("recall_fraction", UNSET))


        def _parse_arrival_cap_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        arrival_cap_tokens = _parse_arrival_cap_tokens(d.pop("arrival_cap_tokens", UNSET))


        def _parse_facts_fraction(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        facts_fraction = _parse_facts_fraction(d.pop("facts_fraction", UNSET))


        budgets_input = cls(
            system_tokens=system_tokens,
            static_tokens=static_tokens,
            meta_tokens=meta_tokens,
            dynamic_tokens=dynamic_tokens,
            tools_tokens=tools_tokens,
            compact_at_fraction=compact_at_fraction,
            compact_to_fraction=compact_to_fraction,
            recall_fraction=recall_fraction,
            arrival_cap_tokens=arrival_cap_tokens,
            facts_fraction=facts_fraction,
        )

        return budgets_input

