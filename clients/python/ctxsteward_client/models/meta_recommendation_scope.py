from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast






T = TypeVar("T", bound="MetaRecommendationScope")



@_attrs_define
class MetaRecommendationScope:
    """ Whom a recommendation is for: the narrowest field that is set decides.

        Attributes:
            tenant (str):
            agent (str): Name of the profile.
            user (None | str):
            project (None | str):
            session (None | str):
            tool (None | str): The tool it is about; narrows the subject, not the audience.
     """

    tenant: str
    agent: str
    user: None | str
    project: None | str
    session: None | str
    tool: None | str





    def to_dict(self) -> dict[str, Any]:
        tenant = self.tenant

        agent = self.agent

        user: None | str
        user = self.user

        project: None | str
        project = self.project

        session: None | str
        session = self.session

        tool: None | str
        tool = self.tool


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "tenant": tenant,
            "agent": agent,
            "user": user,
            "project": project,
            "session": session,
            "tool": tool,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        tenant = d.pop("tenant")

        agent = d.pop("agent")

        def _parse_user(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        user = _parse_user(d.pop("user"))


        def _parse_project(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        project = _parse_project(d.pop("project"))


        def _parse_session(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        session = _parse_session(d.pop("session"))


        def _parse_tool(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        tool = _parse_tool(d.pop("tool"))


        meta_recommendation_scope = cls(
            tenant=tenant,
            agent=agent,
            user=user,
            project=project,
            session=session,
            tool=tool,
        )

        return meta_recommendation_scope

