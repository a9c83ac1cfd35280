"""A harvest artifact: the observations of one transcript and the text that they cite, for one set of principals.

`night.batch_harvest` builds artifacts, `storage` keeps them, the ledger takes them in. Most transcripts have one
principal and give one artifact. Where several spoke, each set of principals behind an observation has its own, so that
forgetting one person leaves the others' words. The first artifact is the main principal's, even if empty: it says that
the transcript was harvested. An observation whose citation is not there, or cuts a character, is refused and counted.

`transcript` is an HMAC of what was read. Of two readings of one source the newer one counts (`Artifact.rank`).

A citation can be checked as long as its artifact exists: `span_address` is HMAC(tenant's key, subject ‖ "span" ‖
bytes), so it answers no question about content, and the same words of two people have two addresses. The same artifact
is always the same bytes (`artifact_bytes`).

Raises `Damaged` for what is no artifact, `UnsupportedVersion` for one of a later version.
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
    """Which of two readings of one source is the newer: the greater."""

    revision: int
    extractor: tuple[int, ...]
    """Numbers in its name."""
    messages: int
    transcript: str


class IdentifierUse(NamedTuple):
    """The identifiers that a tool was given in calls that worked."""

    tool: str
    paths: tuple[str, ...]
    """Of leaves (``payments[].payment_id``); sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedText:
    """One text that observations point into, after redaction."""

    ref: str
    role: Role
    text: str
    trust: Trust
    principal: str | None
    """Whose words they are; None where nobody knows."""
    ts: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Observations of one transcript that rest on the words of these principals, and those words."""

    source: str
    session: str
    principal: str | None
    """Whom the conversation is with; None where nobody knows."""
    principals: tuple[str | None, ...]
    """Whose words are in it, in their order (`in_order`)."""
    project: str | None
    transcript: str
    """HMAC of what was read."""
    extractor: str
    revision: int
    """From the source, where it knows; a later reading has a higher one."""
    messages: int
    shown: tuple[str, ...]
    """Ids of records that the session was shown; sorted."""
    observations: tuple[Observation, ...]
    cited: tuple[CitedText, ...]
    takes: tuple[IdentifierUse, ...] = ()
    """Identifiers that tools were given, as earlier versions noted them; read, and not used."""
    refused: int = 0
    """Observations whose citations do not hold; counted in the first artifact of a transcript."""

    @property
    def rank(self) -> ArtifactRank:
        numbers = tuple(int(number) for number in _NUMBER.findall(self.extractor))
        return ArtifactRank(self.revision, numbers, self.messages, self.transcript)

    def text(self, ref: str) -> CitedText | None:
        """The cited text with this reference."""
        return next((cited for cited in self.cited if cited.ref == ref), None)


def build_artifact(
    replayed: ReplayedTranscript,
    observations: Iterable[Observation],
    *,
    extractor: str,
    key: AddressKey,
    revision: int = 0,
) -> tuple[Artifact, ...]:
    """What a transcript gave, as artifacts: the main principal's first, the others by name."""
    texts = {said.ref: said for said in replayed.utterances}
    groups: dict[tuple[str | None, ...], list[Observation]] = {(replayed.principal,): []}
    refused = 0
    for observation in observations:
        if _is_cited(observation.places, texts):
            groups.setdefault(_behind(observation, texts, replayed.session), []).append(observation)
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
            observations=tuple(_ordered(found)),
            cited=_cited(found, texts),
            refused=0 if at else refused,
        )
        for at, (principals, found) in enumerate([first, *others])
    )


def _ordered(found: Iterable[Observation]) -> Iterator[Observation]:
    """Each once, in the order of their `repr`.

    It begins with kind and text, so the whole `repr`, which is slow, is made only where these are equal.
    """
    by_text: dict[tuple[str, str], list[Observation]] = {}
    for observation in found:
        by_text.setdefault((observation.kind, repr(observation.text)), []).append(observation)
    for _, alike in sorted(by_text.items(), key=itemgetter(0)):
        yield from alike if len(alike) == 1 else sorted(set(alike), key=repr)


def transcript_address(key: AddressKey, replayed: ReplayedTranscript, extractor: str) -> str:
    """What a transcript is called: HMAC of what was read, and of the code that reads it."""
    data = json.dumps([replayed.source, replayed.session, replayed.digest, extractor]).encode()
    return address_of(key, subject_of(replayed.session, replayed.principal), "transcript", data)


def _behind(observation: Observation, texts: dict[str, ReplayedUtterance], session: str) -> tuple[str | None, ...]:
    """The principals whose words an observation is made of."""
    return in_order({observation.principal, *(texts[place.ref].principal for place in observation.places)}, session)


def _cited(found: Sequence[Observation], texts: dict[str, ReplayedUtterance]) -> tuple[CitedText, ...]:
    refs = {place.ref for observation in found for place in observation.places}
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
    """The characters between two bytes of the UTF-8 text; None where they are not there, or not whole.

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
"""The newest form. Version 1 writes the session's name for an unknown speaker, so it cannot hold a person of that name;
version 2 writes null."""


def artifact_bytes(artifact: Artifact) -> bytes:
    """Canonical JSON; version 1 where that can hold the artifact, so that bytes and address stay as they were."""
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
    """The artifact again; `what` names it in errors."""
    try:
        fields: dict[str, Any] = json.loads(data)
        version = fields.pop("schema_version")
        if version not in (1, ARTIFACT_VERSION):
            raise UnsupportedVersion(what, version, ARTIFACT_VERSION)
        if version == 1:
            _rename_speakers(fields, fields["session"], None)
        fields["observations"] = tuple(map(observation_of, filter(_is_kept, fields["observations"])))
        fields["cited"] = tuple(CitedText(**cited) for cited in fields["cited"])
        for name in ("principals", "shown"):
            fields[name] = tuple(fields[name])
        fields["takes"] = tuple(IdentifierUse(tool, tuple(paths)) for tool, paths in fields.get("takes", ()))
        return Artifact(**fields)
    except (ValueError, TypeError, KeyError, AttributeError, ValidationError) as error:
        raise Damaged(f"{what}: it is not a harvest artifact; harvest its transcript again") from error


def observation_fields(observation: Observation) -> dict[str, Any]:
    """JSON values; what has its default is left out."""
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


def _is_kept(fields: dict[str, Any]) -> bool:
    """Whether it is no observation about one person, as earlier versions kept them."""
    return fields["reach"] == "shared" and fields["kind"] in KINDS


def observation_of(fields: dict[str, Any]) -> Observation:
    """The inverse of `observation_fields`."""
    fields.pop("answers", None)  # of earlier versions
    slot = _slot(*fields["slot"])
    places = tuple(MessageSpan(*place) for place in fields["places"])
    return Observation(**{**fields, "slot": slot, "places": places})


@lru_cache(maxsize=4096)
def _slot(subject: str, attribute: str, cardinality: Any) -> Slot:
    return Slot(subject=subject, attribute=attribute, cardinality=cardinality)


class EvidenceSpan(NamedTuple):
    """One cited span of an observation, with all that `Evidence` says of it; JSON values."""

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
    """None: they were forgotten."""
    verified: bool = True
    """Whether the bytes are what its address says (`verified`)."""


def span_address(key: AddressKey, session: str, principal: str | None, data: bytes) -> str:
    """The address of the bytes of a span."""
    return address_of(key, subject_of(session, principal), "span", data)


def evidence_spans(artifact: Artifact, key: AddressKey) -> Iterator[tuple[EvidenceSpan, ...]]:
    """The cited spans of each of an artifact's observations."""
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
    """Whether the bytes at a span are what its address says, and the text is whose it says, trusted no less."""
    text = cut(cited.text, *evidence.span) if cited is not None else None
    if cited is None or text is None or (cited.role, cited.trust) != (evidence.role, evidence.trust):
        return False
    address = span_address(key, evidence.session, cited.principal, text.encode())
    written = (None, evidence.session) if cited.principal is None else (cited.principal,)
    # records of earlier versions name the session where the speaker is unknown
    return evidence.principal in written and hmac.compare_digest(address, evidence.span_address)


def quotes(evidence: Iterable[Evidence], cited: Iterable[CitedText | None], key: AddressKey) -> Iterator[EvidenceQuote]:
    """The words of each span."""
    for entry, said in zip(evidence, cited, strict=True):
        text = cut(said.text, *entry.span) if said is not None else None
        yield EvidenceQuote(entry, text, verified(entry, said, key))
