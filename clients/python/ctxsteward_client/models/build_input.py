from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.build_input_policy_type_0 import BuildInputPolicyType0
from ..models.build_input_policy_type_0 import check_build_input_policy_type_0
from ..models.build_input_provider_type_0 import BuildInputProviderType0
from ..models.build_input_provider_type_0 import check_build_input_provider_type_0
from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.budgets_input import BudgetsInput
  from ..models.message import Message





T = TypeVar("T", bound="BuildInput")



@_attrs_define
class BuildInput:
    """ What the envelope is built for.

        Attributes:
            provider (BuildInputProviderType0 | None | Unset):
            model (None | str | Unset):
            budgets (BudgetsInput | None | Unset):
            policy (BuildInputPolicyType0 | None | Unset):
            history (list[Message] | None | Unset):
            principal (None | str | Unset):
            cache (bool | Unset):  Default: True.
            envelope (bool | Unset):  Default: True.
     """

    provider: BuildInputProviderType0 | None | Unset = UNSET
    model: None | str | Unset = UNSET
    budgets: BudgetsInput | None | Unset = UNSET
    policy: BuildInputPolicyType0 | None | Unset = UNSET
    history: list[Message] | None | Unset = UNSET
    principal: None | str | Unset = UNSET
    cache: bool | Unset = True
    envelope: bool | Unset = True





    def to_dict(self) -> dict[str, Any]:
        from ..models.budgets_input import BudgetsInput # noqa: PLC0415
        from ..models.message import Message # noqa: PLC0415
        provider: None | str | Unset
        if isinstance(self.provider, Unset):
            provider = UNSET
        elif isinstance(self.provider, str):
            provider = self.provider
        else:
            provider = self.provider

        model: None | str | Unset
        if isinstance(self.model, Unset):
            model = UNSET
        else:
            model = self.model

        budgets: dict[str, Any] | None | Unset
        if isinstance(self.budgets, Unset):
            budgets = UNSET
        elif isinstance(self.budgets, BudgetsInput):
            budgets = self.budgets.to_dict()
        else:
            budgets = self.budgets

        policy: None | str | Unset
        if isinstance(self.policy, Unset):
            policy = UNSET
        elif isinstance(self.policy, str):
            policy = self.policy
        else:
            policy = self.policy

        history: list[dict[str, Any]] | None | Unset
        if isinstance(self.history, Unset):
            history = UNSET
        elif isinstance(self.history, list):
            history = []
            for history_type_0_item_data in self.history:
                history_type_0_item = history_type_0_item_data.to_dict()
                history.append(history_type_0_item)


        else:
            history = self.history

        principal: None | str | Unset
        if isinstance(self.principal, Unset):
            principal = UNSET
        else:
            principal = self.principal

        cache = self.cache

        envelope = self.envelope


        field_dict: dict[str, Any] = {}

        field_dict.update({
        })
        if provider is not UNSET:
            field_dict["provider"] = provider
        if model is not UNSET:
            field_dict["model"] = model
        if budgets is not UNSET:
            field_dict["budgets"] = budgets
        if policy is not UNSET:
            field_dict["policy"] = policy
        if history is not UNSET:
            field_dict["history"] = history
        if principal is not UNSET:
            field_dict["principal"] = principal
        if cache is not UNSET:
            field_dict["cache"] = cache
        if envelope is not UNSET:
            field_dict["envelope"] = envelope

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.budgets_input import BudgetsInput # noqa: PLC0415
        from ..models.message import Message # noqa: PLC0415
        d = dict(src_dict)
        def _parse_provider(data: object) -> BuildInputProviderType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                provider_type_0 = check_build_input_provider_type_0(data)



                return provider_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BuildInputProviderType0 | None | Unset, data)

        provider = _parse_provider(d.pop("provider", UNSET))


        def _parse_model(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        model = _parse_model(d.pop("model", UNSET))


        def _parse_budgets(data: object) -> BudgetsInput | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                budgets_type_0 = BudgetsInput.from_dict(data)



                return budgets_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BudgetsInput | None | Unset, data)

        budgets = _parse_budgets(d.pop("budgets", UNSET))


        def _parse_policy(data: object) -> BuildInputPolicyType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                policy_type_0 = check_build_input_policy_type_0(data)



                return policy_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BuildInputPolicyType0 | None | Unset, data)

        policy = _parse_policy(d.pop("policy", UNSET))


        def _parse_history(data: object) -> list[Message] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                history_type_0 = []
                _history_type_0 = data
                for history_type_0_item_data in (_history_type_0):
                    history_type_0_item = Message.from_dict(history_type_0_item_data)



                    history_type_0.append(history_type_0_item)

                return history_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Message] | None | Unset, data)

        history = _parse_history(d.pop("history", UNSET))


        def _parse_principal(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        principal = _parse_principal(d.pop("principal", UNSET))


        cache = d.pop("cache", UNSET)

        envelope = d.pop("envelope", UNSET)

        build_input = cls(
            provider=provider,
            model=model,
            budgets=budgets,
            policy=policy,
            history=history,
            principal=principal,
            cache=cache,
            envelope=envelope,
        )

        return build_input

