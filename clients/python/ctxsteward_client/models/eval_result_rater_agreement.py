from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="EvalResultRaterAgreement")



@_attrs_define
class EvalResultRaterAgreement:
    """ How far two raters agree; a model with itself: between repeats over the same text.

        Attributes:
            first (str): ``code``, ``label`` or the name of a model.
            second (str):
            cases (int): Asks that both answered; the table has each of their repeats.
            table (list[int]):
            agree (float): Raw agreement, 0..1.
            kappa (float | None): Cohen's; None: undefined.
            note (str): Why it is undefined, or says nothing; else empty.
            differing (int):
            differ (list[str]): Where they differ, the first few: scenario, place, question, and what each said.
     """

    first: str
    second: str
    cases: int
    table: list[int]
    agree: float
    kappa: float | None
    note: str
    differing: int
    differ: list[str]





    def to_dict(self) -> dict[str, Any]:
        first = self.first

        second = self.second

        cases = self.cases

        table = []
        for componentsschemaseval_result_rating_table_item_data in self.table:
            componentsschemaseval_result_rating_table_item: int
            componentsschemaseval_result_rating_table_item = componentsschemaseval_result_rating_table_item_data
            table.append(componentsschemaseval_result_rating_table_item)



        agree = self.agree

        kappa: float | None
        kappa = self.kappa

        note = self.note

        differing = self.differing

        differ = self.differ




        field_dict: dict[str, Any] = {}

        field_dict.update({
            "first": first,
            "second": second,
            "cases": cases,
            "table": table,
            "agree": agree,
            "kappa": kappa,
            "note": note,
            "differing": differing,
            "differ": differ,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        first = d.pop("first")

        second = d.pop("second")

        cases = d.pop("cases")

        table = []
        _table = d.pop("table")
        for componentsschemaseval_result_rating_table_item_data in (_table):
            def _parse_componentsschemaseval_result_rating_table_item(data: object) -> int:
                return cast(int, data)

            componentsschemaseval_result_rating_table_item = _parse_componentsschemaseval_result_rating_table_item(componentsschemaseval_result_rating_table_item_data)

            table.append(componentsschemaseval_result_rating_table_item)


        agree = d.pop("agree")

        def _parse_kappa(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        kappa = _parse_kappa(d.pop("kappa"))


        note = d.pop("note")

        differing = d.pop("differing")

        differ = cast(list[str], d.pop("differ"))


        eval_result_rater_agreement = cls(
            first=first,
            second=second,
            cases=cases,
            table=table,
            agree=agree,
            kappa=kappa,
            note=note,
            differing=differing,
            differ=differ,
        )

        return eval_result_rater_agreement

