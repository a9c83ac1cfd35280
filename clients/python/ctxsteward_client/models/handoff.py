from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
from typing import Literal, cast

if TYPE_CHECKING:
  from ..models.handoff_handoff_line import HandoffHandoffLine
  from ..models.handoff_summary_origin import HandoffSummaryOrigin





T = TypeVar("T", bound="Handoff")



@_attrs_define
class Handoff:
    """ Where a piece of work stands.

        Attributes:
            schema_version (Literal[1]):
            generated_at (None | str):
            session (str): Whose log holds all of it; references lead there.
            task_title (str):
            goal (str): The task as it was set.
            current_hat (None | str): The role, or the cascade's phase; null: there is none.
            branch (None | str):
            head_commit (None | str):
            plan (str):
            completed_items (list[str]):
            remaining_items (list[str]):
            blocking_issues (list[str]):
            modified_files (list[str]):
            created_files (list[str]):
            artifacts (list[str]): References of the newest tool results in the window.
            key_decisions (list[str]):
            understanding (str):
            last_action (str):
            continuation_prompt (str):
            lines (list[HandoffHandoffLine] | Unset): By a model, section by section; empty: none was asked, or none of its
                lines holds.
            origin (HandoffSummaryOrigin | None | Unset): What a model had to do with them; null: none was asked.
     """

    schema_version: Literal[1]
    generated_at: None | str
    session: str
    task_title: str
    goal: str
    current_hat: None | str
    branch: None | str
    head_commit: None | str
    plan: str
    completed_items: list[str]
    remaining_items: list[str]
    blocking_issues: list[str]
    modified_files: list[str]
    created_files: list[str]
    artifacts: list[str]
    key_decisions: list[str]
    understanding: str
    last_action: str
    continuation_prompt: str
    lines: list[HandoffHandoffLine] | Unset = UNSET
    origin: HandoffSummaryOrigin | None | Unset = UNSET





    def to_dict(self) -> dict[str, Any]:
        from ..models.handoff_handoff_line import HandoffHandoffLine # noqa: PLC0415
        from ..models.handoff_summary_origin import HandoffSummaryOrigin # noqa: PLC0415
        schema_version = self.schema_version

        generated_at: None | str
        generated_at = self.generated_at

        session = self.session

        task_title = self.task_title

        goal = self.goal

        current_hat: None | str
        current_hat = self.current_hat

        branch: None | str
        branch = self.branch

        head_commit: None | str
        head_commit = self.head_commit

        plan = self.plan

        completed_items = self.completed_items



        remaining_items = self.remaining_items



        blocking_issues = self.blocking_issues



        modified_files = self.modified_files



        created_files = self.created_files



        artifacts = self.artifacts



        key_decisions = self.key_decisions



        understanding = self.understanding

        last_action = self.last_action

        continuation_prompt = self.continuation_prompt

        lines: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.lines, Unset):
            lines = []
            for lines_item_data in self.lines:
                lines_item = lines_item_data.to_dict()
                lines.append(lines_item)



        origin: dict[str, Any] | None | Unset
        if isinstance(self.origin, Unset):
            origin = UNSET
        elif isinstance(self.origin, HandoffSummaryOrigin):
            origin = self.origin.to_dict()
        else:
            origin = self.origin


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "schema_version": schema_version,
            "generated_at": generated_at,
            "session": session,
            "task_title": task_title,
            "goal": goal,
            "current_hat": current_hat,
            "branch": branch,
            "head_commit": head_commit,
            "plan": plan,
            "completed_items": completed_items,
            "remaining_items": remaining_items,
            "blocking_issues": blocking_issues,
            "modified_files": modified_files,
            "created_files": created_files,
            "artifacts": artifacts,
            "key_decisions": key_decisions,
            "understanding": understanding,
            "last_action": last_action,
            "continuation_prompt": continuation_prompt,
        })
        if lines is not UNSET:
            field_dict["lines"] = lines
        if origin is not UNSET:
            field_dict["origin"] = origin

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.handoff_handoff_line import HandoffHandoffLine # noqa: PLC0415
        from ..models.handoff_summary_origin import HandoffSummaryOrigin # noqa: PLC0415
        d = dict(src_dict)
        schema_version = cast(Literal[1] , d.pop("schema_version"))
        if schema_version != 1:
            raise ValueError(f"schema_version must match const 1, got '{schema_version}'")

        def _parse_generated_at(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        generated_at = _parse_generated_at(d.pop("generated_at"))


        session = d.pop("session")

        task_title = d.pop("task_title")

        goal = d.pop("goal")

        def _parse_current_hat(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        current_hat = _parse_current_hat(d.pop("current_hat"))


        def _parse_branch(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        branch = _parse_branch(d.pop("branch"))


        def _parse_head_commit(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        head_commit = _parse_head_commit(d.pop("head_commit"))


        plan = d.pop("plan")

        completed_items = cast(list[str], d.pop("completed_items"))


        remaining_items = cast(list[str], d.pop("remaining_items"))


        blocking_issues = cast(list[str], d.pop("blocking_issues"))


        modified_files = cast(list[str], d.pop("modified_files"))


        created_files = cast(list[str], d.pop("created_files"))


        artifacts = cast(list[str], d.pop("artifacts"))


        key_decisions = cast(list[str], d.pop("key_decisions"))


        understanding = d.pop("understanding")

        last_action = d.pop("last_action")

        continuation_prompt = d.pop("continuation_prompt")

        _lines = d.pop("lines", UNSET)
        lines: list[HandoffHandoffLine] | Unset = UNSET
        if _lines is not UNSET:
            lines = []
            for lines_item_data in _lines:
                lines_item = HandoffHandoffLine.from_dict(lines_item_data)



                lines.append(lines_item)


        def _parse_origin(data: object) -> HandoffSummaryOrigin | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                origin_type_0 = HandoffSummaryOrigin.from_dict(data)



                return origin_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(HandoffSummaryOrigin | None | Unset, data)

        origin = _parse_origin(d.pop("origin", UNSET))


        handoff = cls(
            schema_version=schema_version,
            generated_at=generated_at,
            session=session,
            task_title=task_title,
            goal=goal,
            current_hat=current_hat,
            branch=branch,
            head_commit=head_commit,
            plan=plan,
            completed_items=completed_items,
            remaining_items=remaining_items,
            blocking_issues=blocking_issues,
            modified_files=modified_files,
            created_files=created_files,
            artifacts=artifacts,
            key_decisions=key_decisions,
            understanding=understanding,
            last_action=last_action,
            continuation_prompt=continuation_prompt,
            lines=lines,
            origin=origin,
        )

        return handoff

