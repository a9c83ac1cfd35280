from typing import Literal

ChangelogEntryChangeKind = Literal['added', 'changed', 'moved', 'removed']

CHANGELOG_ENTRY_CHANGE_KIND_VALUES: set[ChangelogEntryChangeKind] = { 'added', 'changed', 'moved', 'removed',  }

def check_changelog_entry_change_kind(value: str) -> ChangelogEntryChangeKind:
    if value in CHANGELOG_ENTRY_CHANGE_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CHANGELOG_ENTRY_CHANGE_KIND_VALUES!r}")
