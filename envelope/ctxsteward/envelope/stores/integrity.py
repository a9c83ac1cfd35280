"""What is wrong with the journal's file as a whole: SQLite's own check, and rows that no log owns.

A log is found by its row in `logs`, so records and manifests whose log has no row, or an empty one, are there and
cannot be reached. Costs a reading of the whole file. Raises `StoreError` where it cannot be read at all.
"""

from __future__ import annotations

from ctxsteward.schemas import Damaged

from .layout import Readers

_MOST = 100
"""Findings of one kind."""

_UNOWNED = """
SELECT tenant, session, count(*) FROM {table} WHERE NOT EXISTS (
  SELECT 1 FROM logs WHERE logs.tenant = {table}.tenant AND logs.session = {table}.session AND length > 0
) GROUP BY tenant, session LIMIT ?
"""


def check_file(readers: Readers) -> list[str]:
    """One line a finding; none where the file is whole."""
    try:
        rows = readers.all("SELECT * FROM pragma_integrity_check(?)", (_MOST,))
        found = [f"SQLite says: {line}" for (line,) in rows if line != "ok"]
        for table in ("records", "manifests"):
            unowned = readers.all(_UNOWNED.format(table=table), (_MOST,))
            found += [f"{count} {table} of tenant {t!r}, session {s!r} belong to no log" for t, s, count in unowned]
    except Damaged as error:
        return [str(error)]
    return found
