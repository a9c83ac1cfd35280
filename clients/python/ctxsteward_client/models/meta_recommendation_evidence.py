from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.meta_recommendation_evidence_relation import check_meta_recommendation_evidence_relation
from ..models.meta_recommendation_evidence_relation import MetaRecommendationEvidenceRelation
from ..models.meta_recommendation_evidence_role import check_meta_recommendation_evidence_role
from ..models.meta_recommendation_evidence_role import MetaRecommendationEvidenceRole
from ..models.meta_recommendation_evidence_trust import check_meta_recommendation_evidence_trust
from ..models.meta_recommendation_evidence_trust import MetaRecommendationEvidenceTrust
from typing import cast






T = TypeVar("T", bound="MetaRecommendationEvidence")



@_attrs_define
class MetaRecommendationEvidence:
    """ One span of one message.

        Attributes:
            source (str): Where the transcript was read: a file's name in its source, an object's key, or ``store``.
            session (str):
            ref (str):
            span (list[int]): Byte range in the text of that message as it was harvested: after redaction.
            span_address (str): HMAC of the bytes of the span under the tenant's key.
            role (MetaRecommendationEvidenceRole):
            trust (MetaRecommendationEvidenceTrust):
            principal (None | str): Who stands behind it: a user or a task; None where nobody knows (earlier versions wrote
                the session's name).
            ts (None | str):
            relation (MetaRecommendationEvidenceRelation):
     """

    source: str
    session: str
    ref: str
    span: list[int]
    span_address: str
    role: MetaRecommendationEvidenceRole
    trust: MetaRecommendationEvidenceTrust
    principal: None | str
    ts: None | str
    relation: MetaRecommendationEvidenceRelation





    def to_dict(self) -> dict[str, Any]:
        source = self.source

        session = self.session

        ref = self.ref

        span = []
        for span_item_data in self.span:
            span_item: int
            span_item = span_item_data
            span.append(span_item)



        span_address = self.span_address

        role: str = self.role

        trust: str = self.trust

        principal: None | str
        principal = self.principal

        ts: None | str
        ts = self.ts

        relation: str = self.relation


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "source": source,
            "session": session,
            "ref": ref,
            "span": span,
            "span_address": span_address,
            "role": role,
            "trust": trust,
            "principal": principal,
            "ts": ts,
            "relation": relation,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        source = d.pop("source")

        session = d.pop("session")

        ref = d.pop("ref")

        span = []
        _span = d.pop("span")
        for span_item_data in (_span):
            def _parse_span_item(data: object) -> int:
                return cast(int, data)

            span_item = _parse_span_item(span_item_data)

            span.append(span_item)


        span_address = d.pop("span_address")

        role = check_meta_recommendation_evidence_role(d.pop("role"))




        trust = check_meta_recommendation_evidence_trust(d.pop("trust"))




        def _parse_principal(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        principal = _parse_principal(d.pop("principal"))


        def _parse_ts(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        ts = _parse_ts(d.pop("ts"))


        relation = check_meta_recommendation_evidence_relation(d.pop("relation"))




        meta_recommendation_evidence = cls(
            source=source,
            session=session,
            ref=ref,
            span=span,
            span_address=span_address,
            role=role,
            trust=trust,
            principal=principal,
            ts=ts,
            relation=relation,
        )

        return meta_recommendation_evidence

