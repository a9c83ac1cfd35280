"""Profiles of a made-up shop and a help desk, what people would do to them (``revisions.yaml``), and edits by key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ruamel.yaml import YAML

from ctxsteward.schemas.profile import BLOCKS, BlockName, ProfileDocument, ProfileEntry

Rewrites = Mapping[str, tuple[str, ...]]
_TABLES = YAML(typ="safe").load((Path(__file__).parent / "revisions.yaml").read_text(encoding="utf-8"))


def _rewrites(name: str) -> Rewrites:
    return {key: tuple(texts.splitlines()) for key, texts in _TABLES[name].items()}


SHOP = ProfileDocument.model_validate(_TABLES["shop"])
BENIGN, FLIPS = _rewrites("benign"), _rewrites("flips")
HELD_BENIGN, HELD_FLIPS = _rewrites("held_benign"), _rewrites("held_flips")
DESK_SAME, DESK_OPPOSITE = _rewrites("desk_same"), _rewrites("desk_opposite")


def desk(rule: str) -> ProfileDocument:
    """The second profile, of an IT help desk, with this rule in it."""
    texts = {f"p{n}": text for n, text in enumerate(_TABLES["desk_filling"].splitlines())} | {"rule": rule}
    return ProfileDocument(
        name="desk",
        persona=(ProfileEntry(id="voice", text="Calm, exact, and never in a hurry."),),
        policies=tuple(ProfileEntry(id=id, text=text) for id, text in texts.items()),
    )


def rewritten(key: str, text: str, document: ProfileDocument = SHOP) -> ProfileDocument:
    """The profile with another text under a key."""
    return _replaced(document, key, lambda entry: entry.model_copy(update={"text": text}))


def remade(key: str, document: ProfileDocument = SHOP, **fields: object) -> ProfileDocument:
    """The profile with other fields under a key."""
    return _replaced(document, key, lambda entry: ProfileEntry.model_validate(entry.model_dump() | fields))


def _replaced(document: ProfileDocument, key: str, change: object) -> ProfileDocument:
    assert callable(change)
    update = {
        block: tuple(change(entry) if entry.id == key else entry for entry in getattr(document, block))
        for block in BLOCKS
    }
    return document.model_copy(update=update)


def without(document: ProfileDocument, *keys: str) -> ProfileDocument:
    """The profile without these entries."""
    update = {block: tuple(e for e in getattr(document, block) if e.id not in keys) for block in BLOCKS}
    return document.model_copy(update=update)


def added(
    document: ProfileDocument, block: BlockName, *entries: ProfileEntry, at: int | None = None
) -> ProfileDocument:
    """The profile with more entries in a block, at its end or at a place."""
    old = list(getattr(document, block))
    place = len(old) if at is None else at
    return document.model_copy(update={block: (*old[:place], *entries, *old[place:])})
