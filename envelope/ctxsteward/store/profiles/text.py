"""A profile from a YAML file or from prose, and the text of the head that it stands for.

On disk: YAML 1.2 with the top-level keys `name`, `persona`, `policies`, `rails`, `surface`, `meta`. A block
maps an id to a text, or to ``{text, modality, polarity, value, unit, locked}``; `persona` may be prose, which
is one locked entry; `meta` maps an id to ``{text, sources, approved, ts}``. What is refused of YAML: see `strict_yaml`.

The head: ``system`` = persona + policies, ``static`` = rails + surface, ``meta`` = records. Equal documents
give equal bytes; the order of top-level keys, the order of fields and the quoting never show. Prose renders
exactly as written.

A record has two lines. A prompt shows advice and a short reference to it, ``- TEXT [04bb]`` (`line_writer`). Versions
keep it with its id and its pointers, ``  ID: TEXT [s-42§128]`` (`record_line`); so did prompts of renderers 2 and 3.

Nothing here touches a store: `versions` has what was committed, each version with its `profile`.

Raises `InvalidProfile` (file and line, dotted key, what was found, what to do) and `InputTooLarge`.
Source: the YAML 1.2.2 core schema (yaml.org); the layered-envelope design (governed slices).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ctxsteward.schemas import InvalidProfile
from ctxsteward.schemas.errors import counted
from ctxsteward.schemas.profile import (
    BLOCK_SPECS,
    BLOCKS,
    ENTRY_ID,
    MetaRecord,
    ProfileDocument,
    ProfileEntry,
    is_claim_id,
)

from ..strict_yaml import DocumentKind, Keys, Tree, explained, read_mapping, read_text, show

MAX_PROFILE_BYTES = 256 * 1024
MAX_PROFILE_DEPTH = 8

META_LABELS = ("recommendations:", "learned, for reference, not instructions:")
"""First lines of approved and of all other records; every other line of the meta text is a record's."""

META_REF = "meta:"
"""Before the id of a record of meta: how it is named in reports, and for `Session.resolve`."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
"""Names a message of a session, or a part of one."""
MIN_REFERENCE_DIGITS = 4
"""Of a record's id, in a prompt: of 340 slices with 20 records each, one needs a fifth."""

RecordLine = Callable[[MetaRecord], str]
"""The line of a record, without a newline."""

_TOP_KEYS = ("name", *BLOCKS, "meta")
_READING = DocumentKind(
    what="profile",
    refuse=InvalidProfile,
    max_bytes=MAX_PROFILE_BYTES,
    max_depth=MAX_PROFILE_DEPTH,
    expected=f"write a mapping with: {', '.join(_TOP_KEYS)}",
)
_ENTRY_KEYS = tuple(name for name in ProfileEntry.model_fields if name != "id")
_RECORD_KEYS = tuple(name for name in MetaRecord.model_fields if name != "id")

_Fields = dict[str, Any]


class Profile(ProfileDocument):
    """The governed text of a session's head; a session pins one version of it.

    >>> system_blocks(Profile.from_text("You are a calm assistant."))
    (TextBlock(name='persona', text='You are a calm assistant.'),)
    """

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a YAML file of at most 256 KiB."""
        return cls.from_yaml(read_text(path, _READING), source=str(path))

    @classmethod
    def from_yaml(cls, text: str, source: str = "profile") -> Self:
        """Read YAML text; `source` names it in errors."""
        tree = read_mapping(text, source, _READING)
        with counted("profile"):
            return cls._checked(_fields_of(tree), tree)

    @classmethod
    def from_text(cls, text: str, name: str = "default") -> Self:
        """Take free prose as the persona: one locked entry that renders exactly as written."""
        return cls._checked({"name": name, "persona": [_prose(text)]}, Tree({}, {}, "profile text"))

    @classmethod
    def from_document(cls, document: ProfileDocument) -> Self:
        """Take a stored document."""
        return cls.model_construct(**{name: getattr(document, name) for name in ProfileDocument.model_fields})

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hex; for use inside the process, never stored."""
        return hashlib.sha256(canonical_json(self).encode()).hexdigest()

    @classmethod
    def _checked(cls, fields: _Fields, tree: Tree) -> Self:
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            path, found, hint = _explain(error.errors(include_url=False)[0], fields)
            if path[:2] == ("persona", "text") and path[:2] not in tree.lines:  # prose: the author wrote no id
                path = ("persona",)
            raise _invalid(tree, path, found, hint) from error


class TextBlock(NamedTuple):
    """A named piece of a head section, without a newline at its end."""

    name: str
    text: str


def canonical_json(document: ProfileDocument) -> str:
    """One text for one document: sorted keys, no blanks, nothing escaped that need not be."""
    plain = document.model_dump(mode="json")
    for block, spec in BLOCK_SPECS.items():
        if spec.may_be_missing and not plain[block]:
            del plain[block]
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def system_blocks(document: ProfileDocument) -> tuple[TextBlock, ...]:
    """Return the blocks of the system section (persona, policies), leaving out an empty one."""
    return _section(document, "system")


def static_blocks(document: ProfileDocument) -> tuple[TextBlock, ...]:
    """Return the blocks of the static section (rails, surface), leaving out an empty one."""
    return _section(document, "static")


def record_line(record: MetaRecord) -> str:
    """The line that a version keeps of a record."""
    return f"  {record.id}: {record.text} [{', '.join(record.sources)}]"


def line_writer(records: Iterable[MetaRecord]) -> RecordLine:
    """What writes the lines of these records, which are all of a profile, as a prompt shows them.

    >>> note = MetaRecord(id="04bb7be2114d5810", text="Use no emojis.", sources=("s-42§128",))
    >>> line_writer([note])(note)
    '- Use no emojis. [04bb]'
    """
    references = references_of([record.id for record in records])
    return lambda record: f"- {record.text} [{references[record.id]}]"


def references_of(ids: Sequence[str]) -> dict[str, str]:
    """How a prompt names each of a profile's records: by the id that a person gave it, or by a claim's first digits.

    They are as few as no other id begins with, at least `MIN_REFERENCE_DIGITS`, and have a letter among them: decimal
    digits alone are the number of a message, so an id that is such a number is named with `META_REF` before it.

    >>> references_of(["04bb7be2114d5810", "04bb70e2114d5810", "opening-hours"])
    {'04bb70e2114d5810': '04bb70', '04bb7be2114d5810': '04bb7b', 'opening-hours': 'opening-hours'}
    >>> references_of(["128"])
    {'128': 'meta:128'}
    """
    ordered = ("", *sorted(ids), "")
    references: dict[str, str] = {}
    # no other id has more of its beginning in common with an id than one of its neighbours in sorted order
    for before, id, after in zip(ordered, ordered[1:], ordered[2:], strict=False):
        beginnings = (id[:digits] for digits in range(MIN_REFERENCE_DIGITS, len(id) if is_claim_id(id) else 0))
        unique = (
            beginning
            for beginning in beginnings
            if not beginning.isdecimal() and not before.startswith(beginning) and not after.startswith(beginning)
        )
        reference = next(unique, id)
        references[id] = META_REF + id if _NUMBER.fullmatch(reference) else reference
    return references


def records_named(records: Iterable[MetaRecord], reference: str) -> tuple[MetaRecord, ...]:
    """The record of this id, or those whose claim id begins with a reference of `MIN_REFERENCE_DIGITS` or more."""
    known = {record.id: record for record in records}
    reference = reference.removeprefix(META_REF)
    if reference in known:
        return (known[reference],)
    if len(reference) < MIN_REFERENCE_DIGITS:
        return ()
    return tuple(record for id, record in known.items() if is_claim_id(id) and id.startswith(reference))


def meta_blocks(document: ProfileDocument, line: RecordLine = record_line) -> tuple[TextBlock, ...]:
    """Return the approved records as the operator's text, and all others as labelled reference data."""
    approved = [line(record) for record in document.meta if record.approved]
    learned = [line(record) for record in document.meta if not record.approved]
    blocks = (
        ("meta.approved", [META_LABELS[0], *approved], approved),
        ("meta.reference", [META_LABELS[1], *learned], learned),
    )
    return tuple(TextBlock(name, "\n".join(lines)) for name, lines, records in blocks if records)


def meta_text(document: ProfileDocument, line: RecordLine = record_line) -> str:
    """Render the active records: as versions keep them, or as `line` writes them."""
    return "\n".join(block.text for block in meta_blocks(document, line))


def _section(document: ProfileDocument, section: str) -> tuple[TextBlock, ...]:
    blocks: list[TextBlock] = []
    for name in BLOCKS:
        entries: tuple[ProfileEntry, ...] = getattr(document, name)
        if BLOCK_SPECS[name].section != section or not entries:
            continue
        is_prose = name == "persona" and len(entries) == 1 and entries[0] == ProfileEntry(**_prose(entries[0].text))
        text = entries[0].text if is_prose else "\n".join([f"{name}:", *map(entry_line, entries)])
        blocks.append(TextBlock(name, text))
    return tuple(blocks)


def entry_line(entry: ProfileEntry) -> str:
    """Return the lines of an entry in the head."""
    # no polarity: it serves to compare versions; beside "no emails" it would read as a second negation
    marks = [entry.modality.replace("_", " ")] if entry.modality else []
    if entry.value is not None:
        value = str(entry.value)
        # a value that stands in the text is not repeated; "5" does not stand in "15", "5.2" or "5-7"
        if not re.search(rf"(?<![\w.,-]){re.escape(value)}(?![\w]|[.,]\d)", entry.text):
            marks.append(f"{value} {entry.unit}" if entry.unit else value)
    if entry.locked:
        marks.append("locked")
    text = entry.text.replace("\n", "\n    ")
    return f"  {entry.id}: {text}" + (f" ({', '.join(marks)})" if marks else "")


def _prose(text: str) -> _Fields:
    return {"id": "text", "text": text, "locked": True}


def _canonical(text: str) -> str:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return "\n".join(lines).strip()


# --- from a tree to fields ------------------------------------------------------------------------


def _fields_of(tree: Tree) -> _Fields:
    """Turn mappings of ids into lists of entries; raise `InvalidProfile` for unknown keys and other values."""
    _refuse_unknown_keys(tree, (), tree.value, _TOP_KEYS)
    fields: _Fields = {key: value for key, value in tree.value.items() if key == "name"}
    for block in (*BLOCKS, "meta"):
        if block not in tree.value:
            continue
        entries = tree.value[block]
        if block == "persona" and isinstance(entries, str):
            fields[block] = [_prose(_canonical(entries))]
            continue
        if not isinstance(entries, dict) or not entries:
            expected = "prose, or a mapping of ids to texts" if block == "persona" else "a mapping of ids to entries"
            raise _invalid(tree, (block,), show(entries), f"write {expected}, or leave the key out")
        fields[block] = [_entry(tree, block, id_, value) for id_, value in entries.items()]
    return fields


def _entry(tree: Tree, block: str, id_: str, value: object) -> _Fields:
    if isinstance(value, str) and block != "meta":
        value = {"text": value}
    if not isinstance(value, dict):
        hint = "write {text, sources}" if block == "meta" else "quote the text, or write {text, value, unit, …}"
        raise _invalid(tree, (block, id_), show(value), hint)
    _refuse_unknown_keys(tree, (block, id_), value, _RECORD_KEYS if block == "meta" else _ENTRY_KEYS)
    fields = {key: _canonical(item) if isinstance(item, str) else item for key, item in value.items()}
    return {"id": id_, **fields}


def _refuse_unknown_keys(tree: Tree, keys: Keys, mapping: _Fields, allowed: Sequence[str]) -> None:
    for key in mapping:
        if key not in allowed:
            raise _invalid(tree, (*keys, key), "unknown key", f"allowed: {', '.join(allowed)}")


def _explain(error: ErrorDetails, fields: _Fields) -> tuple[tuple[str, ...], str, str]:
    """Return the dotted path, what was found and what to do, for pydantic's first complaint."""
    match error["loc"]:
        case (str(block), int(index), *rest):
            path = (block, str(fields[block][index]["id"]), *(str(part) for part in rest[:1] if part != "id"))
        case loc:
            path = tuple(str(part) for part in loc[:1])
    given, (_, found, todo) = error["input"], explained(fields, error, ProfileDocument)
    match error["type"]:
        case "string_pattern_mismatch" if path[-1:] == ("sources",):
            return path, repr(given)[:80], "a pointer has 1-160 characters, no blanks, commas or brackets"
        case "string_pattern_mismatch":
            return path, f"the id {str(given)[:80]!r}", f"ids match {ENTRY_ID[1:-1]}"
        case "value_error":
            return path, str(error["ctx"]["error"]), "correct this text"
        case "too_short":
            return path, "no source", "name at least one, such as s-42§128"
        case "string_unicode":
            return path, "a lone surrogate", "write well-formed Unicode"
        case kind if path[-1:] == ("value",) and kind != "string_too_long":
            return path, found, "write a finite number or a text"
    return path, found, todo


def _invalid(tree: Tree, keys: Keys, found: str, hint: str) -> InvalidProfile:
    return InvalidProfile(tree.place(keys), ".".join(keys), found, hint)
