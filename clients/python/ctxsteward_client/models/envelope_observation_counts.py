from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset







T = TypeVar("T", bound="EnvelopeObservationCounts")



@_attrs_define
class EnvelopeObservationCounts:
    """ Changes of an observation log. Reports of earlier versions hold it; none is written any more.

        Attributes:
            appended (int):
            merged (int): Observations that others stand for from now on.
            reflections (int): Those others.
            left (int): Observations that went for want of room.
            tokens (int): Of the log as the window shows it now.
     """

    appended: int
    merged: int
    reflections: int
    left: int
    tokens: int





    def to_dict(self) -> dict[str, Any]:
        appended = self.appended

        merged = self.merged

        reflections = self.reflections

        left = self.left

        tokens = self.tokens


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "appended": appended,
            "merged": merged,
            "reflections": reflections,
            "left": left,
            "tokens": tokens,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        appended = d.pop("appended")

        merged = d.pop("merged")

        reflections = d.pop("reflections")

        left = d.pop("left")

        tokens = d.pop("tokens")

        envelope_observation_counts = cls(
            appended=appended,
            merged=merged,
            reflections=reflections,
            left=left,
            tokens=tokens,
        )

        return envelope_observation_counts

