from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="CompactionPrice")



@_attrs_define
class CompactionPrice:
    """ What a compaction costs and saves, in tokens at the price of one that no cache serves.

        Attributes:
            prompt_tokens_before (int):
            prompt_tokens_after (int):
            shared_prefix_tokens (int):
            next_call_before (float):
            next_call_after (float):
            later_call_before (float):
            later_call_after (float):
            break_even_calls (int | None):
     """

    prompt_tokens_before: int
    prompt_tokens_after: int
    shared_prefix_tokens: int
    next_call_before: float
    next_call_after: float
    later_call_before: float
    later_call_after: float
    break_even_calls: int | None





    def to_dict(self) -> dict[str, Any]:
        prompt_tokens_before = self.prompt_tokens_before

        prompt_tokens_after = self.prompt_tokens_after

        shared_prefix_tokens = self.shared_prefix_tokens

        next_call_before = self.next_call_before

        next_call_after = self.next_call_after

        later_call_before = self.later_call_before

        later_call_after = self.later_call_after

        break_even_calls: int | None
        break_even_calls = self.break_even_calls


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "prompt_tokens_before": prompt_tokens_before,
            "prompt_tokens_after": prompt_tokens_after,
            "shared_prefix_tokens": shared_prefix_tokens,
            "next_call_before": next_call_before,
            "next_call_after": next_call_after,
            "later_call_before": later_call_before,
            "later_call_after": later_call_after,
            "break_even_calls": break_even_calls,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        prompt_tokens_before = d.pop("prompt_tokens_before")

        prompt_tokens_after = d.pop("prompt_tokens_after")

        shared_prefix_tokens = d.pop("shared_prefix_tokens")

        next_call_before = d.pop("next_call_before")

        next_call_after = d.pop("next_call_after")

        later_call_before = d.pop("later_call_before")

        later_call_after = d.pop("later_call_after")

        def _parse_break_even_calls(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        break_even_calls = _parse_break_even_calls(d.pop("break_even_calls"))


        compaction_price = cls(
            prompt_tokens_before=prompt_tokens_before,
            prompt_tokens_after=prompt_tokens_after,
            shared_prefix_tokens=shared_prefix_tokens,
            next_call_before=next_call_before,
            next_call_after=next_call_after,
            later_call_before=later_call_before,
            later_call_after=later_call_after,
            break_even_calls=break_even_calls,
        )

        return compaction_price

