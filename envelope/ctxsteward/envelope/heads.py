"""The head of a session's log: the profile version it is pinned to, the application's system texts, tools and project.

A log is created with a head, and opened again with whatever its caller names now: the profile stays the one it is
pinned to, with a finding where another was named; what else is named replaces what was. A profile that is about to be
written goes without the records that were withdrawn since somebody read it (`withdrawn_heads`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ctxsteward.schemas import Conflict, Finding, InputError, Wire
from ctxsteward.schemas.message import encode_wire

from .events import Head, Opened
from .incoming import checked_name
from .profile import Profile
from .replica import TRIES, Replica
from .withdrawn_heads import standing

if TYPE_CHECKING:
    from .facts.lookup import FactLookup


class Heads:
    """Opens a replica's log under a head, and writes its next ones."""

    def __init__(self, replica: Replica, draw_nonce: Callable[[], str], fact_lookup: FactLookup | None) -> None:
        self._replica, self._draw_nonce, self._fact_lookup = replica, draw_nonce, fact_lookup

    def open(self, head: Head) -> None:
        """Open the log, or create it with this head; raises `Erased` for a session that was forgotten."""
        log = self._replica.log
        for _ in range(TRIES):
            if log.journal.length(log.key) == 0:
                self._replica.prepare()
                head = self._standing(head)
                with suppress(Conflict):  # another process created it just now: read what it wrote
                    self._replica.write((Opened(nonce=self._draw_nonce()), head))
            self._replica.load()
            if self._replica.state.position:
                break
        self._reconcile(head)

    def repin(self, profile: Profile) -> None:
        """Move the session to another version of its profile."""
        self._record(self._standing(replace(self._replica.state.head, profile=profile.model_dump(mode="json"))))

    def _reconcile(self, head: Head) -> None:
        pinned = self._replica.state.head
        if head.profile is not None and pinned.profile is not None and head.profile != pinned.profile:
            text = "the session keeps the profile version it is pinned to; `session.repin(profile)` moves it"
            self._replica.noticed.findings.append(Finding(kind="profile_pinned", text=text))
        profile = pinned.profile if pinned.profile is not None else self._standing(head).profile
        wanted = Head(
            profile=profile, system=head.system or pinned.system, tools=head.tools or pinned.tools,
            project=head.project or pinned.project,
        )  # fmt: skip
        if wanted != pinned:
            self._record(wanted)

    def _standing(self, head: Head) -> Head:
        """A head that is about to be written, without what was withdrawn since somebody read its profile."""
        if head.profile is None:
            return head
        profile, findings = standing(self._fact_lookup, self._replica.log.key.tenant, head.profile)
        self._replica.noticed.add(findings)
        return replace(head, profile=profile)

    def _record(self, head: Head) -> None:
        self._replica.retried(lambda: self._replica.commit(head))


def head_of(
    profile: Profile | None,
    system: str | Sequence[str | Wire] | None,
    tools: Sequence[Wire] | None,
    project: str | None,
) -> Head:
    """The head a caller names, checked; raises `InputError`, `InvalidMessage`."""
    if profile is not None and not isinstance(profile, Profile):
        raise InputError(f"profile is {type(profile).__name__}; pass Profile.load(path) or Profile.from_text(text)")
    return Head(
        profile=None if profile is None else profile.model_dump(mode="json"),
        system=_system(system),
        tools=_tools(tools or ()),
        project=None if project is None else checked_name("project", project),
    )


def _system(system: str | Sequence[str | Wire] | None) -> tuple[str, ...]:
    """The application's system texts; a provider's text blocks are taken too."""
    texts: list[str] = []
    for index, item in enumerate((system,) if isinstance(system, str) else system or ()):
        text = item.get("text") if isinstance(item, dict) and item.get("type") == "text" else item
        if not isinstance(text, str):
            raise InputError(f"system[{index}] is {item!r:.60}; write text, or a block of type 'text'")
        encode_wire({"text": text})
        texts.append(text)
    return tuple(text for text in texts if text)


def _tools(tools: Sequence[Wire]) -> tuple[Wire, ...]:
    checked = json.loads(encode_wire({"tools": list(tools)}))["tools"]
    for index, tool in enumerate(checked):
        if not isinstance(tool, dict):
            raise InputError(f"tools[{index}] is {type(tool).__name__}; a tool schema is a dict")
    return tuple(checked)
