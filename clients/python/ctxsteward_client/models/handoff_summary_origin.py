from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.handoff_summary_origin_refused import HandoffSummaryOriginRefused
  from ..models.handoff_token_usage import HandoffTokenUsage





T = TypeVar("T", bound="HandoffSummaryOrigin")



@_attrs_define
class HandoffSummaryOrigin:
    """ What a model had to do with a summary: what of it was taken, and why the rest was not.

        Attributes:
            model (str):
            template (str): Name, version and the first digits of its SHA-256: ``history_bullets 1 4f0c2a91``.
            grounded (int): Bullets that are there because the model wrote them.
            refused (HandoffSummaryOriginRefused): What the model wrote that does not hold, by what is wrong with it; words
                of sources, or of rules, stand in.
            fell_back (list[str]): Why a part of the sources has no bullets of the model: of a closed set, with an HTTP
                status; no words of its.
            calls (int):
            usage (HandoffTokenUsage): What a provider counted for one call.
            pointed (int | Unset): Of those, in the words of their sources.
     """

    model: str
    template: str
    grounded: int
    refused: HandoffSummaryOriginRefused
    fell_back: list[str]
    calls: int
    usage: HandoffTokenUsage
    pointed: int | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.handoff_summary_origin_refused import HandoffSummaryOriginRefused # noqa: PLC0415
        from ..models.handoff_token_usage import HandoffTokenUsage # noqa: PLC0415
        model = self.model

        template = self.template

        grounded = self.grounded

        refused = self.refused.to_dict()

        fell_back = self.fell_back



        calls = self.calls

        usage = self.usage.to_dict()

        pointed = self.pointed


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "model": model,
            "template": template,
            "grounded": grounded,
            "refused": refused,
            "fell_back": fell_back,
            "calls": calls,
            "usage": usage,
        })
        if pointed is not UNSET:
            field_dict["pointed"] = pointed

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.handoff_summary_origin_refused import HandoffSummaryOriginRefused # noqa: PLC0415
        from ..models.handoff_token_usage import HandoffTokenUsage # noqa: PLC0415
        d = dict(src_dict)
        model = d.pop("model")

        template = d.pop("template")

        grounded = d.pop("grounded")

        refused = HandoffSummaryOriginRefused.from_dict(d.pop("refused"))




        fell_back = cast(list[str], d.pop("fell_back"))


        calls = d.pop("calls")

        usage = HandoffTokenUsage.from_dict(d.pop("usage"))




        pointed = d.pop("pointed", UNSET)

        handoff_summary_origin = cls(
            model=model,
            template=template,
            grounded=grounded,
            refused=refused,
            fell_back=fell_back,
            calls=calls,
            usage=usage,
            pointed=pointed,
        )

        return handoff_summary_origin

