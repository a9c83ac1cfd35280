from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
  from ..models.envelope_summary_origin_refused import EnvelopeSummaryOriginRefused
  from ..models.envelope_token_usage import EnvelopeTokenUsage





T = TypeVar("T", bound="EnvelopeSummaryOrigin")



@_attrs_define
class EnvelopeSummaryOrigin:
    """ What a model had to do with a summary: what of it was taken, and why the rest was not.

        Attributes:
            model (str):
            template (str): Name, version and the first digits of its SHA-256: ``history_bullets 1 4f0c2a91``.
            grounded (int): Bullets that are there because the model wrote them.
            refused (EnvelopeSummaryOriginRefused): What the model wrote that does not hold, by what is wrong with it; words
                of sources, or of rules, stand in.
            fell_back (list[str]): Why a part of the sources has no bullets of the model: of a closed set, with an HTTP
                status; no words of its.
            calls (int):
            usage (EnvelopeTokenUsage): What a provider counted for one call.
            pointed (int | Unset): Of those, in the words of their sources.
     """

    model: str
    template: str
    grounded: int
    refused: EnvelopeSummaryOriginRefused
    fell_back: list[str]
    calls: int
    usage: EnvelopeTokenUsage
    pointed: int | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.envelope_summary_origin_refused import EnvelopeSummaryOriginRefused # noqa: PLC0415
        from ..models.envelope_token_usage import EnvelopeTokenUsage # noqa: PLC0415
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
        from ..models.envelope_summary_origin_refused import EnvelopeSummaryOriginRefused # noqa: PLC0415
        from ..models.envelope_token_usage import EnvelopeTokenUsage # noqa: PLC0415
        d = dict(src_dict)
        model = d.pop("model")

        template = d.pop("template")

        grounded = d.pop("grounded")

        refused = EnvelopeSummaryOriginRefused.from_dict(d.pop("refused"))




        fell_back = cast(list[str], d.pop("fell_back"))


        calls = d.pop("calls")

        usage = EnvelopeTokenUsage.from_dict(d.pop("usage"))




        pointed = d.pop("pointed", UNSET)

        envelope_summary_origin = cls(
            model=model,
            template=template,
            grounded=grounded,
            refused=refused,
            fell_back=fell_back,
            calls=calls,
            usage=usage,
            pointed=pointed,
        )

        return envelope_summary_origin

