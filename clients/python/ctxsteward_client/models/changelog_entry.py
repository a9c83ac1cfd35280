from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
from typing import Literal, cast

if TYPE_CHECKING:
  from ..models.changelog_entry_change import ChangelogEntryChange





T = TypeVar("T", bound="ChangelogEntry")



@_attrs_define
class ChangelogEntry:
    """ One commit of a profile.

        Attributes:
            schema_version (Literal[1]):
            profile (str):
            version (int):
            parent (int | None): The version it was made from; null for the first.
            commit_id (str): Made by the writer before its first try: the same commit repeated has the same id.
            epoch (int): Of the writer; 0 where nobody has ever taken a lease.
            who (str):
            when (str): ISO 8601 time, as told.
            why (str):
            restores (int | None): The version whose content this is again; null where it is no rollback.
            changes (list[ChangelogEntryChange]):
     """

    schema_version: Literal[1]
    profile: str
    version: int
    parent: int | None
    commit_id: str
    epoch: int
    who: str
    when: str
    why: str
    restores: int | None
    changes: list[ChangelogEntryChange]





    def to_dict(self) -> dict[str, Any]:
        from ..models.changelog_entry_change import ChangelogEntryChange # noqa: PLC0415
        schema_version = self.schema_version

        profile = self.profile

        version = self.version

        parent: int | None
        parent = self.parent

        commit_id = self.commit_id

        epoch = self.epoch

        who = self.who

        when = self.when

        why = self.why

        restores: int | None
        restores = self.restores

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)




        field_dict: dict[str, Any] = {}

        field_dict.update({
            "schema_version": schema_version,
            "profile": profile,
            "version": version,
            "parent": parent,
            "commit_id": commit_id,
            "epoch": epoch,
            "who": who,
            "when": when,
            "why": why,
            "restores": restores,
            "changes": changes,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.changelog_entry_change import ChangelogEntryChange # noqa: PLC0415
        d = dict(src_dict)
        schema_version = cast(Literal[1] , d.pop("schema_version"))
        if schema_version != 1:
            raise ValueError(f"schema_version must match const 1, got '{schema_version}'")

        profile = d.pop("profile")

        version = d.pop("version")

        def _parse_parent(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        parent = _parse_parent(d.pop("parent"))


        commit_id = d.pop("commit_id")

        epoch = d.pop("epoch")

        who = d.pop("who")

        when = d.pop("when")

        why = d.pop("why")

        def _parse_restores(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        restores = _parse_restores(d.pop("restores"))


        changes = []
        _changes = d.pop("changes")
        for changes_item_data in (_changes):
            changes_item = ChangelogEntryChange.from_dict(changes_item_data)



            changes.append(changes_item)


        changelog_entry = cls(
            schema_version=schema_version,
            profile=profile,
            version=version,
            parent=parent,
            commit_id=commit_id,
            epoch=epoch,
            who=who,
            when=when,
            why=why,
            restores=restores,
            changes=changes,
        )

        return changelog_entry

