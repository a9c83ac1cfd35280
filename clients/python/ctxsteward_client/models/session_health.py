from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.session_health_level import check_session_health_level
from ..models.session_health_level import SessionHealthLevel
from typing import cast






T = TypeVar("T", bound="SessionHealth")



@_attrs_define
class SessionHealth:
    """ How full a session is.

        Attributes:
            session (str):
            level (SessionHealthLevel):
            utilization (float):
            budget_utilization (float):
            window_utilization (float | None):
            prompt_tokens (int):
            dynamic_tokens (int):
            dynamic_budget_tokens (int):
            threshold_tokens (int):
            window_tokens (int | None):
            messages (int):
            compactions (int):
            next_call (bool):
     """

    session: str
    level: SessionHealthLevel
    utilization: float
    budget_utilization: float
    window_utilization: float | None
    prompt_tokens: int
    dynamic_tokens: int
    dynamic_budget_tokens: int
    threshold_tokens: int
    window_tokens: int | None
    messages: int
    compactions: int
    next_call: bool





    def to_dict(self) -> dict[str, Any]:
        session = self.session

        level: str = self.level

        utilization = self.utilization

        budget_utilization = self.budget_utilization

        window_utilization: float | None
        window_utilization = self.window_utilization

        prompt_tokens = self.prompt_tokens

        dynamic_tokens = self.dynamic_tokens

        dynamic_budget_tokens = self.dynamic_budget_tokens

        threshold_tokens = self.threshold_tokens

        window_tokens: int | None
        window_tokens = self.window_tokens

        messages = self.messages

        compactions = self.compactions

        next_call = self.next_call


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "session": session,
            "level": level,
            "utilization": utilization,
            "budget_utilization": budget_utilization,
            "window_utilization": window_utilization,
            "prompt_tokens": prompt_tokens,
            "dynamic_tokens": dynamic_tokens,
            "dynamic_budget_tokens": dynamic_budget_tokens,
            "threshold_tokens": threshold_tokens,
            "window_tokens": window_tokens,
            "messages": messages,
            "compactions": compactions,
            "next_call": next_call,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        session = d.pop("session")

        level = check_session_health_level(d.pop("level"))




        utilization = d.pop("utilization")

        budget_utilization = d.pop("budget_utilization")

        def _parse_window_utilization(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        window_utilization = _parse_window_utilization(d.pop("window_utilization"))


        prompt_tokens = d.pop("prompt_tokens")

        dynamic_tokens = d.pop("dynamic_tokens")

        dynamic_budget_tokens = d.pop("dynamic_budget_tokens")

        threshold_tokens = d.pop("threshold_tokens")

        def _parse_window_tokens(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        window_tokens = _parse_window_tokens(d.pop("window_tokens"))


        messages = d.pop("messages")

        compactions = d.pop("compactions")

        next_call = d.pop("next_call")

        session_health = cls(
            session=session,
            level=level,
            utilization=utilization,
            budget_utilization=budget_utilization,
            window_utilization=window_utilization,
            prompt_tokens=prompt_tokens,
            dynamic_tokens=dynamic_tokens,
            dynamic_budget_tokens=dynamic_budget_tokens,
            threshold_tokens=threshold_tokens,
            window_tokens=window_tokens,
            messages=messages,
            compactions=compactions,
            next_call=next_call,
        )

        return session_health

