from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.meta_recommendation_kind import check_meta_recommendation_kind
from ..models.meta_recommendation_kind import MetaRecommendationKind
from ..models.meta_recommendation_modality_type_0 import check_meta_recommendation_modality_type_0
from ..models.meta_recommendation_modality_type_0 import MetaRecommendationModalityType0
from ..models.meta_recommendation_polarity_type_0 import check_meta_recommendation_polarity_type_0
from ..models.meta_recommendation_polarity_type_0 import MetaRecommendationPolarityType0
from ..models.meta_recommendation_sensitivity import check_meta_recommendation_sensitivity
from ..models.meta_recommendation_sensitivity import MetaRecommendationSensitivity
from ..models.meta_recommendation_status import check_meta_recommendation_status
from ..models.meta_recommendation_status import MetaRecommendationStatus
from ..models.meta_recommendation_trust import check_meta_recommendation_trust
from ..models.meta_recommendation_trust import MetaRecommendationTrust
from typing import cast
from typing import Literal, cast

if TYPE_CHECKING:
  from ..models.meta_recommendation_confidence import MetaRecommendationConfidence
  from ..models.meta_recommendation_evidence import MetaRecommendationEvidence
  from ..models.meta_recommendation_extractor import MetaRecommendationExtractor
  from ..models.meta_recommendation_review import MetaRecommendationReview
  from ..models.meta_recommendation_scope import MetaRecommendationScope
  from ..models.meta_recommendation_slot import MetaRecommendationSlot
  from ..models.meta_recommendation_support import MetaRecommendationSupport
  from ..models.meta_recommendation_validity import MetaRecommendationValidity





T = TypeVar("T", bound="MetaRecommendation")



@_attrs_define
class MetaRecommendation:
    """ One record of the steward.

        Attributes:
            schema_version (Literal[1]):
            id (str):
            revision (int): Grows by one whenever anything in the record changes.
            kind (MetaRecommendationKind):
            scope (MetaRecommendationScope): Whom a recommendation is for: the narrowest field that is set decides.
            slot (MetaRecommendationSlot): What a claim is about: two claims of one slot with cardinality one cannot both
                hold.
            text (str):
            value (float | int | None | str):
            unit (None | str):
            polarity (MetaRecommendationPolarityType0 | None):
            modality (MetaRecommendationModalityType0 | None):
            trigger (None | str): When it applies, in words or as ``tool:NAME error:CODE``; None: always.
            action (None | str): What to do then.
            evidence (list[MetaRecommendationEvidence]):
            support (MetaRecommendationSupport): How much there is, counted over all evidence, also that beyond the eight
                kept.
            confidence (MetaRecommendationConfidence): How sure we are.
            trust (MetaRecommendationTrust): The least trusted of its evidence.
            validity (MetaRecommendationValidity): Two time lines: when it is true, and when we knew.
            status (MetaRecommendationStatus):
            reasons (list[str]): Why it has this status.
            supersedes (list[str]):
            superseded_by (None | str):
            conflicts (list[str]): Records of the same slot that say the opposite; all of them are held.
            extractor (MetaRecommendationExtractor): The code that found it.
            run (str): The night that made this revision: an id that its input decides.
            tokens (int): Cost of its rendered line, in the tokens of the steward's tokenizer.
            sensitivity (MetaRecommendationSensitivity):
            locked (bool): Only people change it.
            review (MetaRecommendationReview | None):
     """

    schema_version: Literal[1]
    id: str
    revision: int
    kind: MetaRecommendationKind
    scope: MetaRecommendationScope
    slot: MetaRecommendationSlot
    text: str
    value: float | int | None | str
    unit: None | str
    polarity: MetaRecommendationPolarityType0 | None
    modality: MetaRecommendationModalityType0 | None
    trigger: None | str
    action: None | str
    evidence: list[MetaRecommendationEvidence]
    support: MetaRecommendationSupport
    confidence: MetaRecommendationConfidence
    trust: MetaRecommendationTrust
    validity: MetaRecommendationValidity
    status: MetaRecommendationStatus
    reasons: list[str]
    supersedes: list[str]
    superseded_by: None | str
    conflicts: list[str]
    extractor: MetaRecommendationExtractor
    run: str
    tokens: int
    sensitivity: MetaRecommendationSensitivity
    locked: bool
    review: MetaRecommendationReview | None





    def to_dict(self) -> dict[str, Any]:
        from ..models.meta_recommendation_confidence import MetaRecommendationConfidence # noqa: PLC0415
        from ..models.meta_recommendation_evidence import MetaRecommendationEvidence # noqa: PLC0415
        from ..models.meta_recommendation_extractor import MetaRecommendationExtractor # noqa: PLC0415
        from ..models.meta_recommendation_review import MetaRecommendationReview # noqa: PLC0415
        from ..models.meta_recommendation_scope import MetaRecommendationScope # noqa: PLC0415
        from ..models.meta_recommendation_slot import MetaRecommendationSlot # noqa: PLC0415
        from ..models.meta_recommendation_support import MetaRecommendationSupport # noqa: PLC0415
        from ..models.meta_recommendation_validity import MetaRecommendationValidity # noqa: PLC0415
        schema_version = self.schema_version

        id = self.id

        revision = self.revision

        kind: str = self.kind

        scope = self.scope.to_dict()

        slot = self.slot.to_dict()

        text = self.text

        value: float | int | None | str
        value = self.value

        unit: None | str
        unit = self.unit

        polarity: None | str
        if isinstance(self.polarity, str):
            polarity = self.polarity
        else:
            polarity = self.polarity

        modality: None | str
        if isinstance(self.modality, str):
            modality = self.modality
        else:
            modality = self.modality

        trigger: None | str
        trigger = self.trigger

        action: None | str
        action = self.action

        evidence = []
        for evidence_item_data in self.evidence:
            evidence_item = evidence_item_data.to_dict()
            evidence.append(evidence_item)



        support = self.support.to_dict()

        confidence = self.confidence.to_dict()

        trust: str = self.trust

        validity = self.validity.to_dict()

        status: str = self.status

        reasons = self.reasons



        supersedes = self.supersedes



        superseded_by: None | str
        superseded_by = self.superseded_by

        conflicts = self.conflicts



        extractor = self.extractor.to_dict()

        run = self.run

        tokens = self.tokens

        sensitivity: str = self.sensitivity

        locked = self.locked

        review: dict[str, Any] | None
        if isinstance(self.review, MetaRecommendationReview):
            review = self.review.to_dict()
        else:
            review = self.review


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "schema_version": schema_version,
            "id": id,
            "revision": revision,
            "kind": kind,
            "scope": scope,
            "slot": slot,
            "text": text,
            "value": value,
            "unit": unit,
            "polarity": polarity,
            "modality": modality,
            "trigger": trigger,
            "action": action,
            "evidence": evidence,
            "support": support,
            "confidence": confidence,
            "trust": trust,
            "validity": validity,
            "status": status,
            "reasons": reasons,
            "supersedes": supersedes,
            "superseded_by": superseded_by,
            "conflicts": conflicts,
            "extractor": extractor,
            "run": run,
            "tokens": tokens,
            "sensitivity": sensitivity,
            "locked": locked,
            "review": review,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.meta_recommendation_confidence import MetaRecommendationConfidence # noqa: PLC0415
        from ..models.meta_recommendation_evidence import MetaRecommendationEvidence # noqa: PLC0415
        from ..models.meta_recommendation_extractor import MetaRecommendationExtractor # noqa: PLC0415
        from ..models.meta_recommendation_review import MetaRecommendationReview # noqa: PLC0415
        from ..models.meta_recommendation_scope import MetaRecommendationScope # noqa: PLC0415
        from ..models.meta_recommendation_slot import MetaRecommendationSlot # noqa: PLC0415
        from ..models.meta_recommendation_support import MetaRecommendationSupport # noqa: PLC0415
        from ..models.meta_recommendation_validity import MetaRecommendationValidity # noqa: PLC0415
        d = dict(src_dict)
        schema_version = cast(Literal[1] , d.pop("schema_version"))
        if schema_version != 1:
            raise ValueError(f"schema_version must match const 1, got '{schema_version}'")

        id = d.pop("id")

        revision = d.pop("revision")

        kind = check_meta_recommendation_kind(d.pop("kind"))




        scope = MetaRecommendationScope.from_dict(d.pop("scope"))




        slot = MetaRecommendationSlot.from_dict(d.pop("slot"))




        text = d.pop("text")

        def _parse_value(data: object) -> float | int | None | str:
            if data is None:
                return data
            return cast(float | int | None | str, data)

        value = _parse_value(d.pop("value"))


        def _parse_unit(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        unit = _parse_unit(d.pop("unit"))


        def _parse_polarity(data: object) -> MetaRecommendationPolarityType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                polarity_type_0 = check_meta_recommendation_polarity_type_0(data)



                return polarity_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(MetaRecommendationPolarityType0 | None, data)

        polarity = _parse_polarity(d.pop("polarity"))


        def _parse_modality(data: object) -> MetaRecommendationModalityType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                modality_type_0 = check_meta_recommendation_modality_type_0(data)



                return modality_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(MetaRecommendationModalityType0 | None, data)

        modality = _parse_modality(d.pop("modality"))


        def _parse_trigger(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        trigger = _parse_trigger(d.pop("trigger"))


        def _parse_action(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        action = _parse_action(d.pop("action"))


        evidence = []
        _evidence = d.pop("evidence")
        for evidence_item_data in (_evidence):
            evidence_item = MetaRecommendationEvidence.from_dict(evidence_item_data)



            evidence.append(evidence_item)


        support = MetaRecommendationSupport.from_dict(d.pop("support"))




        confidence = MetaRecommendationConfidence.from_dict(d.pop("confidence"))




        trust = check_meta_recommendation_trust(d.pop("trust"))




        validity = MetaRecommendationValidity.from_dict(d.pop("validity"))




        status = check_meta_recommendation_status(d.pop("status"))




        reasons = cast(list[str], d.pop("reasons"))


        supersedes = cast(list[str], d.pop("supersedes"))


        def _parse_superseded_by(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        superseded_by = _parse_superseded_by(d.pop("superseded_by"))


        conflicts = cast(list[str], d.pop("conflicts"))


        extractor = MetaRecommendationExtractor.from_dict(d.pop("extractor"))




        run = d.pop("run")

        tokens = d.pop("tokens")

        sensitivity = check_meta_recommendation_sensitivity(d.pop("sensitivity"))




        locked = d.pop("locked")

        def _parse_review(data: object) -> MetaRecommendationReview | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                review_type_0 = MetaRecommendationReview.from_dict(data)



                return review_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(MetaRecommendationReview | None, data)

        review = _parse_review(d.pop("review"))


        meta_recommendation = cls(
            schema_version=schema_version,
            id=id,
            revision=revision,
            kind=kind,
            scope=scope,
            slot=slot,
            text=text,
            value=value,
            unit=unit,
            polarity=polarity,
            modality=modality,
            trigger=trigger,
            action=action,
            evidence=evidence,
            support=support,
            confidence=confidence,
            trust=trust,
            validity=validity,
            status=status,
            reasons=reasons,
            supersedes=supersedes,
            superseded_by=superseded_by,
            conflicts=conflicts,
            extractor=extractor,
            run=run,
            tokens=tokens,
            sensitivity=sensitivity,
            locked=locked,
            review=review,
        )

        return meta_recommendation

