from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
  from ..models.changelog_entry import ChangelogEntry





T = TypeVar("T", bound="ProfileVersionRow")



@_attrs_define
class ProfileVersionRow:
    """ A version of a profile.

        Attributes:
            profile (str):
            entry (ChangelogEntry): One commit of a profile.
            is_head (bool):
     """

    profile: str
    entry: ChangelogEntry
    is_head: bool





    def to_dict(self) -> dict[str, Any]:
        from ..models.changelog_entry import ChangelogEntry # noqa: PLC0415
        profile = self.profile

        entry = self.entry.to_dict()

        is_head = self.is_head


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "profile": profile,
            "entry": entry,
            "is_head": is_head,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.changelog_entry import ChangelogEntry # noqa: PLC0415
        d = dict(src_dict)
        profile = d.pop("profile")

        entry = ChangelogEntry.from_dict(d.pop("entry"))




        is_head = d.pop("is_head")

        profile_version_row = cls(
            profile=profile,
            entry=entry,
            is_head=is_head,
        )

        return profile_version_row

