from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..models.changelog_entry_change_block import ChangelogEntryChangeBlock
from ..models.changelog_entry_change_block import check_changelog_entry_change_block
from ..models.changelog_entry_change_kind import ChangelogEntryChangeKind
from ..models.changelog_entry_change_kind import check_changelog_entry_change_kind
from typing import cast






T = TypeVar("T", bound="ChangelogEntryChange")



@_attrs_define
class ChangelogEntryChange:
    """ One entry or record that differs from the version before.

        Attributes:
            block (ChangelogEntryChangeBlock):
            kind (ChangelogEntryChangeKind): moved: same content, another place among its neighbours.
            key (None | str): The entry's id; null in meta, whose ids may tell something about people.
            before (None | str): Address of what stood there; null where it was added.
            after (None | str): Address of what stands there now; null where it was removed.
     """

    block: ChangelogEntryChangeBlock
    kind: ChangelogEntryChangeKind
    key: None | str
    before: None | str
    after: None | str





    def to_dict(self) -> dict[str, Any]:
        block: str = self.block

        kind: str = self.kind

        key: None | str
        key = self.key

        before: None | str
        before = self.before

        after: None | str
        after = self.after


        field_dict: dict[str, Any] = {}

        field_dict.update({
            "block": block,
            "kind": kind,
            "key": key,
            "before": before,
            "after": after,
        })

        return field_dict



    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        block = check_changelog_entry_change_block(d.pop("block"))




        kind = check_changelog_entry_change_kind(d.pop("kind"))




        def _parse_key(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        key = _parse_key(d.pop("key"))


        def _parse_before(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        before = _parse_before(d.pop("before"))


        def _parse_after(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        after = _parse_after(d.pop("after"))


        changelog_entry_change = cls(
            block=block,
            kind=kind,
            key=key,
            before=before,
            after=after,
        )

        return changelog_entry_change

