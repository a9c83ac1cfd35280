"""Forget a session, or a principal in one session or all, so that no byte of their messages can be read again.

    forget(store, session="s-42", who="dpo", why="request 7", when="2026-11-22")     the session and its forks
    forget(store, principal="ann", …)                     her messages in every session of the tenant
    forget(store, session="s-42", principal="ann", …)     her messages in one session and its forks

The order of an erasure lets a repeat finish what a crash or an unreachable store has left undone. First it writes
tombstones and destroys data keys (`Vault.destroy_key`; if the object store does not answer, nothing has changed yet).
Then it erases derived data (recommendations, erasers), then the journal's records, and scrubs the journal's files.

A session is deleted as a whole, and its id is never used again. A principal's messages keep their place and lose their
words (`redacted_log`), and the principal can write no more in those sessions. These stay readable: ids of sessions,
principals, calls and messages, tool names, and author, time and reason of the erasure. Messages about a principal by
others, the model included, stay unless they were appended under the principal.

An erasure calls the erasers that the caller passes, and those of the store, such as its index of context cards. It
deletes derived files beside the journal (`derived_files`), except those that this process has open: their erasers are
in `Backend.erasers` and name the file (`path`). It also forgets a session that only the steward knows, from a
transcript outside the store.

A session that cannot be read (its first link is lost, a link is damaged) leaves a finding, and the erasure continues
with the others. `Erasure.complete` is then False, and the command's exit code is 1.

`DerivedRecords` reaches records that packages above the store made of the sessions: the steward's harvest,
recommendations and ledgers. A ledger in another folder, or on another machine, leaves a finding.

An erasure ends with a signed receipt (`receipt`), which people check without the store.

`apply_tombstones` erases on this machine what another machine has forgotten.

Raises `InputError` for an unknown subject, `StoreUnavailable` and `OutcomeUnknown` if the call must be repeated,
`StoreError` if an eraser failed or a file cannot be deleted. Source: the state design (addresses, tenants, erasure);
NIST SP 800-88.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

from ctxsteward.schemas import Finding, InputError, StoreError
from ctxsteward.schemas.errors import Damaged

from ..backend import Backend
from ..crypto.keyring import subject_of
from ..crypto.vault import derived_subject
from ..derived_files import DerivedFiles
from ..journal.erasures import (
    Deletion,
    DerivedRecords,
    Eraser,
    Erasure,
    ErasureRequest,
    Holder,
    RemoteSessions,
    note_hearing,
)
from ..journal.log import principals_of
from ..journal.port import SessionKey
from ..memory_spans import memory_span
from ..names import checked_note
from .receipt import signed_receipt
from .steps import ErasureRun

ENTRY_POINTS = "ctxsteward.erasure"


def derived_files(store: Backend, tenant: str, erasers: Iterable[Eraser] = ()) -> list[Eraser]:
    """Return the erasers of the store's derived data, except files that another eraser covers."""
    rows = [] if store.derived_rows is None else [store.derived_rows.of(tenant)]
    if store.folder is None:
        return [*rows]
    held = [path for one in (*store.erasers, *erasers) if isinstance(path := getattr(one, "path", None), Path)]
    return [*rows, DerivedFiles(store.folder, tenant, held)]


__all__ = ["Deletion", "Eraser", "Erasure", "RemoteSessions", "apply_tombstones", "forget"]


def forget(
    store: Backend,
    *,
    tenant: str = "default",
    session: str | None = None,
    principal: str | None = None,
    who: str,
    why: str,
    when: str,
    erasers: Sequence[Eraser] = (),
    elsewhere: RemoteSessions | None = None,
) -> Erasure:
    """Erase a session, a principal, or a principal in one session; `when` is ISO 8601.

    `elsewhere` reaches the object store's copy of the sessions; by default, the store's own write-behind does.
    """
    request = ErasureRequest(**checked_note(who, why, when))
    if session is None and principal is None:
        raise InputError("nothing to forget: name a session, a principal, or both")
    derived = _derived_records(store, tenant)
    address = None if session is None else store.vault(tenant).subject_address(session)
    with memory_span("delete_memory", address) as erased:
        if store.write_behind is not None:  # else this erasure would drain messages that other machines have forgotten
            apply_tombstones(store, tenant, look=True)
        work = ErasureRun(store, tenant, request, elsewhere or store.write_behind, derived)
        reports = [records.watch_files() for records in derived]
        work.claim_forks(session, principal)
        if principal is not None:
            work.forget_principal(principal, session)
        elif session is not None:
            work.forget_session(session)
        done = work.finish(_erasers_to_call(store, tenant, erasers))
        erased(done.messages)
    more = tuple(finding for unreached in reports for finding in unreached()) if done.sessions else ()
    done = replace(done, session=session, principal=principal, findings=(*done.findings, *more))
    return replace(done, receipt=signed_receipt(done, store.keys))


def apply_tombstones(
    store: Backend,
    tenant: str = "default",
    *,
    thorough: bool = False,
    look: bool = False,
) -> Erasure | None:
    """Erase from this journal, and with the store's erasers, what another machine has forgotten.

    Return None if there is nothing new. That costs a listing of the tombstones and of the erasers' sessions. With a new
    tombstone, or with `look`, all local logs of the tenant are read; `thorough` also repeats earlier erasures here.

    If the listing has fewer tombstones than were seen before, the tombstones of local subjects are read by name, and
    the erasure is not `complete`.
    """
    vault, journal = store.vault(tenant), store.journal
    all_erasers = _erasers_to_call(store, tenant)
    erased, seen = frozenset(vault.erased()), journal.seen(f"tombstones/{tenant}")
    findings = []
    if len(erased) < seen:
        text = f"{seen} tombstones were seen, and {len(erased)} are listed; those of local subjects were read by name"
        speakers = (subject_of(session, principal) for session, principal, _ in _speakers(store, tenant))
        local = map(vault.subject_address, (*journal.sessions(tenant), *speakers))
        erased, thorough = erased.union(name for name in local if vault.tombstone(name) is not None), True
        findings.append(Finding(kind="listing_incomplete", field=f"tombstones/{tenant}", text=text))
    held = {session for holder in all_erasers if isinstance(holder, Holder) for session in holder.sessions(tenant)}
    left = {session for session in held if vault.subject_address(session) in erased}
    if not (thorough or look or left) and len(erased) <= seen:
        return None
    if len(erased) > seen:
        for files in derived_files(store, tenant):
            files(())  # they may contain words of sessions that have no log here
    note_hearing(journal, tenant, is_over=False)  # until it is over, records that this journal drained may lack keys
    for name in erased:
        vault.forget_secret(name)
    derived = _derived_records(store, tenant)
    work = ErasureRun(store, tenant, ErasureRequest("", "", ""), store.write_behind, derived)
    for session in dict.fromkeys((*journal.sessions(tenant), *sorted(left))):
        if (name := vault.subject_address(session)) in erased:
            work.resume_request(name)
            work.if_sound(session, work.forget_session)
    for session, principal, speaks in _speakers(store, tenant):
        name = vault.subject_address(subject_of(session, principal))
        if name in erased and (thorough or speaks or not journal.seen(f"erased/{tenant}/{name}")):
            work.resume_request(name)
            work.forget_principal(principal, session)
    for session in journal.sessions(tenant):
        if vault.subject_address(derived_subject(session)) in erased:
            work.mend(session)
    done = work.finish(all_erasers)
    note_hearing(journal, tenant, is_over=True)
    if not work.damaged:  # else the tombstones must count as new after the damaged logs are repaired
        journal.see(f"tombstones/{tenant}", len(erased | work.erased_subjects))
    return replace(done, findings=(*findings, *done.findings))


def _derived_records(store: Backend, tenant: str) -> list[DerivedRecords]:
    """Return the records of packages above the store; raise `StoreError` if there are none, as words would stay."""
    found = [point.load()(store, tenant) for point in entry_points(group=ENTRY_POINTS)]
    if not found:
        raise StoreError(
            f"no entry point of the group {ENTRY_POINTS!r} is installed, so an erasure would miss the steward's "
            "records; nothing was forgotten: install ctxsteward again"
        )
    return found


def _erasers_to_call(store: Backend, tenant: str, erasers: Sequence[Eraser] = ()) -> tuple[Eraser, ...]:
    """Return all erasers to call: the store's, the caller's, and those of the store's derived data."""
    return (*store.derived_text_erasers(), *erasers, *derived_files(store, tenant, erasers))


def _speakers(store: Backend, tenant: str) -> Iterator[tuple[str, str, bool]]:
    """Yield session, principal, and whether the session has unredacted messages of the principal.

    Sessions that were forgotten as a whole are left out.
    """
    for session in store.journal.sessions(tenant):
        with suppress(Damaged):  # the session's notes are damaged: erase its words anyway; the erasure reports it
            if any(note.principal is None for note in store.journal.forgotten(tenant, session)):
                continue
        rows = store.journal.read(SessionKey(tenant, session), 0)
        standing = principals_of([row for row in rows if '"erased"' not in row.body])
        for principal in sorted(principals_of(rows)):
            yield session, principal, principal in standing
