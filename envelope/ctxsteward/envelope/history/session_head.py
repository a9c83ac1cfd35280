"""The head of a session's log: its pinned profile version, the application's system texts and tools.

A log is created with a head. When it is opened again, the caller may name another head: the session keeps its pinned
profile, with a finding if another was named, and takes the new system texts and tools. A profile is written without the
records that were withdrawn since it was read (`without_withdrawn_records`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ctxsteward.schemas import Finding, InputError
from ctxsteward.schemas.arguments import check_argument
from ctxsteward.schemas.errors import Conflict
from ctxsteward.schemas.message import Wire, encode_wire
from ctxsteward.store.facts.fact_store import FactLookup, without_withdrawn_records
from ctxsteward.store.journal.events import SessionHead, SessionOpened
from ctxsteward.store.profiles.text import Profile

from .head_check import checked_head, findings_of, still_told
from .log_view import TRIES, SessionLogView


def open_log(
    replica: SessionLogView, head: SessionHead, draw_nonce: Callable[[], str], fact_lookup: FactLookup | None
) -> None:
    """Open the log, or create it with this head; raise `Erased` for a forgotten session."""
    log = replica.log
    for _ in range(TRIES):
        if log.journal.length(log.key) == 0:
            replica.prepare()
            head = _standing(replica, head, fact_lookup)
            with suppress(Conflict):  # another process created it just now: read its records
                replica.write((SessionOpened(nonce=draw_nonce()), head))
        replica.load()
        if replica.state.position:
            break
    pinned = replica.state.head
    if head.profile is not None and pinned.profile is not None and head.profile != pinned.profile:
        text = "the session keeps the profile version it is pinned to; `session.repin(profile)` moves it"
        replica.noticed.findings.append(Finding(kind="profile_pinned", text=text))
    profile = pinned.profile if pinned.profile is not None else _standing(replica, head, fact_lookup).profile
    wanted = SessionHead(
        profile=profile,
        system=head.system or pinned.system,
        tools=head.tools or pinned.tools,
        project=pinned.project,
    )
    findings = findings_of(pinned)
    replica.noticed.add(still_told(findings) if replica.state.last_reply else findings)
    if wanted != pinned:
        if wanted.profile != pinned.profile or wanted.system != pinned.system:
            wanted = checked_head(fact_lookup, replica.log.key.tenant, wanted)
            replica.noticed.add(findings_of(wanted))
        else:
            wanted = replace(wanted, findings=pinned.findings)
        text = "is another one than before; it replaces that from here on, and the prefix is cached anew"
        for name in ("system", "tools"):
            if (was := getattr(pinned, name)) and was != getattr(wanted, name):
                replica.noticed.add([Finding(kind="head_replaced", field=name, text=f"`{name}` {text}")])
        replica.retried(lambda: replica.commit(wanted))


def repin(replica: SessionLogView, profile: Profile, fact_lookup: FactLookup | None) -> None:
    """Move the session to another version of its profile."""
    moved = replace(replica.state.head, profile=profile.model_dump(mode="json"))
    head = _standing(replica, moved, fact_lookup)
    replica.retried(lambda: replica.commit(head))


def _standing(replica: SessionLogView, head: SessionHead, fact_lookup: FactLookup | None) -> SessionHead:
    """Return a head to be written, without records that were withdrawn since its profile was read."""
    if head.profile is None:
        return head
    profile, findings = without_withdrawn_records(fact_lookup, replica.log.key.tenant, head.profile)
    replica.noticed.add(findings)
    head = checked_head(fact_lookup, replica.log.key.tenant, replace(head, profile=profile))
    replica.noticed.add(findings_of(head))
    return head


def head_of(
    profile: Profile | None,
    system: str | Sequence[str | Wire] | None,
    tools: Sequence[Wire] | None,
) -> SessionHead:
    """Check the head that a caller names and return it; raise `InputError` or `InvalidMessage`."""
    if profile is not None and not isinstance(profile, Profile):
        raise InputError(f"profile is {type(profile).__name__}; pass Profile.load(path) or Profile.from_text(text)")
    return SessionHead(
        profile=None if profile is None else profile.model_dump(mode="json"),
        system=_system(system),
        tools=_tools(tools or ()),
    )


def _system(system: str | Sequence[str | Wire] | None) -> tuple[str, ...]:
    """Return the application's system texts; they may come as a provider's text blocks."""
    hint = "pass text, or a list of texts and text blocks"
    if isinstance(system, (bytes, Mapping)):
        raise InputError(f"system is {type(system).__name__}; {hint}")
    check_argument("system", system, (str, Iterable), hint, optional=True)
    texts: list[str] = []
    for index, item in enumerate((system,) if isinstance(system, str) else system or ()):
        text = item.get("text") if isinstance(item, dict) and item.get("type") == "text" else item
        if not isinstance(text, str):
            raise InputError(f"system[{index}] is {item!r:.60}; write text, or a block of type 'text'")
        encode_wire({"text": text})
        texts.append(text)
    return tuple(text for text in texts if text)


def _tools(tools: Sequence[Wire]) -> tuple[Wire, ...]:
    if isinstance(tools, (str, bytes, dict)) or not isinstance(tools, Iterable):
        raise InputError(f"tools is {type(tools).__name__}; pass a list of tool schemas")
    given = list(tools)
    for index, tool in enumerate(given):
        if not isinstance(tool, dict):
            raise InputError(f"tools[{index}] is {type(tool).__name__}; a tool schema is a dict")
    checked = json.loads(encode_wire({"tools": given}))["tools"]
    for index, tool in enumerate(checked):
        _check_tool(f"tools[{index}]", tool)
    return tuple(checked)


def _check_tool(where: str, tool: Wire) -> None:
    """Check that a function has a name and any schema of its arguments is an object; other tools have a type."""
    inner, place = tool, where
    if "function" in tool:
        inner, place = tool["function"], f"{where}.function"
        if not isinstance(inner, dict):
            raise InputError(f'{place} is {type(inner).__name__}; write {{"name": …, "parameters": {{…}}}}')
    is_function = inner is not tool or tool.get("type") in (None, "function")
    if is_function and "function_declarations" not in tool and "functionDeclarations" not in tool:
        name = inner.get("name")
        if not isinstance(name, str) or not name:
            own = tool.keys() - {"name", "type", "description", *_ARGUMENTS}
            if tool.get("type") is None and own and inner is tool and name is None:
                return  # a provider's own tool, such as {"google_search": {}}
            raise InputError(f"{place}.name is {name!r:.60}; a tool has a name")
    for key in _ARGUMENTS:
        if inner.get(key) is not None and not isinstance(inner[key], dict):
            raise InputError(f"{place}.{key} is {type(inner[key]).__name__}; write a JSON Schema of type object")


_ARGUMENTS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema")
