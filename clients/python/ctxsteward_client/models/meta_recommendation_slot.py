from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.meta_recommendation_slot_cardinality import check_meta_recommendation_slot_cardinality
from ..models.meta_recommendation_slot_cardinality import MetaRecommendationSlotCardinality
from typing import cast






T = TypeVar("T", bound="MetaRecommendationSlot")



@_attrs_define
class MetaRecommendationSlot:
    """ What a claim is about: two claims of one slot with cardinality one cannot both hold.

        Attributes:
            subject (str): user, agent, or the name of a person, tool or thing, lower case.
            attribute (str): Such as ``language``, ``home``, ``answer_length``, ``error:not_found``.
            cardinality (MetaRecommendationSlotCardinality):
     """

    subject: str
    attribute: str
    cardinality: MetaRecommendationSlotCardinality





    def to_dict(self) -> dict[str, Any]:
        subject = self.subject

        attribute = self.attribute

        cardinality: str = self.cardinality


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "subject": subject,
            "attribute": attribute,
            "cardinality": cardinality,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        subject = d.pop("subject")

        attribute = d.pop("attribute")

        cardinality = check_meta_recommendation_slot_cardinality(d.pop("cardinality"))




        meta_recommendation_slot = cls(
            subject=subject,
            attribute=attribute,
            cardinality=cardinality,
        )

        return meta_recommendation_slot

