from typing import Literal

ChangelogEntryChangeBlock = Literal['meta', 'persona', 'policies', 'rails', 'surface']

CHANGELOG_ENTRY_CHANGE_BLOCK_VALUES: set[ChangelogEntryChangeBlock] = { 'meta', 'persona', 'policies', 'rails', 'surface',  }

def check_changelog_entry_change_block(value: str) -> ChangelogEntryChangeBlock:
    if value in CHANGELOG_ENTRY_CHANGE_BLOCK_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CHANGELOG_ENTRY_CHANGE_BLOCK_VALUES!r}")
