"""Keys of objects in an object store, and names of people. Both need the checks of raw names.

    profiles/<tenant>/<profile>/versions/000000000001.json   chain: one commit each
    profiles/<tenant>/<profile>/writers/000000000001.json    chain: writer epochs and leases
    sessions/<tenant>/<session address>/log/000000000001.json  chain: segments of a session's journal
    keys/<tenant>/<subject address>.json                     a subject's data key, wrapped
    blobs/<tenant>/ab/<address>                              encrypted content
    reports/<tenant>/ab/<address>                            a compression report, encrypted
    tombstones/<tenant>/<subject address>.json               what was forgotten: who, when, why
    snapshots/<tenant>/<profile>/000000000001.json           chain: versioned envelopes of profiles
    facts/<tenant>/<profile>/<audience address>/000000000001.json  chain: facts about a user, project or session
    steward/<tenant>/<profile>/nights/000000000001.json      chain: the nights of the steward
    steward/<tenant>/<profile>/batches/<batch address>/000000000001.json   chain of one link: the result of a batch
    tenants/<tenant>/check.json                              check of the keys that wrote the tenant's objects

Names of tenants and profiles stay readable, percent-encoded. A session's name may be personal, so its address is used.
Raw input never reaches a path.

>>> part_of("acme"), part_of("a/b"), part_of(".."), part_of("Straße")
('acme', 'a%2Fb', '%2E%2E', 'Stra%C3%9Fe')

A person's name is kept exactly as the application gave it. It is part of the subject whose key encrypts the person's
words, so an erasure finds all words under this name and none under another. Where people are *counted* (support,
recoveries, reviewers, authors), names are compared by skeleton: two names that look the same count once.

    unseen("e\u200bve")                 'U+200B (ZERO WIDTH SPACE)': a name with it is refused
    skeleton("Eve") == skeleton("еve")  the second one begins with a Cyrillic letter

A skeleton is the name without spaces, in NFKC and lower case, with each character replaced by one character for all
that look alike. The library `confusable_homoglyphs` has Unicode's table of those. If a letter looks like ASCII in only
one case, that case decides. A skeleton is only compared, never shown or stored.

Source: UTS #39 (confusable detection); UAX #44 (default ignorable code points).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote

from ctxsteward.schemas import InputError
from ctxsteward.schemas.profile import ENTRY_ID

NUMBER_DIGITS = 12
MAX_PART_CHARS = 120
_KEY = re.compile(r"(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9%_.~-]+(?:/[A-Za-z0-9%_.~-]+)*")
MAX_KEY_CHARS = 800
MAX_META_CHARS = 200
"""Most characters of a text from the application: id, phase, timestamp, principal, origin, author or reason."""
MAX_KEY_PART_CHARS = 160
"""Most characters of one part of a key; with a temporary file's suffix it fits the 255 bytes of a file name."""


def checked_name(what: str, value: object) -> str:
    """Return the caller's id if it is usable; else raise `InputError`. `what` names it in the error."""
    if not isinstance(value, str) or not value or len(value) > MAX_META_CHARS or not value.isprintable():
        raise InputError(
            f"{what} {value!r:.60} is not usable as an id; take 1 to {MAX_META_CHARS} printable characters"
        )
    return value


def checked_note(who: str, why: str, when: str) -> dict[str, str]:
    """Return author, reason and time of an action as a dict; raise `InputError` if one is not usable."""
    note = {"who": who, "why": why, "when": when}
    for name, value in note.items():
        if not isinstance(value, str) or not value.strip() or len(value) > MAX_META_CHARS:
            raise InputError(f"`{name}` is {value!r:.60}; write a text of 1 to {MAX_META_CHARS} characters")
    return note


def checked_profile_name(name: object) -> str:
    """Return the name of a profile if it is usable; else raise `InputError`."""
    if not isinstance(name, str) or not re.fullmatch(ENTRY_ID.rstrip("$"), name):
        raise InputError(f"profile {name!r:.80} is not usable as a name; names match {ENTRY_ID[1:-1]}")
    return name


@lru_cache(maxsize=4096)
def part_of(name: str) -> str:
    """Encode a raw name as one part of a key: injective, and short enough for a file system."""
    encoded = quote(name, safe="").replace("~", "%7E")
    if encoded.startswith("."):
        encoded = encoded.replace(".", "%2E")
    if len(encoded) <= MAX_PART_CHARS:
        return encoded
    return "~" + hashlib.sha256(name.encode()).hexdigest()


def numbered(folder: str, number: int) -> str:
    """Return the key of a chain's link; byte order of keys is the order of numbers."""
    return f"{folder}/{number:0{NUMBER_DIGITS}d}.json"


def number_of(key: str) -> int | None:
    """Return the number in a link's key, or None if the key is not a link's."""
    name = key.rpartition("/")[2]
    stem = name.removesuffix(".json")
    return int(stem) if stem != name and len(stem) == NUMBER_DIGITS and stem.isascii() and stem.isdecimal() else None


@lru_cache(maxsize=4096)
def is_key(key: str) -> bool:
    """Return whether every object store accepts this key."""
    return (
        len(key) <= MAX_KEY_CHARS
        and _KEY.fullmatch(key) is not None
        and max(map(len, key.split("/"))) <= MAX_KEY_PART_CHARS
        and not key.endswith(".tmp")  # the suffix of a folder's temporary files
    )


def checked_key(key: str) -> str:
    """Return the key if every object store accepts it; else raise `InputError`."""
    if not is_key(key):
        raise InputError(f"object key {key[:80]!r} is not usable; encode its parts with store.names.part_of")
    return key


def checked_prefix(prefix: str) -> str:
    """Return the prefix (empty, a folder with its slash, or a key's first characters), or raise `InputError`."""
    if prefix and not is_key(prefix.removesuffix("/") + "/x"):
        raise InputError(f"key prefix {prefix[:80]!r} is not usable; encode its parts with store.names.part_of")
    return prefix


def versions_folder(tenant: str, profile: str) -> str:
    return f"profiles/{part_of(tenant)}/{part_of(profile)}/versions"


def writers_folder(tenant: str, profile: str) -> str:
    return f"profiles/{part_of(tenant)}/{part_of(profile)}/writers"


def snapshots_folder(tenant: str, profile: str) -> str:
    return f"snapshots/{part_of(tenant)}/{part_of(profile)}"


def facts_folder(tenant: str, profile: str, audience_address: str = "") -> str:
    """Return the folder of one audience's facts, or, without an address, of all audiences."""
    return f"facts/{part_of(tenant)}/{part_of(profile)}" + (f"/{audience_address}" if audience_address else "")


def steward_folder(tenant: str, profile: str, chain: str, address: str = "") -> str:
    """Return the folder of a chain of the steward; `address` distinguishes several chains of one name."""
    return f"steward/{part_of(tenant)}/{part_of(profile)}/{chain}" + (f"/{address}" if address else "")


def session_folder(tenant: str, session_address: str) -> str:
    return f"sessions/{part_of(tenant)}/{session_address}/log"


def data_key_name(tenant: str, subject_address: str) -> str:
    return f"keys/{part_of(tenant)}/{subject_address}.json"


def blob_name(tenant: str, address: str) -> str:
    return f"blobs/{part_of(tenant)}/{address[:2]}/{address}"


def report_name(tenant: str, address: str) -> str:
    return f"reports/{part_of(tenant)}/{address[:2]}/{address}"


def tombstone_name(tenant: str, subject_address: str) -> str:
    return f"tombstones/{part_of(tenant)}/{subject_address}.json"


def check_name(tenant: str) -> str:
    return f"tenants/{part_of(tenant)}/check.json"


_UNSEEN_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
"""Default ignorable code points of other categories, and the blank Braille cell."""
_MARK = "\u200e"
"""Mark that surrounds right-to-left characters in the library's table."""


def unseen(name: str) -> str | None:
    """Return number and name of the first invisible character in a name, or None if all are visible.

    >>> unseen("eve\\x00"), unseen("Ève 李")
    ('U+0000 (control)', None)
    """
    if name.isascii() and name.isprintable():
        return None
    for char in name:
        if unicodedata.category(char) in _UNSEEN_CATEGORIES or _UNSEEN.match(char):
            return f"U+{ord(char):04X} ({unicodedata.name(char, 'control')})"
    return None


@lru_cache(maxsize=65_536)
def skeleton(name: str) -> str:
    """Return a form of the name that is equal for names that look alike, in any case.

    >>> {skeleton(name) for name in ("eve", "Eve", "еve", "eve ", "ｅｖｅ", "ℯve")}, skeleton("bob")
    ({'eve'}, 'bob')
    """
    plain = "".join(char for char in name if not char.isspace() and not unseen(char))
    for _ in range(2):  # the small letter of a capital without a lookalike may have one
        drawn = "".join(map(_drawn, unicodedata.normalize("NFD", plain)))
        plain = unicodedata.normalize("NFKC", drawn).casefold()
    return plain


@lru_cache(maxsize=4096)
def _drawn(char: str) -> str:
    """Return the ASCII lookalike of a character in its own or the other case, else that of its class."""
    for form in (char, char.upper(), char.lower()):
        look = _looks().get(form, form)
        if look.isascii():
            return look
    return _looks().get(char.casefold(), char.casefold())


@lru_cache(maxsize=1)
def _looks() -> Mapping[str, str]:
    """Map each character to one text for all that look like it: ASCII first, then letters, then the longest."""
    from confusable_homoglyphs.confusables import confusables_data

    classes: dict[str, set[str]] = {}
    for source, alike in confusables_data.items():
        names = {source.strip(_MARK), *(one["c"].strip(_MARK) for one in alike)}
        together = names.union(*(classes[name] for name in names if name in classes))
        classes.update(dict.fromkeys(together, together))
    return {char: min(alike, key=_worth) for char, alike in classes.items()}


def _worth(look: str) -> tuple[bool, bool, int, str]:
    return (not look.isascii(), not look.isalpha(), -len(look), look)  # "rn" for characters that look like m
