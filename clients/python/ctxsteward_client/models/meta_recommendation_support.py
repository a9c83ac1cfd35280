from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="MetaRecommendationSupport")



@_attrs_define
class MetaRecommendationSupport:
    """ How much there is, counted over all evidence, also that beyond the eight kept.

        Attributes:
            events (int):
            sessions (int):
            principals (int): Independent ones: within one user's own scope, sessions count instead.
            contradicts (int):
            first (None | str):
            last (None | str):
     """

    events: int
    sessions: int
    principals: int
    contradicts: int
    first: None | str
    last: None | str





    def to_dict(self) -> dict[str, Any]:
        events = self.events

        sessions = self.sessions

        principals = self.principals

        contradicts = self.contradicts

        first: None | str
        first = self.first

        last: None | str
        last = self.last


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "events": events,
            "sessions": sessions,
            "principals": principals,
            "contradicts": contradicts,
            "first": first,
            "last": last,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        events = d.pop("events")

        sessions = d.pop("sessions")

        principals = d.pop("principals")

        contradicts = d.pop("contradicts")

        def _parse_first(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        first = _parse_first(d.pop("first"))


        def _parse_last(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        last = _parse_last(d.pop("last"))


        meta_recommendation_support = cls(
            events=events,
            sessions=sessions,
            principals=principals,
            contradicts=contradicts,
            first=first,
            last=last,
        )

        return meta_recommendation_support

