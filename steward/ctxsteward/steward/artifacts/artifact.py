"""A harvest artifact: the observations of one transcript and the text that they cite, for one set of principals.

`night.batch_harvest` builds artifacts, `storage` stores them, the ledger absorbs them. Most transcripts have one
principal and give one artifact. If several people spoke, each set of principals behind an observation has its own
artifact, so that forgetting one person keeps the others' words. The first artifact is the main principal's; it exists
even if empty, to show that the transcript was harvested. An observation whose citation is missing or splits a character
is refused and counted.

`transcript` is an HMAC of the input. If a source was read twice, the newer reading counts (`Artifact.rank`).

A citation can be checked as long as its artifact exists: `span_address` is HMAC(tenant's key, subject ‖ "span" ‖
bytes), so it reveals nothing about the content, and the same words of two people have two addresses. Equal artifacts
have equal bytes (`artifact_bytes`).

Raises `Damaged` for bytes that are no artifact, `UnsupportedVersion` for a later version.
Source: the layered-envelope design (provenance); the state design (a subject is one principal in one session).
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from pydantic import ValidationError

from ctxsteward.schemas.errors import Damaged, UnsupportedVersion
from ctxsteward.schemas.recommendation import Evidence, Slot
from ctxsteward.schemas.summary import Trust
from ctxsteward.store.crypto.keyring import AddressKey, address_of, subject_of
from ctxsteward.store.profiles.version_codec import canonical

from ..observations.observation import KINDS, MessageSpan, Observation
from ..observations.transcript import ReplayedTranscript, ReplayedUtterance, Role, in_order, speaker_order

_NUMBER = re.compile(r"\d+")


class ArtifactRank(NamedTuple):
    """Order of the readings of one source; the greatest is the newest."""

    revision: int
    extractor: tuple[int, ...]
    """Numbers in the extractor's name."""
    messages: int
    transcript: str


class IdentifierUse(NamedTuple):
    """Identifiers that a tool was given in successful calls; earlier versions stored them."""

    tool: str
    paths: tuple[str, ...]
    """Sorted paths of arguments (``payments[].payment_id``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedText:
    """One redacted text that observations cite."""

    ref: str
    role: Role
    text: str
    trust: Trust
    principal: str | None
    """The speaker; None if unknown."""
    ts: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Observations of one transcript that cite these principals, and the cited texts."""

    source: str
    session: str
    principal: str | None
    """The user of the conversation; None if unknown."""
    principals: tuple[str | None, ...]
    """People whose words are in the artifact, in order (`in_order`)."""
    project: str | None
    transcript: str
    """HMAC of the input."""
    extractor: str
    revision: int
    """Revision of the source's item; a later reading has a higher one."""
    messages: int
    shown: tuple[str, ...]
    """Sorted ids of records that the session was shown."""
    observations: tuple[Observation, ...]
    cited: tuple[CitedText, ...]
    takes: tuple[IdentifierUse, ...] = ()
    """Field of earlier versions, kept so that their bytes stay the same; not used."""
    refused: int = 0
    """Number of observations with a wrong citation; counted in the first artifact of a transcript."""

    @property
    def rank(self) -> ArtifactRank:
        numbers = tuple(int(number) for number in _NUMBER.findall(self.extractor))
        return ArtifactRank(self.revision, numbers, self.messages, self.transcript)

    def text(self, ref: str) -> CitedText | None:
        """Return the cited text with this reference, or None."""
        return next((cited for cited in self.cited if cited.ref == ref), None)


def build_artifact(
    replayed: ReplayedTranscript,
    observations: Iterable[Observation],
    *,
    extractor: str,
    key: AddressKey,
    revision: int = 0,
) -> tuple[Artifact, ...]:
    """Build the artifacts of a transcript: the main principal's first, the others by name."""
    texts = {said.ref: said for said in replayed.utterances}
    groups: dict[tuple[str | None, ...], list[Observation]] = {(replayed.principal,): []}
    refused = 0
    for observation in observations:
        if _is_cited(observation.places, texts):
            people = {observation.principal, *(texts[place.ref].principal for place in observation.places)}
            groups.setdefault(in_order(people, replayed.session), []).append(observation)
        else:
            refused += 1
    name = transcript_address(key, replayed, extractor)
    first, *others = groups.items()
    others.sort(key=lambda group: [speaker_order(principal, replayed.session) for principal in group[0]])
    return tuple(
        Artifact(
            source=replayed.source,
            session=replayed.session,
            principal=replayed.principal,
            principals=principals,
            project=replayed.project,
            transcript=name,
            extractor=extractor,
            revision=revision,
            messages=len(replayed.utterances),
            shown=tuple(sorted(replayed.shown)),
            observations=tuple(_ordered(group)),
            cited=_cited(group, texts),
            refused=0 if at else refused,
        )
        for at, (principals, group) in enumerate([first, *others])
    )


def _ordered(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Yield each observation once, in the order of their `repr`.

    A `repr` begins with kind and text, so the slow whole `repr` is made only if these are equal.
    """
    by_text: dict[tuple[str, str], list[Observation]] = {}
    for observation in observations:
        by_text.setdefault((observation.kind, repr(observation.text)), []).append(observation)
    for _, alike in sorted(by_text.items(), key=itemgetter(0)):
        yield from alike if len(alike) == 1 else sorted(set(alike), key=repr)


def transcript_address(key: AddressKey, replayed: ReplayedTranscript, extractor: str) -> str:
    """Return the address of a transcript: an HMAC of its input and of the extractor's version."""
    data = json.dumps([replayed.source, replayed.session, replayed.digest, extractor]).encode()
    return address_of(key, subject_of(replayed.session, replayed.principal), "transcript", data)


def _cited(observations: Sequence[Observation], texts: dict[str, ReplayedUtterance]) -> tuple[CitedText, ...]:
    refs = {place.ref for observation in observations for place in observation.places}
    return tuple(
        CitedText(ref=said.ref, role=said.role, text=said.text, trust=said.trust, principal=said.principal, ts=said.ts)
        for said in sorted((texts[ref] for ref in refs), key=lambda said: (said.ordinal, said.ref))
    )


def _is_cited(places: Sequence[MessageSpan], texts: dict[str, ReplayedUtterance]) -> bool:
    return bool(places) and all(
        (said := texts.get(place.ref)) is not None and cut(said.text, place.start, place.stop) is not None
        for place in places
    )


def cut(text: str, start: int, stop: int) -> str | None:
    """Return the characters between two bytes of the UTF-8 text; None if they are missing or split.

    >>> cut("naïve", 0, 4), cut("naïve", 0, 3), cut("naïve", 4, 9)
    ('naï', None, None)
    """
    data = text.encode()
    if not 0 <= start < stop <= len(data):
        return None
    try:
        return data[start:stop].decode()
    except UnicodeDecodeError:
        return None


ARTIFACT_VERSION = 2
"""The newest form. Version 1 writes the session's name for an unknown speaker, so it cannot name a person with that
name; version 2 writes null."""


def artifact_bytes(artifact: Artifact) -> bytes:
    """Return canonical JSON, in version 1 if that can hold the artifact, so that old bytes and addresses stay."""
    fields = {name: getattr(artifact, name) for name in Artifact.__slots__}
    fields["observations"] = [observation_fields(observation) for observation in artifact.observations]
    fields["cited"] = [asdict(cited) for cited in artifact.cited]
    if not artifact.takes:
        del fields["takes"]
    version = 2 if artifact.session in (artifact.principal, *artifact.principals) else 1
    if version == 1:
        _rename_speakers(fields, None, artifact.session)
    return canonical({"schema_version": version, **fields})


def _rename_speakers(fields: dict[str, Any], old: str | None, new: str | None) -> None:
    """Replace one principal by another wherever the fields of an artifact name it."""
    for part in (fields, *fields["observations"], *fields["cited"]):
        if part["principal"] == old:
            part["principal"] = new
    fields["principals"] = [new if principal == old else principal for principal in fields["principals"]]


def parse_artifact(data: bytes, what: str = "artifact") -> Artifact:
    """Parse an artifact; `what` names it in errors."""
    try:
        fields: dict[str, Any] = json.loads(data)
        version = fields.pop("schema_version")
        if version not in (1, ARTIFACT_VERSION):
            raise UnsupportedVersion(what, version, ARTIFACT_VERSION)
        if version == 1:
            _rename_speakers(fields, fields["session"], None)
        fields["observations"] = tuple(map(observation_of, filter(_is_shared, fields["observations"])))
        fields["cited"] = tuple(CitedText(**cited) for cited in fields["cited"])
        for name in ("principals", "shown"):
            fields[name] = tuple(fields[name])
        fields["takes"] = tuple(IdentifierUse(tool, tuple(paths)) for tool, paths in fields.get("takes", ()))
        return Artifact(**fields)
    except (ValueError, TypeError, KeyError, AttributeError, ValidationError) as error:
        raise Damaged(f"{what}: it is not a harvest artifact; harvest its transcript again") from error


def observation_fields(observation: Observation) -> dict[str, Any]:
    """Return an observation as JSON values, without defaults."""
    fields: dict[str, Any] = {
        name: value
        for name, value, default in zip(_NAMES, _VALUES(observation), _DEFAULTS, strict=True)
        if value != default
    }
    fields["slot"] = [observation.slot.subject, observation.slot.attribute, observation.slot.cardinality]
    fields["places"] = [list(place) for place in observation.places]
    return fields


_NAMES = tuple(Observation.__dataclass_fields__)
_VALUES = attrgetter(*_NAMES)
_DEFAULTS = tuple(field.default for field in Observation.__dataclass_fields__.values())


def _is_shared(fields: dict[str, Any]) -> bool:
    """Whether an observation is for everybody; earlier versions also stored observations about one person."""
    return fields["reach"] == "shared" and fields["kind"] in KINDS


def observation_of(fields: dict[str, Any]) -> Observation:
    """Return the observation of `observation_fields`."""
    fields.pop("answers", None)  # a field of earlier versions
    slot = _slot(*fields["slot"])
    places = tuple(MessageSpan(*place) for place in fields["places"])
    return Observation(**{**fields, "slot": slot, "places": places})


@lru_cache(maxsize=4096)
def _slot(subject: str, attribute: str, cardinality: Any) -> Slot:
    return Slot(subject=subject, attribute=attribute, cardinality=cardinality)


class EvidenceSpan(NamedTuple):
    """One cited span of an observation, with the fields of `Evidence` as JSON values."""

    ref: str
    start: int
    stop: int
    address: str
    role: str
    trust: Trust
    principal: str | None
    ts: str | None
    relation: str


class EvidenceQuote(NamedTuple):
    """A piece of evidence with its words."""

    evidence: Evidence
    text: str | None
    """None for forgotten words."""
    verified: bool = True
    """Whether the bytes match the evidence's address (`verified`)."""


def span_address(key: AddressKey, session: str, principal: str | None, data: bytes) -> str:
    """Return the address of a span's bytes."""
    return address_of(key, subject_of(session, principal), "span", data)


def evidence_spans(artifact: Artifact, key: AddressKey) -> Iterator[tuple[EvidenceSpan, ...]]:
    """Yield the cited spans of each observation of an artifact."""
    texts = {cited.ref: (cited, cited.text.encode()) for cited in artifact.cited}
    for observation in artifact.observations:
        cited_places = [(place, *texts[place.ref]) for place in observation.places if place.ref in texts]
        yield tuple(
            EvidenceSpan(
                place.ref,
                place.start,
                place.stop,
                span_address(key, artifact.session, said.principal, data[place.start : place.stop]),
                said.role,
                said.trust,
                said.principal,
                said.ts or observation.ts,
                place.relation,
            )
            for place, said, data in cited_places
        )


def verified(evidence: Evidence, cited: CitedText | None, key: AddressKey) -> bool:
    """Whether the bytes of a span match its address, and role, trust and speaker match the cited text."""
    text = cut(cited.text, *evidence.span) if cited is not None else None
    if cited is None or text is None or (cited.role, cited.trust) != (evidence.role, evidence.trust):
        return False
    address = span_address(key, evidence.session, cited.principal, text.encode())
    written = (None, evidence.session) if cited.principal is None else (cited.principal,)
    # Records of earlier versions name the session as an unknown speaker.
    return evidence.principal in written and hmac.compare_digest(address, evidence.span_address)


def quotes(evidence: Iterable[Evidence], cited: Iterable[CitedText | None], key: AddressKey) -> Iterator[EvidenceQuote]:
    """Yield each piece of evidence with its words."""
    for entry, said in zip(evidence, cited, strict=True):
        text = cut(said.text, *entry.span) if said is not None else None
        yield EvidenceQuote(entry, text, verified(entry, said, key))
