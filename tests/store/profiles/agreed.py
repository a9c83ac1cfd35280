"""What a commit rests on where a test is about chains and not about who agreed; and what older programs wrote."""

from __future__ import annotations

from typing import Any

from ctxsteward.store.profiles.versions import ProfileVersions

PROMOTION: dict[str, Any] = {"approvals": [{"who": "bo", "when": "2026-11-22T04:00:00+00:00", "link": 2}]}


class EarlierVersions(ProfileVersions):
    """Commits by hand, as it was possible before a change had to rest on approvals: such chains must stay readable."""

    def _refuse_unapproved(self, *told: object) -> None:
        """Let it pass."""
