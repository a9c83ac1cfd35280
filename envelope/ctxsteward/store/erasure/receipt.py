"""The signed receipt of an erasure: counts before and after by place, and places that the erasure cannot reach.

A receipt is the `Erasure` as one JSON document with the tenant's public key and a signature. The counts before come
from the tombstones, which are written before anything is destroyed, so a repeat after a crash gives the same counts.
The counts after are made at the end of each erasure.

    {"schema_version": 1, "what": "ctxsteward erasure receipt", …fields of the Erasure…, "key": hex, "signature": hex}

The signing key is derived from the tenant's address key: it is the same on every machine of the store, never rotates,
and needs no file of its own. Everyone with the tenant's keys can sign. The operator publishes the public key (64 hex
digits, `receipt_key`), and people check receipts against it.

A valid receipt proves that its author has the tenant's keys, and that no byte was changed since. It does not prove that
the counts are true, that `when` is right, or that no copy exists outside the store; it lists the places outside the
store. With the heads, an auditor with access to the store can compare the store with the receipt later.

Source: RFC 8032 (Ed25519); RFC 8785 (one form for one document).
"""

from __future__ import annotations

import hmac
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import Damaged, UnsupportedVersion

from ..addresses import META_REPORT
from ..backend import Backend
from ..crypto.keyring import AddressKey, Keys
from ..crypto.signatures import is_signed, signed_data
from ..crypto.vault import Tombstone
from ..journal.erasures import ChainHead, ErasedPlace, Eraser, Erasure, NamedEraser, Remainder
from ..journal.log import read_manifest
from ..journal.port import Journal, SessionKey
from ..names import part_of, session_folder
from .redacted_log import PrincipalShare, redacted_manifests, redacted_rows, whole_log

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

WHAT = "ctxsteward erasure receipt"
VERSION = 1
_PURPOSE = b"ctxsteward erasure receipt 1"
_SIGNATURE = re.compile(r"[0-9a-f]{128}")  # `fromhex` reads capitals and spaces, too
WITHDRAWN = "lines and drafts of the steward, facts"
PLACES = {
    "message": "messages",
    "compaction": "compactions: bullets, losses, reports",
    "observations": "observations",
    "selection": "selections of recall",
    "note": "notes",
    "other": "other records of logs",
    "manifests": "manifests of envelopes",
    "keys": "data keys: drained sessions, stored reports, harvest",
}
"""Names of places in the store, by their keys in `Tombstone.held`."""
CALL_DIGITS = 16
AUTOMATIC_CACHE = timedelta(hours=24)
"""The longest time that OpenAI and Google state for an unused prompt in an automatic cache; Anthropic states an hour.
Source: the providers' guides to prompt caching, read in November 2026."""


# -- counting a subject's records -------------------------------------------------------------------------------


def held_of_session(journal: Journal, key: SessionKey) -> dict[str, Any]:
    """Count the records of a session by kind, and its manifests; list the calls that were built."""
    kinds = Counter(_kind(record.kind) for record in journal.read(key, 0))
    manifests = journal.manifests(key)
    calls = [address[:CALL_DIGITS] for address, body in manifests if META_REPORT not in body]
    return _held(kinds, len(manifests), calls)


def held_of_principal(
    journal: Journal, key: SessionKey, address_key: AddressKey, share: PrincipalShare, moved: Mapping[str, str]
) -> dict[str, Any]:
    """Count the records that an erasure of the principal changes in a session; list the calls built since they spoke.

    A damaged log counts as empty: its words stay, and the erasure reports that as a finding.
    """
    try:
        rows = whole_log(journal, key)
        changed = redacted_rows(address_key, key.session, rows, share, moved)
    except Damaged:
        return {}
    manifests, calls = journal.manifests(key), []
    for address, body in manifests:
        with suppress(Damaged):
            if META_REPORT not in body and read_manifest(address_key, address, body)["position"] > share.since:
                calls.append(address[:CALL_DIGITS])
    quoting = sum(
        was != now for was, now in zip(manifests, redacted_manifests(address_key, manifests, share), strict=True)
    )
    return _held(Counter(_kind(rows[position].kind) for position in changed), quoting, calls)


def _held(kinds: Mapping[str, int], manifests: int, calls: Sequence[str]) -> dict[str, Any]:
    named = {name: number for name, number in (*kinds.items(), ("manifests", manifests)) if number}
    return {**named, "calls": list(calls)} if calls else named


def _kind(kind: str) -> str:
    return kind if kind in PLACES else "other"


def counted(held: Mapping[str, Any]) -> Counter[str]:
    """Return the counts in `Tombstone.held`."""
    return Counter({name: number for name, number in held.items() if name != "calls"})


# -- the content of a receipt -----------------------------------------------------------------------------------


def name_of(eraser: Eraser) -> str:
    """Return the name of an eraser's place in a receipt."""
    owner = eraser.func if isinstance(eraser, partial) else eraser
    return owner.place if isinstance(owner, NamedEraser) else getattr(owner, "__qualname__", type(owner).__name__)


def places_of(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[ErasedPlace, ...]:
    """Return the counts of every place in the store and of every eraser."""
    names = dict.fromkeys((*PLACES, WITHDRAWN, *sorted({*before, *after} - {*PLACES, WITHDRAWN})))
    return tuple(
        ErasedPlace(place=PLACES.get(name, name), before=before.get(name, 0), after=after.get(name, 0))
        for name in names
    )


def heads_of(store: Backend, tenant: str, sessions: Iterable[str]) -> tuple[ChainHead, ...]:
    """Return the heads of the governed chains that the journal has seen, and of these sessions' logs.

    A chain that cannot be read is left out.
    """
    part, address = part_of(tenant), store.vault(tenant).subject_address
    families = tuple(f"{family}/{part}/" for family in ("profiles", "snapshots", "steward", "facts"))
    governed = [name for name in store.journal.witnessed() if name.startswith(families) and "/batches/" not in name]
    heads = []
    for folder in (*sorted(governed), *(session_folder(tenant, address(session)) for session in sessions)):
        with suppress(Damaged, UnsupportedVersion):
            link = store.chain(folder, tenant=tenant).head()
            if link is not None:
                heads.append(ChainHead(chain=folder, number=link.number, mac=link.mac))
    return tuple(heads)


def remains_of(
    store: Backend, tenant: str, sessions: Iterable[str], when: str, tombstones: Collection[Tombstone]
) -> tuple[Remainder, ...]:
    """Return the places that the erasure cannot reach, with the calls that may have shown the words."""
    calls = tuple(dict.fromkeys(call for tombstone in tombstones for call in tombstone.held.get("calls", ())))
    rows = [
        ("prompt caches of providers", _end_of_caches(when), _CACHES, calls),
        ("logs of providers", None, "what your contract with the provider says", calls),
        ("requests to a provider, logs, traces", None, "search what you keep of requests for these calls", calls),
        *((place, None, remedy, ()) for place, remedy in OUT_OF_REACH.items()),
    ]
    if store.write_behind is not None:
        others = ", ".join(_other_journals(store, tenant, sessions)) or "none that wrote here is known"
        text = f"open the session there, or run apply_tombstones ({others}); machines that only read are not known"
        rows.append(("journals of other machines", None, text, ()))
    return tuple(Remainder(place=place, until=until, remedy=text, calls=calls) for place, until, text, calls in rows)


_CACHES = (
    "drop a prompt that nobody sends again: Anthropic within an hour, OpenAI and Google within 24 hours, counted from "
    "`when`; delete caches that you named yourself"
)
OUT_OF_REACH = {
    "exported pages, reports, timelines": "delete the files",
    "transcripts outside the store": "delete them where they lie, or mark them deleted",
    "recordings of model calls and of cascade runs; handoffs": "delete the files of the application",
    "suites drafted from transcripts, kept eval runs, replay reports": "delete the files of the application",
    "a session started with a handoff (`handoff --start`)": "forget that session, too",
    "backups, snapshots of disks, replicas of a bucket": "let them expire",
}
"""Remedies by place."""


def _end_of_caches(when: str) -> str | None:
    """Return the time at which automatic caches end, or None if `when` is no time."""
    try:
        ordered = datetime.fromisoformat(when)
    except ValueError:
        return None
    ends = (ordered if ordered.tzinfo else ordered.replace(tzinfo=UTC)) + AUTOMATIC_CACHE
    return ends.isoformat()


def _other_journals(store: Backend, tenant: str, sessions: Iterable[str]) -> list[str]:
    """Return the ids of other machines' journals that have written these sessions."""
    address, owners = store.vault(tenant).subject_address, dict[str, None]()
    for session in sessions:
        for link in store.chain(session_folder(tenant, address(session)), tenant=tenant).readable():
            if not isinstance(link, Damaged):
                owners[str(link.body.get("owner"))] = None
    owners.pop(store.journal.id, None)
    return list(owners)


# -- signing ----------------------------------------------------------------------------------------------------


def receipt_key(keys: Keys, tenant: str = "default") -> str:
    """Return the public key that verifies the tenant's receipts, as 64 hex digits to publish."""
    return _private_key(keys, tenant).public_key().public_bytes_raw().hex()


def signed_receipt(done: Erasure, keys: Keys) -> str:
    """Return the receipt of an erasure; the same erasure gives the same text."""
    fields = {name: value for name, value in asdict(done).items() if name != "receipt"}
    fields["findings"] = [finding.model_dump(mode="json") for finding in done.findings]
    signer = _private_key(keys, done.tenant)
    body = {"schema_version": VERSION, "what": WHAT, **fields, "complete": done.complete}
    body["key"] = signer.public_key().public_bytes_raw().hex()
    plain = json.loads(json.dumps(body))
    return _text(plain | {"signature": signer.sign(signed_data(_PURPOSE, done.tenant, "", [plain])).hex()})


def verified_receipt(data: bytes, key: str | None = None) -> Erasure:
    """Check a receipt and return its erasure.

    With the published `key`, check also that this key has signed the receipt. Raises `InputError` for another document
    or another key, `Damaged` if a byte was changed.
    """
    try:
        document = json.loads(data)
        if not isinstance(document, dict) or document.get("what") != WHAT:
            raise ValueError("it is another document")
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is no erasure receipt: {error}"[:200]) from None
    if document.get("schema_version") != VERSION:
        raise UnsupportedVersion("the receipt", document.get("schema_version"), VERSION)
    signature, tenant, signed_by = (str(document.get(name)) for name in ("signature", "tenant", "key"))
    plain = {name: value for name, value in document.items() if name != "signature"}
    is_intact = _text(document).encode() == data and _SIGNATURE.fullmatch(signature) is not None
    if not is_intact or not is_signed(signed_by, signature, signed_data(_PURPOSE, tenant, "", [plain])):
        raise Damaged("the receipt was changed after it was signed; ask for it again")
    if key is not None and key.lower() != signed_by:
        raise InputError(f"the receipt is signed by key {signed_by}, not by {key:.80}: of another store or tenant")
    try:
        return TypeAdapter(Erasure).validate_python({**document, "receipt": data.decode()})
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise InputError(f"the receipt's field {where} does not fit: {fault['msg']}") from None


def _private_key(keys: Keys, tenant: str) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(hmac.digest(keys.address_key(tenant), _PURPOSE, "sha256"))


def _text(document: Mapping[str, Any]) -> str:
    """Return the only valid text of a receipt; the same fields in another order are refused."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=1) + "\n"
