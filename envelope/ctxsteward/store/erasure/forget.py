"""Forgetting: a session, or a principal in all of them, so that no byte of what they said can be read again.

    forget(store, session="s-42", who="dpo", why="request 7", when="2026-11-22")     forks of it included
    forget(store, principal="ann", …)                     her messages in every session of the tenant
    forget(store, session="s-42", principal="ann", …)     her messages in one session and its forks

In this order, so that repeating it finishes what a crash or a dead store has left: tombstones and data keys
(`Vault.destroy_key`; where the object store does not answer nothing has changed yet), then what was derived elsewhere
(recommendations, erasers), then the journal, then its files are scrubbed. A session is deleted whole and its id stays
burned. A principal's messages keep their place without their words (`redacted_log`), and the principal writes no more
in those sessions. What stays in plain: ids of sessions and principals, ids of calls and messages, tool names, and who
forgot whom, when and why. What others said about a principal, the model included, stays unless it was appended under
the principal.

The erasers that are called: those handed in, and those of the store (its index of context cards among them, open or
not). Files beside the journal that can be derived again (`derived_files`) are deleted, unless this process has one
open; then its eraser is among `Backend.erasers` and names the file (`path`). A session that only the steward knows,
from a transcript from outside, is forgotten like any other.

What cannot be read (a session whose first link is lost, a damaged link) is passed over with a finding, and everybody
else is forgotten all the same; `Erasure.complete` is then False, and the command's exit code 1.

Records that packages above the store have made of the sessions are reached through `DerivedRecords`: the steward's
harvest, its recommendations and its ledgers. A ledger in another folder, or on another machine, leaves a finding, too.

An erasure ends with a signed receipt (`receipt`), which people check without the store.

`apply_tombstones` does the same for what another machine has forgotten. Raises `InputError` for a subject that is not
known, `StoreUnavailable` and `OutcomeUnknown` where it must be repeated, `StoreError` where an eraser failed or a file
cannot be deleted. Source: the state design (addresses, tenants, erasure); NIST SP 800-88.
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
    """Erasers of what the store has derived, except files that another eraser covers; none for a store in memory."""
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
    """Erase a session, a principal, or a principal in one session; see the module. `when` is ISO 8601.

    `elsewhere` is the object store's copy of the sessions; default: the store's own write-behind.
    """
    request = ErasureRequest(**checked_note(who, why, when))
    if session is None and principal is None:
        raise InputError("nothing to forget: name a session, a principal, or both")
    derived = _derived_records(store, tenant)
    address = None if session is None else store.vault(tenant).subject_address(session)
    with memory_span("delete_memory", address) as erased:
        if store.write_behind is not None:  # what others have forgotten is not drained with what this erasure leaves
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
    """Erase here, in the journal and through the store's erasers, what another machine has forgotten.

    Return None if there is nothing new.

    Where fewer tombstones are listed than were seen, those of what is here are asked for by name, and the erasure is
    not `complete`. Costs a listing of the tombstones and of what erasers hold where there are no new ones, else (or
    with `look`) a reading of all local logs of the tenant; `thorough` also repeats what was erased here before.
    """
    vault, journal = store.vault(tenant), store.journal
    all_erasers = _erasers_to_call(store, tenant)
    erased, seen = frozenset(vault.erased()), journal.seen(f"tombstones/{tenant}")
    findings = []
    if len(erased) < seen:
        text = f"{seen} tombstones were seen, and {len(erased)} are listed; those of what is here are asked for by name"
        erased, thorough = erased.union(_erased_here(store, tenant)), True
        findings.append(Finding(kind="listing_incomplete", field=f"tombstones/{tenant}", text=text))
    held = {session for holder in all_erasers if isinstance(holder, Holder) for session in holder.sessions(tenant)}
    left = {session for session in held if vault.subject_address(session) in erased}
    if not (thorough or look or left) and len(erased) <= seen:
        return None
    if len(erased) > seen:
        for files in derived_files(store, tenant):
            files(())  # they may hold words of sessions that are not in any log here
    note_hearing(journal, tenant, is_over=False)  # until it is over, others may miss keys of what this journal drained
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
    if not work.damaged:  # else they are new still when that is mended
        journal.see(f"tombstones/{tenant}", len(erased | work.erased_subjects))
    return replace(done, findings=(*findings, *done.findings))


def _derived_records(store: Backend, tenant: str) -> list[DerivedRecords]:
    """Records of packages above the store. An erasure that misses them would leave words, so there must be some."""
    found = [point.load()(store, tenant) for point in entry_points(group=ENTRY_POINTS)]
    if not found:
        raise StoreError(
            f"no entry point of the group {ENTRY_POINTS!r} is installed, so an erasure would miss the steward's "
            "records; nothing was forgotten: install ctxsteward again"
        )
    return found


def _erasers_to_call(store: Backend, tenant: str, erasers: Sequence[Eraser] = ()) -> tuple[Eraser, ...]:
    """All erasers to call: those handed in, the store's, and what deletes its derived files."""
    return (*store.derived_text_erasers(), *erasers, *derived_files(store, tenant, erasers))


def _speakers(store: Backend, tenant: str) -> Iterator[tuple[str, str, bool]]:
    """Every principal of every session that was not forgotten, and whether anything that they said stands there."""
    for session in store.journal.sessions(tenant):
        with suppress(Damaged):  # of its notes: its words go all the same, and a finding says so
            if any(note.principal is None for note in store.journal.forgotten(tenant, session)):
                continue
        rows = store.journal.read(SessionKey(tenant, session), 0)
        standing = principals_of([row for row in rows if '"erased"' not in row.body])
        for principal in sorted(principals_of(rows)):
            yield session, principal, principal in standing


def _erased_here(store: Backend, tenant: str) -> Iterator[str]:
    """Addresses of the sessions in the journal, and of the principals in them, that have a tombstone."""
    vault = store.vault(tenant)
    speakers = (subject_of(session, principal) for session, principal, _ in _speakers(store, tenant))
    for subject in (*store.journal.sessions(tenant), *speakers):
        if vault.tombstone(name := vault.subject_address(subject)) is not None:
            yield name
