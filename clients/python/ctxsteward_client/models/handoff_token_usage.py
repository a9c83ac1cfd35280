from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="HandoffTokenUsage")



@_attrs_define
class HandoffTokenUsage:
    """ What a provider counted for one call.

        Attributes:
            prompt_tokens (int): All of the prompt, cached or not.
            cached_tokens (int): Of those, read from the provider's cache.
            written_tokens (int): Of those, written to it for a surcharge.
            output_tokens (int):
     """

    prompt_tokens: int
    cached_tokens: int
    written_tokens: int
    output_tokens: int





    def to_dict(self) -> dict[str, Any]:
        prompt_tokens = self.prompt_tokens

        cached_tokens = self.cached_tokens

        written_tokens = self.written_tokens

        output_tokens = self.output_tokens


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "prompt_tokens": prompt_tokens,
            "cached_tokens": cached_tokens,
            "written_tokens": written_tokens,
            "output_tokens": output_tokens,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        prompt_tokens = d.pop("prompt_tokens")

        cached_tokens = d.pop("cached_tokens")

        written_tokens = d.pop("written_tokens")

        output_tokens = d.pop("output_tokens")

        handoff_token_usage = cls(
            prompt_tokens=prompt_tokens,
            cached_tokens=cached_tokens,
            written_tokens=written_tokens,
            output_tokens=output_tokens,
        )

        return handoff_token_usage

