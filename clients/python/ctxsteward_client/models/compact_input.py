from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.budgets_input import BudgetsInput





T = TypeVar("T", bound="CompactInput")



@_attrs_define
class CompactInput:
    """ How far to compact.

        Attributes:
            keep_tokens (int | None | Unset):
            model (None | str | Unset):
            budgets (BudgetsInput | None | Unset):
     """

    keep_tokens: int | None | Unset = UNSET
    model: None | str | Unset = UNSET
    budgets: BudgetsInput | None | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.budgets_input import BudgetsInput # noqa: PLC0415
        keep_tokens: int | None | Unset
        if isinstance(self.keep_tokens, Unset):
            keep_tokens = UNSET
        else:
            keep_tokens = self.keep_tokens

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


        field_dict: dict[str, Any] = {}

        field_dict.update({
        })
        if keep_tokens is not UNSET:
            field_dict["keep_tokens"] = keep_tokens
        if model is not UNSET:
            field_dict["model"] = model
        if budgets is not UNSET:
            field_dict["budgets"] = budgets

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.budgets_input import BudgetsInput # noqa: PLC0415
        d = dict(src_dict)
        def _parse_keep_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        keep_tokens = _parse_keep_tokens(d.pop("keep_tokens", UNSET))


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


        compact_input = cls(
            keep_tokens=keep_tokens,
            model=model,
            budgets=budgets,
        )

        return compact_input

