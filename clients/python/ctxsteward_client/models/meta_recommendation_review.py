from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.meta_recommendation_review_state import check_meta_recommendation_review_state
from ..models.meta_recommendation_review_state import MetaRecommendationReviewState
from typing import cast






T = TypeVar("T", bound="MetaRecommendationReview")



@_attrs_define
class MetaRecommendationReview:
    """ What people said of it.

        Attributes:
            state (MetaRecommendationReviewState):
            who (list[str]):
            when (None | str):
            note (None | str):
            text (None | str): The words that a person gave the record; None: it has its own.
     """

    state: MetaRecommendationReviewState
    who: list[str]
    when: None | str
    note: None | str
    text: None | str





    def to_dict(self) -> dict[str, Any]:
        state: str = self.state

        who = self.who



        when: None | str
        when = self.when

        note: None | str
        note = self.note

        text: None | str
        text = self.text


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "state": state,
            "who": who,
            "when": when,
            "note": note,
            "text": text,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        state = check_meta_recommendation_review_state(d.pop("state"))




        who = cast(list[str], d.pop("who"))


        def _parse_when(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        when = _parse_when(d.pop("when"))


        def _parse_note(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        note = _parse_note(d.pop("note"))


        def _parse_text(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        text = _parse_text(d.pop("text"))


        meta_recommendation_review = cls(
            state=state,
            who=who,
            when=when,
            note=note,
            text=text,
        )

        return meta_recommendation_review

