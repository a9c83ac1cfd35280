"""Profiles for scenarios: small governed heads of many kinds, with or without meta records, in two languages.

`head(rng, language, split)` draws one; `revised(rng, document)` the next version of it, with a policy and a record
changed.
"""

from __future__ import annotations

from random import Random

from ctxsteward.schemas import MetaRecord, ProfileDocument, ProfileEntry

from ...phrasings import Language, Split, table, texts


def head(rng: Random, language: Language, split: Split = "docs", *, meta: bool = True) -> ProfileDocument:
    """A small profile."""
    said = {kind: texts("profiles", kind, language, split) for kind in table("profiles")}
    policies = [text.split(" | ") for text in rng.sample(said["policies"], rng.randint(1, 3))]
    records = rng.sample(said["records"], rng.randint(1, 2)) if meta else []
    return ProfileDocument(
        name="support",
        persona=(ProfileEntry(id="voice", text=rng.choice(said["personas"])),),
        policies=tuple(ProfileEntry(id=id, text=text.format(n=rng.randint(5, 90))) for id, text in policies),
        rails=(ProfileEntry(id="safe", text=rng.choice(said["rails"]), locked=True),),
        surface=(ProfileEntry(id="form", text=rng.choice(said["surfaces"])),),
        meta=tuple(
            MetaRecord(
                id=f"r{at}", text=text.format(n=rng.randint(2, 40)), sources=(f"s-{rng.randint(1, 99)}§{at + 3}",)
            )
            for at, text in enumerate(records)
        ),
    )


def revised(rng: Random, document: ProfileDocument) -> ProfileDocument:
    """Another version: one policy reads otherwise, and the records are others."""
    first, *rest = document.policies
    other = first.model_copy(update={"text": f"{first.text} ({rng.randint(100, 999)})"})
    records = tuple(
        record.model_copy(update={"text": f"{record.text} ({rng.randint(100, 999)})"}) for record in document.meta
    )
    return document.model_copy(update={"policies": (other, *rest), "meta": records})
