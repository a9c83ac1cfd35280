"""Names of objects in an object store, and names of people: two subjects that share the checks of raw names.

    profiles/<tenant>/<profile>/versions/000000000001.json   chain: one commit each
    profiles/<tenant>/<profile>/writers/000000000001.json    chain: writer epochs and leases
    sessions/<tenant>/<session address>/log/000000000001.json  chain: segments of a session's journal
    keys/<tenant>/<subject address>.json                     a subject's data key, wrapped
    blobs/<tenant>/ab/<address>                              encrypted content
    reports/<tenant>/ab/<address>                            a compression report, encrypted
    tombstones/<tenant>/<subject address>.json               what was forgotten: who, when, why
    snapshots/<tenant>/<profile>/000000000001.json           chain: versioned envelopes of profiles
    facts/<tenant>/<profile>/<audience address>/000000000001.json  chain: what is known about a user, project, session
    steward/<tenant>/<profile>/nights/000000000001.json      chain: what each night of the steward has taken in
    steward/<tenant>/<profile>/batches/<batch address>/000000000001.json   chain of one: what became of a batch
    tenants/<tenant>/check.json                              which keys the tenant's objects were written with

Tenants and profiles keep readable names, percent-encoded; a session's name may be personal, so it is an address. Raw
input never reaches a path.

>>> part_of("acme"), part_of("a/b"), part_of(".."), part_of("Straße")
('acme', 'a%2Fb', '%2E%2E', 'Stra%C3%9Fe')

A name of a person is kept exactly as the application gave it: it is a part of the subject whose key encrypts the words,
so forgetting finds them, and another name reaches none of them. Where people are *counted* (support, recoveries,
reviewers, authors), names are compared by their skeletons: two names that a reader cannot tell apart count once.

    unseen("e\u200bve")                 'U+200B (ZERO WIDTH SPACE)': such a name is refused
    skeleton("Eve") == skeleton("еve")  the second one begins with a Cyrillic letter

A skeleton is the name without spaces, each character replaced by what it looks like, NFKC, in lower case. What looks
alike is in Unicode's table of confusables, which the library carries; of letters that look like ASCII in one of their
cases, that case decides. It is for comparing alone: never shown, never stored.

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
"""Of a name that the application gives: an id, a phase, a timestamp, a principal, an origin, who did it and why."""
MAX_KEY_PART_CHARS = 160
"""With the suffix of a temporary file it still fits the 255 bytes of a file name."""


def checked_name(what: str, value: object) -> str:
    """An id that a caller gave; raises `InputError`."""
    if not isinstance(value, str) or not value or len(value) > MAX_META_CHARS or not value.isprintable():
        raise InputError(
            f"{what} {value!r:.60} is not usable as an id; take 1 to {MAX_META_CHARS} printable characters"
        )
    return value


def checked_note(who: str, why: str, when: str) -> dict[str, str]:
    """In whose name, why and when something is done; raises `InputError`."""
    note = {"who": who, "why": why, "when": when}
    for name, value in note.items():
        if not isinstance(value, str) or not value.strip() or len(value) > MAX_META_CHARS:
            raise InputError(f"`{name}` is {value!r:.60}; write a text of 1 to {MAX_META_CHARS} characters")
    return note


def checked_profile_name(name: object) -> str:
    """The name of a profile; raises `InputError`."""
    if not isinstance(name, str) or not re.fullmatch(ENTRY_ID.rstrip("$"), name):
        raise InputError(f"profile {name!r:.80} is not usable as a name; names match {ENTRY_ID[1:-1]}")
    return name


def part_of(name: str) -> str:
    """A raw name as one part of a key: one to one, and short enough for a file system."""
    encoded = quote(name, safe="").replace("~", "%7E")
    if encoded.startswith("."):
        encoded = encoded.replace(".", "%2E")
    if len(encoded) <= MAX_PART_CHARS:
        return encoded
    return "~" + hashlib.sha256(name.encode()).hexdigest()


def numbered(folder: str, number: int) -> str:
    """The key of a chain's `number`-th link; byte order is number order."""
    return f"{folder}/{number:0{NUMBER_DIGITS}d}.json"


def number_of(key: str) -> int | None:
    """The number in a link's key; None where it is none."""
    name = key.rpartition("/")[2]
    stem = name.removesuffix(".json")
    return int(stem) if stem != name and len(stem) == NUMBER_DIGITS and stem.isascii() and stem.isdecimal() else None


def is_key(key: str) -> bool:
    """Whether every store takes it as a key."""
    return (
        len(key) <= MAX_KEY_CHARS
        and _KEY.fullmatch(key) is not None
        and max(map(len, key.split("/"))) <= MAX_KEY_PART_CHARS
        and not key.endswith(".tmp")  # how a file store names what is not finished
    )


def checked_key(key: str) -> str:
    """A key as every store takes it; raises `InputError`."""
    if not is_key(key):
        raise InputError(f"object key {key[:80]!r} is not usable; encode its parts with store.names.part_of")
    return key


def checked_prefix(prefix: str) -> str:
    """The beginning of keys: nothing, a folder with its slash, or a key's first characters. Raises `InputError`."""
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
    """One audience's facts; without an address, where those of all audiences lie."""
    return f"facts/{part_of(tenant)}/{part_of(profile)}" + (f"/{audience_address}" if audience_address else "")


def steward_folder(tenant: str, profile: str, chain: str, address: str = "") -> str:
    """A chain of the steward's: ``nights``, or one of many that an address tells apart."""
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
"""Stands around right-to-left characters in the library's table."""


def unseen(name: str) -> str | None:
    """The first character of a name that nobody can see, by number and name; None: all can be seen.

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
    """What is left of a name for comparing: equal for names that look alike, in whichever case.

    >>> {skeleton(name) for name in ("eve", "Eve", "еve", "eve ", "ｅｖｅ", "ℯve")}, skeleton("bob")
    ({'eve'}, 'bob')
    """
    plain = "".join(char for char in name if not char.isspace() and not unseen(char))
    for _ in range(2):  # of a capital that looks like nothing else, the small letter may
        drawn = "".join(map(_drawn, unicodedata.normalize("NFD", plain)))
        plain = unicodedata.normalize("NFKC", drawn).casefold()
    return plain


@lru_cache(maxsize=4096)
def _drawn(char: str) -> str:
    """What a character looks like: ASCII in the case it has, else in the other, else whatever stands for its class."""
    for form in (char, char.upper(), char.lower()):
        look = _looks().get(form, form)
        if look.isascii():
            return look
    return _looks().get(char.casefold(), char.casefold())


@lru_cache(maxsize=1)
def _looks() -> Mapping[str, str]:
    """By character, what stands for all that look like it: letters of ASCII first, several before one."""
    from confusable_homoglyphs.confusables import confusables_data

    classes: dict[str, set[str]] = {}
    for source, alike in confusables_data.items():
        names = {source.strip(_MARK), *(one["c"].strip(_MARK) for one in alike)}
        together = names.union(*(classes[name] for name in names if name in classes))
        classes.update(dict.fromkeys(together, together))
    return {char: min(alike, key=_worth) for char, alike in classes.items()}


def _worth(look: str) -> tuple[bool, bool, int, str]:
    return (not look.isascii(), not look.isalpha(), -len(look), look)  # "rn", for what looks like an m
