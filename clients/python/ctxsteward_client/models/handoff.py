from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
from typing import Literal, cast






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





    def to_dict(self) -> dict[str, Any]:
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

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
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
        )

        return handoff

