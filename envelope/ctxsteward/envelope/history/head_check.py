"""Compare a caller's head with the profile version in force; report differences as findings that quote both lines.

If the store governs a profile of the caller's name, the caller's text is compared with the version in force, or with
the earlier version that it claims to be. Findings report:

    an entry with another text or rule
    a missing locked entry
    an entry that no version has, in a block with locked entries
    a sentence of the application's system text on the subject of a locked line, other than that line

A meta record that the chain of versions does not have must cite readable sources; an unresolved source is a finding. If
the store governs the profile, such a record does not speak in the operator's name. The same holds for a record that
claims an approval which the version in force does not have: people approve, a caller does not. A profile that the store
does not govern is the operator's own text, and its records stay as written.

The comparison is made once, when a head is written into the log, and its findings are written with it; builds repeat no
comparison. A store that does not answer in time is a finding. Contradictions are reported at each call. An unresolved
source is reported by the first envelope alone (`still_told`): records may cite sessions of another store, and no later
call changes that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ctxsteward.schemas import Finding, StoreError
from ctxsteward.schemas.profile import BLOCKS, ProfileDocument, ProfileEntry
from ctxsteward.store.facts.fact_store import FactLookup
from ctxsteward.store.journal.events import SessionHead
from ctxsteward.store.profiles.pointers import resolver

CONTRADICTED, UNRESOLVED, UNKNOWN = "profile_contradicted", "meta_source_unresolved", "profile_unchecked"
MAX_LINE_CHARS = 200
MAX_FINDINGS = 50
_ENDS = "it does not speak in the operator's name"


def checked_head(lookup: FactLookup | None, tenant: str, head: SessionHead) -> SessionHead:
    """Return the head as it is to be written, with the findings about it."""
    if lookup is None or lookup.sessions is None or head.profile is None:
        return head
    given = ProfileDocument.model_validate(head.profile)
    in_force: list[ProfileDocument] = []
    unresolved: dict[str, list[str]] = {}
    unagreed: list[str] = []

    def look() -> None:
        assert lookup.sessions is not None
        versions = lookup.sessions.profiles(given.name, tenant=tenant)
        newest = versions.head()
        if newest is not None:
            is_earlier = given.version is not None and 0 < given.version < newest.number
            standing = versions.at(given.version).profile if is_earlier and given.version else newest.profile
            in_force.append(standing)
        known = {record.id: record for record in in_force[0].meta} if in_force else {}
        resolves = resolver(lookup.sessions, tenant)
        for record in given.meta:
            if known.get(record.id) != record:
                if in_force and record.approved:
                    unagreed.append(record.id)
                lacking = [pointer for pointer in record.sources if not resolves(pointer)]
                unresolved.update({record.id: lacking} if lacking else {})

    try:
        lookup.ask(look)
    except StoreError as error:
        text = f"it is not known what is in force of profile {given.name}: {type(error).__name__}: {error}"
        return _with(head, [Finding(kind=UNKNOWN, field="profile", text=text[:500])])
    findings = list(_differences(in_force[0], given)) if in_force else []
    findings += _beside(in_force[0], head.system) if in_force else ()
    for id, lacking in unresolved.items():
        text = f"record {id}: {', '.join(lacking)} cannot be resolved{f'; {_ENDS}' if in_force else ''}"
        findings.append(Finding(kind=UNRESOLVED, field="meta", text=text[:500]))
    for id in unagreed:
        text = f"record {id} calls itself approved, and version {in_force[0].version} does not have it so; {_ENDS}"
        findings.append(Finding(kind=CONTRADICTED, field="meta", text=text))
    demoted = {*unresolved, *unagreed} if in_force else set()
    if any(record["id"] in demoted and record.get("approved") for record in head.profile["meta"]):
        records = [
            {**record, "approved": False} if record["id"] in demoted else record for record in head.profile["meta"]
        ]
        head = replace(head, profile={**head.profile, "meta": records})
    return _with(head, findings)


def _with(head: SessionHead, found: list[Finding]) -> SessionHead:
    return replace(head, findings=tuple(finding.model_dump(mode="json") for finding in found[:MAX_FINDINGS]))


def findings_of(head: SessionHead) -> list[Finding]:
    """Return the findings made when the head was written."""
    return [Finding.model_validate(finding) for finding in head.findings]


def still_told(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that later envelopes of a session repeat."""
    return [finding for finding in findings if finding.kind != UNRESOLVED]


def _differences(in_force: ProfileDocument, given: ProfileDocument) -> Iterator[Finding]:
    version = f"version {in_force.version}"
    for block in BLOCKS:
        standing = {entry.id: entry for entry in getattr(in_force, block)}
        offered = {entry.id: entry for entry in getattr(given, block)}
        locked = [entry for entry in standing.values() if entry.locked]
        for id, entry in standing.items():
            lock = " (locked)" if entry.locked else ""
            name = f"{block}.{id}{lock}"
            if id not in offered:
                if entry.locked:
                    yield _finding(name, f"{version} says {_quoted(entry)}; the profile that was given leaves it out")
            elif offered[id] != entry:
                yield _finding(
                    name, f"{version} says {_quoted(entry)}; the profile that was given {_says(offered[id], entry)}"
                )
        for id, entry in offered.items():
            if id not in standing and locked:
                near = max(locked, key=lambda entry_in_force: _shared(entry_in_force.text, entry.text))
                text = f"the profile that was given adds {_quoted(entry)} beside the locked {near.id}: {_quoted(near)}"
                yield _finding(f"{block}.{id}", f"{version} does not have it; {text}")


def _says(given: ProfileEntry, standing: ProfileEntry) -> str:
    if given.text != standing.text:
        return f"says {_quoted(given)}"
    names = [name for name in ProfileEntry.model_fields if getattr(given, name) != getattr(standing, name)]
    return f"has the same text with another {', '.join(names)}"


def _beside(in_force: ProfileDocument, system: tuple[str, ...]) -> Iterator[Finding]:
    """Yield findings for sentences of the system text on the subject of a locked line, other than that line."""
    from ctxsteward.language.operators import sentences_of

    locked = [(block, entry) for block in BLOCKS for entry in getattr(in_force, block) if entry.locked]
    for text, sentence in ((whole, part) for whole in system for part in sentences_of(whole)):
        for block, entry in locked:
            if _shared(entry.text, sentence) > 1 and sentence not in sentences_of(entry.text):
                at = text.lower().find(sentence)  # `sentence` is in lower case; quote it as written
                written = (text[at : at + len(sentence)] if at >= 0 else sentence)[:MAX_LINE_CHARS]
                name = f"{block}.{entry.id} (locked)"
                says = f"version {in_force.version} says {_quoted(entry)}; the system text says {written!r}"
                yield _finding(name, says, field="system")


def _quoted(entry: ProfileEntry) -> str:
    return repr(entry.text[:MAX_LINE_CHARS])


def _finding(name: str, text: str, field: str | None = None) -> Finding:
    return Finding(kind=CONTRADICTED, field=field or name.removesuffix(" (locked)"), text=f"{name}: {text}"[:500])


def _shared(one: str, other: str) -> int:
    """Return how many content words two lines have in common."""
    # Few heads are compared, and these modules take as long to import as the rest of a builder.
    from ctxsteward.language.operators import sentences_of
    from ctxsteward.language.statement import read_statement

    first, second = (frozenset(read_statement(" ".join(sentences_of(text))).beginnings) for text in (one, other))
    return len(first & second)
